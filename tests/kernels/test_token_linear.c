// Linear layers across tokens: the fast kernels against the reference, over forms, sizes and sentences; sentences whose
// bits depend on themselves only; single rows against whole sentences; gradients of what no sentence reaches;
// operations counted by hand; bad sentences.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/kernel_check.h"
#include "ops/ops.h"
#include "ops/token_linear.h"

typedef struct shape {
  tarn__token_form form;
  bool causal, gate, added;
  int64_t d, hidden;
  int sentences;
  const int32_t *offsets;
  int64_t tokens;
} shape;

static void build(check *c, tarn__graph *graph, const void *spec) {
  const shape *s = spec;
  const bool in = s->form == TARN__TOKENS_IN, out = s->form == TARN__TOKENS_OUT;
  const int64_t rows = s->offsets[s->sentences];
  tarn__tensor *x = check_input(c, graph, out ? s->sentences * s->hidden : rows, s->d, 1.0, true);
  tarn__tensor *places = check_ints(c, graph, s->offsets, s->sentences + 1);
  tarn__param *weight = check_param(c, in ? s->hidden : s->tokens, out ? s->hidden : s->tokens, 0.3, true);
  tarn__param *bias = check_param(c, 1, in ? s->hidden : s->tokens, 0.3, true);
  tarn__token_gate with = {0};
  if (s->gate) with.gate = check_input(c, graph, rows, s->d, 1.0, true);
  if (s->added) with.added = check_input(c, graph, rows, s->d, 1.0, true);
  const tarn__token_spec token = {s->form, s->causal, s->tokens + 5, rows};
  check_output(c, tarn__token_linear(graph, x, places, weight, bias, with, token));
  // Other readers of everything, whose gradients are there already.
  check_output(c, tarn__token_linear(graph, x, places, weight, bias, (tarn__token_gate){0}, token));
  if (with.gate) check_output(c, tarn__tanh(graph, with.gate));
  if (with.added) check_output(c, tarn__tanh(graph, with.added));
}

// Sentences of many lengths, one of them empty, one much longer than the others; and few.
static const int32_t many[] = {0, 1, 3, 3, 10, 27, 28, 98, 103, 107};
static const int32_t few[] = {0, 37, 37};
static const int32_t none[] = {0};
enum { MANY = sizeof many / sizeof many[0] - 1, TOKENS = 71 };

static void sizes(void **state) {
  (void)state;
  static const int64_t ds[] = {1, 8, 30, 100};
  for (size_t i = 0; i < sizeof ds / sizeof ds[0]; i++)
    for (int form = 0; form < 6; form++) {
      shape s = {.form = form < 4    ? TARN__TOKENS_AMONG
                         : form == 4 ? TARN__TOKENS_IN
                                     : TARN__TOKENS_OUT,
                 .causal = form & 1 && form < 4,
                 .gate = form >= 1 && form < 4,
                 .added = form == 2 || form == 3,
                 .d = ds[i],
                 .hidden = 19,
                 .sentences = MANY,
                 .offsets = many,
                 .tokens = TOKENS};
      char name[96];
      snprintf(name, sizeof name, "form %d, d %d", form, (int)s.d);
      check_kernels(build, &s, name, 3e-5, 0.15);
      s.sentences = 2, s.offsets = few;
      check_kernels(build, &s, name, 3e-5, 0.15);
    }
  const shape nothing = {.d = 8, .gate = true, .offsets = none, .tokens = 3};
  check_kernels(build, &nothing, "no rows", 1e-5, 0.02);
}

enum { D = 40, LENGTH = 19, EARLIER = 6, ROWS = EARLIER + LENGTH, LISTED = LENGTH * (LENGTH + 1) / 2, PLACES = 24 };

// A batch of whole sentences or, with a list, of single rows; of a causal layer with a gate.
typedef struct batch {
  tarn__dtype dtype;
  int64_t rows;
  int threads, sentences;
  const int32_t *offsets, *list, *ranges;
  int64_t longest;
} batch;

static void *weights;  // [PLACES, PLACES]
static float *biases;  // [PLACES]

static tarn_status run_batch(void *out, const batch *b, void *x) {
  tarn__graph graph = {0};
  tarn__graph_begin(&graph, check_device(), b->dtype, false, b->threads);
  tarn__param weight = {.name = "weight", .rows = PLACES, .cols = PLACES, .dtype = b->dtype, .value = weights};
  tarn__param bias = {.name = "bias", .rows = 1, .cols = PLACES, .vector = true, .value = biases};
  tarn__tensor *from = tarn__graph_external(&graph, b->dtype, b->rows, D, x, "x");
  tarn__tensor *y =
      b->list ? tarn__token_linear_rows(&graph, from, 0, D, tarn__graph_input(&graph, LISTED, b->list, "list"),
                                        tarn__graph_input(&graph, 2 * b->rows, b->ranges, "ranges"), &weight, &bias,
                                        (tarn__token_gate){from, from})
              : tarn__token_linear(&graph, from, tarn__graph_input(&graph, b->sentences + 1, b->offsets, "offsets"),
                                   &weight, &bias, (tarn__token_gate){from, from},
                                   (tarn__token_spec){.causal = true, .longest = b->longest});
  return check_result(out, &graph, y);
}

// A sentence has equal bits alone, behind others and on any number of threads, and row by row the same numbers.
static void bits(void **state) {
  (void)state;
  static const int32_t alone[] = {0, LENGTH}, behind[] = {0, EARLIER, EARLIER, EARLIER, EARLIER, EARLIER, ROWS};
  static const tarn__dtype dtypes[] = {TARN__F32, TARN__BF16};
  int32_t list[LISTED], ranges[2 * LENGTH], listed = 0;
  for (int32_t r = 0; r < LENGTH; r++) {
    ranges[2 * r] = listed;
    for (int32_t j = 0; j <= r; j++) list[listed++] = j;
    ranges[2 * r + 1] = listed;
  }
  tarn__random random;
  tarn__random_init(&random, 11, 0);
  weights = check_shared(PLACES * PLACES * sizeof(float));
  biases = check_shared(PLACES * sizeof *biases);
  for (int t = 0; t < 2; t++) {
    const size_t before = EARLIER * D * tarn__dtype_size(dtypes[t]), size = LENGTH * D * tarn__dtype_size(dtypes[t]);
    static double first[ROWS * D], other[ROWS * D];
    void *x = check_shared(before + size);
    for (size_t i = 0; i < ROWS * D; i++) check_store(x, dtypes[t], i, tarn__random_normal(&random));
    for (size_t i = 0; i < PLACES * PLACES; i++) check_store(weights, dtypes[t], i, 0.2 * tarn__random_normal(&random));
    for (size_t i = 0; i < PLACES; i++) biases[i] = (float)tarn__random_normal(&random);
    batch b = {.dtype = dtypes[t], .rows = LENGTH, .threads = 1, .sentences = 1, .offsets = alone, .longest = LENGTH};
    check_ok(run_batch(first, &b, (char *)x + before));
    b.list = list, b.ranges = ranges;
    check_ok(run_batch(other, &b, (char *)x + before));
    for (size_t i = 0; i < LENGTH * D; i++) {
      const double whole = check_load(first, dtypes[t], i), single = check_load(other, dtypes[t], i);
      if (!(fabs(whole - single) <= (t ? 0.02 : 1e-5) * (1.0 + fabs(whole)))) fail_msg("%zu: %g, %g", i, whole, single);
    }
    b = (batch){.dtype = dtypes[t], .rows = ROWS, .sentences = 6, .offsets = behind, .longest = ROWS};
    for (b.threads = 1; b.threads <= 4; b.threads++) {
      check_ok(run_batch(other, &b, x));
      assert_memory_equal(first, (char *)other + before, size);
    }
    check_shared_free(x);
  }
  check_shared_free(weights);
  check_shared_free(biases);
}

static void operations(void **state) {
  (void)state;
  static const int32_t offsets[] = {0, 5, 9};
  static const double expected[] = {2 * 6 * (25 + 16), 2 * 6 * (15 + 10), 2 * 6 * 9 * 7, 2 * 6 * 9 * 7};
  for (int i = 0; i < 4; i++) {
    const tarn__token_form form = i < 2 ? TARN__TOKENS_AMONG : i == 2 ? TARN__TOKENS_IN : TARN__TOKENS_OUT;
    tarn__graph graph = {0};
    tarn__graph_begin(&graph, check_device(), TARN__F32, true, 1);
    tarn__param weight = {.name = "weight", .rows = i == 2 ? 7 : 8, .cols = i == 3 ? 7 : 8, .trained = true};
    tarn__param bias = {.name = "bias", .rows = 1, .cols = weight.rows, .vector = true};
    tarn__tensor *x = tarn__graph_tensor(&graph, TARN__F32, i == 3 ? 14 : 9, 6, "x");
    x->needs_grad = true;
    tarn__tensor *y = tarn__token_linear(&graph, x, tarn__graph_input(&graph, 3, offsets, "offsets"), &weight, &bias,
                                         (tarn__token_gate){0}, (tarn__token_spec){form, i == 1, 5, 9});
    assert_true(y->source->op->flops(y->source) == expected[i]);
    y->grad = tarn__graph_tensor(&graph, TARN__F32, y->rows, y->cols, "dy");
    const size_t before = graph.node_count;
    graph.backward = true;
    y->source->op->grad(&graph, y->source);
    assert_int_equal(graph.status, TARN_STATUS_OK);
    assert_int_equal(graph.node_count, before + 2);
    for (size_t n = before; n < graph.node_count; n++)
      assert_true(graph.nodes[n]->op->flops(graph.nodes[n]) == expected[i]);
    tarn__graph_close(&graph);
  }
}

static void bad_sentences(void **state) {
  (void)state;
  static const int32_t longer[] = {0, PLACES + 1}, uncovered[] = {0, 4};
  static double x[(PLACES + 1) * D], y[(PLACES + 1) * D];
  batch b = {.dtype = TARN__F32, .rows = PLACES + 1, .threads = 1, .sentences = 1, .offsets = longer, .longest = 99};
  assert_int_equal(run_batch(y, &b, x), TARN_STATUS_INTERNAL);
  assert_non_null(strstr(tarn_error_message(), "token_linear: sentence 0 has 25 tokens; expected at most 24"));
  b.offsets = uncovered;
  assert_int_equal(run_batch(y, &b, x), TARN_STATUS_INTERNAL);
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sizes), cmocka_unit_test(bits), cmocka_unit_test(operations),
                                     cmocka_unit_test(bad_sentences)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }
