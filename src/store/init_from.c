#include "store/init_from.h"

#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "store/checkpoint.h"
#include "task/bands.h"

static tarn_status check_vocab(const tarn__checkpoint *from, const tarn_vocab *theirs, const tarn_vocab *ours,
                               const char *key) {
  TARN_REQUIRE(strcmp(tarn_vocab_hash(theirs), tarn_vocab_hash(ours)) == 0, DATA,
               "%s was trained with another vocabulary (hash %s) than %s (%s)", from->path, tarn_vocab_hash(theirs),
               key, tarn_vocab_hash(ours));
  return TARN_STATUS_OK;
}

static const tarn__param *find_param(const tarn__model *model, const char *name) {
  for (size_t i = 0; i < model->param_count; i++)
    if (strcmp(model->params[i]->name, name) == 0) return model->params[i];
  return NULL;
}

// The remedy if a frozen parameter has other values than in the file.
static const char *other_remedy(const tarn__param *param) {
  switch (param->init.kind) {
    case TARN__INIT_FEATURES:
      return ", or a redraw above 0, with which it is drawn anew anyway";
    case TARN__INIT_RESERVOIR:
      return "";  // never trained
    default:
      return ", or have it trained here (frozen: no, and no other key that freezes it) and frozen by train.freeze at "
             "update 0";
  }
}

// hash: of their values.
static tarn_status check_frozen(const tarn__param *param, const tarn__param *theirs, const char *hash,
                                const char *path) {
  TARN_REQUIRE(strcmp(hash, param->hash) == 0, DATA,
               "%s has other values of %s, which is frozen here and drawn by train.seed; give its seed%s", path,
               param->name, other_remedy(param));
  // The signs of a Hadamard layer do not depend on the gain, its matrix does.
  TARN_REQUIRE(param->init.kind != TARN__INIT_SIGNS || theirs->init.gain == param->init.gain, DATA,
               "%s has %s, which is frozen here, with an init_gain of %g, and the description asks for %g", path,
               param->name, theirs->init.gain, param->init.gain);
  return TARN_STATUS_OK;
}

// A classifier's body may come from an encoder-only model, a language model, or the encoder of a translation model,
// whose source is its text. Its head is new unless the other model has the same one.
static const tarn__param *find_theirs(const tarn__model *model, const tarn__param *param,
                                      const tarn__checkpoint *from) {
  const tarn__model *other = from->model;
  if (tarn__config_task(model->config)->labelled && tarn__config_task(from->config)->source) {
    if (param == model->weights.target_table) return other->weights.source_table;
    if (param == model->weights.target_projection.weight) return other->weights.source_projection.weight;
    if (param == model->weights.target_projection.bias) return other->weights.source_projection.bias;
    if (param == model->target_positions) return other->source_positions;
    const tarn__norm_weights *norm = &model->embedding_norms[TARN__SIDE_TARGET];
    if (param == norm->gain) return other->embedding_norms[TARN__SIDE_SOURCE].gain;
    if (param == norm->bias) return other->embedding_norms[TARN__SIDE_SOURCE].bias;
    for (int i = 0; i < TARN__BAND_PARAMS; i++)
      if (param == tarn__bands_param(&model->weights.target_bands, i))
        return tarn__bands_param(&other->weights.source_bands, i);
  }
  return find_param(other, param->name);
}

static bool is_new(const tarn__model *model, const tarn__param *param, const tarn__checkpoint *from) {
  const tarn_config *ours = model->config, *theirs = from->config;
  if (!tarn__config_task(ours)->labelled || param->role != TARN__ROLE_OUTPUT) return false;
  const char *labels = ours->head.labels ? ours->head.labels : "";
  return theirs->model.task != ours->model.task || strcmp(theirs->head.labels ? theirs->head.labels : "", labels) != 0;
}

// `values` has space for the largest parameter.
static tarn_status take(tarn__param *param, const tarn__model *model, const tarn__checkpoint *from, float *values) {
  if (is_new(model, param, from)) return TARN_STATUS_OK;
  const tarn__param *theirs = find_theirs(model, param, from);
  TARN_REQUIRE(theirs, DATA, "%s has no %s; tarn inspect shows the layers that it has", from->path, param->name);
  TARN_REQUIRE(theirs->rows == param->rows && theirs->cols == param->cols, DATA,
               "%s: %s is %lld x %lld, and the description asks for %lld x %lld", from->path, param->name,
               (long long)theirs->rows, (long long)theirs->cols, (long long)param->rows, (long long)param->cols);
  // Without the dense matrix: the other one is frozen too, and has a hash.
  if (param->entries > 0 && !theirs->trained) return check_frozen(param, theirs, theirs->hash, from->path);
  TARN_TRY(tarn__param_get(theirs, values));
  if (param->redraw > 0) return TARN_STATUS_OK;  // a function of the seed and the update, independent of the file
  if (!param->trained) {
    char hash[TARN__HASH_TEXT];
    tarn__hash(hash, values, (size_t)(param->rows * param->cols) * sizeof *values);
    return check_frozen(param, theirs, hash, from->path);
  }
  return tarn__param_set(param, values);
}

static tarn_status take_all(tarn__model *model, const tarn__checkpoint *from, const tarn_vocab *source,
                            const tarn_vocab *target) {
  size_t largest = 0;
  void *values;
  const bool text = tarn__config_task(model->config)->labelled;
  TARN_TRY(check_vocab(from, from->source, source, "data.vocab"));
  if (!text) TARN_TRY(check_vocab(from, from->target, target, "data.target_vocab"));
  for (size_t i = 0; i < model->param_count; i++) {
    const tarn__param *param = model->params[i];
    const size_t size = (size_t)(param->rows * param->cols);
    const bool is_seen = param->entries == 0 || !param->reservoir;  // of others only the hash
    if (is_seen && size > largest) largest = size;
  }
  TARN_TRY(tarn__alloc(&values, TARN__MEMORY_OTHER, largest, sizeof(float)));
  tarn_status status = TARN_STATUS_OK;
  for (size_t i = 0; i < model->param_count && status == TARN_STATUS_OK; i++)
    status = take(model->params[i], model, from, values);
  tarn__free(values);
  return status;
}

tarn_status tarn__init_from(tarn__model *model, const char *path, const tarn_vocab *source, const tarn_vocab *target) {
  tarn__checkpoint *from = NULL;
  tarn_checkpoint_found found;
  tarn_status status = tarn_checkpoint_find(&found, path, TARN_CHECKPOINT_CHOICE_AUTO);
  if (status == TARN_STATUS_OK) status = tarn__checkpoint_open(&from, found.path, TARN__F32);
  if (status == TARN_STATUS_OK) status = take_all(model, from, source, target);
  if (status == TARN_STATUS_OK && found.in_run)  // afterwards, so that a failure is one line
    tarn__log(TARN_LOG_INFO, "train.init_from: took %s (%s)", found.path, found.reason);
  tarn_checkpoint_found_close(&found);
  tarn__checkpoint_close(&from);
  return status == TARN_STATUS_OK ? status : tarn__fail_prefix(status, "train.init_from: ");
}
