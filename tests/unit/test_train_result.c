// Training: the validation of the untrained model, the training clock, and result.json.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
// cmocka needs the headers above.
#include <cmocka.h>
#include <jansson.h>

#include "base/clock.h"
#include "base/memory.h"
#include "report/run_read.h"
#include "tarn/process.h"
#include "tiny_run.h"
#include "train/trainer.h"

// The records of a log without what depends on the clock.
static json_t *read_log(const char *path) {
  char *text;
  size_t size;
  assert_int_equal(tarn__file_read(path, &text, &size), TARN_STATUS_OK);
  json_t *log = json_array();
  for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
    json_t *record = json_loads(line, 0, NULL);
    assert_non_null(record);
    if (json_integer_value(json_object_get(record, "step")) > 0) json_object_del(record, "time");
    json_object_del(record, "seconds");
    json_object_del(record, "tokens_per_second");
    json_array_append_new(log, record);
  }
  tarn__free(text);
  return log;
}

static json_t *read_result(const char *path) {
  json_error_t error;
  json_t *result = json_load_file(path, 0, &error);
  if (!result) fail_msg("%s: %s", path, error.text);
  return result;
}

static const char *text_of(const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text ? text : "(none)";
}

static const char *const START[] = {"valid.at_start=yes"};

// What happens to a training after its validation at update 0.
typedef struct accident {
  tarn_train *train;
  bool poison;  // its weights stop being numbers, as a kill it leaves the checkpoint from before; else: it is stopped
  volatile sig_atomic_t stop;
} accident;

static void on_event(void *user, const tarn_train_event *event) {
  accident *a = user;
  if (event->kind != TARN_TRAIN_EVENT_VALID || event->update != 0) return;
  assert_true(event->seconds == 0);
  assert_false(event->best);
  if (!a->poison) a->stop = 1;
  for (size_t i = 0; a->poison && i < a->train->model->param_count; i++) {
    tarn__param *param = a->train->model->params[i];
    if (param->trained && param->rows > 1) param->training.master[3] = NAN;
  }
}

static tarn_status run_with(const char *run, accident *a) {
  tarn_train_options options;
  tarn_train_default(&options);
  options.config = "tiny.yaml";
  options.run = run;
  options.overrides = START;
  options.override_count = 1;
  options.on_event = on_event;
  options.user = a;
  options.stop = &a->stop;
  tarn_train_result result;
  if (tarn_train_open(&a->train, &options) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  tarn_status status = tarn_train_run(a->train, &result);
  tarn_train_close(&a->train);
  return status;
}

static void assert_same_log(const char *a, const char *b) {
  json_t *x = read_log(a);
  json_t *y = read_log(b);
  assert_true(json_equal(x, y));
  json_decref(x);
  json_decref(y);
}

static void validates_the_untrained_model_once(void **state) {
  (void)state;
  assert_int_equal(tiny_train("tiny.yaml", "whole", START, 1, NULL, NULL, NULL), TARN_STATUS_OK);
  json_t *log = read_log("whole/log.jsonl");
  const json_t *first = json_array_get(log, 0);
  assert_string_equal(text_of(first, "kind"), "valid");
  assert_int_equal(json_integer_value(json_object_get(first, "step")), 0);
  assert_true(json_number_value(json_object_get(first, "time")) == 0);
  assert_true(json_is_false(json_object_get(first, "best")));
  assert_true(json_is_number(json_object_get(first, "valid_bleu")));
  for (size_t i = 1; i < json_array_size(log); i++)
    assert_true(json_integer_value(json_object_get(json_array_get(log, i), "step")) > 0);
  json_decref(log);

  accident stopped = {0};
  assert_int_equal(run_with("stopped", &stopped), TARN_STATUS_INTERRUPTED);
  assert_false(tarn__file_exists("stopped/result.json"));
  assert_int_equal(tiny_train(NULL, "stopped", NULL, 0, NULL, NULL, NULL), TARN_STATUS_OK);
  assert_same_log("whole/log.jsonl", "stopped/log.jsonl");

  accident killed = {.poison = true};
  assert_int_equal(run_with("killed", &killed), TARN_STATUS_NUMERIC);
  assert_int_equal(tiny_train(NULL, "killed", NULL, 0, NULL, NULL, NULL), TARN_STATUS_OK);
  assert_same_log("whole/log.jsonl", "killed/log.jsonl");
}

static void writes_how_it_ended(void **state) {
  (void)state;
  assert_int_equal(tiny_train("tiny.yaml", "ended", NULL, 0, NULL, NULL, NULL), TARN_STATUS_OK);
  json_t *result = read_result("ended/result.json");
  assert_string_equal(text_of(result, "status"), "finished");
  assert_string_equal(text_of(result, "end"), "updates");
  assert_string_equal(text_of(result, "clock"), "wall");
  int at[6];
  char end;
  assert_int_equal(sscanf(text_of(result, "date"), "%4d-%2d-%2dT%2d:%2d:%2d%c", &at[0], &at[1], &at[2], &at[3], &at[4],
                          &at[5], &end),
                   7);
  assert_true(end == 'Z' && at[0] >= 2026);
  assert_true(*text_of(result, "processor") > ' ' && *text_of(result, "kernels"));
  assert_string_equal(text_of(result, "metric"), "bleu");
  // The average of this run validates worse.
  assert_string_equal(text_of(result, "checkpoint"), TARN__CHECKPOINT_BEST);
  assert_int_equal(strlen(text_of(result, "config_hash")), 32);
  assert_int_equal(strlen(text_of(result, "valid_hash")), 32);
  assert_int_equal(json_integer_value(json_object_get(result, "update")), 12);
  double peak = json_number_value(json_object_get(result, "peak_bytes"));
  assert_true(peak > 1e6 && peak < 1e10);
  const json_t *encoder = json_object_get(result, "encoder");
  assert_int_equal(json_array_size(encoder), 4);
  const json_t *layer = json_array_get(encoder, 2);
  assert_string_equal(text_of(layer, "kind"), "R");
  assert_string_equal(text_of(layer, "set"), "R1");
  assert_string_equal(text_of(layer, "mixer"), "attention");
  assert_true(json_is_true(json_object_get(layer, "frozen")));
  assert_int_equal(json_integer_value(json_object_get(layer, "first")), 0);
  json_decref(result);
}

static void writes_that_it_failed(void **state) {
  (void)state;
  accident killed = {.poison = true};
  assert_int_equal(run_with("failed", &killed), TARN_STATUS_NUMERIC);
  json_t *result = read_result("failed/result.json");
  assert_string_equal(text_of(result, "status"), "failed");
  assert_non_null(strstr(text_of(result, "message"), "not a finite number"));
  assert_null(json_object_get(result, "end"));
  json_decref(result);
}

// The clock of the processor does not run while the process sleeps. The first of the tests, before there is a pool:
// clang's OpenMP lets its threads spin for 0.2 s after their last work.
static void clocks_differ(void **state) {
  (void)state;
  double wall = tarn__seconds();
  double cpu = tarn__cpu_seconds();
  struct timespec pause = {.tv_nsec = 200000000};
  nanosleep(&pause, NULL);
  assert_true(tarn__seconds() - wall >= 0.2);
  assert_true(tarn__cpu_seconds() - cpu < 0.1);
  const char *const overrides[] = {"train.clock=cpu"};
  assert_int_equal(tiny_train("tiny.yaml", "cpu", overrides, 1, NULL, NULL, NULL), TARN_STATUS_OK);
  json_t *result = read_result("cpu/result.json");
  assert_string_equal(text_of(result, "clock"), "cpu");
  assert_true(json_number_value(json_object_get(result, "seconds")) > 0);
  json_decref(result);
}

enum { BALLAST = 300 << 20 };

static void *load_ballast(void) {
  void *ballast = mmap(NULL, BALLAST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(ballast, MAP_FAILED);
  memset(ballast, 1, BALLAST);
  return ballast;
}

static int64_t peak_of(const char *path) {
  json_t *result = read_result(path);
  const int64_t peak = json_integer_value(json_object_get(result, "peak_bytes"));
  json_decref(result);
  return peak;
}

// Holds much memory for a moment, and stops after it.
typedef struct burst {
  volatile sig_atomic_t stop;
} burst;

static void on_burst(void *user, const tarn_train_event *event) {
  burst *b = user;
  if (event->kind != TARN_TRAIN_EVENT_UPDATE || event->update != 3) return;
  munmap(load_ballast(), BALLAST);
  b->stop = 1;
}

// Where the kernel cannot count anew, a process that held much would hide what is tested.
static void peak_is_of_all_sessions(void **state) {
  (void)state;
  munmap(load_ballast(), BALLAST);
  tarn__memory_reset_peak();
  if (tarn__memory_resident_peak() > BALLAST / 3) skip();

  munmap(load_ballast(), BALLAST);
  assert_int_equal(tiny_train("tiny.yaml", "small", NULL, 0, NULL, NULL, NULL), TARN_STATUS_OK);
  assert_in_range(peak_of("small/result.json"), 1, BALLAST);

  burst b = {0};
  assert_int_equal(tiny_train("tiny.yaml", "large", NULL, 0, on_burst, &b, &b.stop), TARN_STATUS_INTERRUPTED);
  assert_int_equal(tiny_train(NULL, "large", NULL, 0, NULL, NULL, NULL), TARN_STATUS_OK);
  assert_true(peak_of("large/result.json") > BALLAST);
  assert_same_log("small/log.jsonl", "large/log.jsonl");

  // What came after the last checkpoint is in result.json alone.
  json_t *result = read_result("small/result.json");
  json_object_set_new(result, "peak_bytes", json_integer(1LL << 40));
  assert_int_equal(json_dump_file(result, "small/result.json", 0), 0);
  json_decref(result);
  const char *const longer[] = {"train.max_updates=14"};
  assert_int_equal(tiny_train(NULL, "small", longer, 1, NULL, NULL, NULL), TARN_STATUS_OK);
  assert_true(peak_of("small/result.json") == 1LL << 40);
}

// Stops a training after its fifth update.
static void on_fifth(void *user, const tarn_train_event *event) {
  if (event->kind == TARN_TRAIN_EVENT_UPDATE && event->update == 5) *(volatile sig_atomic_t *)user = 1;
}

static double number_of(const json_t *result, const char *object, const char *key) {
  const json_t *value = json_object_get(json_object_get(result, object), key);
  return json_is_number(value) ? json_number_value(value) : NAN;
}

static void assert_near(double value, double expected) { assert_true(fabs(value - expected) <= 1e-9 * expected); }

static void counts_energy_and_operations(void **state) {
  (void)state;
  const char *const overrides[] = {"train.core_watts=10", "train.co2_per_kwh=400", "train.max_updates=12"};
  tarn_train_options options;
  tarn_train_result r;
  tarn_train *train;
  tarn_train_default(&options);
  options.config = "tiny.yaml";
  options.run = "costs";
  options.overrides = overrides;
  options.override_count = 3;
  assert_int_equal(tarn_train_open(&train, &options), TARN_STATUS_OK);
  assert_int_equal(tarn_train_run(train, &r), TARN_STATUS_OK);
  assert_string_equal(r.cost.source, "estimate");
  assert_true(r.cost.joules > 0 && r.cost.best_joules > 0 && r.cost.best_joules <= r.cost.joules);
  assert_near(r.cost.epoch_joules, r.cost.joules / r.epoch);
  assert_near(r.cost.co2_grams, r.cost.joules / 3.6e6 * 400);
  // The plan counts the same for its largest batch.
  const tarn_plan *plan = tarn_train_plan(train);
  const double planned = plan->forward_flops + plan->backward_flops + plan->recompute_flops;
  assert_true(r.cost.token_operations > 0.5 * planned && r.cost.token_operations < 2 * planned);
  assert_true(r.cost.best_operations > 0 && r.cost.best_operations <= r.cost.operations);
  assert_true(r.cost.moved_bytes > 1e3 * (double)r.update);
  json_t *result = read_result("costs/result.json");
  assert_string_equal(text_of(json_object_get(result, "energy"), "source"), "estimate");
  assert_near(number_of(result, "energy", "joules"), r.cost.joules);
  assert_near(number_of(result, "energy", "core_watts"), 10);
  assert_near(number_of(result, "operations", "best"), r.cost.best_operations);
  json_decref(result);
  tarn_train_close(&train);
}

// Operations are counted, so those of a run that was stopped are those of one that was not; energy goes on from what
// the last checkpoint says.
static void costs_survive_resuming(void **state) {
  (void)state;
  const char *const watts[] = {"train.core_watts=10"};
  volatile sig_atomic_t stop = 0;
  tarn__checkpoint_file file;
  assert_int_equal(tiny_train("tiny.yaml", "through", watts, 1, NULL, NULL, NULL), TARN_STATUS_OK);
  assert_int_equal(tiny_train("tiny.yaml", "parts", watts, 1, on_fifth, (void *)(uintptr_t)&stop, &stop),
                   TARN_STATUS_INTERRUPTED);
  assert_int_equal(tarn__checkpoint_file_open(&file, "parts/" TARN__CHECKPOINT_LAST), TARN_STATUS_OK);
  const double before = file.progress.joules;
  tarn__checkpoint_file_close(&file);
  assert_true(before > 0);
  assert_int_equal(tiny_train(NULL, "parts", NULL, 0, NULL, NULL, NULL), TARN_STATUS_OK);
  json_t *through = read_result("through/result.json");
  json_t *parts = read_result("parts/result.json");
  static const char *const counted[] = {"total", "token", "best", "moved_bytes"};
  for (size_t i = 0; i < sizeof counted / sizeof *counted; i++) {
    assert_true(number_of(through, "operations", counted[i]) > 0);
    assert_true(number_of(through, "operations", counted[i]) == number_of(parts, "operations", counted[i]));
  }
  assert_true(number_of(parts, "energy", "joules") > before);
  json_decref(through);
  json_decref(parts);
}

// A part of which nothing is known leaves nothing known of the whole.
static void unknown_energy_is_null(void **state) {
  (void)state;
  const char *const watts[] = {"train.core_watts=10"};
  volatile sig_atomic_t stop = 0;
  assert_int_equal(tiny_train("tiny.yaml", "unknown", NULL, 0, on_fifth, (void *)(uintptr_t)&stop, &stop),
                   TARN_STATUS_INTERRUPTED);
  assert_int_equal(tiny_train(NULL, "unknown", watts, 1, NULL, NULL, NULL), TARN_STATUS_OK);
  json_t *result = read_result("unknown/result.json");
  const json_t *energy = json_object_get(result, "energy");
  assert_true(json_is_null(json_object_get(energy, "source")) && json_is_null(json_object_get(energy, "joules")));
  assert_true(json_is_null(json_object_get(energy, "best_joules")));
  assert_true(number_of(result, "operations", "total") > 0);
  json_decref(result);

  // As a checkpoint of a version that counted nothing.
  const char *const longer[] = {"train.max_updates=14"};
  tarn_train_options options;
  tarn_train_result r;
  tarn_train *train;
  tarn_train_default(&options);
  options.run = "unknown";
  options.resume = true;
  options.overrides = longer;
  options.override_count = 1;
  assert_int_equal(tarn_train_open(&train, &options), TARN_STATUS_OK);
  train->progress.cost_sources = 0;
  assert_int_equal(tarn_train_run(train, &r), TARN_STATUS_OK);
  assert_true(!r.cost.source && isnan(r.cost.joules) && isnan(r.cost.operations) && isnan(r.cost.moved_bytes));
  tarn_train_close(&train);
}

static volatile sig_atomic_t removal_stops;

static void on_removal(void *user, const tarn_train_event *event) {
  (void)user;
  if (event->kind != TARN_TRAIN_EVENT_UPDATE || (event->update != 3 && event->update != 7)) return;
  // Removed, and then replaced.
  assert_int_equal(remove("removed/log.jsonl"), 0);
  if (event->update == 3) return;
  sandbox_write("removed/log.jsonl", "other\n", 6);
  removal_stops = 1;
}

static void puts_a_removed_log_back(void **state) {
  (void)state;
  assert_int_equal(tiny_train("tiny.yaml", "kept", NULL, 0, NULL, NULL, NULL), TARN_STATUS_OK);
  assert_int_equal(tiny_train("tiny.yaml", "removed", NULL, 0, on_removal, NULL, &removal_stops),
                   TARN_STATUS_INTERRUPTED);
  assert_int_equal(tiny_train(NULL, "removed", NULL, 0, NULL, NULL, NULL), TARN_STATUS_OK);
  assert_same_log("kept/log.jsonl", "removed/log.jsonl");
}

// Whether its description is said to be another one.
static bool read_changed(const char *path) {
  tarn_results_run run;
  tarn_config *config;
  tarn__arena arena = {0};
  tarn__run_blank(&run, path);
  assert_int_equal(tarn__run_read(&run, &config, &arena), TARN_STATUS_OK);
  const bool changed = run.config_changed != NULL;
  tarn_config_close(&config);
  tarn__arena_close(&arena);
  return changed;
}

static void tells_of_a_changed_description(void **state) {
  (void)state;
  assert_int_equal(tiny_train("tiny.yaml", "changed_config", NULL, 0, NULL, NULL, NULL), TARN_STATUS_OK);
  assert_false(read_changed("changed_config"));
  FILE *file = fopen("changed_config/config.yaml", "a");
  assert_non_null(file);
  assert_true(fputs("# later\n", file) >= 0);
  assert_int_equal(fclose(file), 0);
  assert_true(read_changed("changed_config"));
}

// A regression whose answers are no numbers has no ranks to compare.
static void a_loss_that_is_no_number_ends_it(void **state) {
  (void)state;
  static const char description[] =
      "model: { task: regression, d_model: 16, dropout: 0 }\n"
      "encoder: { layers: L }\n"
      "kinds: { L: { mixer: attention, heads: 2, ffn: 32 } }\n"
      "head: { pool: mean }\n"
      "data: { vocab: vocab, train: numbers, valid: numbers }\n"
      "train: { max_updates: 2, label_smoothing: 0, precision: fp32 }\n"
      "valid: { at_start: yes }\n";
  static const float numbers[] = {1, 2, 3};
  static const int32_t ids[] = {4, 5, 6, 7};
  tarn_vocab *vocab = make_vocab(TINY_VOCAB);
  tarn__shard_writer *writer;
  assert_int_equal(tarn__shard_writer_open(&writer, "numbers", NULL, vocab), TARN_STATUS_OK);
  for (int i = 0; i < 3; i++) assert_int_equal(tarn__shard_writer_put(writer, NULL, 0, ids + i, 2), TARN_STATUS_OK);
  tarn__shard_writer_label(writer, &(tarn__shard_labels){.numbers = numbers});
  assert_int_equal(tarn__shard_writer_commit(&writer), TARN_STATUS_OK);
  tarn_vocab_close(&vocab);
  sandbox_write("numbers.yaml", description, strlen(description));
  tarn_train_options options;
  tarn_train_result result;
  tarn_train *train;
  tarn_train_default(&options);
  options.config = "numbers.yaml";
  options.run = "no_numbers";
  if (tarn_train_open(&train, &options) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  *(float *)train->model->weights.output_bias->value = NAN;
  assert_int_equal(tarn_train_run(train, &result), TARN_STATUS_NUMERIC);
  assert_non_null(strstr(tarn_error_message(), "the validation loss is not a finite number at update 0"));
  tarn_train_close(&train);
}

int main(void) {
  setenv("TARN_SYSFS", "/nonexistent", 1);  // whatever this machine counts
  const struct CMUnitTest tests[] = {cmocka_unit_test(clocks_differ),
                                     cmocka_unit_test(validates_the_untrained_model_once),
                                     cmocka_unit_test(writes_how_it_ended),
                                     cmocka_unit_test(writes_that_it_failed),
                                     cmocka_unit_test(peak_is_of_all_sessions),
                                     cmocka_unit_test(counts_energy_and_operations),
                                     cmocka_unit_test(costs_survive_resuming),
                                     cmocka_unit_test(unknown_energy_is_null),
                                     cmocka_unit_test(puts_a_removed_log_back),
                                     cmocka_unit_test(a_loss_that_is_no_number_ends_it),
                                     cmocka_unit_test(tells_of_a_changed_description)};
  return cmocka_run_group_tests(tests, tiny_open, sandbox_close);
}
