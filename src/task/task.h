// Tasks: what a model learns. An entry says which sides of the data it has, what its loss is a mean over, by what its
// models are scored, what a description of one must look like, and what its models are used for.
#ifndef TARN_TASK_TASK_H
#define TARN_TASK_TASK_H

#include "base/status.h"
#include "data/batch.h"
#include "tarn/config.h"
#include "tarn/measure.h"

// The keys of a description as an entry's checks see them: the file is the reader's affair.
typedef struct tarn__task_keys {
  const void *root;
  // Fails with the line of the key, or of the nearest map above it where the key has its default.
  tarn_status (*fail)(const void *root, const char *key, const char *text);
  bool (*given)(const void *root, const char *key);
} tarn__task_keys;

// What a model is used for.
typedef enum tarn__use { TARN__USE_TRANSLATE, TARN__USE_SCORE_TEXT, TARN__USE_CONTINUE_TEXT } tarn__use;

typedef struct tarn__task {
  const char *name;    // "translation"
  const char *model;   // "a translation model"
  const char *models;  // "translation models (models with an encoder)"
  tarn_architecture architecture;
  bool source;        // its data are pairs of a source and a target; else they are a text, which is the target
  unsigned uses;      // set of tarn__use (1 << use)
  unsigned measures;  // set of tarn_metric (1 << metric)
  // What the loss is a mean over: predictions in a batch, and in the next `count` batches of a batcher.
  int64_t (*predictions)(const tarn__batch *batch);
  int64_t (*predictions_ahead)(const tarn__batcher *batcher, int64_t count);
  // The nll of a model that knows nothing but the number of words; one with a hundred times that has diverged.
  double (*blind_nll)(int64_t words);
  // Fills in defaults that depend on the task, and checks keys that only some tasks have.
  tarn_status (*resolve)(tarn_config *config, const tarn__task_keys *keys);
} tarn__task;

extern const tarn__task tarn__task_translation, tarn__task_language_model;

// The task of an architecture; NULL: there is none yet.
const tarn__task *tarn__task_of(tarn_architecture architecture);
static inline const tarn__task *tarn__config_task(const tarn_config *config) {
  return tarn__task_of(config->model.architecture);
}

// Fails with USAGE unless models of the description are for that use, in a line that begins with `path` (NULL: none).
tarn_status tarn__task_require(const tarn_config *config, tarn__use use, const char *path) TARN_CHECKED;

// Whether a task has a measure. tarn__task_check_metric() fails where it has not, and names those that it has.
bool tarn__task_has(const tarn__task *task, tarn_metric metric);
tarn_status tarn__task_check_metric(const tarn__task *task, tarn_metric metric,
                                    const tarn__task_keys *keys) TARN_CHECKED;

// Whether a value of a measure is better than another.
bool tarn__metric_better(double value, double than, tarn_metric metric);

#endif
