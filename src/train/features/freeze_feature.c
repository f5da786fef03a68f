// Freezing during training: applied to the parameters, and reported to the log and the receiver of events.
#include <string.h>

#include "base/memory.h"
#include "train/feature.h"
#include "train/features/freeze.h"
#include "train/trainer.h"

static tarn_status log_freeze(tarn_train *t, char *names) {
  tarn_train_event event = {.kind = TARN_TRAIN_EVENT_FREEZE, .layers = names};
  json_t *layers = json_array();
  int failed = !layers;
  for (const char *name = names; *name && !failed;) {
    size_t length = strcspn(name, " ");
    failed |= json_array_append_new(layers, json_stringn(name, length)) != 0;
    name += length + (name[length] == ' ');
  }
  json_t *record = json_pack("{s:s, s:I, s:f, s:o}", "kind", "freeze", "step", (json_int_t)t->progress.update, "time",
                             t->progress.seconds, "layers", layers);
  return tarn__train_note(t, record, !failed, &event);
}

static tarn_status freeze_due(tarn_train *t) {
  char *names;
  const bool logs = t->comm->rank == 0;
  TARN_TRY(tarn__freeze_apply(t->model, t->progress.update, t->progress.frozen_sets, logs ? &names : NULL));
  if (!logs || !names) return TARN_STATUS_OK;
  tarn_status status = log_freeze(t, names);
  tarn__free(names);
  return status;
}

// A checkpoint of this update is written later, so resuming never logs it again.
static tarn_status after_update(tarn_train *t, void *state) {
  (void)state;
  return freeze_due(t);
}

// With checkpoints of older versions it is logged again, and the log drops the first record.
static tarn_status begin(tarn_train *t, void *state, bool logged) {
  (void)state;
  if (t->progress.update > 0) return TARN_STATUS_OK;
  return logged ? tarn__freeze_apply(t->model, 0, t->progress.frozen_sets, NULL) : freeze_due(t);
}

// Parts frozen from the start are logged when training runs.
static tarn_status load(tarn_train *t, void *state, const tarn__checkpoint_file *file) {
  (void)state, (void)file;
  if (t->progress.update == 0) return TARN_STATUS_OK;
  return tarn__freeze_apply(t->model, t->progress.update, t->progress.frozen_sets, NULL);
}

extern const tarn__feature tarn__feature_freeze;
const tarn__feature tarn__feature_freeze = {
    .name = "freeze", .load = load, .begin = begin, .after_update = after_update};
