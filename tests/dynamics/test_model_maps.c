// Stacks of models as maps: what is iterated, against the model itself, Jacobians against differences, exponents over a
// training against those of its checkpoints, and what is refused.
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
#include "dynamics/dynamics.h"
#include "dynamics/stack_map.h"
#include "same_run.h"
#include "tarn/lab/forecast.h"
#include "tarn/lab/results.h"
#include "tarn/lab/states.h"

static const char *const lines[] = {"w3 w7 w9 w4 w4 w11", "w5 w8 w3"};
static const size_t lengths[] = {18, 8};

static void must(tarn_status status) {
  if (status != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
}

static void near(const char *what, double found, double wanted, double tolerance) {
  if (!(fabs(found - wanted) <= tolerance)) fail_msg("%s: %.12g, expected %.12g", what, found, wanted);
}

static tarn_dynamics_options options_of(int64_t iterations, int64_t exponents) {
  tarn_dynamics_options o;
  tarn_dynamics_default(&o);
  o.iterations = iterations;
  o.exponents = exponents;
  o.threads = 2;
  return o;
}

static tarn_dynamics *open(const char *path, const tarn_dynamics_options *o) {
  tarn_dynamics *dynamics;
  must(tarn_dynamics_open(&dynamics, path, o));
  must(tarn_dynamics_encode(dynamics, lines, lengths, 2));
  return dynamics;
}

static tarn_dynamics_result *run(const char *path, const tarn_dynamics_options *o) {
  tarn_dynamics *dynamics = open(path, o);
  tarn_dynamics_result *result;
  must(tarn_dynamics_run(dynamics, &result));
  tarn_dynamics_close(&dynamics);
  return result;
}

// A description of encoder layers, with a name of its own.
static const char *describe(const char *layers, const char *norm) {
  static char name[16];
  static int count;
  char text[1024];
  snprintf(name, sizeof name, "%d.yaml", count++);
  snprintf(text, sizeof text,
           "model: { d_model: 16, embeddings: all, dropout: 0 }\n"
           "encoder: { layers: \"%s\" }\n"
           "decoder: { layers: L }\n"
           "kinds:\n"
           "  L: { mixer: attention, heads: 2, ffn: 32, norm: %s }\n"
           "  R: { mixer: attention, heads: 2, ffn: 32, norm: %s, frozen: yes }\n"
           "data: { vocab: vocab }\n",
           layers, norm, norm);
  sandbox_write(name, text, strlen(text));
  return name;
}

static void check_choice(const char *layers, int period) {
  const tarn_dynamics_options o = options_of(0, 1);
  tarn_dynamics *dynamics = open(describe(layers, "post"), &o);
  const tarn_dynamics_info *info = tarn_dynamics_describe(dynamics);
  assert_int_equal(info->map, period ? TARN_DYNAMICS_MAP_PERIOD : TARN_DYNAMICS_MAP_LAYERS);
  assert_int_equal(info->first_layer, 1);
  assert_int_equal(info->last_layer, period ? period : info->layers);
  assert_int_equal(info->depth, period ? (info->layers + period - 1) / period : info->layers);
  assert_false(info->trained);
  assert_non_null(strstr(info->text, info->pattern));
  tarn_dynamics_close(&dynamics);
}

static void test_choices(void **state) {
  (void)state;
  check_choice("(R1 L1)*4", 2);
  check_choice("L1*8", 1);
  check_choice("(R1 L1 L2)*2", 3);
  check_choice("R1 L1 R1", 2);
  check_choice("(R1 L)*4", 0);
  check_choice("L*3", 0);
  check_choice("L", 0);
}

// After as many iterations as it has, the state is what the model shows of its last layer.
static void test_trained(void **state) {
  (void)state;
  tarn_train_options training;
  tarn_train_default(&training);
  training.config = "tiny.yaml", training.run = "run";
  must(tiny_run(&training));
  tarn_states_options looking;
  tarn_states *states;
  const char *const name = "encoder.4";
  tarn_states_default(&looking);
  must(tarn_states_open(&states, "run", &looking));
  must(tarn_states_select(states, &name, 1));
  must(tarn_states_encode(states, lines, lengths, NULL, NULL, 2));
  float values[11 * 16];
  void *const buffers[] = {values};
  must(tarn_states_compute(states, buffers));
  tarn_states_close(&states);
  const tarn_dynamics_options o = options_of(2, 2);
  tarn_dynamics_result *result = run("run", &o);
  assert_int_equal(result->count, 2);
  for (int64_t s = 0, row = 0; s < 2; row += result->sentences[s].tokens, s++) {
    const tarn_dynamics_sentence *r = &result->sentences[s];
    double squares = 0.0;
    assert_int_equal(r->tokens, s == 0 ? 7 : 4);
    for (int64_t i = row * 16; i < (row + r->tokens) * 16; i++) squares += (double)values[i] * (double)values[i];
    near("norm", r->norm[2], sqrt(squares / (double)r->dimensions), 1e-5);
  }
  tarn_dynamics_result_close(&result);
  tarn_dynamics_checkpoints found;
  must(tarn_dynamics_checkpoints_find(&found, "run"));
  assert_int_equal(found.count, 2);
  assert_int_equal(found.updates[0], 10);
  tarn_dynamics_checkpoints_close(&found);
  assert_int_equal(tarn_dynamics_checkpoints_find(&found, "."), TARN_STATUS_DATA);
}

// The Jacobian of a period, from the inside.
static void check_jacobian(const char *norm) {
  enum { K = 3 };
  const tarn_dynamics_options o = options_of(1, K);
  tarn_dynamics *dynamics = open(describe("(R1 L1)*2", norm), &o);
  tarn__packed packed;
  void *memory, *numbers;
  must(tarn__dynamics_pack(dynamics, &packed, &memory));
  tarn__stack_map map = {.model = dynamics->checkpoint->model, .packed = &packed, .first = 0, .last = 2, .whole = true};
  const int64_t n = packed.rows * 16;
  must(tarn__stack_map_open(&map, K, true, 0));
  must(tarn__alloc(&numbers, TARN__MEMORY_OTHER, (size_t)((4 + 2 * K) * n), sizeof(double)));
  double *start = numbers, *x = start + n, *up = x + n, *down = up + n, *v = down + n, *pushed = v + K * n;
  tarn__random random;
  tarn__random_init(&random, 4, 0);
  must(tarn__stack_map_start(&map, start));
  for (int64_t i = 0; i < K * n; i++) pushed[i] = v[i] = tarn__random_normal(&random);
  memcpy(x, start, (size_t)n * sizeof *x);
  must(tarn__stack_map_step(&map, x, pushed, K, 0));
  for (int64_t j = 0; j < K; j++) {
    const double h = 1e-5;
    double apart = 0.0, size = 0.0;
    for (int64_t i = 0; i < n; i++) {
      up[i] = start[i] + h * v[j * n + i];
      down[i] = start[i] - h * v[j * n + i];
    }
    must(tarn__stack_map_step(&map, up, NULL, 0, 0));
    must(tarn__stack_map_step(&map, down, NULL, 0, 0));
    for (int64_t i = 0; i < n; i++) {
      const double wanted = (up[i] - down[i]) / (2.0 * h), found = pushed[j * n + i];
      apart += (found - wanted) * (found - wanted);
      size += wanted * wanted;
    }
    near("J v against differences", sqrt(apart / size), 0.0, 1e-7);
  }
  tarn__stack_map_close(&map);
  tarn__free(numbers);
  tarn__free(memory);
  tarn_dynamics_close(&dynamics);
}

static void test_jacobian(void **state) {
  (void)state;
  check_jacobian("post");
  check_jacobian("pre");
}

// A language model has one stack.
static void test_language_model(void **state) {
  (void)state;
  static const char text[] =
      "model: { task: language-model, d_model: 16, dropout: 0 }\n"
      "decoder: { layers: \"L1*4\" }\n"
      "kinds: { L: { mixer: attention, heads: 2, ffn: 32, norm: pre } }\n"
      "data: { vocab: vocab }\n";
  sandbox_write("lm.yaml", text, strlen(text));
  tarn_dynamics_options o = options_of(50, 3);
  tarn_dynamics *dynamics = open("lm.yaml", &o);
  const tarn_dynamics_info *info = tarn_dynamics_describe(dynamics);
  assert_int_equal(info->map, TARN_DYNAMICS_MAP_PERIOD);
  assert_int_equal(info->depth, 4);
  tarn_dynamics_result *result;
  must(tarn_dynamics_run(dynamics, &result));
  assert_int_equal(result->sentences[0].tokens, 7);
  assert_true(isfinite(result->sentences[0].exponents[0]));
  tarn_dynamics_result_close(&result);
  tarn_dynamics_close(&dynamics);
}

// Fast kernels in fp32 find what the reference finds in double.
static void test_precisions(void **state) {
  (void)state;
  tarn_dynamics_options o = options_of(30, 4);
  const char *path = describe("(R1 L1)*2", "post");
  tarn_dynamics_result *exact = run(path, &o), *again = run(path, &o);
  o.precision = TARN_DYNAMICS_PRECISION_FP32;
  tarn_dynamics_result *fast = run(path, &o);
  assert_true(exact->tolerance < fast->tolerance);
  for (int64_t s = 0; s < 2; s++) {
    const tarn_dynamics_sentence *e = &exact->sentences[s], *a = &again->sentences[s], *f = &fast->sentences[s];
    assert_memory_equal(e->local, a->local, 30 * 4 * sizeof(double));
    assert_memory_equal(e->plane, a->plane, (size_t)(31 * e->tokens * 2) * sizeof(double));
    for (int64_t j = 0; j < 4; j++) near("finite-time exponent", f->finite_time[j], e->finite_time[j], 1e-3);
    near("distance", f->token_distance[30], e->token_distance[30], 1e-3);
    near("largest exponent", f->exponents[0], e->exponents[0], 0.02);
    assert_true(e->norm[30] > 0.0 && e->participation[0] >= 1.0);
    assert_true(e->starts.there && e->between_tokens.there);
  }
  tarn_dynamics_result_close(&exact);
  tarn_dynamics_result_close(&again);
  tarn_dynamics_result_close(&fast);
}

// Products by matrix tiles, where the processor has them.
static void test_split(void **state) {
  (void)state;
  tarn_dynamics_options o = options_of(20, 2);
  const char *path = describe("L1*2", "pre");
  o.precision = TARN_DYNAMICS_PRECISION_FP32;
  tarn_dynamics_result *exact = run(path, &o);
  o.products = TARN_FP32_SPLIT6;
  tarn_dynamics *dynamics;
  const tarn_status status = tarn_dynamics_open(&dynamics, path, &o);
  if (status != TARN_STATUS_UNSUPPORTED) {
    must(status);
    tarn_dynamics_close(&dynamics);
    tarn_dynamics_result *split = run(path, &o);
    near("exponent", split->sentences[0].exponents[0], exact->sentences[0].exponents[0], 1e-3);
    tarn_dynamics_result_close(&split);
  }
  tarn_dynamics_result_close(&exact);
}

// A model that shares nothing: an iteration a layer.
static void test_layers(void **state) {
  (void)state;
  const char *path = describe("L R L", "post");
  tarn_dynamics_options o = options_of(0, 2);
  tarn_dynamics_result *result = run(path, &o), *chosen;
  assert_int_equal(result->iterations, 3);
  assert_int_equal(result->discard, 0);
  assert_int_equal(result->sentences[0].settling, TARN_DYNAMICS_SETTLING_UNKNOWN);
  assert_int_equal(result->sentences[0].counted, 3);
  o.iterations = 1;
  o.map = TARN_DYNAMICS_MAP_PERIOD;
  o.first_layer = 1, o.last_layer = 3;
  chosen = run(path, &o);
  near("three layers in one", chosen->sentences[0].norm[1], result->sentences[0].norm[3], 1e-12);
  near("growth", chosen->sentences[0].local[0], 3.0 * result->sentences[0].exponents[0], 1e-9);
  tarn_dynamics_result_close(&result);
  tarn_dynamics_result_close(&chosen);
}

static void refuse_open(const char *path, const tarn_dynamics_options *o, const char *text) {
  tarn_dynamics *dynamics;
  assert_int_equal(tarn_dynamics_open(&dynamics, path, o), TARN_STATUS_USAGE);
  assert_null(dynamics);
  if (!strstr(tarn_error_message(), text)) fail_msg("%s", tarn_error_message());
}

static void refuse_run(const char *path, const tarn_dynamics_options *o, tarn_status status, const char *text) {
  tarn_dynamics *dynamics = open(path, o);
  tarn_dynamics_result *result;
  assert_int_equal(tarn_dynamics_run(dynamics, &result), status);
  assert_null(result);
  if (!strstr(tarn_error_message(), text)) fail_msg("%s", tarn_error_message());
  tarn_dynamics_close(&dynamics);
}

static void test_refused(void **state) {
  (void)state;
  char apart[16], shared[16];
  snprintf(apart, sizeof apart, "%s", describe("L R L", "post"));
  snprintf(shared, sizeof shared, "%s", describe("L1*3", "post"));
  tarn_dynamics_options o = options_of(4, 1);
  refuse_run(apart, &o, TARN_STATUS_USAGE, "beyond its 3 layers");
  o.map = TARN_DYNAMICS_MAP_PERIOD;
  refuse_open(apart, &o, "map layers");
  o.first_layer = 2, o.last_layer = 4;
  refuse_open(apart, &o, "layers 1 to 3");
  o = options_of(4, 1);
  o.map = TARN_DYNAMICS_MAP_RECURRENCE;
  refuse_open(shared, &o, "no recurrence");
  o = options_of(4, 65);
  refuse_run(shared, &o, TARN_STATUS_USAGE, "64 dimensions");
  o = options_of(4, 2);
  o.max_memory = 30000;
  refuse_run(shared, &o, TARN_STATUS_MEMORY, "allowed");
  o = options_of(4, 2);
  o.every = 0;
  refuse_open(shared, &o, "QR");
  o = options_of(4, 2);
  o.products = TARN_FP32_SPLIT6;
  refuse_open(shared, &o, "in fp32 only");
  o = options_of(4, 2);
  o.drive = TARN_DYNAMICS_DRIVE_FREE;
  refuse_open(shared, &o, "only a recurrence");
}

// What no machine has is not asked for.
static void test_memory_limit(void **state) {
  (void)state;
  const tarn_dynamics_options o = options_of(1, 1);
  tarn_dynamics *dynamics = open(describe("L1*2", "post"), &o);
  tarn__packed packed;
  void *memory;
  must(tarn__dynamics_pack(dynamics, &packed, &memory));
  tarn__stack_map map = {.model = dynamics->checkpoint->model, .packed = &packed, .first = 0, .last = 1, .whole = true};
  assert_int_equal(tarn__stack_map_open(&map, (int64_t)1 << 40, false, 1000000), TARN_STATUS_MEMORY);
  assert_non_null(strstr(tarn_error_message(), "1.0 MB are allowed"));
  tarn__stack_map_close(&map);
  tarn__free(memory);
  tarn_dynamics_close(&dynamics);
}

// Any allocation may fail, while a description is opened and while it runs.
static void test_memory(void **state) {
  (void)state;
  tarn_dynamics_options o = options_of(2, 1);
  char path[16];
  tarn_status status = TARN_STATUS_MEMORY;
  uint64_t failed = 0;
  o.precision = TARN_DYNAMICS_PRECISION_FP32;
  snprintf(path, sizeof path, "%s", describe("L1*2", "post"));
  for (; status == TARN_STATUS_MEMORY && failed < 10000; failed += 1 + failed / 16) {
    tarn_dynamics *dynamics = NULL;
    tarn_dynamics_result *result = NULL;
    tarn__memory_fail_after(failed + 1);
    status = tarn_dynamics_open(&dynamics, path, &o);
    if (status == TARN_STATUS_OK) status = tarn_dynamics_encode(dynamics, lines, lengths, 2);
    if (status == TARN_STATUS_OK) status = tarn_dynamics_run(dynamics, &result);
    tarn__memory_fail_after(0);
    tarn_dynamics_result_close(&result);
    tarn_dynamics_close(&dynamics);
  }
  must(status);
  assert_true(failed > 50);
}

// A sentence of the end of sentence alone has no pairs.
static void test_one_token(void **state) {
  (void)state;
  const tarn_dynamics_options o = options_of(5, 1);
  const char *const text[] = {"", "w3"};
  const size_t sizes[] = {0, 2};
  tarn_dynamics *dynamics;
  tarn_dynamics_result *result;
  must(tarn_dynamics_open(&dynamics, describe("L1*2", "post"), &o));
  assert_int_equal(tarn_dynamics_run(dynamics, &result), TARN_STATUS_USAGE);
  must(tarn_dynamics_encode(dynamics, text, sizes, 2));
  must(tarn_dynamics_run(dynamics, &result));
  assert_int_equal(result->sentences[0].tokens, 1);
  assert_true(isnan(result->sentences[0].token_cosine[5]) && !result->sentences[0].between_tokens.there);
  assert_true(isfinite(result->sentences[0].exponents[0]));
  assert_true(result->sentences[1].between_tokens.there);
  tarn_dynamics_result_close(&result);
  tarn_dynamics_close(&dynamics);
}

// --- over a training

#define FOLLOWED "dynamics={input: text, every: 5, sentences: 2, iterations: 20, exponents: 2}"

static const char sentences[] = "w3 w7 w9 w4 w4 w11\nw5 w8 w3\nw3\n";

// The line of the log with exponents of an update; NULL: none. *count counts all such lines.
static const json_t *exponents_at(const json_t *log, int64_t update, size_t *count) {
  const json_t *found = NULL;
  *count = 0;
  for (size_t i = 0; i < json_array_size(log); i++) {
    const json_t *record = json_array_get(log, i);
    if (strcmp(json_string_value(json_object_get(record, "kind")), "dynamics") != 0) continue;
    (*count)++;
    if (json_integer_value(json_object_get(record, "step")) == update) found = record;
  }
  return found;
}

static void same_number(const json_t *record, const char *name, double value) {
  const json_t *number = json_object_get(record, name);
  assert_true(json_is_number(number));
  near(name, json_number_value(number), value, 1e-8 * fabs(value) + 1e-300);  // the log has nine digits
}

// What the log says of an update is what its checkpoint gives.
static void assert_followed(const char *run_folder, int64_t update, const char *file,
                            tarn_dynamics_precision precision) {
  char path[256];
  size_t count;
  json_t *log = read_log(run_folder);
  const json_t *record = exponents_at(log, update, &count);
  tarn_dynamics_options o = options_of(20, 2);
  tarn_dynamics_summary s;
  o.precision = precision;
  join(path, run_folder, file);
  tarn_dynamics_result *result = run(path, &o);
  must(tarn_dynamics_summarise(&s, result));
  assert_non_null(record);
  same_number(record, "exponent", s.exponent.median);
  same_number(record, "exponent_lower", s.exponent.lower);
  same_number(record, "exponent_2", (result->sentences[0].exponents[1] + result->sentences[1].exponents[1]) / 2);
  same_number(record, "growth", s.growth.median);
  same_number(record, "participation", s.participation.median);
  same_number(record, "expanding", (double)s.verdicts[TARN_DYNAMICS_VERDICT_EXPANDING] / 2);
  tarn_dynamics_result_close(&result);
  json_decref(log);
}

static void test_followed(void **state) {
  (void)state;
  static const char *const plain[] = {FOLLOWED};
  // Weights of which the training has no fp32 values, frozen ones that change, and numbers in double.
  static const char *const others[] = {FOLLOWED, "train.precision=bf16", "dynamics.precision=double", "train.average=0",
                                       "kinds.L={ mixer: performer, heads: 2, ffn: 32, features: 8, redraw: 3 }"};
  sandbox_write("text", sentences, strlen(sentences));
  run_through("alone", NULL, 0);
  run_through("followed", plain, 1);
  assert_followed("followed", 10, "checkpoint_10.safetensors", TARN_DYNAMICS_PRECISION_FP32);
  assert_followed("followed", 12, TARN__CHECKPOINT_LAST, TARN_DYNAMICS_PRECISION_FP32);
  run_through("other", others, sizeof others / sizeof *others);
  assert_followed("other", 10, "checkpoint_10.safetensors", TARN_DYNAMICS_PRECISION_DOUBLE);
  // Before the first update, every five, and at the end; nothing of the training changes, also if it stops and goes on.
  json_t *log = read_log("followed");
  size_t count;
  for (int64_t update = 0; update <= 12; update++)
    assert_int_equal(exponents_at(log, update, &count) != NULL, update % 5 == 0 || update == 12);
  assert_int_equal(count, 4);
  json_decref(log);
  assert_same_tensors("alone", "followed", TARN__CHECKPOINT_LAST);
  assert_same_tensors("alone", "followed", TARN__CHECKPOINT_AVERAGE);
  run_in_pieces("pieces", 1, plain, 1);
  assert_same_run("followed", "pieces");
}

// A training that ended after its exponents of an update, and then goes on, has them once; also where its log does not
// count.
static void test_followed_further(void **state) {
  (void)state;
  static const char *const shorter[] = {FOLLOWED, "train.max_updates=5"}, *const longer = "train.max_updates=12";
  run_through("further", shorter, 2);
  must(tiny_train(NULL, "further", &longer, 1, NULL, NULL, NULL));
  json_t *log = read_log("further");
  size_t count;
  assert_non_null(exponents_at(log, 5, &count));
  assert_int_equal(count, 4);
  json_decref(log);
  run_through("lost", shorter, 2);
  char *text;
  size_t size;
  must(tarn__file_read("lost/log.jsonl", &text, &size));
  const size_t first = strcspn(text, "\n") + 1;  // the exponents of update 0
  sandbox_write("lost/log.jsonl", text + first, size - first);
  tarn__free(text);
  tarn_train_options training;
  tarn_train_default(&training);
  training.run = "lost", training.resume = training.accept_log = true;
  training.overrides = &longer, training.override_count = 1;
  tarn_dynamics_follow(&training);
  must(tiny_run(&training));
  log = read_log("lost");
  assert_non_null(exponents_at(log, 5, &count));
  assert_int_equal(count, 3);
  json_decref(log);
}

// A curve of results; its last value is that of a run.
static void test_followed_results(void **state) {
  (void)state;
  static const char *const paths[] = {"followed"};
  tarn_results *results;
  tarn_results_table *table;
  must(tarn_results_open(&results, paths, 1));
  must(tarn_results_compare(&table, results, NULL));
  const tarn_results_series *series = tarn_results_find(&results->runs[0], "dynamics/exponent");
  assert_non_null(series);
  assert_int_equal(series->count, 4);
  assert_int_equal(series->points[0].step, 0);
  assert_true(series->points[3].step == 12 && table->measures[0].exponent == series->points[3].value);
  assert_string_equal(table->judged[TARN_RESULTS_JUDGED_EXPONENT].key, "exponent");
  tarn_report_options report;
  tarn_report_default(&report);
  report.output = "report";
  must(tarn_report_write(results, table, &report));
  assert_true(tarn__file_exists("report/figures/exponent-updates.svg"));
  tarn_results_table_close(&table);
  tarn_results_close(&results);
}

// What the computations took is in a forecast from the log.
static void test_followed_forecast(void **state) {
  (void)state;
  static const char *const overrides[] = {FOLLOWED};
  tarn_train_options training;
  tarn_config *config;
  tarn_plan plan;
  tarn_duration with, without;
  must(tarn_config_read(&config, "tiny.yaml", overrides, 1));
  must(tarn_plan_make(&plan, config, &(tarn_plan_options){0}));
  tarn_train_default(&training);
  training.config = "tiny.yaml";
  must(tarn_train_duration(&without, &training, &plan, "followed"));
  training.overrides = overrides, training.override_count = 1;
  must(tarn_train_duration(&with, &training, &plan, "followed"));
  assert_true(without.dynamics_seconds == 0.0 && with.dynamics_seconds > 0.0);
  near("seconds", with.seconds, without.seconds + with.dynamics_seconds, 1e-9 * with.seconds);
  tarn_plan_close(&plan);
  tarn_config_close(&config);
}

static void stop_after_validation(void *user, const tarn_train_event *event) {
  stopper *s = user;
  if (event->kind == TARN_TRAIN_EVENT_VALID) s->stop = 1;
}

// A stop between a validation and the exponents of the same update.
static void test_followed_stopped(void **state) {
  (void)state;
  static const char *const overrides[] = {FOLLOWED, "dynamics.every=4"};
  stopper s = {0};
  size_t count;
  run_through("whole", overrides, 2);
  tarn_status status = tiny_train("tiny.yaml", "halted", overrides, 2, stop_after_validation, &s, &s.stop);
  assert_int_equal(status, TARN_STATUS_INTERRUPTED);
  json_t *log = read_log("halted");
  assert_null(exponents_at(log, 4, &count));
  assert_int_equal(count, 1);
  json_decref(log);
  for (int i = 0; i < 3 && status == TARN_STATUS_INTERRUPTED; i++) {
    s.stop = 0;
    status = tiny_train(NULL, "halted", NULL, 0, stop_after_validation, &s, &s.stop);
  }
  must(status);
  assert_same_run("whole", "halted");
}

// Counts allocations from a validation to the line of exponents after it.
static void fail_after_validation(void *user, const tarn_train_event *event) {
  const uint64_t *n = user;
  if (event->kind == TARN_TRAIN_EVENT_VALID) tarn__memory_fail_after(*n);
  if (event->kind == TARN_TRAIN_EVENT_DYNAMICS) tarn__memory_fail_after(0);
}

// Any allocation may fail in the first computation, which also makes the copy of the model.
static void test_followed_memory(void **state) {
  (void)state;
  static const char *const overrides[] = {FOLLOWED, "valid.at_start=yes", "train.max_updates=1"};
  tarn_status status = TARN_STATUS_MEMORY;
  uint64_t failed = 1;
  int runs = 0;
  for (; status == TARN_STATUS_MEMORY && failed < 10000; failed += 1 + failed / 4, runs++) {
    char run_folder[32];
    snprintf(run_folder, sizeof run_folder, "memory-%d", runs);
    status = tiny_train("tiny.yaml", run_folder, overrides, 3, fail_after_validation, &failed, NULL);
    tarn__memory_fail_after(0);
  }
  must(status);
  assert_true(runs > 10);
}

static void refuse_training(const char *config, const char *override, tarn_status status, const char *text) {
  const char *const overrides[] = {FOLLOWED, override};
  tarn_config *read = NULL;
  tarn_status plan = tarn_config_read(&read, config, overrides, 2);
  if (plan == TARN_STATUS_OK) plan = tarn_dynamics_check(read);
  tarn_config_close(&read);
  if (status != TARN_STATUS_IO) assert_int_equal(plan, status);  // a plan needs no files
  assert_int_equal(tiny_train(config, "refused", overrides, 2, NULL, NULL, NULL), status);
  if (!strstr(tarn_error_message(), text)) fail_msg("%s", tarn_error_message());
  assert_false(tarn__file_exists("refused"));
}

// A recurrence below the layers of a text, of 12 units.
static void write_recurrent(void) {
  char text[sizeof tiny_config];
  const char *mixer = strstr(tiny_config, "mixer: attention, heads: 2, ffn: 32, frozen"),
             *rest = strstr(mixer, ", frozen");
  snprintf(text, sizeof text, "%.*smixer: gru, hidden: 12%s", (int)(mixer - tiny_config), tiny_config, rest);
  sandbox_write("gru.yaml", text, strlen(text));
}

// At the start, not at update N.
static void test_followed_refused(void **state) {
  (void)state;
  sandbox_write("empty", "", 0);
  write_recurrent();
  refuse_training("gru.yaml", "dynamics={input: text, map: recurrence, exponents: 20}", TARN_STATUS_USAGE,
                  "20 exponents are asked for, and the state of sentence 1 has 12 dimensions");
  refuse_training("gru.yaml", "dynamics={input: text, map: recurrence, discard: 7}", TARN_STATUS_USAGE,
                  "leave out 7 iterations, and there are 7");
  refuse_training("tiny.yaml", "dynamics.iterations=10000000", TARN_STATUS_MEMORY, "more than the 1000.0 MB");
  refuse_training("tiny.yaml", "dynamics.map=recurrence", TARN_STATUS_USAGE, "dynamics: tiny.yaml: no layer");
  refuse_training("tiny.yaml", "dynamics.last_layer=9", TARN_STATUS_USAGE, "layers 0 to 9 cannot be iterated");
  refuse_training("tiny.yaml", "dynamics.discard=20", TARN_STATUS_USAGE, "leave out 20 iterations");
  refuse_training("tiny.yaml", "encoder.layers=L*2", TARN_STATUS_USAGE, "shares no period");
  refuse_training("tiny.yaml", "dynamics.input=empty", TARN_STATUS_DATA, "no sentences to start from");
  refuse_training("tiny.yaml", "dynamics.input=none", TARN_STATUS_IO, "none");
  refuse_training("tiny.yaml", "dynamics.iteration=3", TARN_STATUS_USAGE, "did you mean \"iterations\"?");
  refuse_training("tiny.yaml", "dynamics.input=", TARN_STATUS_USAGE,
                  "no exponents are computed without dynamics.input");
  refuse_training("tiny.yaml", "dynamics.input='-'", TARN_STATUS_USAGE, "standard input can be read once");
  refuse_training("tiny.yaml", "dynamics.exponents=0", TARN_STATUS_USAGE, "dynamics.exponents");
  // A program that computes none.
  static const char *const overrides[] = {FOLLOWED};
  tarn_train_options training;
  tarn_train *train;
  tarn_train_default(&training);
  training.config = "tiny.yaml", training.run = "refused", training.overrides = overrides, training.override_count = 1;
  assert_int_equal(tarn_train_open(&train, &training), TARN_STATUS_USAGE);
  assert_non_null(strstr(tarn_error_message(), "dynamics.input: this program cannot compute exponents"));
  training.plan_only = true;
  must(tarn_train_open(&train, &training));
  tarn_train_close(&train);
  // A curve is of one text, of which the file may move.
  static const char *const moved[] = {"dynamics.input=moved", "dynamics.every=4"};
  static const char *const longer[] = {"dynamics.iterations=30"};
  stopper s = {.every = 6};
  assert_int_equal(tiny_train("tiny.yaml", "moves", overrides, 1, stop_now_and_then, &s, &s.stop),
                   TARN_STATUS_INTERRUPTED);
  sandbox_write("moved", "w3\nw4\n", 6);
  assert_int_equal(tiny_train(NULL, "moves", moved, 2, NULL, NULL, NULL), TARN_STATUS_DATA);
  assert_non_null(
      strstr(tarn_error_message(), "its exponents are of other sentences than those of moved (dynamics.input)"));
  assert_int_equal(tiny_train(NULL, "moves", longer, 1, NULL, NULL, NULL), TARN_STATUS_USAGE);
  // A training that had none gets none.
  assert_int_equal(tiny_train(NULL, "alone", moved, 1, NULL, NULL, NULL), TARN_STATUS_USAGE);
  assert_non_null(strstr(tarn_error_message(), "was trained without dynamics.input, and exponents can neither"));
  sandbox_write("moved", sentences, strlen(sentences));
  must(tiny_train(NULL, "moves", moved, 2, NULL, NULL, NULL));
  json_t *log = read_log("moves");
  size_t count;
  assert_non_null(exponents_at(log, 8, &count));
  assert_int_equal(count, 4);  // 0, 5, 8, 12
  json_decref(log);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_choices),
                                     cmocka_unit_test(test_trained),
                                     cmocka_unit_test(test_jacobian),
                                     cmocka_unit_test(test_layers),
                                     cmocka_unit_test(test_refused),
                                     cmocka_unit_test(test_precisions),
                                     cmocka_unit_test(test_one_token),
                                     cmocka_unit_test(test_split),
                                     cmocka_unit_test(test_language_model),
                                     cmocka_unit_test(test_memory_limit),
                                     cmocka_unit_test(test_memory),
                                     cmocka_unit_test(test_followed),
                                     cmocka_unit_test(test_followed_further),
                                     cmocka_unit_test(test_followed_results),
                                     cmocka_unit_test(test_followed_forecast),
                                     cmocka_unit_test(test_followed_stopped),
                                     cmocka_unit_test(test_followed_memory),
                                     cmocka_unit_test(test_followed_refused)};
  return cmocka_run_group_tests(tests, tiny_open, sandbox_close);
}
