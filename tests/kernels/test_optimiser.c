// What decides an update, the update of a parameter within a graph, parts of parameters, and sums over arrays, on the
// device under test: against the host's definitions and the reference.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "device/devices.h"
#include "device/transfer.h"
#include "graph/update.h"
#include "kernels/kernel_check.h"
#include "list_optimiser.h"

static const tarn__adam_options options = {0.01, 0.9, 0.98, 1e-8, 0.1, true, 1};

static void wait_for(void) { check_ok(tarn__device_synchronise(check_device())); }

static void fill(float *x, size_t n, uint32_t seed, double scale) {
  tarn__random random;
  tarn__random_init(&random, 9, seed);
  for (size_t i = 0; i < n; i++) x[i] = (float)(scale * tarn__random_normal(&random));
}

// --- the numbers of an update

static void assert_same_numbers(const tarn__step_numbers *a, const tarn__step_numbers *b) {
  const double x[] = {a->loss,   a->watched,  a->squares,     a->norm,     a->helpers,
                      a->factor, a->loss_sum, a->watched_sum, a->norm_sum, a->bad};
  const double y[] = {b->loss,   b->watched,  b->squares,     b->norm,     b->helpers,
                      b->factor, b->loss_sum, b->watched_sum, b->norm_sum, b->bad};
  for (size_t i = 0; i < sizeof x / sizeof *x; i++)
    if (!(fabs(x[i] - y[i]) <= 1e-15 * fabs(y[i]) || x[i] == y[i] || (isnan(x[i]) && isnan(y[i]))))
      fail_msg("number %zu is %.17g, expected %.17g", i, x[i], y[i]);
  assert_int_equal(a->failed, b->failed);
  assert_int_equal(a->failure, b->failure);
}

// Each case twice: after a failure nothing changes any more.
static void updates_are_decided(void **state) {
  (void)state;
  const tarn__device *device = check_device();
  static const struct {
    double loss, norm, helpers, squares, clip;
    bool at_once;
    tarn__step_failure failure;
  } cases[] = {
      {3.5, 2.0, 0.5, 0, 0, false, TARN__STEP_FINE},        {3.5, 2.0, 0.5, 0, 1.0, false, TARN__STEP_FINE},
      {3.5, 2.0, 0.5, 9.0, 1.0, true, TARN__STEP_FINE},     {NAN, 2.0, 0.5, 0, 1.0, false, TARN__STEP_LOSS},
      {3.5, INFINITY, 0.5, 0, 1.0, false, TARN__STEP_NORM}, {3.5, 1e19, 0.5, 0, 0, false, TARN__STEP_NORM},
      {3.5, 1e19, 0.5, 0, 1.0, false, TARN__STEP_FINE},     {3.5, 2.0, NAN, 0, 1.0, false, TARN__STEP_HELPERS_NORM}};
  tarn__step_numbers *numbers = check_shared(sizeof *numbers);
  double *loss = check_shared(2 * sizeof *loss);
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    tarn__step_numbers expected = {.norm = cases[c].norm, .helpers = cases[c].helpers, .squares = cases[c].squares};
    *numbers = expected;
    loss[0] = cases[c].loss;
    loss[1] = 1.25;
    for (int64_t update = 7; update <= 8; update++) {
      const tarn__step_rule rule = {.update = update, .clip_norm = cases[c].clip, .at_once = cases[c].at_once};
      check_ok(device->type->add_loss(device, numbers, loss));
      check_ok(device->type->decide(device, numbers, &rule));
      tarn__step_add_loss(&expected, loss);
      tarn__step_decide(&expected, &rule);
    }
    wait_for();
    assert_int_equal(expected.failure, cases[c].failure);
    assert_same_numbers(numbers, &expected);
  }
  check_shared_free(numbers);
  check_shared_free(loss);
}

// --- updates

enum { ROWS = 43, COLS = 211, N = ROWS * COLS };  // more than one chunk, and an odd number of elements

typedef struct trained {
  tarn__param param;
  size_t n;
} trained;

static trained open_param(int64_t rows, int64_t cols, tarn__dtype dtype, tarn__moments moments, bool apart) {
  trained p = {.n = (size_t)(rows * cols)};
  p.param = (tarn__param){.name = "p", .rows = rows, .cols = cols, .trained = true, .dtype = dtype};
  tarn__param_training *t = &p.param.training;
  t->master = check_shared(p.n * sizeof(float));
  t->grad = check_shared(p.n * sizeof(float));
  t->moment1 = check_shared(tarn__moment_bytes(moments, p.n));
  t->moment2 = check_shared(tarn__moment_bytes(moments, p.n));
  t->grad_sum = check_shared(p.n * sizeof(float));
  t->moments = moments;
  t->grad_written = true;
  t->number = 11;
  p.param.value = apart ? check_shared(p.n * tarn__dtype_size(dtype)) : (void *)t->master;
  fill(t->master, p.n, 1, 1.0);
  fill(t->grad, p.n, 2, 0.1);
  return p;
}

static void close_param(trained *p) {
  tarn__param_training *t = &p->param.training;
  if (p->param.value != t->master) check_shared_free(p->param.value);
  check_shared_free(t->master);
  check_shared_free(t->grad);
  check_shared_free(t->moment1);
  check_shared_free(t->moment2);
  check_shared_free(t->grad_sum);
}

static void assert_near(const float *found, const float *expected, size_t n, double tolerance, const char *what) {
  for (size_t i = 0; i < n; i++)
    if (!(fabs((double)found[i] - (double)expected[i]) < tolerance * (1.0 + fabs((double)expected[i]))))
      fail_msg("%s %zu: %.9g, expected %.9g", what, i, (double)found[i], (double)expected[i]);
}

// Of moments in fewer bits a few may go the other way, where the fp32 value differs in its last bits.
static void assert_same_param(const trained *a, const trained *b) {
  const tarn__param_training *x = &a->param.training, *y = &b->param.training;
  const size_t bytes = tarn__moment_bytes(x->moments, a->n);
  if (x->moments == TARN__MOMENTS_F32) {
    assert_near(x->master, y->master, a->n, 2e-6, "weight");
    assert_near(x->moment1, y->moment1, a->n, 2e-6, "first moment");
    assert_near(x->moment2, y->moment2, a->n, 2e-6, "second moment");
  } else {
    size_t other = 0;
    for (size_t i = 0; i < bytes; i++) other += ((uint8_t *)x->moment1)[i] != ((uint8_t *)y->moment1)[i];
    for (size_t i = 0; i < bytes; i++) other += ((uint8_t *)x->moment2)[i] != ((uint8_t *)y->moment2)[i];
    assert_true(other <= a->n / 50);
    assert_near(x->master, y->master, a->n, 1e-4, "weight");
  }
  for (size_t i = 0; i < a->n; i++) {
    const float stored = a->param.dtype == TARN__BF16 ? tarn__bf16_to_f32(((uint16_t *)a->param.value)[i])
                                                      : ((float *)a->param.value)[i];
    const float w = x->master[i],
                expected = a->param.dtype == TARN__BF16 ? tarn__bf16_to_f32(tarn__bf16_from_f32(w)) : w;
    if (stored != expected) fail_msg("value %zu is %.9g, expected %.9g", i, (double)stored, (double)expected);
  }
}

static void run_update(const tarn__device *device, tarn__param *param, const tarn__adam_factors *factors,
                       double *squares) {
  const tarn__device_kernel *kernel = &device->type->kernels[TARN__F32][TARN__OP_UPDATE];
  tarn__node node = {.op = &tarn__op_update, .dparam = {param}};
  void *scratch = NULL;
  const size_t bytes = kernel->scratch ? kernel->scratch(&node, 2) : 0;
  if (bytes > 0) check_ok(tarn__device_allocate(device, &scratch, TARN__MEMORY_OTHER, bytes, 1));
  node.scratch = scratch;
  const tarn__exec exec = {.threads = 2, .spread = true, .update = factors, .squares = squares};
  check_ok(kernel->run(&exec, &node));
  check_ok(tarn__device_synchronise(device));
  tarn__device_free(device, scratch);
}

static const tarn__moments formats[] = {TARN__MOMENTS_F32, TARN__MOMENTS_BF16, TARN__MOMENTS_F8};

// Of several chunks and of one, which each add to what is there.
static void updates_within_a_graph(void **state) {
  (void)state;
  static const int64_t rows[] = {ROWS, 1, 3}, cols[] = {COLS, 1, 17};
  const tarn__device *const devices[] = {check_device(), &tarn__device_reference};
  for (int c = 0; c < 18; c++) {
    const tarn__dtype dtype = c % 2 ? TARN__BF16 : TARN__F32;
    const tarn__moments moments = formats[c / 2 % 3];
    double *squares = check_shared(2 * sizeof *squares);
    trained p[2];
    for (int d = 0; d < 2; d++) {
      p[d] = open_param(rows[c / 6], cols[c / 6], dtype, moments, dtype == TARN__BF16);
      squares[d] = 3.0;
      for (int64_t step = 1; step <= 3; step++) {
        tarn__adam_factors factors;
        tarn__adam_factors_set(&factors, &options, step, 0.5);
        run_update(devices[d], &p[d].param, &factors, &squares[d]);
      }
    }
    assert_true(squares[1] > 3.0 && fabs(squares[0] / squares[1] - 1.0) < 1e-12);
    assert_same_param(&p[0], &p[1]);
    for (int d = 0; d < 2; d++) close_param(&p[d]);
    check_shared_free(squares);
  }
}

static void updates_need_what_they_need(void **state) {
  (void)state;
  trained p = open_param(1, 8, TARN__F32, TARN__MOMENTS_F32, false);
  const tarn__node node = {.op = &tarn__op_update, .dparam = {&p.param}};
  const tarn__exec exec = {.threads = 1};
  assert_int_equal(check_device()->type->kernels[TARN__F32][TARN__OP_UPDATE].run(&exec, &node), TARN_STATUS_INTERNAL);
  close_param(&p);
}

static void step_with(tarn__param_table *table, tarn__adam_factors *factors, const tarn__step_numbers *numbers) {
  const tarn__device *device = check_device();
  check_ok(tarn__param_table_refresh(device, table));
  check_ok(device->type->adam_step(device, table, factors, numbers, 2));
  wait_for();
}

// With numbers: their factor, and no update after a failure. The table stays: only a refresh shows the device a change.
static void numbers_decide(void **state) {
  (void)state;
  trained p[2];
  for (int k = 0; k < 2; k++) p[k] = open_param(ROWS, COLS, TARN__BF16, TARN__MOMENTS_F32, true);
  tarn__param *list[2][1] = {{&p[0].param}, {&p[1].param}};
  tarn__param_table table[2] = {{.params = list[0], .count = 1}, {.params = list[1], .count = 1}};
  tarn__step_numbers *numbers = check_shared(sizeof *numbers);
  tarn__adam_factors factors, plain;
  for (int64_t step = 1; step <= 4; step++) {
    tarn__adam_factors_set(&factors, &options, step, 0.0);
    factors.clips = true;
    numbers->factor = 0.25 * (double)step;
    tarn__adam_factors_set(&plain, &options, step, numbers->factor);
    const bool moves = step != 2;
    for (int k = 0; k < 2; k++) p[k].param.training.grad_written = moves;
    step_with(&table[0], &factors, numbers);
    step_with(&table[1], &plain, NULL);
    assert_memory_equal(p[0].param.training.master, p[1].param.training.master, p[0].n * sizeof(float));
    if (step == 1) assert_true(((float *)p[0].param.training.moment2)[0] > 0.0f);
  }
  numbers->failed = 3;
  step_with(&table[0], &factors, numbers);
  assert_memory_equal(p[0].param.training.master, p[1].param.training.master, p[0].n * sizeof(float));
  step_with(&table[1], &plain, NULL);
  assert_true(memcmp(p[0].param.training.master, p[1].param.training.master, p[0].n * sizeof(float)) != 0);
  for (int k = 0; k < 2; k++) tarn__param_table_close(check_device(), &table[k]);
  check_shared_free(numbers);
  for (int k = 0; k < 2; k++) close_param(&p[k]);
}

// A part of a parameter has the bits that it has in the whole, random numbers included.
static void parts_are_the_whole(void **state) {
  (void)state;
  for (int c = 0; c < 6; c++) {
    const tarn__dtype dtype = c % 2 ? TARN__BF16 : TARN__F32;
    const tarn__moments moments = formats[c / 2];
    const size_t unit = (size_t)tarn__moment_divisor(moments), first = (1024 / unit + 5) * unit;
    const size_t bytes = tarn__moment_bytes(moments, N);
    trained whole = open_param(ROWS, COLS, dtype, moments, true), shared = open_param(ROWS, COLS, dtype, moments, true);
    tarn__param parts[2], *list[] = {&whole.param}, *pieces[] = {&parts[0], &parts[1]};
    for (int k = 0; k < 2; k++) {
      const size_t at = k ? first : 0;
      tarn__param_training *t = &parts[k].training;
      parts[k] = shared.param;
      parts[k].rows = 1;
      parts[k].cols = (int64_t)(k ? N - first : first);
      parts[k].value = (char *)shared.param.value + at * tarn__dtype_size(dtype);
      t->master += at;
      t->grad = (float *)t->grad + at;
      t->moment1 = (char *)t->moment1 + tarn__moment_bytes(moments, at);
      t->moment2 = (char *)t->moment2 + tarn__moment_bytes(moments, at);
      t->grad_sum += at;
      t->first = (int64_t)at;
    }
    for (int64_t step = 1; step <= 2; step++) {
      step_list(check_device(), list, 1, &options, step, 0.5, 2);
      step_list(check_device(), pieces, 2, &options, step, 0.5, 2);
      list_sum_add(check_device(), list, 1);
      list_sum_add(check_device(), pieces, 2);
    }
    const tarn__param_training *x = &whole.param.training, *y = &shared.param.training;
    assert_memory_equal(x->master, y->master, N * sizeof(float));
    assert_memory_equal(x->moment1, y->moment1, bytes);
    assert_memory_equal(x->moment2, y->moment2, bytes);
    assert_memory_equal(x->grad_sum, y->grad_sum, N * sizeof(float));
    assert_memory_equal(whole.param.value, shared.param.value, N * tarn__dtype_size(dtype));
    for (size_t i = 0; i < N; i++) assert_true(x->grad_sum[i] == 2.0f * ((float *)x->grad)[i]);
    close_param(&whole);
    close_param(&shared);
  }
}

// Parameters that are not trained, or that AutoFreeze does not test, have no part in it; an empty list has the norm 0.
static void only_some_are_summed(void **state) {
  (void)state;
  trained p[3];
  tarn__param *list[3];
  for (int k = 0; k < 3; k++) {
    p[k] = open_param(5, 7, TARN__F32, TARN__MOMENTS_F32, false);
    list[k] = &p[k].param;
  }
  float *sum = p[1].param.training.grad_sum;
  p[0].param.stopped = true;
  p[1].param.training.grad_sum = NULL;
  list_sum_add(check_device(), list, 3);
  p[1].param.training.grad_sum = sum;
  for (size_t i = 0; i < p[0].n; i++) {
    assert_true(p[0].param.training.grad_sum[i] == 0.0f && sum[i] == 0.0f);
    assert_true(p[2].param.training.grad_sum[i] == ((float *)p[2].param.training.grad)[i]);
  }
  for (int k = 0; k < 3; k++) p[k].param.trained = false;
  assert_true(list_norm(check_device(), list, 3, 1) == 0.0);
  assert_true(list_norm(check_device(), list, 0, 1) == 0.0);
  for (int k = 0; k < 3; k++) close_param(&p[k]);
}

// --- sums over arrays

static void absolute_values_are_summed(void **state) {
  (void)state;
  static const size_t sizes[] = {0, 1, 31, 4097, 50021};
  for (size_t c = 0; c < sizeof sizes / sizeof *sizes; c++) {
    float *x = check_shared(sizes[c] * sizeof *x);
    double sum = 2.5, again = 2.5, expected = 2.5;
    fill(x, sizes[c], 3, 1.0);
    for (size_t i = 0; i < sizes[c]; i++) expected += fabs((double)x[i]);
    check_ok(tarn__device_absolute_sum(check_device(), &sum, x, sizes[c]));
    check_ok(tarn__device_absolute_sum(check_device(), &again, x, sizes[c]));
    assert_true(fabs(sum / expected - 1.0) < 1e-13 && sum == again);
    check_shared_free(x);
  }
}

static void scaled_values_are_added(void **state) {
  (void)state;
  enum { COUNT = 1027 };
  for (size_t shift = 0; shift < 5; shift++) {
    float *sums = check_shared(COUNT * sizeof *sums), values[COUNT], expected[COUNT];
    char *room = check_shared(COUNT * sizeof(float) + 8);
    fill(sums, COUNT, 4, 1.0);
    fill(values, COUNT, 5, 1.0);
    memcpy(room + shift, values, sizeof values);
    for (size_t i = 0; i < COUNT; i++) expected[i] = sums[i] + (float)(0.3 * (double)values[i]);
    check_ok(tarn__device_add_scaled(check_device(), sums, room + shift, COUNT, 0.3));
    wait_for();
    assert_memory_equal(sums, expected, sizeof expected);
    check_shared_free(room);
    check_shared_free(sums);
  }
}

static int run(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(updates_are_decided),         cmocka_unit_test(updates_within_a_graph),
      cmocka_unit_test(updates_need_what_they_need), cmocka_unit_test(numbers_decide),
      cmocka_unit_test(parts_are_the_whole),         cmocka_unit_test(only_some_are_summed),
      cmocka_unit_test(absolute_values_are_summed),  cmocka_unit_test(scaled_values_are_added)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }
