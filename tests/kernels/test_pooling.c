// Average pooling: the fast kernels against the reference, over sizes, sentences and windows; rows whose bits depend on
// their sentence only; single rows against whole sentences; bad offsets and lists.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/kernel_check.h"
#include "ops/offsets.h"
#include "ops/ops.h"

typedef struct shape {
  int64_t d, width, before;
  int sentences;
  const int32_t *offsets;
} shape;

static void build(check *c, tarn__graph *graph, const void *spec) {
  const shape *s = spec;
  tarn__tensor *x = check_input(c, graph, s->offsets[s->sentences], s->d, 1.0, true);
  tarn__tensor *places = check_ints(c, graph, s->offsets, s->sentences + 1);
  check_output(c, tarn__pooling(graph, x, places, (tarn__pooling_spec){.width = s->width, .before = s->before}));
}

// Sentences of many lengths, one of them empty, one much longer than the others.
static const int32_t many[] = {0, 1, 3, 3, 10, 27, 28, 120, 125};
static const int32_t one[] = {0, 1};
static const int32_t none[] = {0};
enum { MANY = sizeof many / sizeof many[0] - 1 };

static void sizes(void **state) {
  (void)state;
  static const int64_t widths[] = {1, 2, 3, 7, 31, 1000}, ds[] = {1, 8, 30, 100, 512};
  for (size_t k = 0; k < sizeof widths / sizeof widths[0]; k++)
    for (size_t i = 0; i < sizeof ds / sizeof ds[0]; i++)
      for (int causal = 0; causal < 2; causal++) {
        char name[96];
        shape s = {ds[i], widths[k], causal ? widths[k] - 1 : (widths[k] - 1) / 2, MANY, many};
        snprintf(name, sizeof name, "%s, d %d, width %d", causal ? "causal" : "centred", (int)s.d, (int)s.width);
        check_kernels(build, &s, name, 1e-5, 0.02);
      }
}

static void few_rows(void **state) {
  (void)state;
  const shape single = {40, 5, 2, 1, one}, nothing = {40, 5, 2, 0, none}, s = {40, 5, 2, MANY, many};
  check_kernels(build, &single, "one row", 1e-5, 0.02);
  check_kernels(build, &nothing, "no rows", 1e-5, 0.02);
  check_kernels_mode(build, &s, "without training", false, 1e-5, 0.02);
}

// An input with another reader, whose gradient is there already.
static void build_chain(check *c, tarn__graph *graph, const void *spec) {
  const shape *s = spec;
  tarn__tensor *x = check_input(c, graph, s->offsets[s->sentences], s->d, 1.0, true);
  tarn__tensor *places = check_ints(c, graph, s->offsets, s->sentences + 1);
  const tarn__pooling_spec centred = {.width = s->width, .before = (s->width - 1) / 2},
                           causal = {s->width, s->width - 1};
  tarn__tensor *y = tarn__pooling(graph, x, places, centred);
  check_output(c, tarn__pooling(graph, tarn__pooling(graph, y, places, causal), places, centred));
  check_output(c, tarn__pooling(graph, x, places, causal));
  check_output(c, y);
}

static void chain(void **state) {
  (void)state;
  const shape s = {24, 4, 0, MANY, many};
  check_kernels(build_chain, &s, "chain", 2e-5, 0.04);
}

enum { D = 40, WIDTH = 7, LENGTH = 19, EARLIER = 6, LISTED = LENGTH * (LENGTH + 1) / 2 };

// A batch of whole sentences or, with a list, of single rows.
typedef struct batch {
  tarn__dtype dtype;
  int64_t rows;
  int threads, sentences;
  const int32_t *offsets, *list, *ranges;
} batch;

static tarn__tensor *ints(tarn__graph *graph, const int32_t *data, int64_t n) {
  return tarn__graph_input(graph, n, data, "ints");
}

static tarn_status run_batch(void *out, const batch *b, void *x) {
  tarn__graph graph = {0};
  tarn__graph_begin(&graph, check_device(), b->dtype, false, b->threads);
  tarn__tensor *from = tarn__graph_external(&graph, b->dtype, b->rows, D, x, "x");
  tarn__tensor *y = b->list ? tarn__pooling_rows(&graph, from, ints(&graph, b->list, LISTED),
                                                 ints(&graph, b->ranges, 2 * b->rows), WIDTH)
                            : tarn__pooling(&graph, from, ints(&graph, b->offsets, b->sentences + 1),
                                            (tarn__pooling_spec){.width = WIDTH, .before = WIDTH - 1});
  return check_result(out, &graph, y);
}

// Row r sees all rows up to itself.
static void list_all(int32_t *list, int32_t *ranges) {
  int32_t listed = 0;
  for (int32_t r = 0; r < LENGTH; r++) {
    ranges[2 * r] = listed;
    for (int32_t j = 0; j <= r; j++) list[listed++] = j;
    ranges[2 * r + 1] = listed;
  }
}

// A sentence has equal bits alone, behind others, on any number of threads, and row by row.
static void bits(void **state) {
  (void)state;
  enum { ROWS = EARLIER + LENGTH };
  static const int32_t alone[] = {0, LENGTH}, behind[] = {0, EARLIER, ROWS};
  static const tarn__dtype dtypes[] = {TARN__F32, TARN__BF16};
  int32_t list[LISTED], ranges[2 * LENGTH];
  tarn__random random;
  tarn__random_init(&random, 11, 0);
  list_all(list, ranges);
  void *x = check_shared(ROWS * D * sizeof(double));
  for (int t = 0; t < 2; t++) {
    const size_t before = EARLIER * D * tarn__dtype_size(dtypes[t]), size = LENGTH * D * tarn__dtype_size(dtypes[t]);
    static double first[ROWS * D], other[ROWS * D];
    for (size_t i = 0; i < ROWS * D; i++) check_store(x, dtypes[t], i, tarn__random_normal(&random));
    batch b = {.dtype = dtypes[t], .rows = LENGTH, .threads = 1, .sentences = 1, .offsets = alone};
    check_ok(run_batch(first, &b, (char *)x + before));
    b.list = list, b.ranges = ranges;
    for (b.threads = 1; b.threads <= 3; b.threads++) {
      check_ok(run_batch(other, &b, (char *)x + before));
      assert_memory_equal(first, other, size);
    }
    b = (batch){.dtype = dtypes[t], .rows = ROWS, .sentences = 2, .offsets = behind};
    for (b.threads = 1; b.threads <= 5; b.threads++) {
      check_ok(run_batch(other, &b, x));
      assert_memory_equal(first, (char *)other + before, size);
    }
  }
  check_shared_free(x);
}

// Offsets and lists that would lead outside of x are refused.
static void bad_places(void **state) {
  (void)state;
  static float y[LENGTH * D];
  float *x = check_shared(LENGTH * D * sizeof *x);
  static const int32_t few[] = {0, 5, LENGTH - 1}, falling[] = {0, 7, 5, LENGTH};
  int32_t list[LISTED], ranges[2 * LENGTH];
  batch b = {.rows = LENGTH, .threads = 1, .sentences = 2, .offsets = few};
  assert_int_equal(run_batch(y, &b, x), TARN_STATUS_INTERNAL);
  b.sentences = 3, b.offsets = falling;
  assert_int_equal(run_batch(y, &b, x), TARN_STATUS_INTERNAL);
  b.list = list, b.ranges = ranges;
  for (int bad = 0; bad < 4; bad++) {
    list_all(list, ranges);
    if (bad == 1) list[LISTED - 1] = LENGTH;
    if (bad == 2) ranges[1] = 0;
    if (bad == 3) ranges[2 * LENGTH - 1]++;
    assert_int_equal(run_batch(y, &b, x), bad == 0 ? TARN_STATUS_OK : TARN_STATUS_INTERNAL);
  }
  check_shared_free(x);
}

// Windows that do not hold the row itself are refused.
static void bad_windows(void **state) {
  (void)state;
  static const tarn__pooling_spec bad[] = {{0, 0}, {3, 3}, {3, -1}};
  static float x[D];
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    tarn__graph graph = {0};
    tarn__graph_begin(&graph, &tarn__device_cpu, TARN__F32, false, 1);
    tarn__pooling(&graph, tarn__graph_external(&graph, TARN__F32, 1, D, x, "x"), ints(&graph, one, 2), bad[i]);
    assert_int_equal(tarn__graph_plan(&graph), TARN_STATUS_INTERNAL);
    tarn__graph_close(&graph);
  }
}

// What the operations of pooling and convolutions are counted by, against a count of every row that every row sees.
static void rows_seen(void **state) {
  (void)state;
  static const int64_t widths[] = {1, 2, 3, 4, 31, 92, 93, 94, 300};
  const tarn__tensor offsets = {.dtype = TARN__I32, .rows = 1, .cols = MANY + 1, .host = many};
  for (size_t w = 0; w < sizeof widths / sizeof widths[0]; w++)
    for (int64_t before = 0; before < widths[w]; before++) {
      int64_t count = 0;
      for (int s = 0; s < MANY; s++)
        for (int64_t r = many[s]; r < many[s + 1]; r++)
          for (int64_t k = 0; k < widths[w]; k++) count += r + k - before >= many[s] && r + k - before < many[s + 1];
      assert_true(tarn__offsets_taps(&offsets, many[MANY], widths[w], before) == (double)count);
    }
}

static int run(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sizes),      cmocka_unit_test(few_rows),    cmocka_unit_test(chain),    cmocka_unit_test(bits),
      cmocka_unit_test(bad_places), cmocka_unit_test(bad_windows), cmocka_unit_test(rows_seen)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }
