// Forecasts the duration of a training: from its log, a probe, or its operations.
#include "run/names.h"
#include "tarn/lab/forecast.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json_io.h"
#include "base/memory.h"
#include "base/threads.h"
#include "device/devices.h"
#include "forecast/product_speed.h"
#include "task/images.h"
#include "text/lines.h"
#include "train/plan_config.h"
#include "train/trainer.h"

// Minimum seconds and updates of a probe, the first of which is not counted (pages, clock frequencies).
static const double PROBE_SECONDS = 2.0;
enum { LEAST_UPDATES = 4, MOST_UPDATES = 100000 };
// Measured errors of forecasts beyond the spread of the samples (docs/training.md).
static const double RUN_LOW = 0.9, RUN_HIGH = 1.15, PROBE_LOW = 0.7, PROBE_HIGH = 1.4, COUNT_LOW = 0.5, COUNT_HIGH = 5;

const char *tarn_duration_source_name(tarn_duration_source source) {
  static const char *const names[] = {"run", "probe", "operations"};
  return (unsigned)source < sizeof names / sizeof *names ? names[source] : NULL;
}

// The pace of a training from samples.
typedef struct pace {
  double update, low, high;   // seconds of one update: mean, and bounds for the mean of many
  double tokens;              // of an update, both sides
  double epoch_updates;       // 0: unknown
  double validation;          // seconds
  double dynamics;            // seconds of a computation of exponents; 0: unknown
  double done, done_seconds;  // for a run: updates and seconds on the training's clock so far
} pace;

static double least_known(double a, double b) { return a <= 0 || (b > 0 && b < a) ? b : a; }

// Updates until the nearest limit; 0: unknown. *clock: that limit is train.max_minutes.
static double updates_of(bool *clock, const tarn_config_train *limits, const pace *p) {
  double updates = (double)limits->max_updates;
  *clock = false;
  if (limits->max_epochs > 0) updates = least_known(updates, (double)limits->max_epochs * p->epoch_updates);
  if (limits->max_minutes > 0) {
    const double left = fmax(60.0 * limits->max_minutes - p->done_seconds, 0);
    const double within = fmax(p->done + left / p->update, 1);
    *clock = updates <= 0 || within < updates;
    if (*clock) updates = within;
  }
  return updates;
}

// How often something happens every so many updates, or every epoch, and at the end.
static double times_of(int64_t every, double updates, const pace *p) {
  const double apart = every > 0 ? (double)every : p->epoch_updates;
  return apart > 0 ? ceil(updates / apart - 1e-9) : 1;
}

static double validations_of(const tarn_config *config, double updates, const pace *p) {
  if (!config->data.valid) return 0;
  return times_of(config->valid.every, updates, p) + (config->valid.at_start ? 1 : 0);
}

// The first computation is before training.
static double computations_of(const tarn_config *config, double updates, const pace *p) {
  return config->dynamics.input ? times_of(config->dynamics.every, updates, p) + 1 : 0;
}

static void fill(tarn_duration *d, const tarn_config *config, const pace *p, double low, double high) {
  bool clock;
  const double updates = updates_of(&clock, &config->train, p), left = fmax(updates - p->done, 0);
  d->updates = updates;
  d->epochs = p->epoch_updates > 0 ? updates / p->epoch_updates : 0;
  d->tokens_per_second = p->tokens / p->update;
  if (updates <= 0) return;
  d->validation_seconds = validations_of(config, updates, p) * p->validation;
  d->dynamics_seconds = computations_of(config, updates, p) * p->dynamics;
  const double others = d->validation_seconds + d->dynamics_seconds, others_left = left / updates * others;
  d->seconds = p->done_seconds + left * p->update + others;
  d->seconds_left = left * p->update + others_left;
  const double behind = d->seconds - d->seconds_left;
  // A limit of minutes holds at any speed.
  const double least = clock ? 0.98 * left * p->update : low * left * p->low;
  const double most = clock ? 1.1 * left * p->update : high * left * p->high;
  d->low = behind + least + low * others_left;
  d->high = behind + most + high * others_left;
}

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

// --- the log of a run

typedef struct samples {
  double *values;  // seconds per update, for each line of the log
  size_t count, capacity;
  double step, time, epoch, tokens;    // of the last line
  double validations, validation_sum;  // and their seconds
  double computations, dynamics_sum;   // the same of exponents
} samples;

static double number_of(const json_t *object, const char *key) {
  return json_number_value(json_object_get(object, key));
}

static tarn_status take_record(samples *s, const json_t *record) {
  const char *kind = json_string_value(json_object_get(record, "kind"));
  if (!kind) return TARN_STATUS_OK;
  if (strcmp(kind, "valid") == 0 && number_of(record, "seconds") > 0) {
    s->validations++;
    s->validation_sum += number_of(record, "seconds");
  }
  if (strcmp(kind, "dynamics") == 0) {
    s->computations++;
    s->dynamics_sum += number_of(record, "seconds");
  }
  if (strcmp(kind, "train") != 0) return TARN_STATUS_OK;
  const double step = number_of(record, "step"), time = number_of(record, "time");
  if (step <= s->step || time <= s->time) return TARN_STATUS_OK;
  TARN_TRY(tarn__grow(&s->values, &s->capacity, s->count + 1, sizeof *s->values));
  s->values[s->count++] = (time - s->time) / (step - s->step);
  s->step = step;
  s->time = time;
  s->epoch = number_of(record, "epoch");
  s->tokens = number_of(record, "source_tokens") + number_of(record, "target_tokens");
  return TARN_STATUS_OK;
}

// Skips incomplete lines of a killed run.
static tarn_status read_log(samples *s, tarn__lines *lines) {
  for (;;) {
    const char *line;
    size_t length;
    json_error_t error;
    json_t *record;
    TARN_TRY(tarn__lines_next(lines, &line, &length));
    if (!line) return TARN_STATUS_OK;
    TARN_TRY(tarn__json_parse(&record, line, length, 0, &error));
    const tarn_status status = json_is_object(record) ? take_record(s, record) : TARN_STATUS_OK;
    json_decref(record);
    TARN_TRY(status);
  }
}

// Patience has ended the run, and no option changes that.
static tarn_status has_ended(bool *ended, const tarn_train_options *options, const char *run) {
  static const char patience[] = "train.patience=";
  char path[PATH_MAX];
  json_t *result;
  *ended = false;
  for (size_t i = 0; i < options->override_count; i++)
    if (strncmp(options->overrides[i], patience, sizeof patience - 1) == 0) return TARN_STATUS_OK;
  TARN_TRY(tarn__path_join(path, run, TARN__RUN_RESULT));
  if (!tarn__file_exists(path)) return TARN_STATUS_OK;
  TARN_TRY(tarn__json_file(&result, path, 0, NULL));
  const char *end = json_string_value(json_object_get(result, "end"));
  *ended = end && strcmp(end, "patience") == 0;
  json_decref(result);
  return TARN_STATUS_OK;
}

// *found: the log has updates.
static tarn_status from_run(tarn_duration *d, bool *found, const tarn_config *config, const tarn_train_options *options,
                            const char *run) {
  char path[PATH_MAX];
  bool ended;
  samples s = {0};
  tarn__lines lines;
  *found = false;
  TARN_TRY(tarn__path_join(path, run, TARN__RUN_LOG));
  if (!tarn__file_exists(path)) return TARN_STATUS_OK;
  TARN_TRY(has_ended(&ended, options, run));
  TARN_TRY(tarn__lines_open(&lines, path, false));
  const tarn_status status = read_log(&s, &lines);
  tarn__lines_close(&lines);
  *found = status == TARN_STATUS_OK && s.count > 0;
  if (*found) {
    qsort(s.values, s.count, sizeof *s.values, by_value);
    const pace p = {.update = s.time / s.step,
                    .low = fmin(s.values[s.count / 10], s.time / s.step),
                    .high = fmax(s.values[s.count - 1 - s.count / 10], s.time / s.step),
                    .tokens = s.tokens / s.step,
                    .epoch_updates = s.epoch > 0 ? s.step / s.epoch : 0,
                    .validation = s.validations > 0 ? s.validation_sum / s.validations : 0,
                    .dynamics = s.computations > 0 ? s.dynamics_sum / s.computations : 0,
                    .done = s.step,
                    .done_seconds = s.time};
    d->source = TARN_DURATION_RUN;
    fill(d, config, &p, RUN_LOW, RUN_HIGH);
    if (ended) {
      d->updates = s.step;
      d->epochs = s.epoch;
      d->validation_seconds = s.validation_sum;
      d->dynamics_seconds = s.dynamics_sum;
      d->seconds = d->low = d->high = s.time + s.validation_sum + s.dynamics_sum;
      d->seconds_left = 0;
    }
  }
  tarn__free(s.values);
  return status;
}

// --- a probe

// Updates for two seconds. Their lengths and times differ; the interval of the mean narrows with their number.
static tarn_status run_probe(pace *p, tarn_train *t) {
  tarn__train_update_result result;
  double sum = 0, squares = 0;
  int64_t count = -1;
  const double begun = tarn__seconds();
  double first_tokens = 0;
  for (; count < MOST_UPDATES && (tarn__seconds() - begun < PROBE_SECONDS || count < LEAST_UPDATES); count++) {
    const double start = tarn__seconds();
    TARN_TRY(tarn__train_step(t, &result));
    const double seconds = tarn__seconds() - start;
    if (count < 0) {
      first_tokens = (double)(t->progress.source_tokens + t->progress.target_tokens);
      continue;
    }
    sum += seconds;
    squares += seconds * seconds;
  }
  const double n = (double)count, variance = fmax(squares / n - sum / n * (sum / n), 0);
  p->update = sum / n;
  p->low = fmax(p->update - 2 * sqrt(variance / n), 0.1 * p->update);
  p->high = p->update + 2 * sqrt(variance / n);
  p->tokens = ((double)(t->progress.source_tokens + t->progress.target_tokens) - first_tokens) / n;
  p->epoch_updates = ceil((double)t->epoch_batches / (double)t->config->train.accumulate);
  return TARN_STATUS_OK;
}

// A validation computes the loss of each token: the forward pass of an update.
static double validation_seconds(const tarn_plan *plan, const pace *p, const tarn_config *config) {
  tarn__shard shard;
  if (!config->data.valid || tarn__task_shard_open(&shard, config->data.valid, config) != TARN_STATUS_OK) return 0;
  const double tokens = (double)(shard.source_tokens + shard.target_tokens);
  tarn__shard_close(&shard);
  const double all = plan->forward_flops + plan->backward_flops + plan->recompute_flops;
  return p->tokens > 0 && all > 0 ? tokens / p->tokens * p->update * plan->forward_flops / all : 0;
}

static tarn_status from_probe(tarn_duration *d, const tarn_config *config, const tarn_train_options *options,
                              const tarn_plan *plan) {
  tarn_train *t;
  pace p = {0};
  TARN_TRY(tarn__train_open_probe(&t, options));
  const tarn_status status = run_probe(&p, t);
  tarn_train_close(&t);
  TARN_TRY(status);
  p.validation = validation_seconds(plan, &p, config);
  d->source = TARN_DURATION_PROBE;
  fill(d, config, &p, PROBE_LOW, PROBE_HIGH);
  return TARN_STATUS_OK;
}

// --- operations

static tarn_status from_operations(tarn_duration *d, const tarn_config *config, const tarn_plan *plan, int threads) {
  const tarn__dtype dtype = config->train.precision == TARN_PRECISION_BF16 ? TARN__BF16 : TARN__F32;
  double rate;
  TARN_TRY(tarn__product_speed(&rate, config->model.d_model, dtype, tarn__model_products(&config->train), threads,
                               PROBE_SECONDS));
  const double token =
      (plan->forward_flops + plan->backward_flops + plan->recompute_flops) / (TARN__SHARE_OF_PRODUCTS * rate);
  pace p = {.tokens = (double)(plan->source_rows + plan->target_rows) * (double)config->train.accumulate};
  p.update = p.low = p.high = token * p.tokens;
  p.epoch_updates = plan->epoch_tokens / p.tokens;
  p.validation = validation_seconds(plan, &p, config);
  d->source = TARN_DURATION_OPERATIONS;
  fill(d, config, &p, COUNT_LOW, COUNT_HIGH);
  return TARN_STATUS_OK;
}

static bool can_probe(const tarn_config *config, const tarn_plan *plan) {
  const tarn__device *device;
  const tarn__dtype dtype = config->train.precision == TARN_PRECISION_BF16 ? TARN__BF16 : TARN__F32;
  if (tarn__device_default(&device, dtype) != TARN_STATUS_OK) return false;
  const size_t available = tarn__device_available(device);
  return plan->epoch_tokens > 0 && !config->train.cache_frozen && config->train.optimiser != TARN_OPTIMISER_RIDGE &&
         config->train.seed_count == 0 && (available == 0 || plan->total_bytes < available);
}

tarn_status tarn_train_duration(tarn_duration *duration, const tarn_train_options *options, const tarn_plan *plan,
                                const char *run) {
  tarn_config *config;
  bool found = false;
  *duration = (tarn_duration){.seconds = -1, .seconds_left = -1, .low = -1, .high = -1};
  TARN_TRY(tarn__plan_check_threads(options->threads));
  TARN_TRY(tarn_config_read(&config, options->config, options->overrides, options->override_count));
  tarn_status status = run ? from_run(duration, &found, config, options, run) : TARN_STATUS_OK;
  if (status == TARN_STATUS_OK && !found) {
    const int threads = tarn__threads_set(options->threads > 0 ? options->threads : (int)config->train.threads);
    status = can_probe(config, plan) ? from_probe(duration, config, options, plan)
                                     : from_operations(duration, config, plan, threads);
  }
  tarn_config_close(&config);
  return status;
}
