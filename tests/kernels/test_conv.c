// GLU and depthwise convolution: the fast kernels against the reference, over sizes, sentences and what is wanted; rows
// whose bits depend on their sentence only; single rows against whole sentences; bad offsets.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/kernel_check.h"
#include "ops/ops.h"

// A size of GLU and its gate's activation.
typedef struct unit {
  int64_t rows, d;
  tarn__activation gate;
} unit;

typedef struct shape {
  int64_t d, heads, width, before;
  double dropout;
  bool dynamic, x_grad, trained;
  int sentences;
  const int32_t *offsets;
} shape;

static void build(check *c, tarn__graph *graph, const void *spec) {
  const shape *s = spec;
  const int64_t rows = s->offsets[s->sentences], kernels = s->heads * s->width;
  tarn__tensor *x = check_input(c, graph, rows, s->d, 1.0, s->x_grad);
  tarn__tensor *logits = s->dynamic ? check_input(c, graph, rows, kernels, 1.0, s->trained)
                                    : tarn__graph_param(graph, check_param(c, 1, kernels, 1.0, s->trained));
  tarn__tensor *places = check_ints(c, graph, s->offsets, s->sentences + 1);
  tarn__conv_spec conv = {.heads = s->heads, .width = s->width, .before = s->before};
  check_output(c, tarn__depthwise_conv(graph, x, logits, places, conv, s->dropout));
}

// Sentences of many lengths, one of them empty, one much longer than the others.
static const int32_t many[] = {0, 1, 3, 3, 10, 27, 28, 120, 125};
static const int32_t one[] = {0, 1};
static const int32_t none[] = {0};
enum { MANY = sizeof many / sizeof many[0] - 1 };

static void sizes(void **state) {
  (void)state;
  static const int64_t widths[] = {1, 3, 7, 31}, ds[][2] = {{8, 2}, {24, 1}, {66, 3}, {256, 4}, {512, 8}};
  for (size_t k = 0; k < sizeof widths / sizeof widths[0]; k++)
    for (size_t i = 0; i < sizeof ds / sizeof ds[0]; i++)
      for (int which = 0; which < 4; which++) {
        char name[96];
        if (check_device() != &tarn__device_cpu && i == 4 && which != 3) continue;  // slow where threads are fibres
        const bool dynamic = which & 1, causal = which & 2;
        shape s = {ds[i][0], ds[i][1], widths[k], causal ? widths[k] - 1 : widths[k] / 2, 0.0, dynamic, true,
                   true,     MANY,     many};
        snprintf(name, sizeof name, "%s, %s, d %d, %d heads, width %d", dynamic ? "dynamic" : "light",
                 causal ? "causal" : "centred", (int)s.d, (int)s.heads, (int)s.width);
        if (i % 2 == 0) s.dropout = 0.3;
        check_kernels(build, &s, name, 2e-5, 0.03);
      }
}

static void parts(void **state) {
  (void)state;
  static const struct {
    const char *name;
    shape s;
  } cases[] = {
      {"light, frozen", {64, 4, 7, 3, 0.2, false, true, false, MANY, many}},
      {"light, frozen, no dropout", {64, 4, 7, 3, 0.0, false, true, false, MANY, many}},
      {"light, kernel alone", {64, 4, 7, 3, 0.2, false, false, true, MANY, many}},
      {"dynamic, frozen", {64, 4, 7, 6, 0.2, true, true, false, MANY, many}},
      {"dynamic, kernel alone", {64, 4, 7, 6, 0.0, true, false, true, MANY, many}},
      {"even and causal", {64, 4, 4, 3, 0.2, true, true, true, MANY, many}},
      {"one row, light", {64, 4, 7, 3, 0.2, false, true, true, 1, one}},
      {"one row, dynamic", {64, 4, 7, 3, 0.2, true, true, true, 1, one}},
      {"no rows", {64, 4, 7, 3, 0.2, true, true, true, 0, none}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    check_kernels(build, &cases[i].s, cases[i].name, 2e-5, 0.03);
  shape s = {64, 4, 7, 3, 0.3, true, true, true, MANY, many};
  check_kernels_mode(build, &s, "without training", false, 2e-5, 0.02);
}

static void build_glu(check *c, tarn__graph *graph, const void *spec) {
  const unit *u = spec;
  check_output(c, tarn__glu(graph, check_input(c, graph, u->rows, 2 * u->d, 3.0, true), u->gate));
}

static void glu(void **state) {
  (void)state;
  static const int64_t each[][2] = {{1, 1}, {3, 7}, {17, 16}, {40, 100}, {257, 256}, {0, 8}};
  for (size_t i = 0; i < sizeof each / sizeof each[0]; i++)
    for (tarn__activation gate = 0; gate < TARN__ACTIVATIONS_END; gate++) {
      char name[48];
      const unit u = {each[i][0], each[i][1], gate};
      snprintf(name, sizeof name, "glu, gate %d", (int)gate);
      check_kernels(build_glu, &u, name, 1e-5, 0.02);
    }
}

// Gates far from zero: exactly the value, exactly nothing, and no numbers that are not numbers; NaN stays NaN.
static void glu_far_out(void **state) {
  (void)state;
  enum { N = 4 };
  static const float values[2 * N] = {2.0f, 2.0f, 2.0f, 2.0f, 1e30f, -1e30f, 0.0f, NAN};
  float *x = check_shared(sizeof values), found[N];
  memcpy(x, values, sizeof values);
  tarn__graph graph = {0};
  tarn__graph_begin(&graph, check_device(), TARN__F32, false, 1);
  tarn__tensor *y = tarn__glu(&graph, tarn__graph_external(&graph, TARN__F32, 1, 2 * N, x, "x"), TARN__SIGMOID);
  check_ok(check_result(found, &graph, y));
  assert_true(found[0] == 2.0f);
  assert_true(fabsf(found[1]) < 1e-30f);
  assert_true(found[2] == 1.0f);
  assert_true(isnan(found[3]));
  check_shared_free(x);
}

enum { D = 40, HEADS = 5, WIDTH = 7, LENGTH = 19, EARLIER = 6 };

// The forward pass over a batch, with y copied to `out`.
static tarn_status run_batch(void *out, tarn__dtype dtype, void *x, void *logits, const int32_t *offsets, int sentences,
                             int64_t rows, int threads, bool in_rows) {
  tarn__graph graph = {0};
  tarn__conv_spec spec = {.heads = HEADS, .width = WIDTH, .before = WIDTH - 1};
  int32_t list[LENGTH * LENGTH], ranges[2 * LENGTH];
  int64_t listed = 0;
  tarn__graph_begin(&graph, check_device(), dtype, false, threads);
  tarn__tensor *from = tarn__graph_external(&graph, dtype, rows, D, x, "x");
  tarn__tensor *kernels = tarn__graph_external(&graph, dtype, rows, HEADS * WIDTH, logits, "logits");
  tarn__tensor *y;
  if (in_rows) {
    for (int32_t r = 0; r < rows; r++) {
      ranges[2 * r] = (int32_t)listed;
      for (int32_t j = 0; j <= r; j++) list[listed++] = j;
      ranges[2 * r + 1] = (int32_t)listed;
    }
    y = tarn__depthwise_conv_rows(&graph, from, kernels, tarn__graph_input(&graph, listed, list, "list"),
                                  tarn__graph_input(&graph, 2 * rows, ranges, "ranges"), spec);
  } else {
    y = tarn__depthwise_conv(&graph, from, kernels, tarn__graph_input(&graph, sentences + 1, offsets, "offsets"), spec,
                             0.1);
  }
  return check_result(out, &graph, y);
}

// A sentence has equal bits alone, behind others, on any number of threads, and row by row.
static void bits(void **state) {
  (void)state;
  enum { ROWS = EARLIER + LENGTH };
  static const int32_t alone[] = {0, LENGTH}, behind[] = {0, EARLIER, ROWS};
  static const tarn__dtype dtypes[] = {TARN__F32, TARN__BF16};
  tarn__random random;
  tarn__random_init(&random, 11, 0);
  void *x = check_shared(ROWS * D * sizeof(double)), *logits = check_shared(ROWS * HEADS * WIDTH * sizeof(double));
  for (int t = 0; t < 2; t++) {
    const tarn__dtype dtype = dtypes[t];
    const size_t size = tarn__dtype_size(dtype);
    static double first[ROWS * D], other[ROWS * D];
    for (size_t i = 0; i < ROWS * D; i++) check_store(x, dtype, i, tarn__random_normal(&random));
    for (size_t i = 0; i < ROWS * HEADS * WIDTH; i++) check_store(logits, dtype, i, tarn__random_normal(&random));
    void *own = (char *)x + EARLIER * D * size, *own_logits = (char *)logits + EARLIER * HEADS * WIDTH * size;
    check_ok(run_batch(first, dtype, own, own_logits, alone, 1, LENGTH, 1, false));
    for (int threads = 1; threads <= 5; threads++) {
      check_ok(run_batch(other, dtype, x, logits, behind, 2, ROWS, threads, false));
      assert_memory_equal(first, (char *)other + EARLIER * D * size, LENGTH * D * size);
    }
    check_ok(run_batch(other, dtype, own, own_logits, NULL, 0, LENGTH, 2, true));
    assert_memory_equal(first, other, LENGTH * D * size);
  }
  check_shared_free(x);
  check_shared_free(logits);
}

static void bad_offsets(void **state) {
  (void)state;
  static float x[LENGTH * D], logits[LENGTH * HEADS * WIDTH], y[LENGTH * D];
  static const int32_t few[] = {0, 5, LENGTH - 1}, falling[] = {0, 7, 5, LENGTH};
  assert_int_equal(run_batch(y, TARN__F32, x, logits, few, 2, LENGTH, 1, false), TARN_STATUS_INTERNAL);
  assert_int_equal(run_batch(y, TARN__F32, x, logits, falling, 3, LENGTH, 1, false), TARN_STATUS_INTERNAL);
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sizes), cmocka_unit_test(parts),
                                     cmocka_unit_test(glu),   cmocka_unit_test(glu_far_out),
                                     cmocka_unit_test(bits),  cmocka_unit_test(bad_offsets)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }
