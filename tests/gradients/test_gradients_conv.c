// The gradients of GLU and depthwise convolution against finite differences.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/kernel_check.h"
#include "ops/ops.h"

static const int32_t offsets[] = {0, 5, 6, 6, 9};
enum { ROWS = 9, SENTENCES = 4, D = 6, HEADS = 2 };

typedef struct shape {
  int64_t width, before;
  double dropout;
  bool dynamic, x_grad, trained;
} shape;

static void build(check *c, tarn__graph *graph, const void *spec) {
  const shape *s = spec;
  tarn__tensor *x = check_input(c, graph, ROWS, D, 1.0, s->x_grad);
  tarn__tensor *logits = s->dynamic ? check_input(c, graph, ROWS, HEADS * s->width, 1.0, s->trained)
                                    : tarn__graph_param(graph, check_param(c, 1, HEADS * s->width, 1.0, s->trained));
  tarn__tensor *places = check_ints(c, graph, offsets, SENTENCES + 1);
  tarn__conv_spec conv = {.heads = HEADS, .width = s->width, .before = s->before};
  check_output(c, tarn__depthwise_conv(graph, x, logits, places, conv, s->dropout));
}

static void convolution(void **state) {
  (void)state;
  static const struct {
    const char *name;
    shape s;
  } cases[] = {
      {"light, centred", {3, 1, 0.0, false, true, true}},
      {"light, causal", {4, 3, 0.3, false, true, true}},
      {"light, frozen", {3, 1, 0.3, false, true, false}},
      {"light, kernel alone", {7, 3, 0.3, false, false, true}},
      {"light, wide", {15, 7, 0.2, false, true, true}},
      {"dynamic, centred", {3, 1, 0.0, true, true, true}},
      {"dynamic, causal", {4, 3, 0.3, true, true, true}},
      {"dynamic, frozen", {3, 1, 0.3, true, true, false}},
      {"dynamic, kernel alone", {7, 3, 0.3, true, false, true}},
      {"dynamic, width 1", {1, 0, 0.3, true, true, true}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) check_gradients(build, &cases[i].s, cases[i].name, 1e-7);
}

// A kernel that is used twice, and a GLU and logits whose inputs have other readers.
static void build_chain(check *c, tarn__graph *graph, const void *spec) {
  const shape *s = spec;
  tarn__tensor *x = check_input(c, graph, ROWS, 2 * D, 1.0, true);
  tarn__param *light = check_param(c, 1, HEADS * s->width, 1.0, true);
  tarn__param *kernel = check_param(c, HEADS * s->width, D, 0.5, true);
  tarn__tensor *places = check_ints(c, graph, offsets, SENTENCES + 1);
  tarn__conv_spec conv = {.heads = HEADS, .width = s->width, .before = s->before};
  tarn__tensor *gated = tarn__glu(graph, x, TARN__SIGMOID);
  tarn__tensor *logits = tarn__linear(graph, gated, kernel, NULL, TARN__IDENTITY);
  tarn__tensor *y = tarn__depthwise_conv(graph, gated, tarn__graph_param(graph, light), places, conv, s->dropout);
  y = tarn__depthwise_conv(graph, y, tarn__graph_param(graph, light), places, conv, s->dropout);
  check_output(c, tarn__depthwise_conv(graph, y, logits, places, conv, s->dropout));
  check_output(c, tarn__depthwise_conv(graph, gated, logits, places, conv, s->dropout));
  check_output(c, tarn__glu(graph, x, TARN__SIGMOID));
}

static void chain(void **state) {
  (void)state;
  static const shape s = {5, 2, 0.2, true, true, true};
  check_gradients(build_chain, &s, "chain", 1e-7);
  check_kernels(build_chain, &s, "chain", 2e-5, 0.05);
}

static void build_glu(check *c, tarn__graph *graph, const void *spec) {
  tarn__tensor *x = check_input(c, graph, 4, 6, 1.5, true);
  check_output(c, tarn__glu(graph, x, *(const tarn__activation *)spec));
  check_output(c, tarn__glu(graph, x, TARN__SIGMOID));
}

// Every gate; x is read twice.
static void glu(void **state) {
  (void)state;
  for (tarn__activation gate = 0; gate < TARN__ACTIVATIONS_END; gate++) check_gradients(build_glu, &gate, "glu", 1e-7);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(convolution), cmocka_unit_test(chain), cmocka_unit_test(glu)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
