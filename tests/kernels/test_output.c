// The output layer: loss, its gradients, log-probabilities and the best words, fast against reference, for every
// instruction set.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "kernels/kernel_check.h"
#include "ops/ops.h"

typedef struct shape {
  int64_t rows, d, words;
  bool bias, x_grad, table_trained, bias_trained;
  double smoothing;
  bool through_linear;  // x comes out of the workspace, so that dx may take its memory
  double spread;        // of the logits; 0: 1.5
  tarn__fp32 fp32;      // of the fast kernels
} shape;

static const double grad_scale = 0.125;

static tarn__tensor *inputs(check *c, tarn__graph *graph, const shape *s, tarn__param **table, tarn__param **bias) {
  tarn__tensor *x = check_input(c, graph, s->rows, s->d, 1.0, s->x_grad);
  *table = check_param(c, s->words, s->d, (s->spread > 0 ? s->spread : 1.5) / sqrt((double)s->d), s->table_trained);
  *bias = s->bias ? check_param(c, 1, s->words, 0.5, s->bias_trained) : NULL;
  if (!s->through_linear) return x;
  return tarn__linear(graph, x, check_param(c, s->d, s->d, 1.0 / sqrt((double)s->d), true), NULL, TARN__IDENTITY);
}

static void build_loss(check *c, tarn__graph *graph, const void *spec) {
  const shape *s = spec;
  tarn__param *table, *bias;
  graph->fp32 = s->fp32;
  tarn__tensor *x = inputs(c, graph, s, &table, &bias);
  int32_t targets[1024];
  for (int64_t r = 0; r < s->rows; r++) targets[r] = (int32_t)((r * 7919 + 3) % s->words);
  tarn__tensor *wanted = check_ints(c, graph, targets, s->rows);
  check_loss(c, tarn__output_loss(graph, x, table, bias, wanted, s->smoothing, grad_scale));
}

static void build_log(check *c, tarn__graph *graph, const void *spec) {
  tarn__param *table, *bias;
  tarn__tensor *x = inputs(c, graph, spec, &table, &bias);
  check_output(c, tarn__output_log_probabilities(graph, x, table, bias));
}

static void build_top(check *c, tarn__graph *graph, const void *spec) {
  const shape *s = spec;
  tarn__param *table, *bias;
  tarn__tensor *x = inputs(c, graph, s, &table, &bias);
  check_output(c, tarn__output_top(graph, x, table, bias, s->words / 3, (int32_t)s->words / 2).values);
}

// Sizes that only the processor has a path of its own for, or the slower device of cuda_host no time.
static bool on_processor(void) { return check_device() == &tarn__device_cpu; }

static void sizes(void **state) {
  (void)state;
  const int64_t rows[] = {1, 15, 17, on_processor() ? 257 : 40}, widths[] = {8, 24, 100, on_processor() ? 512 : 136};
  static const int64_t words[] = {8, 37, 600, 1024};
  for (size_t r = 0; r < 4; r++)
    for (size_t w = 0; w < 4; w++) {
      shape s = {rows[r],           widths[(r + w) % 4], words[w], w % 2 == 0,      true, true, true,
                 w < 2 ? 0.1 : 0.0, r % 2 == 1,          0.0,      TARN__FP32_EXACT};
      char name[80];
      snprintf(name, sizeof name, "output %lld x %lld -> %lld", (long long)s.rows, (long long)s.d, (long long)s.words);
      check_kernels(build_loss, &s, name, 2e-5, 0.03);
      check_kernels_mode(build_log, &s, name, false, 1e-5, 0.02);
      check_kernels_mode(build_top, &s, name, false, 1e-5, 0.02);
    }
}

// So many words that the rows fall into several chunks, the last one of another size.
static void chunks(void **state) {
  (void)state;
  shape s = {on_processor() ? 580 : 50, 8, 24001, true, true, true, true, 0.1, true, 0.0, TARN__FP32_EXACT};
  check_kernels(build_loss, &s, "output in chunks", 1e-4, 0.03);
}

// More rows than stay in a cache for a word, more columns than a step of the sums has, and logits of which the target's
// may lie hundreds below the largest.
static void far(void **state) {
  (void)state;
  shape deep = {700, 8, 333, true, true, true, true, 0.1, true, 0.0, TARN__FP32_EXACT};
  check_kernels(build_loss, &deep, "output of many rows", 1e-4, 0.03);
  shape wide = {70, on_processor() ? 1060 : 60, 700, false, true, true, false, 0.0, true, 0.0, TARN__FP32_EXACT};
  check_kernels(build_loss, &wide, "output of many columns", 2e-5, 0.03);
  shape apart = {130, 24, 300, true, true, true, true, 0.1, false, 90.0, TARN__FP32_EXACT};
  check_kernels(build_loss, &apart, "output of logits far apart", 1e-4, 0.03);
}

// Through tiles, where the processor has them: several chunks and blocks of rows, several visits to words and groups of
// them, and logits far apart.
static void splits(void **state) {
  (void)state;
  if (!on_processor() || tarn__device_fp32_lacks(&tarn__device_cpu, TARN__FP32_SPLIT6) != NULL) return;
  for (int way = 0; way < 2; way++) {
    const tarn__fp32 fp32 = way == 0 ? TARN__FP32_SPLIT6 : TARN__FP32_SPLIT3;
    const double tolerance = way == 0 ? 1e-4 : 3e-4;
    shape small = {33, 24, 60, true, true, true, true, 0.1, true, 0.0, fp32};
    check_kernels(build_loss, &small, "output through tiles", tolerance, 0.03);
    shape several = {580, 100, 1100, true, true, true, true, 0.1, true, 0.0, fp32};
    check_kernels(build_loss, &several, "output through tiles, many rows", tolerance, 0.03);
    shape wide = {70, 520, 5000, false, true, true, false, 0.0, true, 0.0, fp32};
    check_kernels(build_loss, &wide, "output through tiles, many words", tolerance, 0.03);
    shape apart = {130, 24, 300, true, true, true, true, 0.1, false, 90.0, fp32};
    check_kernels(build_loss, &apart, "output through tiles, logits far apart", 10 * tolerance, 0.03);
  }
}

// More words than are packed at a time.
static void groups(void **state) {
  (void)state;
  if (!on_processor()) return;
  shape s = {20, 350, 24001, true, true, true, true, 0.1, true, 0.0, TARN__FP32_EXACT};
  check_kernels(build_loss, &s, "output in groups of words", 1e-4, 0.03);
}

// One word is sure: its bias is beyond what the exponential of a float can take.
static void build_sure(check *c, tarn__graph *graph, const void *spec) {
  const shape *s = spec;
  tarn__param *table, *bias;
  tarn__tensor *x = inputs(c, graph, s, &table, &bias);
  check_item *item = &c->item[c->next - 1];
  item->value[5] = 100.0;
  check_store(item->data, bias->dtype, 5, item->value[5]);
  int32_t targets[64];
  for (int64_t r = 0; r < s->rows; r++) targets[r] = (int32_t)(r % s->words);
  tarn__tensor *wanted = check_ints(c, graph, targets, s->rows);
  check_loss(c, tarn__output_loss(graph, x, table, bias, wanted, s->smoothing, grad_scale));
}

// Rows that only fill a block of 32 must not spoil the gradients.
static void sure_word(void **state) {
  (void)state;
  shape s = {33, 24, 60, true, true, true, true, 0.1, false, 0.0, TARN__FP32_EXACT};
  check_kernels(build_sure, &s, "output with a bias of 100", 1e-4, 0.03);
}

static void parts(void **state) {
  (void)state;
  shape frozen = {33, 24, 60, true, true, false, false, 0.1, true, 0.0, TARN__FP32_EXACT};
  check_kernels(build_loss, &frozen, "frozen output layer", 2e-5, 0.03);
  shape no_dx = {33, 24, 60, true, false, true, false, 0.1, false, 0.0, TARN__FP32_EXACT};
  check_kernels(build_loss, &no_dx, "output layer alone", 2e-5, 0.03);
  shape evaluation = {33, 24, 60, true, true, true, true, 0.1, true, 0.0, TARN__FP32_EXACT};
  check_kernels_mode(build_loss, &evaluation, "output in evaluation", false, 2e-5, 0.03);
}

// No rows: the gradients are zero, whatever lay in their place.
static void no_rows(void **state) {
  (void)state;
  enum { WORDS = 20, D = 8 };
  for (int fast = 0; fast < 2; fast++) {
    tarn__graph graph = {0};
    float *values = check_shared(2 * (WORDS * D + WORDS) * sizeof *values), *grads = values + WORDS * D;
    float *bias_values = grads + WORDS * D, *bias_grads = bias_values + WORDS;
    for (int i = 0; i < WORDS * D; i++) grads[i] = NAN;
    for (int i = 0; i < WORDS; i++) bias_grads[i] = NAN;
    tarn__param table = {
        .name = "table", .rows = WORDS, .cols = D, .trained = true, .value = values, .training.grad = grads};
    tarn__param bias = {.name = "bias", .rows = 1, .cols = WORDS, .trained = true, .value = bias_values};
    bias.training.grad = bias_grads;
    table.dtype = bias.dtype = TARN__F32;
    tarn__graph_begin(&graph, fast ? check_device() : &tarn__device_reference, TARN__F32, true, CHECK_THREADS);
    int32_t target = 0;
    tarn__tensor *x = tarn__graph_external(&graph, TARN__F32, 0, D, values, "x");
    x->needs_grad = true;
    tarn__tensor *targets = tarn__graph_input(&graph, 0, &target, "targets");
    tarn__tensor *loss = tarn__output_loss(&graph, x, &table, &bias, targets, 0.1, grad_scale);
    loss->keep = true;
    tarn__graph_differentiate(&graph, loss);
    check_ok(tarn__graph_plan(&graph));
    void *workspace = check_shared(graph.workspace_bytes);
    tarn__graph_bind(&graph, workspace);
    tarn__exec exec = {.threads = CHECK_THREADS, .spread = true};
    check_ok(tarn__graph_run(&graph, &exec));
    check_ok(tarn__device_synchronise(check_device()));
    assert_true(table.training.grad_written && bias.training.grad_written);
    for (int i = 0; i < WORDS * D; i++) assert_true(grads[i] == 0.0f);
    for (int i = 0; i < WORDS; i++) assert_true(bias_grads[i] == 0.0f);
    assert_true(*(const double *)loss->data == 0.0);
    tarn__graph_close(&graph);
    check_shared_free(workspace);
    check_shared_free(values);
  }
}

// A logit that is not a number must not hide in a finite loss.
static void not_finite(void **state) {
  (void)state;
  static const float bad[] = {NAN, INFINITY};
  for (int i = 0; i < 4; i++) {
    const tarn__dtype dtype = i < 2 ? TARN__F32 : TARN__BF16;
    tarn__graph graph = {0};
    float *x = check_shared(3 * 8 * sizeof *x), *table = check_shared(20 * 8 * sizeof *table);
    int32_t targets[3] = {1, 2, 3};
    for (int j = 0; j < 24; j++) x[j] = 0.5f;
    for (int j = 0; j < 160; j++) table[j] = 0.25f;
    x[9] = bad[i % 2];
    for (int j = 0; dtype == TARN__BF16 && j < 160; j++) {
      if (j < 24) check_store(x, dtype, (size_t)j, (double)x[j]);
      check_store(table, dtype, (size_t)j, (double)table[j]);
    }
    tarn__param param = {.name = "table", .rows = 20, .cols = 8, .dtype = dtype, .value = table};
    tarn__graph_begin(&graph, check_device(), dtype, false, CHECK_THREADS);
    tarn__tensor *loss = tarn__output_loss(&graph, tarn__graph_external(&graph, dtype, 3, 8, x, "x"), &param, NULL,
                                           tarn__graph_input(&graph, 3, targets, "targets"), 0.1, grad_scale);
    loss->keep = true;
    check_ok(tarn__graph_plan(&graph));
    void *workspace = check_shared(graph.workspace_bytes);
    tarn__graph_bind(&graph, workspace);
    tarn__exec exec = {.threads = CHECK_THREADS, .spread = true};
    check_ok(tarn__graph_run(&graph, &exec));
    check_ok(tarn__device_synchronise(check_device()));
    assert_true(isnan(*(const double *)loss->data));
    targets[1] = 20;
    assert_int_equal(tarn__graph_run(&graph, &exec), TARN_STATUS_INTERNAL);
    assert_string_equal(tarn_error_message(), "output_loss: target 1 is 20; expected 0 to 19");
    targets[1] = 1, targets[2] = -1;
    assert_int_equal(tarn__graph_run(&graph, &exec), TARN_STATUS_INTERNAL);
    tarn__graph_close(&graph);
    check_shared_free(workspace);
    check_shared_free(x);
    check_shared_free(table);
  }
}

typedef struct top_case {
  int64_t rows, words, best;
  int values;  // different logits, so that many words are equally likely
} top_case;

// How the table is stored for decoding.
typedef struct top_way {
  tarn__dtype dtype;
  bool packed;
  tarn__rounding rounding;
  bool alone;  // runs on one thread if its work is little, as planned for more
} top_way;

static void *pack_table(tarn__param *table, const tarn__device *device, tarn__rounding rounding) {
  const tarn__device_weight weight = {
      .value = table->value, .rows = table->rows, .cols = table->cols, .dtype = table->dtype, .rounding = rounding};
  void *packed = check_alloc(device->type->pack_bytes(device, &weight), 1);
  check_ok(device->type->pack(device, packed, &weight, CHECK_THREADS));
  table->decoding.packed = packed;
  table->decoding.rounding = rounding;
  return packed;
}

// Logits are whole numbers, the same for every device to the last bit: so are the words that are chosen. A column that
// no row reads makes rounding exact, up to 127.
static void top_of(const top_case *t, const top_way *way, const tarn__device *device, int threads, int32_t *ids,
                   float *values) {
  enum { D = 5, GUARD = 1 << 15, MARK = 0x5A };
  tarn__graph graph = {0};
  float *x = check_shared((size_t)t->rows * D * sizeof *x), *table = check_shared((size_t)t->words * D * sizeof *table);
  for (int64_t r = 0; r < t->rows; r++) check_store(x, way->dtype, (size_t)(r * D + r % (D - 1)), 1.0);
  for (int64_t i = 0; i < t->words * D; i++)
    check_store(table, way->dtype, (size_t)i, i % D == D - 1 ? 127.0 : (double)((i * 7919 + i / 3) % t->values));
  tarn__param param = {.name = "table", .rows = t->words, .cols = D, .dtype = way->dtype, .value = table};
  void *packed = way->packed ? pack_table(&param, device, way->rounding) : NULL;
  tarn__graph_begin(&graph, device, way->dtype, false, threads);
  tarn__top top = tarn__output_top(&graph, tarn__graph_external(&graph, way->dtype, t->rows, D, x, "x"), &param, NULL,
                                   t->best, (int32_t)t->words - 1);
  top.values->keep = top.ids->keep = true;
  check_ok(tarn__graph_plan(&graph));
  char *workspace = check_shared(graph.workspace_bytes + GUARD);
  memset(workspace + graph.workspace_bytes, MARK, GUARD);
  tarn__graph_bind(&graph, workspace);
  tarn__exec exec = {.threads = threads, .spread = !way->alone};
  check_ok(tarn__graph_run(&graph, &exec));
  check_ok(tarn__device_synchronise(check_device()));
  for (size_t i = 0; i < GUARD; i++) assert_true(workspace[graph.workspace_bytes + i] == MARK);
  memcpy(ids, top.ids->data, (size_t)(t->rows * t->best) * sizeof *ids);
  memcpy(values, top.values->data, (size_t)(t->rows * (t->best + 1)) * sizeof *values);
  tarn__graph_close(&graph);
  check_shared_free(workspace);
  check_shared_free(x);
  check_shared_free(table);
  tarn__free(packed);
}

// The words are those of a whole product and the reference's choice, stored in any of these ways, by so many threads.
static void check_top(const top_case *t, const top_way *ways, int way_count, const int *threads, int thread_count) {
  static const top_way plain = {.dtype = TARN__F32};
  const size_t count = (size_t)(t->rows * t->best), value_count = count + (size_t)t->rows;
  int32_t *ids = check_alloc(2 * count, sizeof *ids), *wanted = ids + count;
  float *values = check_alloc(2 * value_count, sizeof *values), *exact = values + value_count;
  top_of(t, &plain, &tarn__device_reference, 1, wanted, exact);
  for (int i = 0; i < way_count * thread_count; i++) {
    top_of(t, &ways[i / thread_count], check_device(), threads[i % thread_count], ids, values);
    assert_memory_equal(ids, wanted, count * sizeof *ids);
    for (size_t k = 0; k < value_count; k++) assert_true(values[k] == exact[k] || fabsf(values[k] - exact[k]) < 1e-4f);
  }
  tarn__free(ids);
  tarn__free(values);
}

static void top_words(void **state) {
  (void)state;
  static const top_way plain = {.dtype = TARN__F32};
  static const int threads = CHECK_THREADS;
  static const top_case cases[] = {{3, 1, 1, 5},        {5, 5, 3, 2},        {2, 127, 11, 50}, {2, 128, 11, 3},
                                   {9, 129, 200, 40},   {4, 1000, 21, 9999}, {7, 1000, 3, 1},  {3, 5000, 2049, 777},
                                   {300, 4001, 11, 90}, {523, 700, 3, 90}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_top(&cases[i], &plain, 1, &threads, 1);
}

// Of a packed table tasks take parts; in INT8 rows are rounded once for all of them. Two chunks, of which the last has
// another size, and tasks of several visits.
static void packed_top_words(void **state) {
  (void)state;
  static const top_case cases[] = {{523, 1300, 11, 120}, {9, 5000, 20, 127}};
  static const top_way ways[] = {{TARN__F32, true, TARN__ROUNDING_NONE, false},
                                 {TARN__BF16, true, TARN__ROUNDING_NONE, false},
                                 {TARN__F32, true, TARN__ROUNDING_INT8, false},
                                 {TARN__BF16, true, TARN__ROUNDING_INT8, false}};
  static const int threads[] = {2, 1, 7};
  const int thread_count = getenv("TARN_SAMPLE") ? 1 : 3;
  if (!on_processor()) return;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_top(&cases[i], ways, 4, threads, thread_count);
}

// One thread wants more scratch than each of two: all words at a time.
static void little_work(void **state) {
  (void)state;
  static const top_case few = {4, 1500, 3, 90};
  static const top_way ways[] = {{TARN__F32, true, TARN__ROUNDING_INT8, true},
                                 {TARN__F32, true, TARN__ROUNDING_INT8, false}};
  static const int threads[] = {2, 7};
  if (on_processor()) check_top(&few, ways, 2, threads, 2);
}

static int run(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sizes),     cmocka_unit_test(chunks),           cmocka_unit_test(far),
      cmocka_unit_test(parts),     cmocka_unit_test(sure_word),        cmocka_unit_test(splits),
      cmocka_unit_test(groups),    cmocka_unit_test(no_rows),          cmocka_unit_test(not_finite),
      cmocka_unit_test(top_words), cmocka_unit_test(packed_top_words), cmocka_unit_test(little_work)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }
