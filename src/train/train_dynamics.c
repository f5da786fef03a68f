// Exponents over the training, which the caller computes (tarn_train_dynamics). Not counted as training time.
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "config/config_fail.h"
#include "graph/profile.h"
#include "train/trainer.h"

struct tarn_train_values {
  json_t *record;
  tarn_train_value *all;
  size_t count, capacity;
  tarn__arena names;
};

static bool is_name(const char *name) {
  static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_/";
  const size_t length = name ? strlen(name) : 0;
  return length >= 1 && length <= 64 && strspn(name, letters) == length && strcmp(name, "seconds") != 0;
}

tarn_status tarn_train_values_add(tarn_train_values *values, const char *name, double value) {
  char *copy;
  TARN_REQUIRE(is_name(name) && !json_object_get(values->record, name), USAGE,
               "\"%.64s\" cannot name a value: use 1 to 64 letters, digits, \"_\" or \"/\", and each name once",
               name ? name : "");
  if (!isfinite(value)) return TARN_STATUS_OK;
  TARN_TRY(tarn__grow(&values->all, &values->capacity, values->count + 1, sizeof *values->all));
  TARN_TRY(tarn__arena_strdup(&values->names, &copy, name));
  TARN_REQUIRE(json_object_set_new(values->record, name, json_real(value)) == 0, MEMORY,
               "out of memory: a number of the log");
  values->all[values->count++] = (tarn_train_value){copy, value};
  return TARN_STATUS_OK;
}

tarn_status tarn__train_open_dynamics(tarn_train *t, const tarn_train_options *options) {
  if (!t->config->dynamics.input) return TARN_STATUS_OK;
  if (!options->dynamics && !options->plan_only)
    return tarn__config_fail(t->config, TARN_STATUS_USAGE, "dynamics.input",
                             "this program cannot compute exponents; remove dynamics.input");
  if (!options->dynamics || t->comm->rank > 0) return TARN_STATUS_OK;
  const tarn_status status = options->dynamics->open(&t->dynamics_state, t, t->dynamics_of);
  if (status != TARN_STATUS_OK) return tarn__fail_prefix(status, "dynamics: ");
  t->dynamics = options->dynamics;
  return TARN_STATUS_OK;
}

void tarn__train_close_dynamics(tarn_train *t) {
  if (t->dynamics) t->dynamics->close(t->dynamics_state);
  t->dynamics = NULL;
}

// Depends on the progress alone, like everything between two steps.
bool tarn__train_dynamics_due(const tarn_train *t, bool ends) {
  const tarn__progress *p = &t->progress;
  const int64_t every = t->config->dynamics.every;
  if (!t->config->dynamics.input || p->measured == p->update + 1) return false;
  return ends || p->update == 0 || (every > 0 ? p->update % every == 0 : p->index == 0);
}

static tarn_status log_values(tarn_train *t, tarn_train_values *values, double seconds) {
  const bool whole = json_object_set_new(values->record, "seconds", json_real(seconds)) == 0;
  tarn_train_event event = {.kind = TARN_TRAIN_EVENT_DYNAMICS, .values = values->all, .value_count = values->count};
  json_t *record = values->record;
  values->record = NULL;
  return tarn__train_note(t, record, whole, &event);
}

static tarn_status compute(tarn_train *t, tarn_train_values *values) {
  const double begin = tarn__profile_clock(t->profile), begun = tarn__seconds();
  TARN_REQUIRE(values->record, MEMORY, "out of memory: a line of the log");
  TARN_TRY(t->dynamics->compute(t->dynamics_state, t, values));
  t->session.dynamics_seconds = tarn__seconds() - begun;
  t->progress.measured = t->progress.update + 1;
  TARN_TRY(tarn__profile_work(t->profile, "dynamics", begin));
  return log_values(t, values, t->session.dynamics_seconds);
}

tarn_status tarn__train_compute_dynamics(tarn_train *t) {
  tarn_train_values values = {.record = json_pack("{s:s, s:I, s:f, s:f}", "kind", "dynamics", "step",
                                                  (json_int_t)t->progress.update, "epoch", tarn__train_epoch(t), "time",
                                                  t->progress.seconds)};
  const tarn_status status = compute(t, &values);
  json_decref(values.record);
  tarn__free(values.all);
  tarn__arena_close(&values.names);
  return status;
}
