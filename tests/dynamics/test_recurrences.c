// Recurrences as dynamical systems: echo state networks against their matrix, steps against finite differences and
// against the model, memory capacity.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "base/memory.h"
#include "base/random.h"
#include "dynamics/cell.h"
#include "dynamics/memory_capacity.h"
#include "ops/recurrence.h"
#include "tarn/lab/dynamics.h"
#include "tarn/lab/states.h"
#include "tiny_run.h"

static void must(tarn_status status) {
  if (status != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
}

static void near(const char *what, double found, double wanted, double tolerance) {
  if (!(fabs(found - wanted) <= tolerance)) fail_msg("%s: %.12g, expected %.12g", what, found, wanted);
}

// LAPACK, called as gfortran compiles it: the lengths of strings come last.
extern void dgeev_(const char *jobvl, const char *jobvr, const int *n, double *a, const int *lda, double *wr,
                   double *wi, double *vl, const int *ldvl, double *vr, const int *ldvr, double *work, const int *lwork,
                   int *info, size_t jobvl_length, size_t jobvr_length);

static int falling(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x < y) - (x > y);
}

static tarn_esn_options reservoir_of(double sr, double lr) {
  tarn_esn_options o;
  tarn_esn_default(&o);
  o.units = 20;
  o.sr = sr;
  o.lr = lr;
  o.bias_scaling = 0.0;
  o.rc_connectivity = 0.5;
  return o;
}

static tarn_dynamics_options free_options(int64_t iterations) {
  tarn_dynamics_options o;
  tarn_dynamics_default(&o);
  o.drive = TARN_DYNAMICS_DRIVE_FREE;
  o.iterations = iterations;
  o.starts = 3;
  o.threads = 2;
  return o;
}

// Without input it falls to zero, where its Jacobian is (1 - a) I + a W.
static void test_leaky_echo(void **state) {
  (void)state;
  enum { N = 20 };
  const tarn_esn_options options = reservoir_of(0.8, 0.3);
  const tarn_dynamics_options o = free_options(3000);
  double w[N * N], real[N], imaginary[N], work[8 * N], none;
  int n = N, one = 1, length = 8 * N, info;
  tarn_reservoir *reservoir;
  must(tarn_reservoir_open(&reservoir, 1, &options));
  tarn_reservoir_matrices(reservoir, w, NULL, NULL);
  tarn_reservoir_close(&reservoir);
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) w[i * N + j] = 0.3 * w[i * N + j] + (i == j ? 0.7 : 0.0);
  dgeev_("N", "N", &n, w, &n, real, imaginary, &none, &one, &none, &one, work, &length, &info, 1, 1);
  assert_int_equal(info, 0);
  for (int i = 0; i < N; i++) real[i] = log(hypot(real[i], imaginary[i]));
  qsort(real, N, sizeof *real, falling);
  tarn_dynamics *dynamics;
  tarn_dynamics_result *result;
  must(tarn_dynamics_open_reservoir(&dynamics, &options, &o));
  near("spectral radius", tarn_dynamics_describe(dynamics)->spectral_radius, 0.8, 1e-6);
  must(tarn_dynamics_run(dynamics, &result));
  assert_int_equal(result->count, 3);
  for (int64_t s = 0; s < 3; s++) {
    const tarn_dynamics_sentence *r = &result->sentences[s];
    near("first exponent", r->exponents[0], real[0], 1e-3);  // those of a pair turn about each other
    near("sum of the first eight", r->exponents[7], real[7], 5e-2);
    assert_int_equal(r->settling, TARN_DYNAMICS_SETTLING_FIXED_POINT);
    assert_true(r->starts.synchronised);
    assert_true(isnan(r->token_distance[0]));
  }
  tarn_dynamics_result_close(&result);
  tarn_dynamics_close(&dynamics);
}

// Above a radius of 1 the state zero is left for good, and two starts stay apart.
static void test_beyond_the_edge(void **state) {
  (void)state;
  tarn_esn_options options = reservoir_of(4.0, 1.0);
  tarn_dynamics_options o = free_options(600);
  tarn_dynamics *dynamics;
  tarn_dynamics_result *result;
  options.units = 100;
  o.starts = 2;
  must(tarn_dynamics_open_reservoir(&dynamics, &options, &o));
  must(tarn_dynamics_run(dynamics, &result));
  assert_int_equal(result->sentences[0].verdict, TARN_DYNAMICS_VERDICT_EXPANDING);
  assert_int_equal(result->sentences[0].settling, TARN_DYNAMICS_SETTLING_NONE);
  assert_true(result->sentences[0].norm[600] > 0.3);
  assert_int_equal(result->diverged, 0);
  assert_false(result->sentences[0].starts.synchronised);
  tarn_dynamics_result_close(&result);
  tarn_dynamics_close(&dynamics);
}

// What no machine has is not asked for.
static void test_memory_limit(void **state) {
  (void)state;
  tarn_esn_options options = reservoir_of(0.9, 1.0);
  tarn_dynamics_options o = free_options(10);
  tarn_dynamics *dynamics;
  tarn_dynamics_result *result;
  o.starts = 4096;
  o.exponents = 20;
  o.max_memory = 5000000;
  must(tarn_dynamics_open_reservoir(&dynamics, &options, &o));
  assert_int_equal(tarn_dynamics_run(dynamics, &result), TARN_STATUS_MEMORY);
  assert_non_null(strstr(tarn_error_message(), "the recurrence alone needs"));
  tarn_dynamics_close(&dynamics);
}

static tarn__cell_map cell_of(tarn__recurrence_spec spec, uint64_t seed) {
  tarn__cell_map cell = {.spec = spec, .factor = 1.3};
  const int64_t gates = tarn__recurrence_gates(&spec) * spec.hidden;
  void *memory;
  tarn__random random;
  tarn__random_init(&random, seed, 0);
  must(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)(gates * spec.hidden), sizeof(double)));
  cell.weight = memory;
  must(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)gates, sizeof(double)));
  cell.bias = memory;
  for (int64_t i = 0; i < gates * spec.hidden; i++) cell.weight[i] = 0.4 * tarn__random_normal(&random);
  for (int64_t i = 0; i < gates; i++) cell.bias[i] = 0.3 * tarn__random_normal(&random);
  return cell;
}

// Perturbations of three systems against central differences.
static void check_cell(tarn__recurrence_spec spec) {
  enum { SYSTEMS = 3, K = 4 };
  tarn__cell_map cell = cell_of(spec, 11);
  const int64_t width = tarn__cell_width(&cell), all = tarn__cell_gates(&cell) * spec.hidden;
  const int64_t numbers = SYSTEMS * width, offsets[] = {0, 2, 3, 5};
  double work[(2 + K) * SYSTEMS * 4 * 7], x[SYSTEMS * 14], v[K * SYSTEMS * 14], inputs[5 * 4 * 7];
  tarn__random random;
  tarn__random_init(&random, 12, 0);
  for (int64_t i = 0; i < numbers; i++) x[i] = 0.5 * tarn__random_normal(&random);
  for (int64_t i = 0; i < K * numbers; i++) v[i] = tarn__random_normal(&random);
  for (int64_t i = 0; i < 5 * all; i++) inputs[i] = tarn__random_normal(&random);
  tarn__cell_run run = {.cell = &cell, .inputs = inputs, .offsets = offsets, .systems = SYSTEMS, .work = work};
  double moved[SYSTEMS * 14], pushed[K * SYSTEMS * 14], up[SYSTEMS * 14], down[SYSTEMS * 14];
  memcpy(moved, x, sizeof x);
  memcpy(pushed, v, sizeof v);
  must(tarn__cell_step(&run, moved, pushed, K, 1));
  const double h = 1e-6;
  for (int64_t j = 0; j < K; j++) {
    for (int64_t i = 0; i < numbers; i++) {
      up[i] = x[i] + h * v[j * numbers + i];
      down[i] = x[i] - h * v[j * numbers + i];
    }
    must(tarn__cell_step(&run, up, NULL, 0, 1));
    must(tarn__cell_step(&run, down, NULL, 0, 1));
    for (int64_t i = 0; i < numbers; i++) near("J v", pushed[j * numbers + i], (up[i] - down[i]) / (2.0 * h), 1e-8);
  }
  tarn__cell_close(&cell);
}

static void test_cells(void **state) {
  (void)state;
  check_cell((tarn__recurrence_spec){.cell = TARN__CELL_ECHO, .hidden = 7, .directions = 1, .leak = 0.4});
  check_cell((tarn__recurrence_spec){.cell = TARN__CELL_ECHO, .hidden = 7, .directions = 1, .leak = 1, .relu = true});
  check_cell((tarn__recurrence_spec){.cell = TARN__CELL_GRU, .hidden = 7, .directions = 1});
  check_cell((tarn__recurrence_spec){.cell = TARN__CELL_LSTM, .hidden = 7, .directions = 1});
  check_cell((tarn__recurrence_spec){.cell = TARN__CELL_LSTM, .hidden = 7, .directions = 1, .reverse = true});
}

// A line of ten units that hand an input on remembers nine delays, and the one that is there now.
static void test_delay_line(void **state) {
  (void)state;
  enum { N = 10, DELAYS = 15 };
  double weight[N * N] = {0}, in[N] = {0.01}, capacities[DELAYS], sum = 0.0;
  for (int i = 1; i < N; i++) weight[i * N + i - 1] = 1.0;
  const tarn__cell_map cell = {.spec = {.cell = TARN__CELL_ECHO, .hidden = N, .directions = 1, .leak = 1.0},
                               .weight = weight,
                               .noise_in = in,
                               .factor = 1.0};
  const tarn__memory_task task = {DELAYS, 1000, 1e-12, 3, 0};
  must(tarn__memory_capacity(capacities, &cell, &task));
  for (int k = 0; k < DELAYS; k++) {
    near("delay", capacities[k], k < N - 1, 0.02);
    sum += capacities[k];
  }
  near("capacity", sum, 9.0, 0.1);
}

static void test_scan(void **state) {
  (void)state;
  const double radii[] = {0.5, 0.95, 3.0}, leaks[] = {0.5, 1.0};
  const tarn_esn_options options = reservoir_of(0.9, 1.0);
  tarn_dynamics_options o = free_options(400);
  tarn_dynamics_scan_options over;
  tarn_dynamics *dynamics;
  tarn_dynamics_scan *scan;
  tarn_dynamics_scan_default(&over);
  over.spectral_radii = radii, over.radius_count = 3;
  over.leak_rates = leaks, over.leak_count = 2;
  over.samples = 400, over.delays = 30;
  o.starts = 2;
  must(tarn_dynamics_open_reservoir(&dynamics, &options, &o));
  must(tarn_dynamics_scan_run(dynamics, &scan, &over));
  assert_int_equal(scan->count, 6);
  for (size_t i = 0; i < scan->count; i++) {
    const tarn_dynamics_point *p = &scan->points[i];
    near("radius", p->spectral_radius, radii[i % 3], 0.0);
    near("leak rate", p->leak_rate, leaks[i / 3], 0.0);
    if (i % 3 == 0) near("the echo state property", p->share_synchronised, 1.0, 0.0);
    if (i % 3 == 1) assert_true(p->free > scan->points[i - 1].free);
    assert_true(p->memory_capacity > 0.5 && p->memory_capacity < 21.0);
    double sum = 0.0;
    for (int64_t k = 0; k < 30; k++) sum += scan->capacities[i * 30 + (size_t)k];
    near("sum", p->memory_capacity, sum, 1e-12);
  }
  near("without leak, at zero", scan->points[3].free, log(0.5), 0.02);
  tarn_dynamics_scan_close(&scan);
  over.leak_rates = radii, over.leak_count = 3;
  assert_int_equal(tarn_dynamics_scan_run(dynamics, &scan, &over), TARN_STATUS_USAGE);
  assert_null(scan);
  tarn_dynamics_close(&dynamics);
}

// Without recurrent connections a state forgets by its leak alone, and with a leak rate of 1 at once.
static void test_no_recurrence(void **state) {
  (void)state;
  const double radii[] = {0.0, 0.9}, leaks[] = {0.5, 1.0};
  tarn_dynamics_options o = free_options(200);
  tarn_dynamics_scan_options over;
  tarn_dynamics *dynamics;
  tarn_dynamics_scan *scan;
  tarn_dynamics_scan_default(&over);
  over.leak_rates = leaks, over.leak_count = 2;
  over.samples = 300, over.delays = 10;
  o.starts = 2;
  for (int base = 0; base < 2; base++) {  // scaled down to 0, and 0 from the beginning
    const tarn_esn_options options = reservoir_of(base ? 0.0 : 0.9, 1.0);
    must(tarn_dynamics_open_reservoir(&dynamics, &options, &o));
    near("radius", tarn_dynamics_describe(dynamics)->spectral_radius, options.sr, 2e-6);
    over.spectral_radii = radii, over.radius_count = 1;
    for (int own = 0; own <= base; own++) {
      must(tarn_dynamics_scan_run(dynamics, &scan, &over));
      assert_int_equal(scan->count, 2);
      for (int i = 0; i < 2; i++) near("no radius", scan->points[i].spectral_radius, 0.0, 0.0);
      near("forgets by its leak", scan->points[0].free, log(0.5), 1e-9);
      assert_true(scan->points[1].free == -INFINITY && scan->points[1].driven == -INFINITY);
      near("synchronised", scan->points[1].share_synchronised, 1.0, 0.0);
      assert_true(isfinite(scan->points[1].memory_capacity));
      tarn_dynamics_scan_close(&scan);
      over.spectral_radii = NULL;  // its own
    }
    over.spectral_radii = radii, over.radius_count = 2;
    assert_int_equal(tarn_dynamics_scan_run(dynamics, &scan, &over), base ? TARN_STATUS_NUMERIC : TARN_STATUS_OK);
    if (base) assert_non_null(strstr(tarn_error_message(), "cannot be scaled to another one, 0.9"));
    tarn_dynamics_scan_close(&scan);
    over.spectral_radii = (const double[]){-0.5}, over.radius_count = 1;
    assert_int_equal(tarn_dynamics_scan_run(dynamics, &scan, &over), TARN_STATUS_USAGE);
    over.spectral_radii = (const double[]){NAN};
    assert_int_equal(tarn_dynamics_scan_run(dynamics, &scan, &over), TARN_STATUS_USAGE);
    tarn_dynamics_close(&dynamics);
  }
}

// The layer of a trained language model along two lines: its states are those that tarn_states shows.
static void check_layer(const char *mixer) {
  char description[1024];
  snprintf(description, sizeof description,
           "model: { task: language-model, d_model: 16, positions: none, dropout: 0 }\n"
           "decoder: { layers: R L }\n"
           "kinds: { L: { mixer: %s, hidden: 12 }, R: { mixer: gru } }\n"
           "data: { vocab: vocab, train: text, valid: valid_text }\n"
           "train: { max_updates: 3, max_tokens: 400, threads: 1, lr: 0.02 }\n",
           mixer);
  remove("tiny.yaml");
  sandbox_write("tiny.yaml", description, strlen(description));
  char run[32];
  snprintf(run, sizeof run, "run-%.4s", mixer);
  tarn_train_options training;
  tarn_train_default(&training);
  training.config = "tiny.yaml", training.run = run;
  must(tiny_run(&training));
  const char *const lines[] = {"w3 w7 w9 w4 w4", "w5 w8"}, *const name = "decoder.2.states";
  const size_t lengths[] = {strlen(lines[0]), strlen(lines[1])};
  tarn_states_options looking;
  tarn_states *states;
  tarn_states_default(&looking);
  must(tarn_states_open(&states, run, &looking));
  must(tarn_states_select(states, &name, 1));
  must(tarn_states_encode(states, lines, lengths, NULL, NULL, 2));
  float values[9 * 12];
  void *const buffers[] = {values};
  must(tarn_states_compute(states, buffers));
  tarn_dynamics_options o;
  tarn_dynamics *dynamics;
  tarn_dynamics_result *result;
  tarn_dynamics_default(&o);
  o.map = TARN_DYNAMICS_MAP_RECURRENCE;
  o.first_layer = 2;
  o.exponents = 3;
  must(tarn_dynamics_open(&dynamics, run, &o));
  must(tarn_dynamics_encode(dynamics, lines, lengths, 2));
  must(tarn_dynamics_run(dynamics, &result));
  const bool lstm = strncmp(mixer, "lstm", 4) == 0;
  int64_t row = 0;
  for (int64_t s = 0; s < 2; s++) {
    const tarn_dynamics_sentence *r = &result->sentences[s];
    assert_int_equal(r->iterations, s == 0 ? 6 : 3);
    assert_int_equal(r->dimensions, lstm ? 24 : 12);
    assert_int_equal(r->settling, TARN_DYNAMICS_SETTLING_UNKNOWN);
    assert_true(isfinite(r->exponents[0]));
    for (int64_t t = 1; t <= r->iterations; t++, row++) {
      double squares = 0.0;
      for (int i = 0; i < 12; i++) squares += (double)values[row * 12 + i] * (double)values[row * 12 + i];
      if (!lstm) near("state", r->norm[t], sqrt(squares / 12.0), 1e-5);
      if (lstm) assert_true(r->norm[t] * r->norm[t] * 24.0 > squares);  // cells are in it
    }
  }
  tarn_dynamics_result_close(&result);
  tarn_dynamics_close(&dynamics);
  tarn_states_close(&states);
}

static void test_layers(void **state) {
  (void)state;
  check_layer("gru");
  check_layer("lstm");
  check_layer("esn, nonlinearity: tanh, leak_rate: 0.6");
}

static int open_text(void **state) { return tiny_open_text(state, ""); }

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_leaky_echo),    cmocka_unit_test(test_beyond_the_edge),
                                     cmocka_unit_test(test_memory_limit),  cmocka_unit_test(test_cells),
                                     cmocka_unit_test(test_delay_line),    cmocka_unit_test(test_scan),
                                     cmocka_unit_test(test_no_recurrence), cmocka_unit_test(test_layers)};
  return cmocka_run_group_tests(tests, open_text, sandbox_close);
}
