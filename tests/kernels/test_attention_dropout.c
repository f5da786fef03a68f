// Dropout of the weights of attention: kernels against the reference, gradients, and the masks as the kernels apply
// them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/attention_check.h"

static void against_reference(void **state) {
  (void)state;
  static const struct {
    int64_t d;
    int heads;
  } widths[] = {{24, 2}, {100, 4}, {64, 2}, {128, 2}};
  static const double ps[] = {0.1, 0.5, 0.9};
  for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++)
    for (size_t k = i % attention_step(3); k < sizeof ps / sizeof ps[0]; k += attention_step(3)) {
      attention_shape s = {widths[i].d, widths[i].heads, 6,    {1, 15, 17, 2, 70, 20}, {0}, true, false,
                           true,        false,           ps[k]};
      check_kernels(attention_build, &s, "dropout, self-attention", 2e-5, 0.03);
      s.causal = true;
      check_kernels(attention_build, &s, "dropout, causal", 2e-5, 0.03);
      attention_shape cross = {
          widths[i].d, widths[i].heads, 6, {1, 15, 17, 3, 70, 7}, {16, 1, 33, 5, 20, 48}, false, false, true, true,
          ps[k]};
      check_kernels(attention_build, &cross, "dropout, cross-attention", 2e-5, 0.03);
    }
}

// More than one range of queries, more keys than one piece of numbers, empty sequences.
static void edges(void **state) {
  (void)state;
  for (int64_t d = 40; d <= 64; d += 24)
    for (int causal = 0; causal < 2; causal++) {
      attention_shape s = {
          d, 2, 4, {attention_long(530, 400), 0, attention_long(257, 130), 1}, {0}, true, causal, true, false, 0.3};
      check_kernels(attention_build, &s, "dropout, long sequences", 2e-5, 0.03);
    }
  for (int64_t d = 24; d <= 64; d += 40) {
    attention_shape cross = {d, 2, 4, {3, 0, 2, 0}, {0, 4, 5, 0}, false, false, true, true, 0.5};
    check_kernels(attention_build, &cross, "dropout, sequences without keys", 2e-5, 0.03);
  }
}

// Each width of a card's tensor cores, and one too wide for them, with dropout and without. The kernels of the
// processor have other limits, which the other tests meet.
static void widths(void **state) {
  (void)state;
  if (check_device() == &tarn__device_cpu) skip();
  static const int64_t width[] = {32, 64, 96, 128, 520};
  for (size_t i = 0; i < sizeof width / sizeof width[0]; i++)
    for (int form = 0; form < 4; form++) {
      const attention_shape s = {width[i], 1, 3, {1, 85, 18}, {0}, true, form % 2, true, false, form / 2 ? 0.3 : 0.0};
      check_kernels(attention_build, &s, "widths", 2e-5, 0.03);
    }
}

static void gradients(void **state) {
  (void)state;
  attention_shape self = {12, 3, 5, {3, 0, 1, 5, 2}, {0}, true, false, true, false, 0.4};
  check_gradients(attention_build, &self, "dropout, self", 1e-7);
  self.causal = true;
  check_gradients(attention_build, &self, "dropout, causal", 1e-7);
  const attention_shape cross = {12, 3, 5, {3, 0, 1, 5, 2}, {2, 2, 5, 1, 3}, false, false, true, true, 0.4};
  check_gradients(attention_build, &cross, "dropout, cross", 1e-7);
}

// One causal or full sequence of KEYS tokens whose queries and keys are 0, so that all weights are equal, and whose
// value j of head h is 1 in column h * KEYS + j alone: the result is the mask, scaled.
enum { KEYS = 96, HEADS = 3, D = HEADS * KEYS, WEIGHTS = KEYS * D };

static void run_mask(float *out, double p, bool causal, bool training, tarn__dtype dtype, tarn__exec exec) {
  static const int32_t offsets[] = {0, KEYS};
  tarn__graph graph = {0};
  float *qkv = check_alloc(3 * WEIGHTS, sizeof *qkv);
  void *data = check_shared(3 * WEIGHTS * sizeof *qkv);
  for (int j = 0; j < KEYS; j++)
    for (int h = 0; h < HEADS; h++) qkv[j * 3 * D + 2 * D + h * KEYS + j] = 1.0f;
  for (size_t i = 0; i < 3 * WEIGHTS; i++) check_store(data, dtype, i, (double)qkv[i]);
  tarn__graph_begin(&graph, check_device(), dtype, training, exec.threads);
  tarn__tensor *x = tarn__graph_external(&graph, dtype, KEYS, 3 * D, data, "qkv");
  tarn__tensor *at = tarn__graph_input(&graph, 2, offsets, "offsets");
  const tarn__attention_spec spec = {
      .heads = HEADS, .d = D, .key_column = D, .value_column = 2 * D, .causal = causal, .longest = KEYS, .dropout = p};
  tarn__tensor *y = tarn__attention(&graph, x, x, at, at, spec);
  y->keep = true;
  check_ok(tarn__graph_plan(&graph));
  void *workspace = check_shared(graph.workspace_bytes);
  tarn__graph_bind(&graph, workspace);
  check_ok(tarn__graph_run(&graph, &exec));
  check_ok(tarn__device_synchronise(check_device()));
  for (size_t i = 0; i < WEIGHTS; i++) out[i] = (float)check_load(y->data, dtype, i);
  check_shared_free(workspace);
  tarn__graph_close(&graph);
  check_shared_free(data);
  tarn__free(qkv);
}

// Every weight is dropped or scaled as the definition says, on every instruction set and for both types.
static void definition(void **state) {
  (void)state;
  float *out = check_alloc(WEIGHTS, sizeof *out);
  const tarn__exec exec = {.threads = 2, .spread = true, .seed = 0x0123456789ABCDEFu, .step = 4000000000u};
  const tarn__dropout dropout = {19661, 0};  // round(0.3 * 65536)
  for (int form = 0; form < 4; form++) {
    const bool causal = form % 2, bf16 = form / 2;
    run_mask(out, 0.3, causal, true, bf16 ? TARN__BF16 : TARN__F32, exec);
    for (int i = 0; i < KEYS; i++)
      for (int h = 0; h < HEADS; h++)
        for (int j = 0; j < KEYS; j++) {
          const int seen = causal ? i + 1 : KEYS;
          const bool kept = j < seen && tarn__dropout_keeps(dropout, &exec, i, tarn__attention_column(h, j));
          const double wanted = kept ? tarn__dropout_scale(dropout) / seen : 0.0,
                       got = (double)out[i * D + h * KEYS + j];
          if (!(fabs(got - wanted) <= (bf16 ? 0.01 : 1e-5) * wanted))
            fail_msg("query %d, head %d, key %d: %g in place of %g", i, h, j, got, wanted);
        }
  }
  tarn__free(out);
}

// The share of weights that both masks treat alike.
static double alike(const float *a, const float *b) {
  int64_t same = 0;
  for (int64_t i = 0; i < WEIGHTS; i++) same += (a[i] > 0) == (b[i] > 0);
  return (double)same / WEIGHTS;
}

// As many weights are kept as p says; masks of other heads, rows, steps and seeds are unrelated; threads change
// nothing.
static void statistics(void **state) {
  (void)state;
  float *first = check_alloc(WEIGHTS, sizeof *first), *other = check_alloc(WEIGHTS, sizeof *other);
  static const double ps[] = {0.01, 0.1, 0.5, 0.9};
  tarn__exec exec = {.threads = 2, .spread = true, .seed = 1, .step = 1};
  for (size_t k = 0; k < sizeof ps / sizeof ps[0]; k++) {
    run_mask(first, ps[k], false, true, TARN__F32, exec);
    double kept = 0.0, sum = 0.0, deviation = sqrt(WEIGHTS * ps[k] * (1.0 - ps[k]));
    for (int64_t i = 0; i < WEIGHTS; i++) kept += first[i] > 0, sum += (double)first[i] * KEYS;
    assert_true(fabs(kept - WEIGHTS * (1.0 - ps[k])) < 4.0 * deviation + 1.0);
    assert_true(fabs(sum - WEIGHTS) < 4.0 * deviation / (1.0 - ps[k]) + 10.0);
  }
  const double far = 4.0 * 0.5 / sqrt(WEIGHTS);
  run_mask(first, 0.5, false, true, TARN__F32, exec);
  run_mask(other, 0.5, false, true, TARN__F32, (tarn__exec){.threads = 1, .seed = 1, .step = 1});
  assert_memory_equal(first, other, WEIGHTS * sizeof *first);
  run_mask(other, 0.5, false, true, TARN__F32, (tarn__exec){.threads = 1, .seed = 1, .step = 2});
  assert_true(fabs(alike(first, other) - 0.5) < far);
  run_mask(other, 0.5, false, true, TARN__F32, (tarn__exec){.threads = 1, .seed = 2, .step = 1});
  assert_true(fabs(alike(first, other) - 0.5) < far);
  for (int64_t i = 0; i < WEIGHTS; i++) other[i] = first[(i + KEYS) % WEIGHTS];  // another head
  assert_true(fabs(alike(first, other) - 0.5) < far);
  for (int64_t i = 0; i < WEIGHTS; i++) other[i] = first[(i + D) % WEIGHTS];  // another row
  assert_true(fabs(alike(first, other) - 0.5) < far);
  run_mask(other, 0.5, false, false, TARN__F32, exec);  // not in training
  for (int64_t i = 0; i < WEIGHTS; i++) assert_true(other[i] > 0);
  tarn__free(first);
  tarn__free(other);
}

static int run(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(against_reference), cmocka_unit_test(edges),      cmocka_unit_test(widths),
      cmocka_unit_test(gradients),         cmocka_unit_test(definition), cmocka_unit_test(statistics)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }
