// Linear attention and its features: the fast kernels against the reference, over sizes, sentences of one row to
// several chunks, carried states; sentences whose bits depend on themselves alone; single rows against whole sentences;
// bad offsets and lists.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/linear_attention_check.h"

// Sentences of many lengths, one of them empty, two longer than a chunk of 128 rows.
static const int32_t many[] = {0, 1, 3, 3, 32, 95, 225, 500};
static const int32_t few[] = {0, 5, 6, 17};
static const int32_t none[] = {0};
enum { MANY = sizeof many / sizeof many[0] - 1, FEW = sizeof few / sizeof few[0] - 1 };

static void try_case(linear_case at, double f32, double bf16) {
  char name[128];
  snprintf(name, sizeof name, "%s, %s%s, %d heads of %d, %d features, %d sentences", at.softmax ? "softmax" : "elu",
           at.causal ? "causal" : "whole", at.carried ? ", carried" : "", (int)at.heads, (int)at.width,
           (int)at.features, at.sentences);
  check_kernels(linear_build, &at, name, f32, bf16);
}

static void sizes(void **state) {
  (void)state;
  static const struct {
    int64_t heads, width, features;
    bool softmax;
  } shapes[] = {{1, 1, 1, false}, {2, 4, 4, false},  {3, 20, 20, false}, {2, 64, 64, false},
                {2, 4, 7, true},  {1, 20, 33, true}, {2, 32, 64, true}};
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
    for (int causal = 0; causal < 2; causal++) {
      linear_case at = {.heads = shapes[i].heads,
                        .width = shapes[i].width,
                        .features = shapes[i].features,
                        .softmax = shapes[i].softmax,
                        .causal = causal,
                        .sentences = MANY,
                        .offsets = many,
                        .scale = 1.0};
      try_case(at, 5e-5, 0.15);
      at.sentences = FEW, at.offsets = few;
      try_case(at, 2e-5, 0.1);
    }
}

static void edges(void **state) {
  (void)state;
  linear_case at = {
      2, 8, 8, .causal = true, .carried = true, .chained = true, .sentences = MANY, .offsets = many, .scale = 1.0};
  try_case(at, 5e-5, 0.15);
  at.softmax = true, at.features = 16;
  try_case(at, 5e-5, 0.15);
  at.rest = 3, at.chained = at.carried = false;
  try_case(at, 5e-5, 0.15);
  at.sentences = 0, at.offsets = none;
  try_case(at, 2e-5, 0.1);
  // Exponents far from 0, and a wide head.
  const linear_case wide = {1, 200, 40, .softmax = true, .sentences = FEW, .offsets = few, .scale = 2.0};
  try_case(wide, 5e-4, 0);
}

enum { HEADS = 2, WIDTH = 8, D = HEADS * WIDTH, LENGTH = 150, EARLIER = 9, ROWS = EARLIER + LENGTH };
static const tarn__linear_attention_spec causal_spec = {HEADS, WIDTH, WIDTH, 2 * D, true, false};
static const tarn__feature_map_spec map_spec = {HEADS, WIDTH, WIDTH, 0, D};

static tarn__tensor *ints(tarn__graph *graph, const int32_t *data, int64_t n) {
  return tarn__graph_input(graph, n, data, "ints");
}

// Rows of x, in sentences or, with a cache, each behind the row that its range names.
typedef struct batch {
  tarn__dtype dtype;
  bool causal;
  int threads;
  int64_t rows, first_row, list_count;
  int sentences;
  const int32_t *offsets, *list, *ranges;
  float *cache;
} batch;

static tarn_status run_batch(void *out, const batch *b, void *x) {
  tarn__graph graph = {0};
  tarn__graph_begin(&graph, check_device(), b->dtype, false, b->threads);
  tarn__tensor *from = tarn__graph_external(&graph, b->dtype, b->rows, 3 * D, x, "x");
  tarn__tensor *phi = tarn__feature_map(&graph, from, NULL, map_spec), *y;
  tarn__linear_attention_spec spec = causal_spec;
  spec.causal = b->causal;
  if (b->cache) {
    tarn__tensor *cache =
        tarn__graph_external(&graph, TARN__F32, LENGTH, tarn__linear_attention_state(&spec), b->cache, "cache");
    y = tarn__linear_attention_rows(&graph, phi, from, cache, b->first_row, ints(&graph, b->list, b->list_count),
                                    ints(&graph, b->ranges, 2 * b->rows), spec);
  } else {
    y = tarn__linear_attention(&graph, phi, from, ints(&graph, b->offsets, b->sentences + 1), spec, NULL, NULL);
  }
  return check_result(out, &graph, y);
}

static void *x;  // what the device reads

static void fill(tarn__dtype dtype) {
  tarn__random random;
  tarn__random_init(&random, 11, 0);
  for (size_t i = 0; i < ROWS * 3 * D; i++) check_store(x, dtype, i, tarn__random_normal(&random));
}

// A sentence has equal bits alone and behind others, on any number of threads; and in the causal form, so have its
// first rows without the others.
static void bits(void **state) {
  (void)state;
  static const int32_t alone[] = {0, LENGTH}, behind[] = {0, EARLIER, ROWS}, part[] = {0, LENGTH / 2};
  static const tarn__dtype dtypes[] = {TARN__F32, TARN__BF16};
  static double first[ROWS * D], other[ROWS * D];
  for (int t = 0; t < 2; t++)
    for (int causal = 0; causal < 2; causal++) {
      const size_t element = tarn__dtype_size(dtypes[t]), size = LENGTH * D * element;
      char *from = (char *)x + EARLIER * 3 * D * element;
      fill(dtypes[t]);
      batch b = {.dtype = dtypes[t], .causal = causal, .rows = LENGTH, .threads = 1, .sentences = 1, .offsets = alone};
      check_ok(run_batch(first, &b, from));
      b = (batch){.dtype = dtypes[t], .causal = causal, .rows = ROWS, .sentences = 2, .offsets = behind};
      for (b.threads = 1; b.threads <= 3; b.threads++) {
        check_ok(run_batch(other, &b, x));
        assert_memory_equal(first, (char *)other + EARLIER * D * element, size);
      }
      if (!causal) continue;
      b = (batch){
          .dtype = dtypes[t], .causal = true, .rows = LENGTH / 2, .threads = 2, .sentences = 1, .offsets = part};
      check_ok(run_batch(other, &b, from));
      assert_memory_equal(first, other, size / 2);
    }
}

// Rows that follow one another by a cache are those of the whole sentence.
static void single_rows(void **state) {
  (void)state;
  static const int32_t whole[] = {0, LENGTH};
  static const struct {
    tarn__dtype dtype;
    double tolerance;
  } types[] = {{TARN__F32, 1e-5}, {TARN__BF16, 0.03}};
  static double expected[LENGTH * D], found[D];
  float *cache = check_shared((size_t)(LENGTH * tarn__linear_attention_state(&causal_spec)) * sizeof *cache);
  for (int t = 0; t < 2; t++) {
    const size_t element = tarn__dtype_size(types[t].dtype);
    fill(types[t].dtype);
    batch b = {.dtype = types[t].dtype, .causal = true, .rows = LENGTH, .threads = 2, .sentences = 1, .offsets = whole};
    check_ok(run_batch(expected, &b, x));
    for (int32_t r = 0; r < LENGTH; r++) {
      const int32_t list[] = {r - 1, r}, ranges[] = {0, r > 0 ? 2 : 1};
      b = (batch){.dtype = types[t].dtype, .causal = true, .rows = 1, .threads = 2, .first_row = r};
      b.list = r > 0 ? list : list + 1, b.list_count = r > 0 ? 2 : 1, b.ranges = ranges, b.cache = cache;
      check_ok(run_batch(found, &b, (char *)x + (size_t)r * 3 * D * element));
      for (size_t i = 0; i < D; i++) {
        const double y = check_load(found, types[t].dtype, i);
        const double other = check_load(expected, types[t].dtype, (size_t)r * D + i);
        if (!(fabs(y - other) <= types[t].tolerance * (1.0 + fabs(other))))
          fail_msg("row %d, column %zu: %g alone, %g in its sentence", (int)r, i, y, other);
      }
    }
  }
  // A range that does not end with the row itself, and one that names a row that there is not.
  const int32_t wrong[] = {0, 1}, far[] = {LENGTH, 2}, ranges[] = {0, 2};
  batch b = {.dtype = TARN__F32, .causal = true, .rows = 1, .threads = 1, .first_row = 2, .list = wrong};
  b.list_count = 2, b.ranges = ranges, b.cache = cache;
  fill(TARN__F32);
  assert_int_equal(run_batch(found, &b, x), TARN_STATUS_INTERNAL);
  b.list = far;
  assert_int_equal(run_batch(found, &b, x), TARN_STATUS_INTERNAL);
  check_shared_free(cache);
}

static void bad_offsets(void **state) {
  (void)state;
  static float y[LENGTH * D];
  static const int32_t short_of[] = {0, 5, LENGTH - 1}, falling[] = {0, 7, 5, LENGTH};
  batch b = {.dtype = TARN__F32, .rows = LENGTH, .threads = 1, .sentences = 2, .offsets = short_of};
  fill(TARN__F32);
  assert_int_equal(run_batch(y, &b, x), TARN_STATUS_INTERNAL);
  b.sentences = 3, b.offsets = falling;
  assert_int_equal(run_batch(y, &b, x), TARN_STATUS_INTERNAL);
}

// Keys whose features have all underflowed give zeros, not numbers that are none.
static void underflow(void **state) {
  (void)state;
  tarn__graph graph = {0};
  static const int32_t offsets[] = {0, 2};
  float *phi = check_shared(2 * 2 * 4 * sizeof *phi), *values = check_shared(2 * 4 * sizeof *values), found[8];
  for (int i = 0; i < 4; i++) phi[i] = phi[8 + i] = 1.0f;  // of the queries alone
  for (int i = 0; i < 8; i++) values[i] = (float)(1 + i);
  tarn__graph_begin(&graph, check_device(), TARN__F32, false, 1);
  tarn__tensor *y =
      tarn__linear_attention(&graph, tarn__graph_external(&graph, TARN__F32, 2, 8, phi, "phi"),
                             tarn__graph_external(&graph, TARN__F32, 2, 4, values, "values"), ints(&graph, offsets, 2),
                             (tarn__linear_attention_spec){1, 4, 4, 0, true, false}, NULL, NULL);
  check_ok(check_result(found, &graph, y));
  for (int i = 0; i < 8; i++) assert_true(found[i] == 0.0f);
  check_shared_free(phi);
  check_shared_free(values);
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sizes),       cmocka_unit_test(edges),
                                     cmocka_unit_test(bits),        cmocka_unit_test(single_rows),
                                     cmocka_unit_test(bad_offsets), cmocka_unit_test(underflow)};
  x = check_shared(ROWS * 3 * D * sizeof(double));
  const int failures = cmocka_run_group_tests(tests, NULL, NULL);
  check_shared_free(x);
  return failures;
}

int main(void) { return check_each_isa(run); }
