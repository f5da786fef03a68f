// Compares the fast kernels of the tangents of parts other than plain attention with the reference in double, and
// checks that a device without one is rejected.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/gated_conv_check.h"
#include "kernels/linear_attention_check.h"
#include "kernels/relative_check.h"
#include "tangents/part_cases.h"

static void linear_ops(void **state) {
  (void)state;
  for (int relu = 0; relu < 2; relu++) check_tangent_kernels(build_linear_ops, &(bool){relu == 1}, "linear ops", 3e-5);
  check_tangent_kernels(build_products, &(products){{2, 2, D, 7}, true, true}, "sentence products", 2e-5);
  check_tangent_kernels_mode(build_conv, &(conv){4, 3, 0.0, false, true, false}, "light convolution", false, 2e-5);
  const synthesis_shape random = {TARN__SYNTHESIS_RANDOM, 2, D, 7, 0, 0, false, false, false, SENTENCES, sentence_ends};
  check_tangent_kernels_mode(synthesis_build, &random, "random synthesis", false, 2e-5);
}

static void build_wide(check *c, tarn__graph *graph, const void *spec) {
  const int64_t cols = *(const int64_t *)spec;
  tarn__tensor *x = check_input(c, graph, ROWS, cols, 1.0, true), *at = places(c, graph);
  tarn__param *weight = check_param(c, 7, 7, 0.5, true), *bias = check_param(c, 1, 7, 0.5, true);
  const tarn__token_gate with = {check_input(c, graph, ROWS, cols, 1.0, true), x};
  const tarn__token_spec among = {TARN__TOKENS_AMONG, true, 5, 0};
  check_output(c, tarn__tanh(graph, x));
  check_output(c, tarn__token_linear(graph, x, at, weight, bias, with, among));
}

static void gates(void **state) {
  (void)state;
  static const int64_t cols[] = {1, 7, 16, 100, 512};
  for (size_t i = 0; i < sizeof cols / sizeof *cols; i++) check_tangent_kernels(build_wide, &cols[i], "gates", 2e-5);
  for (int form = TARN__TOKENS_AMONG; form <= TARN__TOKENS_OUT; form++) {
    const tokens t = {{form, false, 5, ROWS}, false, false, true, false, false};
    check_tangent_kernels(build_tokens, &t, "token_linear", 2e-5);
  }
}

static void recurrences(void **state) {
  (void)state;
  static const tarn__recurrence_spec cells[] = {
      {.cell = TARN__CELL_GRU, .directions = 1},
      {.cell = TARN__CELL_LSTM, .directions = 1},
      {.cell = TARN__CELL_ECHO, .directions = 1, .leak = 0.8},
      {.cell = TARN__CELL_ECHO, .directions = 1, .leak = 1.0, .relu = true},
  };
  static const int64_t hidden[] = {5, 32, 100};
  for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
    for (size_t k = 0; k < sizeof hidden / sizeof *hidden; k++) {
      recurrence_case at = {.spec = cells[i], .sentences = 7, .longest = 9, .x = true, .weights = true, .biases = true};
      at.spec.hidden = hidden[k];
      at.carried = k == 1;
      at.spec.directions = k == 2 ? 2 : 1;
      at.spec.reverse = k == 0;
      check_tangent_kernels(recurrence_build, &at, "recurrence", 3e-5);
    }
  recurrence_case sparse = {.spec = cells[2], .sentences = 5, .longest = 6, .x = true, .sparsity = 0.95};
  sparse.spec.hidden = 96;
  check_tangent_kernels(recurrence_build, &sparse, "sparse recurrence", 3e-5);
  sparse.crowded = true;
  check_tangent_kernels(recurrence_build, &sparse, "crowded recurrence", 3e-5);
  // A card takes one series alone, and weights that are too large for one launch, otherwise than these.
  for (size_t i = 0; check_device() != &tarn__device_cpu && i < sizeof cells / sizeof *cells; i++) {
    recurrence_case one = {.spec = cells[i], .sentences = 1, .longest = 5, .x = true, .weights = true, .biases = true};
    one.spec.hidden = 12;
    check_tangent_kernels(recurrence_build, &one, "recurrence of one series", 3e-5);
    one.spec.hidden = 220;
    one.sentences = 2;
    check_tangent_kernels(recurrence_build, &one, "large recurrence", 3e-5);
  }
}

