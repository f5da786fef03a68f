// What distances take from the scores of attention (ALiBi): kernels against the reference, gradients, slopes, and steps
// of decoding against whole sequences.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/attention_check.h"

typedef struct biased_shape {
  attention_shape shape;
  double alibi;
} biased_shape;

static void build(check *c, tarn__graph *graph, const void *spec) {
  const biased_shape *s = spec;
  attention_build_biased(c, graph, &s->shape, s->alibi);
}

// Heads that are no power of two among them, and widths of every family of kernels.
static void against_reference(void **state) {
  (void)state;
  static const struct {
    int64_t d;
    int heads;
  } widths[] = {{8, 1}, {60, 3}, {192, 6}, {128, 2}};
  for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++)
    for (size_t form = i % attention_step(2); form < 4; form += attention_step(2)) {
      const biased_shape s = {.shape = {.d = widths[i].d,
                                        .heads = widths[i].heads,
                                        .sequences = 6,
                                        .queries = {1, 15, 0, 17, 70, 33},
                                        .self = true,
                                        .causal = form % 2,
                                        .query_grad = true,
                                        .dropout = form / 2 ? 0.3 : 0.0},
                              .alibi = 8.0};
      check_kernels(build, &s, "biases", 2e-5, 0.03);
    }
}

// Long sequences, which have a separate backward pass in BF16, together with short ones. The first slopes leave nothing
// of distant keys, the last ones nearly all.
static void long_sequences(void **state) {
  (void)state;
  for (int causal = 0; causal < 2; causal++) {
    biased_shape s = {{64, 2, 3, {attention_long(550, 400), 40, 0}, {0}, true, causal, true, false, 0.0}, 10.0};
    check_kernels(build, &s, "biases of long sequences", 3e-5, 0.05);
    s = (biased_shape){{32, 1, 1, {400}, {0}, true, causal, true, false, 0.2}, 6.0};
    check_kernels(build, &s, "biases of long sequences, dropout", 3e-5, 0.05);
    s = (biased_shape){{40, 5, 2, {130, 1}, {0}, true, causal, true, false, 0.0}, 8.0};
    check_kernels(build, &s, "biases, narrow heads", 3e-5, 0.03);
  }
}

static void gradients(void **state) {
  (void)state;
  biased_shape self = {{12, 3, 5, {3, 0, 1, 5, 2}, {0}, true, false, true, false, 0.0}, 2.0};
  check_gradients(build, &self, "biases, self", 1e-7);
  self.shape.causal = true;
  check_gradients(build, &self, "biases, causal", 1e-7);
  self.shape.dropout = 0.4;
  check_gradients(build, &self, "biases, causal, dropout", 1e-7);
  self.shape.causal = false, self.shape.self = false, self.shape.key_grad = true;
  memcpy(self.shape.keys, self.shape.queries, sizeof self.shape.keys);
  check_gradients(build, &self, "biases, keys of another tensor", 1e-7);
}

// Those of the paper: powers of 1/2 for 8 heads; for 6 heads those of 4, and every second one of 8.
static void slopes(void **state) {
  (void)state;
  static const double of_6[] = {0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125};
  double found[8];
  tarn__attention_slopes(&(tarn__attention_spec){.heads = 8, .alibi = 8.0}, found);
  for (int h = 0; h < 8; h++) assert_true(fabs(found[h] * ldexp(1.0, h + 1) - 1.0) < 1e-14);
  tarn__attention_slopes(&(tarn__attention_spec){.heads = 6, .alibi = 8.0}, found);
  for (int h = 0; h < 6; h++) assert_true(fabs(found[h] / of_6[h] - 1.0) < 1e-14);
  tarn__attention_slopes(&(tarn__attention_spec){.heads = 1, .alibi = 2.0}, found);
  assert_true(fabs(found[0] - 0.25) < 1e-14);
  tarn__attention_slopes(&(tarn__attention_spec){.heads = 3}, found);
  for (int h = 0; h < 3; h++) assert_true(found[h] == 0.0);
}

// A causal sequence, and the steps that decode it over a cache whose rows lie in another order.
enum { ROWS = 9, D = 24 };

static void *cache_memory;  // [2 ROWS, 2 D]

static void build_steps(check *c, tarn__graph *graph, const void *spec) {
  (void)spec;
  static const int32_t offsets[] = {0, ROWS};
  int32_t rows[ROWS], ranges[2 * ROWS];
  int32_t times[ROWS];  // of the rows of the cache
  for (int i = 0; i < ROWS; i++) {
    times[i] = 4 * i % ROWS;
    rows[times[i]] = ROWS + i;
    ranges[2 * i] = 0, ranges[2 * i + 1] = i + 1;
  }
  tarn__attention_spec attention = {
      .heads = 3, .d = D, .key_column = D, .value_column = 2 * D, .causal = true, .longest = ROWS, .alibi = 3.0};
  tarn__tensor *qkv = check_input(c, graph, ROWS, 3 * D, 1.0, false);
  tarn__tensor *at = check_ints(c, graph, offsets, 2);
  tarn__tensor *list = check_ints(c, graph, rows, ROWS), *range = check_ints(c, graph, ranges, 2 * ROWS);
  check_output(c, tarn__attention(graph, qkv, qkv, at, at, attention));
  attention.key_column = 0;
  attention.value_column = D;
  tarn__tensor *cache = tarn__graph_external(graph, graph->dtype, 2 * ROWS, 2 * D, cache_memory, "cache");
  tarn__tensor *shuffled = tarn__select_rows(graph, qkv, check_ints(c, graph, times, ROWS));
  cache = tarn__cache_append(graph, shuffled, D, cache, ROWS);
  check_output(c, tarn__attention_rows(graph, qkv, cache, list, range, attention));
}

static void steps(void **state) {
  (void)state;
  const struct {
    const tarn__device *device;
    tarn__dtype dtype;
    double tolerance;
  } ways[] = {{&tarn__device_reference, TARN__F64, 1e-12},
              {check_device(), TARN__F32, 1e-5},
              {check_device(), TARN__BF16, 0.01}};
  check c;
  cache_memory = check_shared(2 * ROWS * 2 * D * sizeof(double));
  check_open(&c);
  for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
    check_run(&c, build_steps, NULL, ways[w].device, ways[w].dtype, false);
    check_close_to(c.output_value[1], c.output_value[0], c.output_size[0], ways[w].tolerance, "steps", "output", 1);
  }
  check_close(&c);
  check_shared_free(cache_memory);
}

// Without equal numbers of queries and keys there are no distances.
static void unequal_lengths(void **state) {
  (void)state;
  static const int32_t queries[] = {0, 3, 4}, keys[] = {0, 2, 4};
  float *memory = check_shared(4 * 24 * sizeof *memory);
  for (int biased = 0; biased < 2; biased++) {
    tarn__graph graph = {0};
    tarn__graph_begin(&graph, check_device(), TARN__F32, false, 1);
    tarn__tensor *x = tarn__graph_external(&graph, TARN__F32, 4, 24, memory, "qkv");
    tarn__tensor *q_at = tarn__graph_input(&graph, 3, queries, "offsets");
    tarn__tensor *k_at = tarn__graph_input(&graph, 3, keys, "offsets");
    tarn__attention_spec spec = {.heads = 1, .d = 8, .key_column = 8, .value_column = 16, .longest = 3};
    spec.alibi = biased ? 8.0 : 0.0;
    tarn__attention(&graph, x, x, q_at, k_at, spec);
    check_ok(tarn__graph_plan(&graph));
    void *workspace = check_shared(graph.workspace_bytes);
    tarn__graph_bind(&graph, workspace);
    assert_int_equal(tarn__graph_run(&graph, &(tarn__exec){.threads = 1}),
                     biased ? TARN_STATUS_INTERNAL : TARN_STATUS_OK);
    check_shared_free(workspace);
    tarn__graph_close(&graph);
  }
  check_shared_free(memory);
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(against_reference),
                                     cmocka_unit_test(long_sequences),
                                     cmocka_unit_test(gradients),
                                     cmocka_unit_test(slopes),
                                     cmocka_unit_test(steps),
                                     cmocka_unit_test(unequal_lengths)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }
