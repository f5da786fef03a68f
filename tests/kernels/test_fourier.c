// The Fourier transform of sentences: the fast kernels against the reference, over sizes and sentences; rows whose bits
// depend on their sentence only; operations counted by hand; bad offsets.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/kernel_check.h"
#include "ops/fourier.h"

typedef struct shape {
  int64_t d;
  int sentences;
  const int32_t *offsets;
  int64_t longest;
} shape;

// Where x has another reader, whose gradient is there already.
static void build(check *c, tarn__graph *graph, const void *spec) {
  const shape *s = spec;
  tarn__tensor *x = check_input(c, graph, s->offsets[s->sentences], s->d, 1.0, true);
  tarn__tensor *places = check_ints(c, graph, s->offsets, s->sentences + 1);
  check_output(c, tarn__fourier(graph, x, places, s->longest));
  check_output(c, x);
}

// Sentences of many lengths, odd and even, one of them empty, one much longer than the others; and few.
static const int32_t many[] = {0, 1, 3, 3, 10, 27, 28, 120, 125, 129};
static const int32_t few[] = {0, 37, 37};
static const int32_t none[] = {0};
enum { MANY = sizeof many / sizeof many[0] - 1 };

static void sizes(void **state) {
  (void)state;
  static const int64_t ds[] = {1, 2, 3, 8, 31, 100};
  for (size_t i = 0; i < sizeof ds / sizeof ds[0]; i++) {
    char name[96];
    snprintf(name, sizeof name, "d %d", (int)ds[i]);
    // Sums of as many terms as a sentence has numbers; in bf16 its size is that of the square root of their number.
    const double size = 10.0 * sqrt((double)ds[i]);
    check_kernels(build, &(shape){ds[i], MANY, many, 92}, name, 1e-6 * size, 0.012 * size);
    check_kernels(build, &(shape){ds[i], 2, few, 40}, name, 1e-6 * size, 0.012 * size);
  }
  check_kernels(build, &(shape){12, 0, none, 0}, "no rows", 1e-5, 0.02);
}

enum { D = 24, LENGTH = 19, EARLIER = 6, ROWS = EARLIER + LENGTH };

static tarn_status run_batch(void *out, tarn__dtype dtype, const int32_t *offsets, int sentences, void *x,
                             int64_t longest, int threads) {
  tarn__graph graph = {0};
  tarn__graph_begin(&graph, check_device(), dtype, false, threads);
  const int64_t rows = offsets[sentences];
  tarn__tensor *from = tarn__graph_external(&graph, dtype, rows, D, x, "x");
  return check_result(
      out, &graph, tarn__fourier(&graph, from, tarn__graph_input(&graph, sentences + 1, offsets, "offsets"), longest));
}

// A sentence has equal bits alone, behind others, and on any number of threads.
static void bits(void **state) {
  (void)state;
  static const int32_t alone[] = {0, LENGTH}, behind[] = {0, EARLIER, EARLIER, EARLIER, EARLIER, EARLIER, ROWS};
  static const tarn__dtype dtypes[] = {TARN__F32, TARN__BF16};
  tarn__random random;
  tarn__random_init(&random, 3, 0);
  for (int i = 0; i < 2; i++) {
    const size_t row = D * tarn__dtype_size(dtypes[i]);
    static double one[ROWS * D], all[ROWS * D];
    void *x = check_shared(ROWS * row);
    for (size_t n = 0; n < ROWS * D; n++) check_store(x, dtypes[i], n, tarn__random_normal(&random));
    for (int threads = 1; threads <= 3; threads++) {
      check_ok(run_batch(one, dtypes[i], alone, 1, (char *)x + EARLIER * row, LENGTH, 1));
      check_ok(run_batch(all, dtypes[i], behind, 6, x, ROWS, threads));
      assert_memory_equal((char *)all + EARLIER * row, one, LENGTH * row);
    }
    check_shared_free(x);
  }
}

static void operations(void **state) {
  (void)state;
  static const int32_t offsets[] = {0, 5, 9};
  tarn__graph graph = {0};
  tarn__graph_begin(&graph, check_device(), TARN__F32, false, 1);
  tarn__tensor *x = tarn__graph_tensor(&graph, TARN__F32, 9, 6, "x");
  tarn__tensor *y = tarn__fourier(&graph, x, tarn__graph_input(&graph, 3, offsets, "offsets"), 5);
  // 9 rows by [6, 6]; of 5 tokens 3 lines of cosines by 4 columns and 2 of sines by 2; of 4 tokens 3 and 1.
  const double expected = 2 * 9 * 36 + 2 * 5 * (3 * 4 + 2 * 2) + 2 * 4 * (3 * 4 + 1 * 2);
  assert_true(y->source->op->flops(y->source) == expected);
  tarn__graph_close(&graph);
}

static void bad_offsets(void **state) {
  (void)state;
  static const int32_t uncovered[] = {0, 2, 8}, longer[] = {0, 9};
  float *x = check_shared(9 * D * sizeof *x), y[9 * D];
  assert_int_equal(run_batch(y, TARN__F32, longer, 1, x, 8, 1), TARN_STATUS_INTERNAL);
  assert_non_null(strstr(tarn_error_message(), "fourier: sentence 0 has 9 rows; expected at most 8"));
  tarn__graph graph = {0};
  tarn__graph_begin(&graph, check_device(), TARN__F32, false, 1);
  tarn__tensor *from = tarn__graph_external(&graph, TARN__F32, 9, D, x, "x");
  tarn__fourier(&graph, from, tarn__graph_input(&graph, 3, uncovered, "offsets"), 8)->keep = true;
  check_ok(tarn__graph_plan(&graph));
  void *workspace = check_shared(graph.workspace_bytes);
  tarn__graph_bind(&graph, workspace);
  assert_int_equal(tarn__graph_run(&graph, &(tarn__exec){.threads = 1}), TARN_STATUS_INTERNAL);
  check_shared_free(workspace);
  check_shared_free(x);
  tarn__graph_close(&graph);
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sizes), cmocka_unit_test(bits), cmocka_unit_test(operations),
                                     cmocka_unit_test(bad_offsets)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }
