// The files in a run directory other than checkpoints: the description and the log.
#include "base/log.h"
#include "base/memory.h"
#include "store/log_check.h"
#include "train/event_config.h"
#include "train/trainer.h"

tarn_status tarn__train_write_config(const tarn__run_dir *dir, const tarn_config *config) {
  char *text;
  TARN_TRY(tarn_config_write(config, &text));
  tarn_status status = tarn__run_dir_write_config(dir, text);
  tarn_config_text_close(&text);
  return status;
}

// Marks a log that does not match. A checkpoint is written at once with the mark, so that it cannot get lost unnoticed.
static tarn_status mark_log(tarn_train *t) {
  tarn__log(TARN_LOG_WARNING, "%s: %s; the run goes on and is marked", t->dir.log, t->log_why);
  json_t *record = json_pack("{s:s, s:I, s:f, s:s}", "kind", TARN__LOG_ACCEPTED, "step", (json_int_t)t->progress.update,
                             "time", t->progress.seconds, "message", t->log_why);
  TARN_TRY(tarn__train_note(t, record, true, NULL));
  return tarn__train_save(t, false);
}

static tarn_status open_log(tarn_train *t, const tarn__message *config) {
  const tarn__progress *p = &t->progress;
  const char *sets[TARN_CONFIG_SETS];
  for (int32_t i = 0; i < t->config->set_count; i++) sets[i] = t->config->sets[i].name;
  const tarn__run_log_place at = {.update = p->update,
                                  .validated = p->validated,
                                  .at_start = p->at_start != 0,
                                  .sets = sets,
                                  .scored = p->scored,
                                  .set_count = t->config->set_count,
                                  .measured = p->measured,
                                  .log = p->log};
  return tarn__run_log_open(&t->session.log, t->dir.log, &at, config ? t->dir.path : NULL, config);
}

tarn_status tarn__train_open_log(tarn_train *t) {
  TARN_TRY(tarn__train_result_remove(t));
  if (t->log_why[0]) t->progress.log = (tarn__log_sum){0};
  tarn__message config = {0};
  const bool events = t->config->train.tensorboard;
  tarn_status status = events ? tarn__event_config(&config, t->config) : TARN_STATUS_OK;
  if (status == TARN_STATUS_OK) status = open_log(t, events ? &config : NULL);
  tarn__free(config.data);
  TARN_TRY(status);
  t->session.validation_seconds = t->session.log.validation_seconds;
  return t->log_why[0] ? mark_log(t) : TARN_STATUS_OK;
}
