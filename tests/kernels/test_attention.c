#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/kernel_check.h"
#include "ops/ops.h"

enum { MAX_SEQUENCES = 8 };

typedef struct shape {
  int64_t d;
  int heads, sequences;
  int32_t queries[MAX_SEQUENCES], keys[MAX_SEQUENCES];  // lengths; keys are ignored in self-attention
  bool self, causal, query_grad, key_grad;
  int64_t spare;  // columns of both inputs that are nobody's, between q and k and v and at the end
  int uses;
} shape;

static int32_t offsets_of(int32_t *offsets, const int32_t *lengths, int n, int32_t *longest) {
  offsets[0] = 0;
  for (int i = 0; i < n; i++) {
    offsets[i + 1] = offsets[i] + lengths[i];
    if (lengths[i] > *longest) *longest = lengths[i];
  }
  return offsets[n];
}

static void build(check *c, tarn__graph *graph, const void *spec) {
  const shape *s = spec;
  int32_t q_offsets[MAX_SEQUENCES + 1], k_offsets[MAX_SEQUENCES + 1], unused = 0, longest = 0;
  const int64_t q_rows = offsets_of(q_offsets, s->queries, s->sequences, &unused);
  const int64_t k_rows = offsets_of(k_offsets, s->self ? s->queries : s->keys, s->sequences, &longest);
  const int64_t part = s->d + s->spare;
  tarn__attention_spec attention = {.heads = s->heads, .d = s->d, .causal = s->causal, .longest = longest};
  tarn__tensor *queries = check_input(c, graph, q_rows, s->self ? 3 * part : part, 1.0, s->query_grad);
  tarn__tensor *keys_values = s->self ? queries : check_input(c, graph, k_rows, 2 * part, 1.0, s->key_grad);
  attention.query_column = 0;
  attention.key_column = s->self ? part : 0;
  attention.value_column = attention.key_column + part;
  tarn__tensor *q_at = check_ints(c, graph, q_offsets, s->sequences + 1);
  tarn__tensor *k_at = s->self ? q_at : check_ints(c, graph, k_offsets, s->sequences + 1);
  for (int i = 0; i < s->uses; i++)
    check_output(c, tarn__attention(graph, queries, keys_values, q_at, k_at, attention));
}

static void self_attention(void **state) {
  (void)state;
  static const struct {
    int64_t d;
    int heads;
  } widths[] = {{8, 1}, {24, 2}, {96, 2}, {100, 4}, {128, 1}, {128, 2}, {256, 1}, {512, 8}};
  for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++)
    for (int causal = 0; causal < 2; causal++) {
      shape s = {widths[i].d, widths[i].heads, 6, {1, 15, 17, 2, 33, 20}, {0}, true, causal, true, false, 0, 1};
      char name[80];
      snprintf(name, sizeof name, "self-attention d %lld, heads %d, causal %d", (long long)s.d, s.heads, causal);
      check_kernels(build, &s, name, 2e-5, 0.03);
    }
}

static void cross_attention(void **state) {
  (void)state;
  static const int64_t widths[] = {24, 32, 64};
  for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
    shape s = {4 * widths[i], 4, 6, {1, 15, 17, 3, 70, 7}, {16, 1, 33, 5, 20, 48}, false, false, true, true, 0, 1};
    check_kernels(build, &s, "cross-attention", 2e-5, 0.03);
    s.query_grad = false;
    check_kernels(build, &s, "cross-attention, keys", 2e-5, 0.03);
    s.query_grad = true, s.key_grad = false;
    check_kernels(build, &s, "cross-attention, queries", 2e-5, 0.03);
  }
}

static void long_sequences(void **state) {
  (void)state;
  const bool few = check_device() != &tarn__device_cpu;  // whose threads may be simulated (tests/cuda_host)
  for (int causal = 0; causal < 2; causal++) {
    shape s = {40, 2, 3, {few ? 140 : 257, 1, few ? 40 : 128}, {0}, true, causal, true, false, 0, 1};
    check_kernels(build, &s, "long sequences", 2e-5, 0.03);
    s.d = 64;
    check_kernels(build, &s, "long sequences, heads of 32", 2e-5, 0.03);
  }
  // More than one range of queries, and keys that are no whole number of tiles.
  for (int64_t d = 40; d <= 64; d += 24) {
    shape cross = {d,    2, 3, {few ? 140 : 300, 5, few ? 70 : 520}, {45, few ? 140 : 280, 17}, false, false, true,
                   true, 0, 1};
    check_kernels(build, &cross, "long sequences, cross-attention", 2e-5, 0.03);
  }
}

static void empty_sequences(void **state) {
  (void)state;
  for (int64_t d = 24; d <= 64; d += 40) {
    shape self = {d, 2, 4, {0, 5, 0, 0}, {0}, true, true, true, false, 0, 1};
    check_kernels(build, &self, "empty sequences", 2e-5, 0.03);
    shape cross = {d, 2, 4, {3, 0, 2, 0}, {0, 4, 5, 0}, false, false, true, true, 0, 1};
    check_kernels(build, &cross, "sequences without keys", 2e-5, 0.03);
    shape none = {d, 2, 1, {0}, {0}, true, false, true, false, 0, 1};
    check_kernels(build, &none, "no rows", 2e-5, 0.03);
  }
}

static void wide_inputs(void **state) {
  (void)state;
  for (int64_t d = 24; d <= 64; d += 40) {
    shape self = {d, 2, 3, {4, 9, 18}, {0}, true, false, true, false, 5, 1};
    check_kernels(build, &self, "spare columns", 2e-5, 0.03);
    shape cross = {d, 2, 3, {4, 9, 18}, {3, 1, 17}, false, false, true, true, 3, 2};
    check_kernels(build, &cross, "spare columns, used twice", 2e-5, 0.03);
    self.uses = 3;
    check_kernels(build, &self, "used three times", 2e-5, 0.03);
  }
}

// q, k and v made by a node, so that their gradient may take their place.
static void build_in_place(check *c, tarn__graph *graph, const void *spec) {
  const shape *s = spec;
  int32_t offsets[MAX_SEQUENCES + 1], longest = 0;
  const int64_t rows = offsets_of(offsets, s->queries, s->sequences, &longest);
  tarn__tensor *x = check_input(c, graph, rows, 3 * s->d, 1.0, true);
  tarn__tensor *y = check_input(c, graph, rows, 3 * s->d, 1.0, true);
  tarn__tensor *at = check_ints(c, graph, offsets, s->sequences + 1);
  tarn__tensor *qkv = tarn__residual_norm(graph, x, y, 0.0, (tarn__norm){0}).sum;
  tarn__attention_spec attention = {.heads = s->heads,
                                    .d = s->d,
                                    .key_column = s->d,
                                    .value_column = 2 * s->d,
                                    .causal = s->causal,
                                    .longest = longest};
  check_output(c, tarn__attention(graph, qkv, qkv, at, at, attention));
}

static void in_place(void **state) {
  (void)state;
  for (int causal = 0; causal < 2; causal++) {
    shape s = {24, 2, 5, {60, 1, 17, 0, 110}, {0}, true, causal, true, false, 0, 1};
    check_kernels(build_in_place, &s, "in place", 2e-5, 0.04);
    s.d = 64;  // scores of wider heads feel the rounding of q and k more, with every kernel
    check_kernels(build_in_place, &s, "in place, heads of 32", 2e-5, 0.06);
  }
}

// Queries that attend to listed rows of keys and values.
typedef struct rows_shape {
  int64_t d;
  int heads;
  bool list;
} rows_shape;

static void build_rows(check *c, tarn__graph *graph, const void *spec) {
  const rows_shape *s = spec;
  enum { QUERIES = 5, CACHE = 40 };
  static const int32_t ranges[2 * QUERIES] = {0, 1, 1, 18, 0, 33, 7, 7, 20, 36};
  int32_t rows[CACHE];
  for (int i = 0; i < CACHE; i++) rows[i] = i * 11 % CACHE;
  tarn__attention_spec attention = {
      .heads = s->heads, .d = s->d, .query_column = 3, .key_column = s->d + 1, .value_column = 1, .longest = 33};
  tarn__tensor *queries = check_input(c, graph, QUERIES, s->d + 5, 1.0, false);
  tarn__tensor *keys_values = check_input(c, graph, CACHE, 2 * s->d + 1, 1.0, false);
  tarn__tensor *list = s->list ? check_ints(c, graph, rows, CACHE) : NULL;
  tarn__tensor *range = check_ints(c, graph, ranges, 2 * QUERIES);
  check_output(c, tarn__attention_rows(graph, queries, keys_values, list, range, attention));
}

static void single_rows(void **state) {
  (void)state;
  static const rows_shape shapes[] = {{8, 1, true}, {24, 2, false}, {100, 4, true}, {512, 8, true}, {512, 8, false}};
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
    check_kernels_mode(build_rows, &shapes[i], "attention_rows", false, 2e-5, 0.02);
}

enum { ROWS = 7, D = 24 };

// The last query of a causal sequence and attention_rows over a cache that was filled in three pieces agree.
static void build_cached(check *c, tarn__graph *graph, const void *spec) {
  static const int32_t offsets[] = {0, ROWS}, ranges[2 * ROWS] = {0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7};
  tarn__attention_spec attention = {
      .heads = 3, .d = D, .key_column = D, .value_column = 2 * D, .causal = true, .longest = ROWS};
  tarn__tensor *qkv = check_input(c, graph, ROWS, 3 * D, 1.0, false);
  tarn__tensor *at = check_ints(c, graph, offsets, 2);
  tarn__tensor *range = check_ints(c, graph, ranges, 2 * ROWS);
  tarn__tensor *cache = tarn__graph_external(graph, graph->dtype, ROWS, 2 * D, (void *)(uintptr_t)spec, "cache");
  check_output(c, tarn__attention(graph, qkv, qkv, at, at, attention));
  attention.key_column = 0;
  attention.value_column = D;
  cache = tarn__cache_append(graph, qkv, D, cache, 0);
  check_output(c, tarn__attention_rows(graph, qkv, cache, NULL, range, attention));
}

static void cached(void **state) {
  (void)state;
  void *cache_memory = check_shared(ROWS * 2 * D * sizeof(float));
  check c;
  check_open(&c);
  for (int dtype = 0; dtype < 2; dtype++) {
    check_run(&c, build_cached, cache_memory, check_device(), dtype ? TARN__BF16 : TARN__F32, false);
    check_close_to(c.output_value[1], c.output_value[0], c.output_size[0], dtype ? 0.01 : 1e-5, "cached", "output", 1);
  }
  check_close(&c);
  check_shared_free(cache_memory);
}

// Offsets that would make a kernel read outside its tensors are refused.
static void bad_offsets(void **state) {
  (void)state;
  static int32_t offsets[][3] = {{0, 3, 5}, {0, 5, 4}, {1, 2, 4}, {0, 4, 4}};
  float *qkv = check_shared(16 * 24 * sizeof *qkv);
  for (size_t i = 0; i < 4; i++) {
    tarn__graph graph = {0};
    tarn__graph_begin(&graph, check_device(), TARN__F32, false, 1);
    tarn__tensor *x = tarn__graph_external(&graph, TARN__F32, 4, 24, qkv, "qkv");
    tarn__tensor *at = tarn__graph_input(&graph, 3, offsets[i], "offsets");
    tarn__attention_spec spec = {.heads = 1, .d = 8, .key_column = 8, .value_column = 16, .longest = 3};
    tarn__attention(&graph, x, x, at, at, spec);
    check_ok(tarn__graph_plan(&graph));
    void *workspace = check_shared(graph.workspace_bytes);
    tarn__graph_bind(&graph, workspace);
    assert_int_equal(tarn__graph_run(&graph, &(tarn__exec){.threads = 1}), TARN_STATUS_INTERNAL);
    check_shared_free(workspace);
    tarn__graph_close(&graph);
  }
  check_shared_free(qkv);
}

static int run(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(self_attention),  cmocka_unit_test(cross_attention), cmocka_unit_test(long_sequences),
      cmocka_unit_test(empty_sequences), cmocka_unit_test(wide_inputs),     cmocka_unit_test(in_place),
      cmocka_unit_test(single_rows),     cmocka_unit_test(cached),          cmocka_unit_test(bad_offsets)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }
