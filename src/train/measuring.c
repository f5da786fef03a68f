// Exponents over the training, which the caller computes (tarn_train_measuring). Not counted as training time.
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "config/config_fail.h"
#include "graph/profile.h"
#include "train/trainer.h"

struct tarn_train_numbers {
  json_t *record;
  tarn_train_number *all;
  size_t count, capacity;
  tarn__arena names;
};

static bool is_name(const char *name) {
  static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_/";
  const size_t length = strlen(name);
  return length >= 1 && length <= 64 && strspn(name, letters) == length && strcmp(name, "seconds") != 0;
}

tarn_status tarn_train_numbers_add(tarn_train_numbers *numbers, const char *name, double value) {
  char *copy;
  TARN_REQUIRE(is_name(name) && !json_object_get(numbers->record, name), USAGE,
               "\"%.64s\" is no name of a number in a line of the log, or is there twice", name);
  if (!isfinite(value)) return TARN_STATUS_OK;
  TARN_TRY(tarn__grow(&numbers->all, &numbers->capacity, numbers->count + 1, sizeof *numbers->all));
  TARN_TRY(tarn__arena_strdup(&numbers->names, &copy, name));
  TARN_REQUIRE(json_object_set_new(numbers->record, name, json_real(value)) == 0, MEMORY,
               "out of memory: a number of the log");
  numbers->all[numbers->count++] = (tarn_train_number){copy, value};
  return TARN_STATUS_OK;
}

tarn_status tarn__train_open_measuring(tarn_train *t, const tarn_train_options *options) {
  if (!t->config->dynamics.input) return TARN_STATUS_OK;
  if (!options->measuring && !options->plan_only)
    return tarn__config_fail(t->config, TARN_STATUS_USAGE, "dynamics.input",
                             "asks for exponents, and the program that trains does not compute any "
                             "(tarn_train_options.measuring)");
  if (!options->measuring || t->comm->rank > 0) return TARN_STATUS_OK;
  const tarn_status status = options->measuring->open(&t->measuring_state, t, t->measured);
  if (status != TARN_STATUS_OK) return tarn__fail_prefix(status, "dynamics: ");
  t->measuring = options->measuring;
  return TARN_STATUS_OK;
}

void tarn__train_close_measuring(tarn_train *t) {
  if (t->measuring) t->measuring->close(t->measuring_state);
  t->measuring = NULL;
}

// Depends on the progress alone, like everything between two steps.
bool tarn__train_measuring_due(const tarn_train *t, bool ends) {
  const tarn__progress *p = &t->progress;
  const int64_t every = t->config->dynamics.every;
  if (!t->config->dynamics.input || p->measured == p->update + 1) return false;
  return ends || p->update == 0 || (every > 0 ? p->update % every == 0 : p->index == 0);
}

static tarn_status log_numbers(tarn_train *t, tarn_train_numbers *numbers, double seconds) {
  const bool whole = json_object_set_new(numbers->record, "seconds", json_real(seconds)) == 0;
  tarn_train_event event = {.kind = TARN_TRAIN_EVENT_DYNAMICS, .numbers = numbers->all, .number_count = numbers->count};
  json_t *record = numbers->record;
  numbers->record = NULL;
  return tarn__train_note(t, record, whole, &event);
}

static tarn_status measure(tarn_train *t, tarn_train_numbers *numbers) {
  const double begin = tarn__profile_clock(t->profile), begun = tarn__seconds();
  TARN_REQUIRE(numbers->record, MEMORY, "out of memory: a line of the log");
  TARN_TRY(t->measuring->measure(t->measuring_state, t, numbers));
  t->session.measuring_seconds = tarn__seconds() - begun;
  t->progress.measured = t->progress.update + 1;
  TARN_TRY(tarn__profile_work(t->profile, "dynamics", begin));
  return log_numbers(t, numbers, t->session.measuring_seconds);
}

tarn_status tarn__train_measure(tarn_train *t) {
  tarn_train_numbers numbers = {.record = json_pack("{s:s, s:I, s:f, s:f}", "kind", "dynamics", "step",
                                                    (json_int_t)t->progress.update, "epoch", tarn__train_epoch(t),
                                                    "time", t->progress.seconds)};
  const tarn_status status = measure(t, &numbers);
  json_decref(numbers.record);
  tarn__free(numbers.all);
  tarn__arena_close(&numbers.names);
  return status;
}
