// The outcome of training: RUN/result.json, for comparing runs.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json_io.h"
#include "base/lock.h"
#include "base/machine.h"
#include "base/memory.h"
#include "config/config_part.h"
#include "config/config_word.h"
#include "run/names.h"
#include "tarn/status.h"
#include "text/json_text.h"
#include "train/trainer.h"

int64_t tarn__train_peak(const tarn_train *t) {
  const int64_t now = (int64_t)tarn__memory_resident_peak();
  return now > t->progress.peak_bytes ? now : t->progress.peak_bytes;
}

// The average is validated after the last checkpoint, whose peak excludes the memory for that.
static tarn_status take_peak(tarn_train *t) {
  json_t *result;
  if (!tarn__file_exists(t->dir.result)) return TARN_STATUS_OK;
  TARN_TRY(tarn__json_file(&result, t->dir.result, 0, NULL));
  const json_int_t peak = json_integer_value(json_object_get(result, "peak_bytes"));
  if (peak > t->progress.peak_bytes && peak <= (json_int_t)1 << 53) t->progress.peak_bytes = peak;
  json_decref(result);
  return TARN_STATUS_OK;
}

void tarn__train_result_fill(tarn_train *t, tarn_train_result *result) {
  const tarn__progress *p = &t->progress;
  result->update = p->update;
  result->epoch = tarn__train_epoch(t);
  result->seconds = p->seconds;
  result->tokens_per_second = p->seconds > 0 ? (double)(p->source_tokens + p->target_tokens) / p->seconds : 0.0;
  for (int m = 0; m < TARN_MEASURES; m++)
    result->scores[m] = t->session.validated ? t->session.validation.scores[m] : NAN;
  result->best_update = p->best_update;
  result->best = p->best;
  result->peak_bytes = (size_t)tarn__train_peak(t);
  tarn__cost_fill(t, &result->cost, t->end.cost_source);
  result->checkpoint = p->best_update > 0 ? t->dir.best : t->dir.last;
  result->checkpoint_reason = "";
}

static const char *end_word(tarn_train_end end) {
  switch (end) {
    case TARN_TRAIN_END_UPDATES:
      return "updates";
    case TARN_TRAIN_END_EPOCHS:
      return "epochs";
    case TARN_TRAIN_END_MINUTES:
      return "minutes";
    case TARN_TRAIN_END_PATIENCE:
      return "patience";
    case TARN_TRAIN_END_PASS:
      return "pass";
  }
  return "";
}

static json_t *stack_of(const tarn_config *config, const tarn_stack *stack) {
  json_t *layers = json_array();
  for (int32_t i = 0; layers && i < stack->count; i++) {
    const tarn_layer *layer = &stack->layers[i];
    const tarn_kind *kind = &config->kinds[layer->kind];
    json_t *entry = json_pack("{s:s, s:s, s:b, s:s, s:i}", "kind", kind->name, "set", layer->set, "frozen",
                              (int)kind->frozen, "mixer", tarn__part_word(&kind->mixer), "first", (int)layer->first);
    if (json_array_append_new(layers, entry) != 0) {
      json_decref(layers);
      return NULL;
    }
  }
  return layers;
}

static json_t *parameters_of(const tarn_plan *p) {
  return json_pack("{s:I, s:I, s:I, s:I}", "total", (json_int_t)(p->trained_parameters + p->frozen_parameters),
                   "trained", (json_int_t)p->trained_parameters, "frozen", (json_int_t)p->frozen_parameters,
                   "shared_saved", (json_int_t)p->shared_uses);
}

static json_t *number_or_null(double value) { return isnan(value) ? json_null() : json_real(value); }

// Energy by source, and the basis of the figures other than joules.
static json_t *energy_of(const tarn_config_train *config, const tarn_cost *cost) {
  return json_pack("{s:s?, s:o, s:o, s:o, s:o, s:o, s:o}", "source", cost->source, "joules",
                   number_or_null(cost->joules), "epoch_joules", number_or_null(cost->epoch_joules), "best_joules",
                   number_or_null(cost->best_joules), "co2_grams", number_or_null(cost->co2_grams), "core_watts",
                   number_or_null(config->core_watts > 0 ? config->core_watts : NAN), "co2_per_kwh",
                   number_or_null(config->co2_per_kwh > 0 ? config->co2_per_kwh : NAN));
}

static json_t *work_of(const tarn_cost *cost) {
  return json_pack("{s:o, s:o, s:o, s:o}", "total", number_or_null(cost->operations), "token",
                   number_or_null(cost->token_operations), "best", number_or_null(cost->best_operations), "moved_bytes",
                   number_or_null(cost->moved_bytes));
}

static tarn_status config_hash(const tarn_config *config, char hash[TARN__HASH_TEXT]) {
  char *text;
  TARN_TRY(tarn_config_write(config, &text));
  tarn__hash(hash, text, strlen(text));
  tarn_config_text_close(&text);
  return TARN_STATUS_OK;
}

static const char *file_of(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

// Fields that a failed run also has; `failed` counts those that could not be allocated.
static json_t *describe(const tarn_train *t, const tarn_train_result *r, const char *config_text) {
  const tarn_config *config = t->config;
  json_t *object = json_pack("{s:s, s:I, s:f, s:f, s:s, s:i, s:o, s:I, s:I}", "version", tarn_version(), "update",
                             (json_int_t)r->update, "epoch", r->epoch, "seconds", r->seconds, "clock",
                             tarn__config_word("train.clock", (int)config->train.clock), "threads", t->threads,
                             "parameters", parameters_of(&t->plan), "planned_bytes", (json_int_t)t->plan.total_bytes,
                             "peak_bytes", (json_int_t)r->peak_bytes);
  char date[TARN__DATE_TEXT], processor[TARN__PROCESSOR_TEXT];
  tarn__date(date);
  tarn__processor(processor);
  int failed = !object;
  failed |= json_object_set_new(object, "date", json_string(date)) != 0;
  failed |= json_object_set_new(object, "processor", tarn__json_text(processor)) != 0;
  failed |= json_object_set_new(object, "kernels", json_string(tarn__device_variant(t->model->device))) != 0;
  failed |= json_object_set_new(object, "metric",
                                json_string(tarn__config_word("valid.metric", (int)config->valid.metric))) != 0;
  if (r->best_update > 0) {
    failed |= json_object_set_new(object, "best_update", json_integer(r->best_update)) != 0;
    failed |= json_object_set_new(object, "best", json_real(r->best)) != 0;
  }
  failed |= json_object_set_new(object, "checkpoint", json_string(file_of(r->checkpoint))) != 0;
  failed |= json_object_set_new(object, "energy", energy_of(&config->train, &r->cost)) != 0;
  failed |= json_object_set_new(object, "operations", work_of(&r->cost)) != 0;
  failed |= json_object_set_new(object, "log", tarn__log_sum_write(&t->session.log.sum)) != 0;
  failed |= json_object_set_new(object, "encoder", stack_of(config, &config->encoder)) != 0;
  failed |= json_object_set_new(object, "decoder", stack_of(config, &config->decoder)) != 0;
  failed |= json_object_set_new(object, "config_hash", json_string(config_text)) != 0;
  failed |= json_object_set_new(object, "data_hash", json_string(tarn__batcher_hash(t->batcher))) != 0;
  if (t->validator)
    failed |= json_object_set_new(object, "valid_hash", json_string(tarn__validator_loss_hash(t->validator))) != 0;
  if (t->validator && *tarn__validator_bleu_hash(t->validator))
    failed |= json_object_set_new(object, "valid_bleu_hash", json_string(tarn__validator_bleu_hash(t->validator))) != 0;
  failed |= !tarn__train_describe_sets(t, object);
  failed |= !tarn__rank_use_describe(&t->rank_use, object, true);
  if (!failed) return object;
  json_decref(object);
  return NULL;
}

static tarn_status write_file(tarn_train *t, const tarn_train_result *r, const char *message) {
  TARN_TRY(tarn__lock_check(t->dir.lock));
  char hash[TARN__HASH_TEXT];
  TARN_TRY(tarn__run_log_sync(&t->session.log));
  TARN_TRY(config_hash(t->config, hash));
  json_t *object = describe(t, r, hash);
  int failed = json_object_set_new(object, "status", json_string(message ? "failed" : "finished")) != 0;
  if (message)
    failed |= json_object_set_new(object, "message", tarn__json_text(message)) != 0;
  else
    failed |= json_object_set_new(object, "end", json_string(end_word(r->end))) != 0;
  char *text = failed ? NULL : tarn__json_dump(object, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
  json_decref(object);
  TARN_REQUIRE(text, MEMORY, "out of memory: %s", t->dir.result);
  size_t length = strlen(text);
  text[length] = '\n';  // replaces the zero byte
  tarn_status status = tarn__file_write(t->dir.result, text, length + 1);
  free(text);
  return status;
}

tarn_status tarn__train_result_remove(tarn_train *t) {
  TARN_TRY(take_peak(t));
  unlink(t->dir.result);
  return TARN_STATUS_OK;
}

tarn_status tarn__train_result_write(tarn_train *t, const tarn_train_result *result, tarn_status status) {
  if (status == TARN_STATUS_OK) return write_file(t, result, NULL);
  if (status != TARN_STATUS_NUMERIC) return status;
  char line[1024];
  snprintf(line, sizeof line, "%s", tarn_error_message());
  tarn_train_result reached = {0};
  tarn__train_result_fill(t, &reached);
  // If this fails too, the first failure is reported: without the file the run counts as unfinished.
  tarn_status written = write_file(t, &reached, line);
  return written == TARN_STATUS_OK ? tarn__fail(status, "%s", line)
                                   : tarn__fail(status, "%s (and " TARN__RUN_RESULT " could not be written)", line);
}