// States that sentences begin with move; what they end with is that of the last row.
static void windows(void **state) {
  (void)state;
  static const tarn__cell cells[] = {TARN__CELL_GRU, TARN__CELL_LSTM, TARN__CELL_ECHO};
  for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
    for (int x = 0; x < 2; x++) {
      const window w = {{.cell = cells[i], .hidden = 20, .directions = 1, .leak = 0.7}, x == 1};
      check_tangent_kernels_mode(build_window, &w, "window of a recurrence", false, 3e-5);
    }
}

static void experts(void **state) {
  (void)state;
  static const tarn__product_keys_spec nearest = {2, 3};
  for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
    check_tangent_kernels(build_experts, &variants[i], variants[i].name, 5e-5);
  check_tangent_kernels(build_memory, &nearest, "product keys", 5e-5);
}

typedef struct wide_conv {
  int64_t d, heads, width, before;
  bool dynamic;
} wide_conv;

static void build_wide_conv(check *c, tarn__graph *graph, const void *spec) {
  const wide_conv *s = spec;
  tarn__tensor *x = check_input(c, graph, ROWS, s->d, 1.0, true);
  tarn__tensor *logits = s->dynamic ? check_input(c, graph, ROWS, s->heads * s->width, 1.0, true)
                                    : tarn__graph_param(graph, check_param(c, 1, s->heads * s->width, 1.0, true));
  const tarn__conv_spec form = {.heads = s->heads, .width = s->width, .before = s->before};
  check_output(c, tarn__depthwise_conv(graph, x, logits, places(c, graph), form, 0.2));
}

static void convolutions(void **state) {
  (void)state;
  static const conv small[] = {{3, 1, 0.0, true, true, true},
                               {4, 3, 0.3, false, true, false},
                               {3, 1, 0.3, true, true, false},
                               {7, 3, 0.3, true, false, true}};
  static const wide_conv wide[] = {{200, 4, 3, 1, true}, {128, 1, 5, 4, true}, {256, 2, 7, 3, false}};
  for (size_t i = 0; i < sizeof small / sizeof *small; i++)
    check_tangent_kernels(build_conv, &small[i], "convolution", 3e-5);
  for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
    check_tangent_kernels(build_wide_conv, &wide[i], "wide convolution", 3e-5);
}

// Sentences of one row and of none, some that are taken by pairs and some chunk by chunk.
static const int32_t long_ends[] = {0, 1, 134, 134, 267}, short_ends[] = {0, 20, 21, 21, 61};

static void linear_attention(void **state) {
  (void)state;
  for (int form = 0; form < 8; form++) {
    linear_case at = {.heads = 2,
                      .width = form & 4 ? 16 : 5,
                      .sentences = SENTENCES,
                      .offsets = form & 4 ? long_ends : short_ends,
                      .scale = 0.8,
                      .rest = form & 4 ? 0 : 3,
                      .softmax = form & 1,
                      .causal = (form & 2) != 0};
    at.features = at.softmax ? 19 : at.width;
    check_tangent_kernels(linear_build, &at, at.softmax ? "linear attention, softmax" : "linear attention, elu", 1e-4);
    at.carried = at.causal;
    if (at.carried) check_tangent_kernels(linear_build, &at, "linear attention, carried", 1e-4);
  }
}

// Features or values that do not move.
typedef struct half {
  tarn__linear_attention_spec spec;
  const int32_t *ends;
  bool phi;
} half;

static void build_half(check *c, tarn__graph *graph, const void *spec) {
  const half *h = spec;
  const tarn__linear_attention_spec *s = &h->spec;
  tarn__tensor *phi = check_input(c, graph, h->ends[SENTENCES], 2 * s->heads * s->features, 1.0, false);
  check_item *item = &c->item[c->next - 1];
  for (int64_t i = 0; i < item->rows * item->cols; i++)
    check_store(item->data, graph->dtype, (size_t)i, 0.1 + fabs(item->value[i]));
  item->wants_grad = h->phi;
  tarn__tensor *v = check_input(c, graph, h->ends[SENTENCES], s->heads * s->width, 1.0, !h->phi);
  check_output(c, tarn__linear_attention(graph, phi, v, check_ints(c, graph, h->ends, SENTENCES + 1), *s, NULL, NULL));
}

static void halves(void **state) {
  (void)state;
  for (int form = 0; form < 8; form++) {
    const half h = {{.heads = 2, .width = 7, .features = form & 4 ? 4 : 18, .causal = form & 1},
                    form & 4 ? long_ends : short_ends,
                    (form & 2) != 0};
    check_tangent_kernels_mode(build_half, &h, h.phi ? "features alone" : "values alone", false, 5e-5);
  }
}

static void gated_convolutions(void **state) {
  (void)state;
  for (int i = 0; i < GATED_CONV_SHAPES; i++)
    check_tangent_kernels(gated_conv_build, &gated_conv_shapes[i], gated_conv_shapes[i].name, 1e-5);
}

static void synthesis(void **state) {
  (void)state;
  static const struct {
    const char *name;
    synthesis_shape s;
  } cases[] = {
      {"dense", {TARN__SYNTHESIS_DENSE, 2, D, 7, 0, 3, false, false, true, SENTENCES, sentence_ends}},
      {"dense, mixed", {TARN__SYNTHESIS_DENSE, 2, 32, 300, 0, 16, true, true, true, SENTENCES, long_ends}},
      {"dense, without bias", {TARN__SYNTHESIS_DENSE, 1, 24, 50, 0, 20, true, false, false, SENTENCES, short_ends}},
      {"factorised", {TARN__SYNTHESIS_FACTORISED, 2, D, 7, 3, 6, false, false, false, SENTENCES, sentence_ends}},
      {"factorised, mixed", {TARN__SYNTHESIS_FACTORISED, 3, 48, 290, 17, 35, false, true, false, SENTENCES, long_ends}},
      {"random, mixed", {TARN__SYNTHESIS_RANDOM, 2, 32, 40, 0, 0, false, true, false, SENTENCES, short_ends}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    check_tangent_kernels_mode(synthesis_build, &cases[i].s, cases[i].name, false, 5e-5);
}

// Small ones, and wide ones with more queries than a block.
static void relative_attention(void **state) {
  (void)state;
  for (int form = 0; form < 8; form++) {
    relative_shape e = relative_small(form);
    e.frozen = true;
    check_tangent_kernels(relative_build, &e, "relative attention", 3e-5);
    if (form != 1 && form != 4) continue;
    e.shape.d = 96;
    e.shape.queries[1] = 150;
    check_tangent_kernels(relative_build, &e, "relative attention, wide", 5e-5);
  }
}

static void outputs(void **state) {
  (void)state;
  static const double smoothing[] = {0.0, 0.3};
  for (size_t i = 0; i < 2; i++)
    check_tangent_kernels_mode(build_output_loss, &smoothing[i], "output layer", false, 3e-5);
  check_tangent_kernels_mode(build_squares, NULL, "squared error", false, 1e-5);
}

// A device that has no kernel for a rule's op says which op it is of.
static void refused(void **state) {
  (void)state;
  static tarn__device_kernel kernels[TARN__OPS];
  static tarn__device_type type;
  tangent_check t = {0};
  tarn__graph graph = {0};
  memcpy(kernels, tarn__device_cpu.type->kernels[TARN__F32], sizeof kernels);
  kernels[TARN__OP_SYNTHESIS_TANGENT] = (tarn__device_kernel){0};
  type = *tarn__device_cpu.type;
  type.kernels[TARN__F32] = kernels;
  const tarn__device device = {.type = &type, .name = "poor"};
  check_open(&t.c);
  t.c.dtype = TARN__F32;
  tarn__graph_begin(&graph, &device, TARN__F32, false, 1);
  const synthesis_shape dense = {TARN__SYNTHESIS_DENSE, 2, D, 7, 0, 3, false, false, true, SENTENCES, sentence_ends};
  synthesis_build(&t.c, &graph, &dense);
  for (int i = 0; i < t.c.items; i++)
    if (tangent_moves(&t.c.item[i])) tangent_seed(&t, &graph, i);
  tarn__graph_push(&graph, TANGENT_DIRECTIONS);
  assert_int_equal(tarn__graph_plan(&graph), TARN_STATUS_UNSUPPORTED);
  assert_non_null(strstr(tarn_error_message(), "no tangents of the op synthesis"));
  tarn__graph_close(&graph);
  tangent_close(&t);
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(linear_ops),
                                     cmocka_unit_test(gates),
                                     cmocka_unit_test(recurrences),
                                     cmocka_unit_test(windows),
                                     cmocka_unit_test(experts),
                                     cmocka_unit_test(convolutions),
                                     cmocka_unit_test(linear_attention),
                                     cmocka_unit_test(halves),
                                     cmocka_unit_test(gated_convolutions),
                                     cmocka_unit_test(synthesis),
                                     cmocka_unit_test(relative_attention),
                                     cmocka_unit_test(outputs),
                                     cmocka_unit_test(refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }
