// RMSNorm: its equation, the checks that layer normalisation goes through, and bits.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/norm_check.h"

static void sizes(void **state) {
  (void)state;
  norm_check_sizes(TARN__NORM_RMS);
  norm_check_widths(TARN__NORM_RMS);
}

static void parts(void **state) {
  (void)state;
  norm_check_parts(TARN__NORM_RMS);
}

static void chains(void **state) {
  (void)state;
  norm_check_chains(TARN__NORM_RMS);
}

static void evaluation(void **state) {
  (void)state;
  norm_check_evaluation(TARN__NORM_RMS);
}

enum { ROWS = 11, D = 40, EARLIER = 4 };

typedef struct batch {
  const tarn__device *device;
  tarn__dtype dtype;
  int64_t rows;
  int threads;
  double epsilon;
  bool twice;  // y is made from the sum as it is stored, by a norm of its own
} batch;

// The norm of x + branch; y is copied to `out`.
static void run_batch(void *out, const batch *b, const void *x_values, const void *branch_values, const void *gain) {
  tarn__graph graph = {0};
  const size_t size = (size_t)(b->rows * D) * tarn__dtype_size(b->dtype);
  void *x = check_shared(size), *branch = check_shared(size);
  tarn__param param = {
      .name = "gain", .rows = 1, .cols = D, .dtype = b->dtype, .value = check_shared(D * sizeof(double))};
  if (b->dtype == TARN__BF16) param.dtype = TARN__F32;
  memcpy(x, x_values, size);
  memcpy(branch, branch_values, size);
  memcpy(param.value, gain, D * tarn__dtype_size(param.dtype));
  const tarn__norm norm = {.form = TARN__NORM_RMS, .epsilon = b->epsilon, .gain = &param};
  tarn__graph_begin(&graph, b->device, b->dtype, false, b->threads);
  tarn__residual_out sum = tarn__residual_norm(&graph, tarn__graph_external(&graph, b->dtype, b->rows, D, x, "x"),
                                               tarn__graph_external(&graph, b->dtype, b->rows, D, branch, "branch"),
                                               0.0, b->twice ? (tarn__norm){0} : norm);
  tarn__tensor *y = b->twice ? tarn__residual_norm(&graph, sum.sum, NULL, 0.0, norm).y : sum.y;
  y->keep = true;
  check_ok(tarn__graph_plan(&graph));
  void *workspace = check_shared(graph.workspace_bytes);
  tarn__graph_bind(&graph, workspace);
  check_ok(tarn__graph_run(&graph, &(tarn__exec){.threads = b->threads, .spread = true}));
  check_ok(tarn__device_synchronise(check_device()));
  memcpy(out, y->data, size);
  check_shared_free(workspace);
  check_shared_free(x);
  check_shared_free(branch);
  check_shared_free(param.value);
  tarn__graph_close(&graph);
}

// Zhang and Sennrich 2019, equation 4, with epsilon below the root, written down once more.
static void equation(void **state) {
  (void)state;
  static double x[ROWS * D], branch[ROWS * D], gain[D], y[ROWS * D];
  static const double epsilons[] = {1e-6, 0.25};
  tarn__random random;
  tarn__random_init(&random, 5, 0);
  for (int i = 0; i < ROWS * D; i++) x[i] = tarn__random_normal(&random), branch[i] = tarn__random_normal(&random);
  for (int i = 0; i < D; i++) gain[i] = tarn__random_normal(&random);
  for (int e = 0; e < 2; e++) {
    const batch b = {&tarn__device_reference, TARN__F64, ROWS, 1, epsilons[e], false};
    run_batch(y, &b, x, branch, gain);
    for (int r = 0; r < ROWS; r++) {
      double squares = 0.0;
      for (int i = r * D; i < (r + 1) * D; i++) squares += (x[i] + branch[i]) * (x[i] + branch[i]);
      for (int i = r * D; i < (r + 1) * D; i++) {
        const double expected = (x[i] + branch[i]) / sqrt(squares / D + epsilons[e]) * gain[i - r * D];
        assert_true(fabs(y[i] - expected) <= 1e-12);
      }
    }
  }
}

// A row has equal bits alone, behind others, on any number of threads, and made again from the stored sum.
static void bits(void **state) {
  (void)state;
  static const tarn__dtype dtypes[] = {TARN__F32, TARN__BF16};
  tarn__random random;
  tarn__random_init(&random, 6, 0);
  for (int t = 0; t < 2; t++) {
    const tarn__dtype dtype = dtypes[t];
    const size_t before = EARLIER * D * tarn__dtype_size(dtype), size = ROWS * D * tarn__dtype_size(dtype) - before;
    static double x[ROWS * D], branch[ROWS * D], first[ROWS * D], other[ROWS * D];
    static float gain[D];
    for (size_t i = 0; i < ROWS * D; i++) check_store(x, dtype, i, tarn__random_normal(&random));
    for (size_t i = 0; i < ROWS * D; i++) check_store(branch, dtype, i, tarn__random_normal(&random));
    for (size_t i = 0; i < D; i++) gain[i] = (float)tarn__random_normal(&random);
    batch b = {check_device(), dtype, ROWS - EARLIER, 1, 1e-5, false};
    run_batch(first, &b, (char *)x + before, (char *)branch + before, gain);
    b.twice = true;
    run_batch(other, &b, (char *)x + before, (char *)branch + before, gain);
    assert_memory_equal(first, other, size);
    b = (batch){check_device(), dtype, ROWS, 1, 1e-5, false};
    for (b.threads = 1; b.threads <= 5; b.threads++) {
      run_batch(other, &b, x, branch, gain);
      assert_memory_equal(first, (char *)other + before, size);
    }
  }
}

// A bias, which RMSNorm does not have, an epsilon of nought, a gain of another width, and a factor on x that no branch
// is added to are refused.
static void bad_norms(void **state) {
  (void)state;
  static float x[ROWS * D], value[D];
  tarn__param gain = {.name = "gain", .rows = 1, .cols = D, .value = value}, narrow = gain;
  narrow.cols = D - 1;
  const tarn__norm bad[] = {{TARN__NORM_RMS, 1e-5, &gain, &gain, 0.0},  {TARN__NORM_RMS, 0.0, &gain, NULL, 0.0},
                            {TARN__NORM_RMS, 1e-5, &narrow, NULL, 0.0}, {TARN__NORM_LAYER, 1e-5, &gain, NULL, 0.0},
                            {TARN__NORM_RMS, 1e-5, NULL, NULL, 0.0},    {TARN__NORM_RMS, 1e-5, &gain, NULL, 2.0},
                            {TARN__NORM_SCALE, 1e-5, &gain, NULL, 0.0}};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    tarn__graph graph = {0};
    tarn__graph_begin(&graph, check_device(), TARN__F32, false, 1);
    tarn__residual_norm(&graph, tarn__graph_external(&graph, TARN__F32, ROWS, D, x, "x"), NULL, 0.0, bad[i]);
    assert_int_equal(tarn__graph_plan(&graph), TARN_STATUS_INTERNAL);
    tarn__graph_close(&graph);
  }
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sizes),    cmocka_unit_test(parts),      cmocka_unit_test(chains),
                                     cmocka_unit_test(equation), cmocka_unit_test(evaluation), cmocka_unit_test(bits),
                                     cmocka_unit_test(bad_norms)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }
