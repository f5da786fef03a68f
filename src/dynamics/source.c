// The source of a model: a checkpoint, or a description with drawn weights.
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "config/config_fail.h"
#include "config/config_vocabs.h"
#include "dynamics/dynamics.h"
#include "run/run_dir.h"

static bool is_description(const char *path) {
  const char *end = strrchr(path, '.');
  return end && (strcmp(end, ".yaml") == 0 || strcmp(end, ".yml") == 0);
}

// As in a training.
static tarn_status open_vocabs(tarn__checkpoint *c, const char *vocab) {
  const tarn_config_data *data = &c->config->data;
  if (!vocab && !data->vocab)
    return tarn__config_fail(c->config, TARN_STATUS_USAGE, "data.vocab",
                             "is not set, and without a vocabulary texts are not read");
  if (!vocab) return tarn__config_open_vocabs(c->config, &c->source, &c->target);
  TARN_TRY(tarn_vocab_open(&c->source, vocab));
  c->target = c->source;
  return TARN_STATUS_OK;
}

static tarn_status draw_model(tarn__checkpoint *c, const char *path, tarn__dtype dtype,
                              const tarn_dynamics_options *options) {
  TARN_TRY(tarn__strdup(&c->path, path));
  TARN_TRY(tarn_config_read(&c->config, path, NULL, 0));
  TARN_TRY(open_vocabs(c, options->vocab));
  TARN_TRY(
      tarn__model_open(&c->model, c->config, tarn_vocab_size(c->source), tarn_vocab_size(c->target), dtype, false));
  TARN_TRY(tarn__model_allocate(c->model));
  return tarn__model_initialise(c->model, options->seed);
}

tarn_status tarn__dynamics_open_source(tarn__checkpoint **checkpoint, bool *trained, const char *path,
                                       const tarn_dynamics_options *options) {
  const tarn__dtype dtype = options->precision == TARN_DYNAMICS_PRECISION_DOUBLE ? TARN__F64 : TARN__F32;
  void *memory;
  *trained = !is_description(path);
  if (*trained) return tarn__checkpoint_open(checkpoint, path, dtype);
  *checkpoint = NULL;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(tarn__checkpoint)));
  tarn__checkpoint *c = memory;
  const tarn_status status = draw_model(c, path, dtype, options);
  if (status != TARN_STATUS_OK) tarn__checkpoint_close(&c);
  *checkpoint = c;
  return status;
}

static tarn_status take_list(tarn_dynamics_checkpoints *checkpoints, const tarn__run_dir_list *list) {
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, list->count, sizeof(char *)));
  checkpoints->paths = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, list->count, sizeof(int64_t)));
  checkpoints->updates = memory;
  for (size_t i = 0; i < list->count; i++) {
    TARN_TRY(tarn__strdup(&checkpoints->paths[i], list->paths[i]));
    checkpoints->updates[i] = list->updates[i];
    checkpoints->count++;
  }
  return TARN_STATUS_OK;
}

tarn_status tarn_dynamics_checkpoints_find(tarn_dynamics_checkpoints *checkpoints, const char *run) {
  tarn__run_dir dir;
  tarn__run_dir_list list = {0};
  struct stat info;
  *checkpoints = (tarn_dynamics_checkpoints){0};
  TARN_REQUIRE(stat(run, &info) == 0, IO, "%s: cannot read: %s", run, strerror(errno));
  TARN_REQUIRE(S_ISDIR(info.st_mode), USAGE, "%s: no directory, so no run whose checkpoints could be listed", run);
  TARN_TRY(tarn__run_dir_look(&dir, run));
  tarn_status status = tarn__run_dir_numbered(&dir, &list);
  if (status == TARN_STATUS_OK && list.count == 0)
    status = tarn__fail(TARN_STATUS_DATA,
                        "%s: there are no numbered checkpoints, which a training keeps by train.save_every and "
                        "train.keep_last",
                        run);
  if (status == TARN_STATUS_OK) status = take_list(checkpoints, &list);
  tarn__run_dir_list_close(&list);
  tarn__run_dir_close(&dir);
  if (status != TARN_STATUS_OK) tarn_dynamics_checkpoints_close(checkpoints);
  return status;
}

void tarn_dynamics_checkpoints_close(tarn_dynamics_checkpoints *checkpoints) {
  for (int64_t i = 0; i < checkpoints->count; i++) tarn__free(checkpoints->paths[i]);
  tarn__free(checkpoints->paths);
  tarn__free(checkpoints->updates);
  *checkpoints = (tarn_dynamics_checkpoints){0};
}
