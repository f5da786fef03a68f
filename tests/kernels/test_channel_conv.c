// Convolutions with a kernel for each channel, taps side by side, and rows filled up to a width: the fast kernels
// against the reference, over sizes, sentences and widths; rows whose bits depend on their sentence only; single rows
// against whole sentences; bad offsets and lists.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/channel_conv_check.h"

// Sentences of many lengths, one of them empty, one much longer than the others.
static const int32_t many[] = {0, 1, 3, 3, 10, 27, 28, 120, 125};
static const int32_t one[] = {0, 1};
static const int32_t none[] = {0};
enum { MANY = sizeof many / sizeof many[0] - 1 };

static void sizes(void **state) {
  (void)state;
  static const int64_t widths[] = {1, 2, 9, 40}, ds[] = {1, 30, 100, 192};
  for (size_t k = 0; k < sizeof widths / sizeof widths[0]; k++)
    for (size_t i = 0; i < sizeof ds / sizeof ds[0]; i++)
      for (int causal = 0; causal < 2; causal++) {
        char name[96];
        const int64_t width = widths[k], before = causal ? width - 1 : (width - 1) / 2;
        const conv_shape s = {ds[i], {width, before}, MANY, many, true, true};
        snprintf(name, sizeof name, "%s, d %d, width %d", causal ? "causal" : "centred", (int)s.d, (int)width);
        check_kernels(channel_conv_build, &s, name, 1e-5, 0.02);
        if (width < 10) check_kernels(neighbours_build, &s, name, 1e-5, 0.02);
      }
}

static void parts(void **state) {
  (void)state;
  const tarn__taps taps = {.width = 5, .before = 2};
  const conv_shape all = {40, taps, MANY, many, true, true}, single = {40, taps, 1, one, true, true};
  const conv_shape nothing = {40, taps, 0, none, true, true}, frozen = {40, taps, MANY, many, true, false};
  const conv_shape data = {40, taps, MANY, many, false, true};
  check_kernels(branches_build, &all, "branches", 2e-5, 0.04);
  check_kernels(branches_build, &single, "one row", 2e-5, 0.04);
  check_kernels(branches_build, &nothing, "no rows", 2e-5, 0.04);
  check_kernels(branches_build, &frozen, "frozen kernel", 2e-5, 0.04);
  check_kernels(branches_build, &data, "x without a gradient", 2e-5, 0.04);
  check_kernels_mode(branches_build, &all, "without training", false, 2e-5, 0.04);
}

enum { D = 40, WIDTH = 7, LENGTH = 19, EARLIER = 6, LISTED = LENGTH * (LENGTH + 1) / 2, COLUMN = 8, COLS = 52 };

// A batch of whole sentences or, with a list, of single rows of a wider cache.
typedef struct batch {
  tarn__dtype dtype;
  int64_t rows;
  int threads, sentences;
  const int32_t *offsets, *list, *ranges;
  float *kernel;
} batch;

static tarn__tensor *ints(tarn__graph *graph, const int32_t *data, int64_t n) {
  return tarn__graph_input(graph, n, data, "ints");
}

static tarn_status run_batch(void *out, const batch *b, void *x) {
  tarn__graph graph = {0};
  tarn__param kernel = {
      .name = "kernel", .rows = 1, .cols = WIDTH * D, .vector = true, .dtype = TARN__F32, .value = b->kernel};
  tarn__graph_begin(&graph, check_device(), b->dtype, false, b->threads);
  tarn__tensor *from = tarn__graph_external(&graph, b->dtype, b->rows, b->list ? COLS : D, x, "x");
  tarn__tensor *y = b->list ? tarn__channel_conv_rows(&graph, from, COLUMN, ints(&graph, b->list, LISTED),
                                                      ints(&graph, b->ranges, 2 * b->rows), &kernel, WIDTH)
                            : tarn__channel_conv(&graph, from, ints(&graph, b->offsets, b->sentences + 1), &kernel,
                                                 (tarn__taps){.width = WIDTH, .before = WIDTH - 1});
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

// A sentence has equal bits alone, behind others, on any number of threads, and row by row from the columns of a cache.
static void bits(void **state) {
  (void)state;
  enum { ROWS = EARLIER + LENGTH };
  static const int32_t alone[] = {0, LENGTH}, behind[] = {0, EARLIER, ROWS};
  static const tarn__dtype dtypes[] = {TARN__F32, TARN__BF16};
  int32_t list[LISTED], ranges[2 * LENGTH];
  tarn__random random;
  tarn__random_init(&random, 11, 0);
  list_all(list, ranges);
  float *kernel = check_shared(WIDTH * D * sizeof *kernel);
  for (int i = 0; i < WIDTH * D; i++) kernel[i] = (float)tarn__random_normal(&random);
  void *x = check_shared(ROWS * D * sizeof(double)), *cache = check_shared(LENGTH * COLS * sizeof(double));
  memset(cache, 0x7F, LENGTH * COLS * sizeof(double));
  for (int t = 0; t < 2; t++) {
    const size_t element = tarn__dtype_size(dtypes[t]), before = EARLIER * D * element, size = LENGTH * D * element;
    static double first[ROWS * D], other[ROWS * D];
    for (size_t i = 0; i < ROWS * D; i++) check_store(x, dtypes[t], i, tarn__random_normal(&random));
    for (size_t r = 0; r < LENGTH; r++)
      memcpy((char *)cache + (r * COLS + COLUMN) * element, (char *)x + before + r * D * element, D * element);
    batch b = {.dtype = dtypes[t], .rows = LENGTH, .threads = 1, .sentences = 1, .offsets = alone, .kernel = kernel};
    check_ok(run_batch(first, &b, (char *)x + before));
    b.list = list, b.ranges = ranges;
    for (b.threads = 1; b.threads <= 3; b.threads++) {
      check_ok(run_batch(other, &b, cache));
      assert_memory_equal(first, other, size);
    }
    b = (batch){.dtype = dtypes[t], .rows = ROWS, .sentences = 2, .offsets = behind, .kernel = kernel};
    for (b.threads = 1; b.threads <= 5; b.threads++) {
      check_ok(run_batch(other, &b, x));
      assert_memory_equal(first, (char *)other + before, size);
    }
  }
  check_shared_free(cache);
  check_shared_free(x);
  check_shared_free(kernel);
}

// The gradient of the kernel has the same bits with any number of threads.
static void kernel_bits(void **state) {
  (void)state;
  enum { ROWS = 125, CHANNELS = 150, TAPS = 5 };
  static float first[TAPS * CHANNELS], ones[CHANNELS], zero[1];
  static const int32_t values[ROWS];
  tarn__param head = {.name = "head.weight", .rows = 1, .cols = CHANNELS, .dtype = TARN__F32, .value = ones};
  tarn__param bias = {.name = "bias", .rows = 1, .cols = 1, .vector = true, .dtype = TARN__F32, .value = zero};
  tarn__random random;
  tarn__random_init(&random, 12, 0);
  for (int i = 0; i < CHANNELS; i++) ones[i] = (float)tarn__random_normal(&random);
  float *x = check_shared(ROWS * CHANNELS * sizeof *x), *kernel = check_shared(sizeof first);
  float *found = check_shared(sizeof first);
  for (int i = 0; i < ROWS * CHANNELS; i++) x[i] = (float)tarn__random_normal(&random);
  for (int i = 0; i < TAPS * CHANNELS; i++) kernel[i] = (float)tarn__random_normal(&random);
  for (int threads = 1; threads <= 5; threads++) {
    tarn__graph graph = {0};
    tarn__param weights = {.name = "kernel",
                           .rows = 1,
                           .cols = TAPS * CHANNELS,
                           .vector = true,
                           .trained = true,
                           .uses = 1,
                           .dtype = TARN__F32,
                           .value = kernel,
                           .training.grad = found};
    tarn__graph_begin(&graph, check_device(), TARN__F32, true, threads);
    tarn__tensor *from = tarn__graph_external(&graph, TARN__F32, ROWS, CHANNELS, x, "x");
    tarn__tensor *y = tarn__channel_conv(&graph, from, ints(&graph, many, MANY + 1), &weights, (tarn__taps){TAPS, 2});
    tarn__tensor *numbers,
        *loss = tarn__squared_error(&graph, y, &head, &bias, ints(&graph, values, ROWS), 1.0, &numbers);
    tarn__graph_differentiate(&graph, loss);
    static float out[ROWS * CHANNELS];
    check_ok(check_result(out, &graph, y));
    if (threads == 1) memcpy(first, found, sizeof first);
    assert_memory_equal(first, found, sizeof first);
  }
  check_shared_free(x);
  check_shared_free(kernel);
  check_shared_free(found);
}

// Offsets and lists that would lead outside of x are refused.
static void bad_places(void **state) {
  (void)state;
  static float y[LENGTH * D];
  float *x = check_shared(LENGTH * COLS * sizeof *x), *kernel = check_shared(WIDTH * D * sizeof *kernel);
  static const int32_t few[] = {0, 5, LENGTH - 1}, falling[] = {0, 7, 5, LENGTH};
  int32_t list[LISTED], ranges[2 * LENGTH];
  memset(x, 0, LENGTH * COLS * sizeof *x);
  memset(kernel, 0, WIDTH * D * sizeof *kernel);
  batch b = {.rows = LENGTH, .threads = 1, .sentences = 2, .offsets = few, .kernel = kernel};
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
  check_shared_free(kernel);
  check_shared_free(x);
}

// Taps that do not hold the row itself, kernels of another width, and bases of another size are refused.
static void bad_sizes(void **state) {
  (void)state;
  static const tarn__taps bad[] = {{0, 0}, {3, 3}, {3, -1}, {2, 0}};
  static float x[D], values[3 * D];
  tarn__param kernel = {.name = "kernel", .rows = 1, .cols = 3 * D, .dtype = TARN__F32, .value = values};
  for (size_t i = 0; i <= sizeof bad / sizeof bad[0]; i++)
    for (int op = 0; op < 2; op++) {
      tarn__graph graph = {0};
      tarn__graph_begin(&graph, &tarn__device_cpu, TARN__F32, false, 1);
      tarn__tensor *from = tarn__graph_external(&graph, TARN__F32, 1, D, x, "x");
      if (i == sizeof bad / sizeof bad[0])
        tarn__widen(&graph, op == 0 ? from : NULL, from, op == 0 ? D + 1 : D - 1);
      else if (op == 0)
        tarn__channel_conv(&graph, from, ints(&graph, one, 2), &kernel, bad[i]);
      else if (i < 3)
        tarn__neighbours(&graph, from, ints(&graph, one, 2), bad[i]);
      else
        tarn__channel_conv_rows(&graph, from, 1, ints(&graph, one, 2), ints(&graph, one, 2), &kernel, 3);
      assert_int_equal(tarn__graph_plan(&graph), TARN_STATUS_INTERNAL);
      tarn__graph_close(&graph);
    }
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sizes),      cmocka_unit_test(parts),
                                     cmocka_unit_test(bits),       cmocka_unit_test(kernel_bits),
                                     cmocka_unit_test(bad_places), cmocka_unit_test(bad_sizes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }
