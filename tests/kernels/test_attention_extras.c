// Attention with a table of biases by head and distance (T5), and with fewer heads of keys and values than of queries:
// kernels against the reference, gradients, buckets, and steps of decoding against whole sequences; queries and keys
// that are turned for it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/attention_check.h"

// Widths of every family of kernels; lengths beyond and within the reach of the table.
static const struct {
  int64_t d;
  int heads, kv_heads;
} widths[] = {{8, 1, 1}, {60, 3, 1}, {192, 6, 2}, {128, 2, 2}, {256, 4, 1}};

static void biases(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++)
    for (size_t form = i % attention_step(2); form < 4; form += attention_step(2)) {
      const attention_extras_shape e = {.shape = {.d = widths[i].d,
                                                  .heads = widths[i].heads,
                                                  .sequences = 6,
                                                  .queries = {1, 15, 0, 17, 70, 33},
                                                  .self = true,
                                                  .causal = form % 2,
                                                  .query_grad = true,
                                                  .key_grad = true,
                                                  .dropout = form / 2 ? 0.3 : 0.0},
                                        .kv_heads = form ? widths[i].kv_heads : widths[i].heads,
                                        .apart = form == 2,
                                        .buckets = 8,
                                        .max_distance = form == 3 ? 100 : 21};
      check_kernels(attention_build_extras, &e, "table of biases", 3e-5, 0.03);
    }
}

static void groups(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++)
    for (size_t form = i % attention_step(2); form < 4; form += attention_step(2)) {
      attention_extras_shape e = {.shape = {.d = widths[i].d,
                                            .heads = widths[i].heads,
                                            .sequences = 6,
                                            .queries = {1, 0, 6, 17, attention_long(300, 90), 33},
                                            .keys = {1, 6, 0, 19, 20, 64},
                                            .self = form < 2,
                                            .causal = form == 1,
                                            .query_grad = form != 3,
                                            .key_grad = true,
                                            .dropout = form == 1 ? 0.3 : 0.0},
                                  .kv_heads = widths[i].kv_heads,
                                  .apart = form == 1};
      check_kernels(attention_build_extras, &e, "fewer keys", 3e-5, 0.03);
    }
}

// Long sequences, which have a separate backward pass in BF16, together with short ones.
static void long_sequences(void **state) {
  (void)state;
  for (int causal = 0; causal < 2; causal++) {
    attention_extras_shape e = {{64, 2, 3, {attention_long(550, 150), 40, 0}, {0}, true, causal, true, true, 0.0},
                                0.0,
                                1,
                                false,
                                8,
                                128,
                                false};
    check_kernels(attention_build_extras, &e, "long, biases and fewer keys", 4e-5, 0.05);
    e = (attention_extras_shape){
        {32, 1, 1, {attention_long(400, 120)}, {0}, true, causal, true, true, 0.2}, 0.0, 1, true, 8, 500, false};
    check_kernels(attention_build_extras, &e, "long, biases, dropout", 4e-5, 0.05);
  }
  const attention_extras_shape cross = {{128,
                                         4,
                                         3,
                                         {40, 0, attention_long(300, 70)},
                                         {attention_long(900, 400), 390, 385},
                                         false,
                                         false,
                                         true,
                                         true,
                                         0.0},
                                        .kv_heads = 2};
  check_kernels(attention_build_extras, &cross, "long, fewer keys of another text", 4e-5, 0.05);
}

static void gradients(void **state) {
  (void)state;
  for (int form = 0; form < 8; form++) {
    const attention_extras_shape e = {.shape = {.d = 12,
                                                .heads = 6,
                                                .sequences = 5,
                                                .queries = {3, 0, 1, 9, 2},
                                                .self = true,
                                                .causal = form % 2,
                                                .query_grad = form != 6,
                                                .key_grad = form != 6,
                                                .dropout = form == 3 ? 0.4 : 0.0},
                                      .kv_heads = form / 2 % 2 ? 2 : 6,
                                      .apart = form / 4,
                                      .buckets = form == 5 ? 0 : 8,
                                      .max_distance = 5,
                                      .frozen = form == 4};
    check_gradients(attention_build_extras, &e, "biases and fewer keys", 1e-7);
  }
  const attention_extras_shape cross = {{12, 6, 3, {3, 0, 2}, {2, 3, 4}, false, false, true, true, 0.0}, .kv_heads = 1};
  check_gradients(attention_build_extras, &cross, "multi-query attention to another text", 1e-7);
}

// Two layers read one table.
static void build_twice(check *c, tarn__graph *graph, const void *spec) {
  const bool *causal = spec;
  static const int32_t offsets[] = {0, 5, 30};
  tarn__tensor *a = check_input(c, graph, 30, 96, 1.0, true), *b = check_input(c, graph, 30, 96, 1.0, true);
  tarn__tensor *at = check_ints(c, graph, offsets, 3);
  tarn__param *table = check_param(c, 8, 1, 1.0, true);
  const tarn__attention_extras extras = {.biases =
                                             tarn__bias_table(graph, table, (tarn__bias_table_spec){8, 16, !*causal})};
  const tarn__attention_spec spec_of = {
      .heads = 1, .d = 32, .key_column = 32, .value_column = 64, .causal = *causal, .longest = 25};
  check_output(c, tarn__attention_with(graph, a, a, at, at, spec_of, extras));
  check_output(c, tarn__attention_with(graph, b, b, at, at, spec_of, extras));
}

static void shared(void **state) {
  (void)state;
  for (int form = 0; form < 2; form++) {
    const bool causal = form == 1;
    check_kernels(build_twice, &causal, "a table for two layers", 3e-5, 0.03);
    check_gradients(build_twice, &causal, "a table for two layers", 1e-7);
  }
}

// Of 32 buckets and 128 as the farthest distance, T5's own numbers for some distances.
static void buckets(void **state) {
  (void)state;
  static const struct {
    int distance, both, before;
  } known[] = {{0, 0, 0},     {-1, 1, 1},    {-7, 7, 7},    {-8, 8, 8},    {-11, 8, 11},   {-12, 9, 12},
               {-15, 9, 15},  {-16, 10, 16}, {-22, 10, 18}, {-23, 11, 18}, {-31, 11, 21},  {-32, 12, 21},
               {-63, 13, 26}, {-64, 14, 26}, {-90, 14, 29}, {-91, 15, 29}, {-127, 15, 31}, {-128, 15, 31},
               {1, 17, 0},    {7, 23, 0},    {8, 24, 0},    {16, 26, 0},   {64, 30, 0},    {128, 31, 0}};
  int32_t of[2 * 128 + 1];
  for (int two = 0; two < 2; two++) {
    tarn__bias_buckets(&(tarn__bias_table_spec){32, 128, two == 1}, of);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
      assert_int_equal(of[128 + known[i].distance], two ? known[i].both : known[i].before);
  }
}

// A causal sequence, and the steps that decode it over a cache whose rows lie in another order.
enum { ROWS = 9, D = 24, HEADS = 6 };

static void *cache_memory;  // [2 ROWS, 2 D]

static void build_steps(check *c, tarn__graph *graph, const void *spec) {
  static const int32_t offsets[] = {0, ROWS};
  const int kv_heads = *(const int *)spec, kv = D / HEADS * kv_heads;
  int32_t rows[ROWS], ranges[2 * ROWS];
  int32_t times[ROWS];  // of the rows of the cache
  for (int i = 0; i < ROWS; i++) {
    times[i] = 4 * i % ROWS;
    rows[times[i]] = ROWS + i;
    ranges[2 * i] = 0, ranges[2 * i + 1] = i + 1;
  }
  tarn__attention_spec attention = {
      .heads = HEADS, .d = D, .key_column = D, .value_column = D + kv, .causal = true, .longest = ROWS};
  tarn__tensor *qkv = check_input(c, graph, ROWS, D + 2 * kv, 1.0, false);
  tarn__tensor *at = check_ints(c, graph, offsets, 2);
  tarn__tensor *list = check_ints(c, graph, rows, ROWS), *range = check_ints(c, graph, ranges, 2 * ROWS);
  const tarn__attention_extras extras = {
      .kv_heads = kv_heads,
      .biases = tarn__bias_table(graph, check_param(c, 6, HEADS, 1.0, false), (tarn__bias_table_spec){6, 5, false})};
  check_output(c, tarn__attention_with(graph, qkv, qkv, at, at, attention, extras));
  attention.key_column = 0;
  attention.value_column = kv;
  tarn__tensor *cache = tarn__graph_external(graph, graph->dtype, 2 * ROWS, 2 * kv, cache_memory, "cache");
  tarn__tensor *shuffled = tarn__select_rows(graph, qkv, check_ints(c, graph, times, ROWS));
  cache = tarn__cache_append(graph, shuffled, D, cache, ROWS);
  check_output(c, tarn__attention_rows_with(graph, qkv, cache, list, range, attention, extras));
}

static void steps(void **state) {
  (void)state;
  const struct {
    const tarn__device *device;
    tarn__dtype dtype;
    double tolerance;
  } ways[] = {{&tarn__device_reference, TARN__F64, 1e-12},
              {check_device(), TARN__F32, 1e-5},
              {check_device(), TARN__BF16, 0.015}};
  for (int kv_heads = 1; kv_heads <= HEADS; kv_heads *= kv_heads == 1 ? 2 : 3) {
    check c;
    cache_memory = check_shared(2 * ROWS * 2 * D * sizeof(double));
    check_open(&c);
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
      check_run(&c, build_steps, &kv_heads, ways[w].device, ways[w].dtype, false);
      check_close_to(c.output_value[1], c.output_value[0], c.output_size[0], ways[w].tolerance, "steps", "output", 1);
    }
    check_close(&c);
    check_shared_free(cache_memory);
  }
}

// What does not fit is refused where the graph is built.
static void refused(void **state) {
  (void)state;
  static float memory[4 * 24];
  static const int32_t offsets[] = {0, 4};
  for (int what = 0; what < 4; what++) {
    tarn__graph graph = {0};
    tarn__graph_begin(&graph, &tarn__device_cpu, TARN__F32, false, 1);
    tarn__tensor *x = tarn__graph_external(&graph, TARN__F32, 4, 24, memory, "qkv");
    tarn__tensor *biases =
        tarn__graph_external(&graph, TARN__F32, what == 1 ? 1 : 2, what == 2 ? 4 : 5, memory, "biases");
    tarn__tensor *at = tarn__graph_input(&graph, 2, offsets, "offsets");
    tarn__tensor *other = tarn__graph_input(&graph, 2, offsets, "offsets");
    const tarn__attention_spec spec = {.heads = 2, .d = 8, .key_column = 8, .value_column = 16, .longest = 4};
    tarn__attention_with(&graph, x, x, at, what == 3 ? other : at, spec,
                         (tarn__attention_extras){.kv_heads = what == 0 ? 3 : 0, .biases = what ? biases : NULL});
    assert_int_equal(tarn__graph_plan(&graph), TARN_STATUS_INTERNAL);
    tarn__graph_close(&graph);
  }
}

enum { TURNED = 37 };

// Queries and keys that are turned for attention, which a device may do while it computes that: sentences at positions
// that begin anywhere, or far apart, so that no table holds them; heads that share keys.
typedef struct attending {
  const char *name;
  int kv_heads;
  int32_t step;  // between the positions of a sentence
  enum {
    ALONE,           // nothing but attention reads the turned queries and keys
    READ_BEFORE,     // a product before it reads the keys
    READ_BEHIND,     // a product behind it reads the queries, whose gradient it thus writes first
    QUERIES_FROZEN,  // the queries need no gradient, of grouped heads
    KEYS_FROZEN,     // nor do the keys and values
    QUERIES_TURNED   // of a tensor with all of them the queries alone are turned
  } form;
  int joined;  // rotations that the processor leaves to attention, forward and backward
} attending;

static tarn__tensor *attention_of(check *c, tarn__graph *graph, tarn__tensor *x, const attending *a) {
  static const int32_t offsets[] = {0, 9, 9, 30, 37};
  enum { HEAD = 32, QUERIES = 4 };
  static const int32_t starts[] = {12, 0, 5, 19};  // with steps of 1 within the positions of the longest sentence
  int32_t positions[TURNED];
  for (int s = 0; s < 4; s++)
    for (int32_t r = offsets[s]; r < offsets[s + 1]; r++) positions[r] = starts[s] + (r - offsets[s]) * a->step;
  tarn__tensor *places = check_ints(c, graph, positions, TURNED), *at = check_ints(c, graph, offsets, 5);
  const int64_t d = HEAD * QUERIES, kv = (int64_t)HEAD * a->kv_heads;
  tarn__param *wq = check_param(c, a->kv_heads == QUERIES ? 3 * d : d, 24, 0.15, a->form != QUERIES_FROZEN);
  tarn__param *wkv = a->kv_heads == QUERIES ? NULL : check_param(c, 2 * kv, 24, 0.15, a->form != KEYS_FROZEN);
  tarn__tensor *q = tarn__linear(graph, x, wq, NULL, TARN__IDENTITY);
  tarn__tensor *k = wkv ? tarn__linear(graph, x, wkv, NULL, TARN__IDENTITY) : q;
  tarn__rotary_spec turn = {
      .heads = wkv || a->form == QUERIES_TURNED ? QUERIES : 2 * QUERIES, .width = HEAD, .rotated = 24, .base = 100.0};
  q = tarn__rotary(graph, q, places, turn);
  turn.heads = a->kv_heads;
  k = wkv ? tarn__rotary(graph, k, places, turn) : q;
  tarn__tensor *reads = a->form == READ_BEFORE ? k : a->form == READ_BEHIND ? q : NULL;
  tarn__param *product = reads ? check_param(c, 3, reads->cols, 0.3, true) : NULL;
  if (a->form == READ_BEFORE) check_output(c, tarn__linear(graph, k, product, NULL, TARN__IDENTITY));
  const tarn__attention_spec spec = {.heads = QUERIES,
                                     .d = d,
                                     .key_column = wkv ? 0 : d,
                                     .value_column = wkv ? kv : 2 * d,
                                     .causal = true,
                                     .longest = 21};
  tarn__tensor *y = tarn__attention_with(graph, q, k, at, at, spec, (tarn__attention_extras){.kv_heads = a->kv_heads});
  if (a->form == READ_BEHIND) check_output(c, tarn__linear(graph, q, product, NULL, TARN__IDENTITY));
  return y;
}

static void build_attention(check *c, tarn__graph *graph, const void *spec) {
  const attending *a = spec;
  const bool grad = a->form != QUERIES_FROZEN && a->form != KEYS_FROZEN;
  check_output(c, attention_of(c, graph, check_input(c, graph, TURNED, 24, 1.0, grad), a));
}

static int joined;  // rotations of the last graph that were left to attention

static void count_joined(const tarn__graph *graph) {
  joined = 0;
  for (size_t n = 0; n < graph->node_count; n++) joined += graph->nodes[n]->joins;
}

// On the processor, forward and backward.
static int joined_of(const attending *a) {
  check c;
  check_open(&c);
  c.after = count_joined;
  check_run(&c, build_attention, a, &tarn__device_cpu, TARN__F32, true);
  check_close(&c);
  return joined;
}

static void turned(void **state) {
  (void)state;
  static const attending cases[] = {{"turned, as many heads of keys", 4, 1, ALONE, 2},
                                    {"turned, fewer heads of keys", 2, 1, ALONE, 2},  // backward, of both
                                    {"turned, positions far apart", 4, 1000, ALONE, 2},
                                    {"turned keys are read before", 4, 1, READ_BEFORE, 0},
                                    {"turned queries are read behind", 4, 1, READ_BEHIND, 2},
                                    {"turned queries are read behind, fewer keys", 2, 1, READ_BEHIND, 2},
                                    {"turned queries are frozen", 2, 1, QUERIES_FROZEN, 1},
                                    {"turned keys are frozen", 2, 1, KEYS_FROZEN, 1},
                                    {"queries alone are turned", 4, 1, QUERIES_TURNED, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i += attention_step(3)) {
    check_kernels(build_attention, &cases[i], cases[i].name, 1e-5, 0.05);
    if (joined_of(&cases[i]) != cases[i].joined) fail_msg("%s: %d are joined", cases[i].name, joined);
  }
}

static int run(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(biases),         cmocka_unit_test(groups),  cmocka_unit_test(shared),
      cmocka_unit_test(long_sequences), cmocka_unit_test(buckets), cmocka_unit_test(gradients),
      cmocka_unit_test(steps),          cmocka_unit_test(refused), cmocka_unit_test(turned)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }
