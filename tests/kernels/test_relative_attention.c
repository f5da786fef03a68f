// Attention with relative keys and values: kernels against the reference, bits that depend on the sentence alone, steps
// of decoding against whole sequences, operations counted, and what is refused.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/relative_check.h"
#include "ops/relative_attention.h"

static const struct {
  int64_t d;
  int heads, kv_heads;
} widths[] = {{8, 1, 1}, {60, 3, 1}, {192, 6, 2}, {128, 2, 2}};

// Distances within the sentences and beyond them; sentences without tokens.
static void against_reference(void **state) {
  (void)state;
  static const int64_t reaches[] = {1, 5, 16, 80};
  for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++)
    for (int form = 0; form < 4; form++) {
      if (check_device() != &tarn__device_cpu && (i + (size_t)form) % 2) continue;  // slow where threads are fibres
      const bool apart = form == 1 || form == 2;
      const relative_shape e = {.shape = {.d = widths[i].d,
                                          .heads = widths[i].heads,
                                          .sequences = 6,
                                          .queries = {1, 15, 0, 17, 70, 33},
                                          .self = true,
                                          .causal = form % 2,
                                          .query_grad = true,
                                          .key_grad = true,
                                          .dropout = form / 2 ? 0.3 : 0.0},
                                .kv_heads = apart ? widths[i].kv_heads : widths[i].heads,
                                .reach = reaches[form],
                                .apart = apart,
                                .keys = form == 3,
                                .spare = form == 0 ? 8 : 0,
                                .uses = 2};
      check_kernels(relative_build, &e, "relative keys and values", 3e-5, 0.03);
    }
}

// More than a block of queries, gradients of some of the inputs alone, and nothing at all.
static void edges(void **state) {
  (void)state;
  for (int what = 0; what < 4; what++) {
    const relative_shape e = {.shape = {.d = 32,
                                        .heads = 2,
                                        .sequences = what == 3 ? 1 : 3,
                                        .queries = {what == 3 ? 0 : 150, 0, 129},
                                        .self = true,
                                        .causal = what % 2,
                                        .query_grad = what != 1,
                                        .key_grad = what != 2},
                              .kv_heads = 2,
                              .reach = 9,
                              .apart = true,
                              .frozen = what == 0,
                              .uses = 1};
    check_kernels(relative_build, &e, "relative keys and values, edges", 3e-5, 0.03);
  }
}

enum { D = 48, HEADS = 3, LENGTH = 21, EARLIER = 5, ROWS = EARLIER + LENGTH, REACH = 4, TABLE = 2 * REACH + 1 };

typedef struct batch {
  tarn__dtype dtype;
  int64_t rows;
  int threads, sentences;
  const int32_t *offsets;
  int64_t longest;
} batch;

static tarn_status run_batch(void *out, const batch *b, void *x, tarn__param *tables) {
  tarn__graph graph = {0};
  tarn__graph_begin(&graph, check_device(), b->dtype, false, b->threads);
  tarn__tensor *qkv = tarn__graph_external(&graph, b->dtype, b->rows, 3 * D, x, "x");
  tarn__tensor *at = tarn__graph_input(&graph, b->sentences + 1, b->offsets, "offsets");
  const tarn__attention_spec spec = {
      .heads = HEADS, .d = D, .key_column = D, .value_column = 2 * D, .longest = b->longest};
  tarn__tensor *y = tarn__relative_attention(&graph, qkv, qkv, at, spec, 0, (tarn__relative){&tables[0], &tables[1]});
  return check_result(out, &graph, y);
}

// A sentence has equal bits alone and behind others, whatever the longest is, on any number of threads.
static void bits(void **state) {
  (void)state;
  static const int32_t whole[] = {0, LENGTH}, behind[] = {0, EARLIER, ROWS}, few[] = {0, EARLIER, ROWS - 1};
  static const tarn__dtype dtypes[] = {TARN__F32, TARN__BF16};
  static double first[ROWS * D], other[ROWS * D];
  void *x = check_shared(ROWS * 3 * D * sizeof(double)), *values[2];
  for (int k = 0; k < 2; k++) values[k] = check_shared(TABLE * D / HEADS * sizeof(double));
  tarn__random random;
  tarn__random_init(&random, 11, 0);
  for (int t = 0; t < 2; t++) {
    const size_t row = D * tarn__dtype_size(dtypes[t]);
    tarn__param tables[2];
    for (size_t i = 0; i < ROWS * 3 * D; i++) check_store(x, dtypes[t], i, tarn__random_normal(&random));
    for (int k = 0; k < 2; k++) {
      tables[k] =
          (tarn__param){.name = "table", .rows = TABLE, .cols = D / HEADS, .dtype = dtypes[t], .value = values[k]};
      for (size_t i = 0; i < TABLE * D / HEADS; i++) check_store(values[k], dtypes[t], i, tarn__random_normal(&random));
    }
    batch b = {dtypes[t], LENGTH, 1, 1, whole, LENGTH};
    check_ok(run_batch(first, &b, (char *)x + 3 * EARLIER * row, tables));
    b = (batch){dtypes[t], ROWS, 1, 2, behind, 40};
    for (b.threads = 1; b.threads <= 5; b.threads++) {
      check_ok(run_batch(other, &b, x, tables));
      assert_memory_equal(first, (char *)other + EARLIER * row, LENGTH * row);
    }
    // Sentences that are longer than planned, and offsets that lead elsewhere.
    b.threads = 1, b.longest = LENGTH - 1;
    assert_int_equal(run_batch(other, &b, x, tables), TARN_STATUS_INTERNAL);
    b.longest = LENGTH, b.offsets = few;
    assert_int_equal(run_batch(other, &b, x, tables), TARN_STATUS_INTERNAL);
  }
  check_shared_free(x);
  for (int k = 0; k < 2; k++) check_shared_free(values[k]);
}

// Step after step of a sentence, with a cache, against the whole of it; the second case has relative keys alone, which
// reach further than the sentence, and the third fewer heads of keys.
typedef struct stepping {
  int kv_heads;
  int64_t reach;
  bool keys;
} stepping;

static int32_t list[LENGTH * (LENGTH + 1) / 2], ranges[2 * LENGTH];

static void build_steps(check *c, tarn__graph *graph, const void *spec) {
  static const int32_t whole[] = {0, LENGTH};
  const stepping *s = spec;
  const int64_t kv = D / HEADS * s->kv_heads;
  int32_t listed = 0;
  for (int32_t r = 0; r < LENGTH; r++) {
    ranges[2 * r] = listed;
    for (int32_t j = 0; j <= r; j++) list[listed++] = j;
    ranges[2 * r + 1] = listed;
  }
  tarn__tensor *qkv = check_input(c, graph, LENGTH, D + 2 * kv, 1.0, false);
  tarn__attention_extras extras = {.kv_heads = s->kv_heads};
  extras.relative.keys = check_param(c, 2 * s->reach + 1, D / HEADS, 1.0, false);
  if (!s->keys) extras.relative.values = check_param(c, 2 * s->reach + 1, D / HEADS, 1.0, false);
  check_item *room = check_next(c, CHECK_INPUT, LENGTH, 2 * kv, 1.0, false);
  tarn__tensor *at = check_ints(c, graph, whole, 2);
  tarn__tensor *rows = check_ints(c, graph, list, (int64_t)(sizeof list / sizeof *list));
  tarn__tensor *range = check_ints(c, graph, ranges, 2 * LENGTH);
  tarn__attention_spec attention = {
      .heads = HEADS, .d = D, .key_column = D, .value_column = D + kv, .causal = true, .longest = LENGTH};
  check_output(c, tarn__attention_with(graph, qkv, qkv, at, at, attention, extras));
  attention.key_column = 0;
  attention.value_column = kv;
  tarn__tensor *memory = tarn__graph_external(graph, graph->dtype, room->rows, room->cols, room->data, "cache");
  tarn__tensor *cache = tarn__cache_append(graph, qkv, D, memory, 0);
  check_output(c, tarn__attention_rows_with(graph, qkv, cache, rows, range, attention, extras));
}

static void steps(void **state) {
  (void)state;
  static const stepping cases[] = {{HEADS, 4, false}, {HEADS, 40, true}, {1, 7, false}};
  const struct {
    const tarn__device *device;
    tarn__dtype dtype;
    double tolerance;
  } ways[] = {{&tarn__device_reference, TARN__F64, 1e-12},
              {check_device(), TARN__F32, 1e-5},
              {check_device(), TARN__BF16, 0.02}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    check c;
    check_open(&c);
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
      check_run(&c, build_steps, &cases[i], ways[w].device, ways[w].dtype, false);
      check_close_to(c.output_value[1], c.output_value[0], c.output_size[0], ways[w].tolerance, "steps", "output", 1);
    }
    check_close(&c);
  }
}

// Operations counted against a count by hand. Sentences of 3, 1 and 2 tokens: pairs 9 + 1 + 4 or, causal, 6 + 1 + 3;
// with distances up to 1, 3 * 3 + 1 * 1 + 2 * 3 pairs of a query and a distance, or 3 * 2 + 1 * 1 + 2 * 2.
static double forward_count, backward_count;

static void count(const tarn__graph *graph) {
  for (size_t i = 0; i < graph->node_count; i++) {
    const tarn__node *node = graph->nodes[i];
    if (node->op->id == TARN__OP_RELATIVE_ATTENTION) forward_count = node->op->flops(node);
    if (node->op->id == TARN__OP_RELATIVE_ATTENTION_BACKWARD) backward_count = node->op->flops(node);
  }
}

static void operations(void **state) {
  (void)state;
  for (int causal = 0; causal < 2; causal++) {
    const double pairs = causal ? 10 : 14, near = causal ? 11 : 16;
    relative_shape e = {.shape = {.d = 8, .heads = 2, .sequences = 3, .queries = {3, 1, 2}, .self = true},
                        .kv_heads = 2,
                        .reach = 1,
                        .uses = 1};
    e.shape.causal = causal, e.shape.query_grad = true;
    check c;
    check_open(&c);
    c.after = count;
    check_run(&c, relative_build, &e, check_device(), TARN__F32, true);
    check_close(&c);
    assert_true(forward_count == 2.0 * (2.0 * pairs + 2.0 * near) * 8);
    assert_true(backward_count == 2.0 * (5.0 * pairs + 5.0 * near) * 8);
  }
}

// What does not fit is refused where the graph is built.
static void refused(void **state) {
  (void)state;
  static float memory[4 * 24];
  static const int32_t offsets[] = {0, 4};
  for (int what = 0; what < 5; what++) {
    tarn__param keys = {.name = "k", .rows = what == 0 ? 4 : 5, .cols = what == 1 ? 3 : 4, .value = memory};
    tarn__param values = {.name = "v", .rows = what == 2 ? 7 : 5, .cols = 4, .value = memory};
    tarn__graph graph = {0};
    tarn__graph_begin(&graph, &tarn__device_cpu, TARN__F32, false, 1);
    tarn__tensor *x = tarn__graph_external(&graph, TARN__F32, 4, 24, memory, "qkv");
    tarn__tensor *at = tarn__graph_input(&graph, 2, offsets, "offsets");
    tarn__tensor *other = tarn__graph_input(&graph, 2, offsets, "offsets");
    const tarn__attention_spec spec = {
        .heads = 2, .d = 8, .key_column = 8, .value_column = 16, .longest = 4, .alibi = what == 4 ? 8 : 0};
    tarn__attention_with(&graph, x, x, at, what == 3 ? other : at, spec,
                         (tarn__attention_extras){.relative = {&keys, &values}});
    assert_int_equal(tarn__graph_plan(&graph), TARN_STATUS_INTERNAL);
    tarn__graph_close(&graph);
  }
}

static int run(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(against_reference), cmocka_unit_test(edges),  cmocka_unit_test(bits), cmocka_unit_test(steps),
      cmocka_unit_test(operations),        cmocka_unit_test(refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }
