// Checkpoints of a training.
#include "base/clock.h"
#include "base/lock.h"
#include "base/memory.h"
#include "graph/profile.h"
#include "train/trainer.h"

static tarn_status write_file(tarn_train *t, const char *path, bool with_state) {
  char sets[TARN__SET_HASHES];
  tarn__train_set_hashes(t, sets);
  tarn__checkpoint_extra extra = {.source = t->source,
                                  .target = t->target,
                                  .update = t->progress.update,
                                  .data_hash = tarn__batcher_hash(t->batcher),
                                  .valid_hash = t->validator ? tarn__validator_hash(t->validator) : NULL,
                                  .set_hashes = *sets ? sets : NULL,
                                  .dynamics = *t->dynamics_of ? t->dynamics_of : NULL,
                                  .progress = with_state ? &t->progress : NULL,
                                  .parts = {.read = tarn__train_read_part, .user = t}};
  if (with_state) tarn__features_save(&t->features, &extra);
  TARN_TRY(tarn__lock_check(t->dir.lock));
  double begin = tarn__profile_clock(t->profile);
  TARN_TRY(tarn__checkpoint_save(path, t->model, &extra));
  TARN_TRY(tarn__profile_work(t->profile, "checkpoints", begin));
  tarn_train_event event = {.kind = TARN_TRAIN_EVENT_SAVED, .path = path};
  tarn__train_tell(t, &event);
  return TARN_STATUS_OK;
}

tarn_status tarn__train_save(tarn_train *t, bool numbered) {
  TARN_TRY(tarn__lock_check(t->dir.lock));
  TARN_TRY(tarn__numbers_read(t));
  int64_t saved = t->progress.saved;
  int64_t keep = t->config->train.keep_last;
  if (numbered) {
    t->progress.saved = t->progress.update;
    char *path = NULL;
    tarn_status status = keep > 0 ? tarn__run_dir_number(&t->dir, &path, t->progress.update) : TARN_STATUS_OK;
    if (status == TARN_STATUS_OK && path) status = write_file(t, path, false);
    tarn__free(path);
    if (status != TARN_STATUS_OK) {
      t->progress.saved = saved;
      return status;
    }
  }
  TARN_TRY(tarn__run_log_sync(&t->session.log));
  t->progress.log = t->session.log.sum;
  t->progress.peak_bytes = tarn__train_peak(t);
  TARN_TRY(write_file(t, t->dir.last, true));
  t->session.saved_at = tarn__seconds();
  return tarn__run_dir_prune(&t->dir, keep);
}

tarn_status tarn__train_save_best(tarn_train *t) { return write_file(t, t->dir.best, false); }

tarn_status tarn__train_average(tarn_train *t) {
  tarn__run_dir_list list;
  double begin = tarn__profile_clock(t->profile);
  TARN_TRY(tarn__run_dir_numbered(&t->dir, &list));
  size_t count = (size_t)t->config->train.average;
  if (count > list.count) count = list.count;
  // Training is over, so the memory of the gradients, or the workspace that contains them, is reused for the sums.
  const bool at_once = t->model->updates_at_once;
  tarn__model_size size;
  tarn__model_measure(t->model, &size);
  tarn_status status = tarn__checkpoint_average(
      t->dir.average, (const char *const *)list.paths + (list.count - count), count, t->model->device,
      at_once ? t->stepper.workspace : t->model->storage[TARN__MEMORY_GRADIENT],
      at_once ? t->stepper.workspace_bytes : size.gradient_bytes);
  tarn__run_dir_list_close(&list);
  TARN_TRY(status);
  tarn__checkpoint_file file;
  TARN_TRY(tarn__checkpoint_file_open(&file, t->dir.average));
  t->end.averaged = true;
  status = tarn__checkpoint_file_load(&file, t->model, false);
  tarn__checkpoint_file_close(&file);
  TARN_TRY(status);
  TARN_TRY(tarn__profile_work(t->profile, "averaging", begin));
  tarn_train_event event = {.kind = TARN_TRAIN_EVENT_SAVED, .path = t->dir.average};
  tarn__train_tell(t, &event);
  return TARN_STATUS_OK;
}
