// Data that change under a training. Its state is that of the last update that was made, which nothing of them has
// touched, so it is saved before the training ends.
#include <stdio.h>

#include "train/trainer.h"

static tarn_status check_data(const tarn_train *t) {
  TARN_TRY(tarn__map_check(&t->shard.map));
  TARN_TRY(tarn__map_check(&t->cache.map));
  return t->validator ? tarn__validator_check(t->validator) : TARN_STATUS_OK;
}

tarn_status tarn__train_check_data(tarn_train *t) {
  tarn_status status = check_data(t);
  t->data_changed = t->data_changed || status != TARN_STATUS_OK;
  return status;
}

tarn_status tarn__train_rescue(tarn_train *t, tarn_status status) {
  char line[1024];
  if (status == TARN_STATUS_OK || !t->data_changed) return status;
  snprintf(line, sizeof line, "%s", tarn_error_message());
  tarn_status saved = t->averaged ? TARN_STATUS_OK : tarn__train_save(t, false);
  if (saved != TARN_STATUS_OK) return tarn__fail_prefix(saved, "%s; and its state could not be saved: ", line);
  return tarn__fail(status,
                    "%s; the training is saved after update %lld: make the file what it was, then tarn train "
                    "--resume %s",
                    line, (long long)t->progress.update, t->go_on);
}
