// Dropout masks as the fast kernels apply them, made visible by y = 0 + dropout(1).
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/kernel_check.h"
#include "ops/dropout.h"
#include "ops/ops.h"

typedef struct mask {
  int64_t rows, cols;
  double p;
  bool training;
  tarn__exec exec;
  int skipped_sites;
} mask;

// Runs the op in F32; out [rows, cols].
static void run_mask(float *out, const mask *m) {
  tarn__graph graph = {0};
  const size_t n = (size_t)(m->rows * m->cols);
  float *zeros = check_shared(n * sizeof *zeros), *ones = check_shared(n * sizeof *ones);
  for (size_t i = 0; i < n; i++) ones[i] = 1.0f;
  tarn__graph_begin(&graph, check_device(), TARN__F32, m->training, m->exec.threads);
  for (int i = 0; i < m->skipped_sites; i++) tarn__graph_site(&graph);
  tarn__tensor *x = tarn__graph_external(&graph, TARN__F32, m->rows, m->cols, zeros, "zeros");
  tarn__tensor *branch = tarn__graph_external(&graph, TARN__F32, m->rows, m->cols, ones, "ones");
  tarn__tensor *sum = tarn__residual_norm(&graph, x, branch, m->p, (tarn__norm){0}).sum;
  sum->keep = true;
  check_ok(tarn__graph_plan(&graph));
  void *workspace = check_shared(graph.workspace_bytes);
  tarn__graph_bind(&graph, workspace);
  check_ok(tarn__graph_run(&graph, &m->exec));
  check_ok(tarn__device_synchronise(check_device()));
  memcpy(out, sum->data, n * sizeof *out);
  check_shared_free(workspace);
  tarn__graph_close(&graph);
  check_shared_free(zeros);
  check_shared_free(ones);
}

// The vector forms give the bits of the definition.
static void definition(void **state) {
  (void)state;
  static const int64_t cols[] = {1, 7, 8, 9, 100, 127, 128, 129, 512, 1000};
  for (size_t k = 0; k < sizeof cols / sizeof cols[0]; k++) {
    mask m = {5, cols[k], 0.3, true, {.threads = 2, .spread = true, .seed = 0x0123456789ABCDEFu, .step = 4000000000u},
              3};
    float out[5 * 1000];
    run_mask(out, &m);
    const tarn__dropout dropout = {19661, 3};  // round(0.3 * 65536)
    const float scale = (float)(65536.0 / (65536.0 - 19661.0));
    for (int64_t r = 0; r < m.rows; r++)
      for (int64_t c = 0; c < m.cols; c++)
        assert_true(out[r * m.cols + c] == (tarn__dropout_keeps(dropout, &m.exec, r, c) ? scale : 0.0f));
  }
}

// One block of the published generator: the known answer of Philox 4x32-10 for counter and key zero.
static void known_answer(void **state) {
  (void)state;
  static const uint16_t expected[8] = {0xE8D5, 0x6627, 0xC58D, 0xE169, 0xAC4C, 0xBC57, 0xDBD8, 0x9B00};
  uint16_t numbers[8];
  tarn__exec exec = {.threads = 1};
  tarn__dropout_block(numbers, &exec, 0, 0, 0);
  assert_memory_equal(numbers, expected, sizeof expected);
}

enum { ROWS = 500, COLS = 512, N = ROWS * COLS };

static int64_t equal(const float *a, const float *b, int64_t shift) {
  int64_t same = 0;
  for (int64_t i = 0; i + shift < N; i++) same += (a[i] > 0) == (b[i + shift] > 0);
  return same;
}

// Kept elements are as many as p says, and masks of other rows, columns, sites, steps and seeds are unrelated.
static void statistics(void **state) {
  (void)state;
  float *first = check_alloc(N, sizeof *first), *other = check_alloc(N, sizeof *other);
  static const double ps[] = {0.01, 0.1, 0.3, 0.5, 0.9};
  for (size_t k = 0; k < sizeof ps / sizeof ps[0]; k++) {
    mask m = {ROWS, COLS, ps[k], true, {.threads = 2, .seed = 1, .step = 1}, 0};
    run_mask(first, &m);
    double sum = 0.0, kept = 0.0, deviation = sqrt(N * ps[k] * (1.0 - ps[k]));
    for (int64_t i = 0; i < N; i++) sum += first[i], kept += first[i] > 0;
    assert_true(fabs(kept - N * (1.0 - ps[k])) < 4.0 * deviation + 1.0);
    assert_true(fabs(sum - N) < 4.0 * deviation / (1.0 - ps[k]) + 1.0);
  }
  const mask half = {ROWS, COLS, 0.5, true, {.threads = 2, .seed = 1, .step = 1}, 0};
  mask site = half, step = half, seed = half, threads = half;
  site.skipped_sites = 1, step.exec.step = 2, seed.exec.seed = (uint64_t)1 << 32 | 1, threads.exec.threads = 1;
  const double deviation = sqrt(N) / 2.0;
  run_mask(first, &half);
  static const int64_t shifts[] = {1, 2, 3, 4, 8, 128, 256, COLS, 2 * COLS};
  for (size_t k = 0; k < sizeof shifts / sizeof shifts[0]; k++)
    assert_true(fabs((double)equal(first, first, shifts[k]) - (double)(N - shifts[k]) / 2.0) < 4.0 * deviation);
  const mask *others[] = {&site, &step, &seed};
  for (int k = 0; k < 3; k++) {
    run_mask(other, others[k]);
    assert_true(fabs((double)equal(first, other, 0) - N / 2.0) < 4.0 * deviation);
  }
  run_mask(other, &threads);
  assert_memory_equal(first, other, N * sizeof *first);
  tarn__free(first);
  tarn__free(other);
}

// No dropout outside of training and with p = 0; p outside of [0, 1) is refused.
static void limits(void **state) {
  (void)state;
  float out[16 * 24];
  mask still = {16, 24, 0.5, false, {.threads = 1, .seed = 1, .step = 1}, 0},
       zero = {16, 24, 0.0, true, {.threads = 1, .seed = 1, .step = 1}, 0};
  run_mask(out, &still);
  for (int i = 0; i < 16 * 24; i++) assert_true(out[i] == 1.0f);
  run_mask(out, &zero);
  for (int i = 0; i < 16 * 24; i++) assert_true(out[i] == 1.0f);
  static const double bad[] = {-0.1, 1.0, NAN};
  for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
    tarn__graph graph = {0};
    tarn__graph_begin(&graph, check_device(), TARN__F32, true, 1);
    tarn__tensor *x = tarn__graph_external(&graph, TARN__F32, 16, 24, out, "x");
    tarn__residual_norm(&graph, x, x, bad[k], (tarn__norm){0});
    assert_int_equal(tarn__graph_plan(&graph), TARN_STATUS_USAGE);
    tarn__graph_close(&graph);
  }
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(definition), cmocka_unit_test(known_answer),
                                     cmocka_unit_test(statistics), cmocka_unit_test(limits)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }
