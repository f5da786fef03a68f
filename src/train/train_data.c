// Data that change during training, and ranks that fail. The state after the last update is unaffected by either, so it
// is saved before training ends.
#include <stdio.h>

#include "train/trainer.h"

static tarn_status check_data(const tarn_train *t) {
  TARN_TRY(tarn__shard_unchanged(&t->shard));
  TARN_TRY(tarn__features_check_files(&t->features));
  for (int32_t i = 0; i < t->config->set_count; i++) TARN_TRY(tarn__validator_check(t->sets[i]));
  return t->validator ? tarn__validator_check(t->validator) : TARN_STATUS_OK;
}

tarn_status tarn__train_check_data(tarn_train *t) {
  tarn_status status = check_data(t);
  t->session.data_changed = t->session.data_changed || status != TARN_STATUS_OK;
  return status;
}

tarn_status tarn__train_rescue(tarn_train *t, tarn_status status) {
  char line[1024];
  // A failure of another rank leaves the state after the last update intact here; NaN or infinity affects all ranks.
  const bool left = t->comm->failed && status != TARN_STATUS_NUMERIC;
  if (status == TARN_STATUS_OK || t->comm->rank > 0 || !(t->session.data_changed || left)) return status;
  snprintf(line, sizeof line, "%s", tarn_error_message());
  // With a sharded optimiser, the other ranks hold parts of the checkpoint, and they no longer respond.
  if (t->optim.shares)
    return tarn__fail(status, "%s; the last checkpoint is %s. Go on from it with: tarn train --resume %s", line,
                      t->dir.last, t->go_on);
  tarn_status saved = t->end.averaged ? TARN_STATUS_OK : tarn__train_save(t, false);
  if (saved != TARN_STATUS_OK) return tarn__fail_prefix(saved, "%s; and its state could not be saved: ", line);
  const bool changed = t->session.data_changed;
  return tarn__fail(status, "%s; the training is saved after update %lld. %s: tarn train --resume %s%s", line,
                    (long long)t->progress.update, changed ? "Restore the file, then run" : "Go on with", t->go_on,
                    changed ? " (if only its time changed, just run that)" : "");
}
