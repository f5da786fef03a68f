// The model of a server: opened for all its uses, and computing batches of requests.
#ifndef TARN_TOOLS_SERVE_MODELS_H
#define TARN_TOOLS_SERVE_MODELS_H

#include "serve/serve_metrics.h"
#include "serve/serve_request.h"
#include "tarn/classify.h"
#include "tarn/lab/states.h"
#include "tarn/lm.h"
#include "tarn/translate.h"
#include "tarn/work_queue.h"

enum { SERVE_MODELS_BATCH = 1024 };  // maximum requests per batch

typedef struct serve_models_options {
  const char *path;  // of a checkpoint
  char id[256];      // name of the model for clients
  int64_t beam;      // of translation; 0: from the model's description
  tarn_translate_precision precision;
  tarn_translate_overlong overlong;  // for texts of more tokens than the model's maximum
  int threads;
} serve_models_options;

typedef struct serve_models {
  serve_models_options options;
  tarn_work_queue *queue;  // from which requests join a running batch
  serve_metrics *metrics;
  void (*done)(serve_request *request);  // called when a request has its answer; the callee owns the request
  bool uses[SERVE_USES];                 // what the model can be used for
  const tarn_verb *verb;                 // of SERVE_LABEL
  tarn_translator *translator;
  tarn_lm *lm;
  tarn_generator *generator;
  tarn_classifier *classifier;
  tarn_states *states;    // states of the translator's model; opened on first use
  bool refines, edits;    // it translates without a beam; and without a length beam (tarn_config_has_use())
  int64_t beam;           // of translation: default and maximum for a request; the length beam if it refines; 1
  int64_t iterations;     // the same, if it refines
  double length_penalty;  // of translation: default for a request
  char name[256];         // display name of the model: the last two components of its path
  tarn_translate_precision precision;  // of the arithmetic, never AUTO
  // The texts of a batch, and their results.
  const char **texts;
  size_t *lengths, texts_room;
  void *results;
  size_t results_bytes;
} serve_models;

// Callbacks of the queue (tarn/work_queue.h), with the models as `user`: open them, and compute a batch of compatible
// requests.
tarn_status serve_models_start(void *models);
void serve_models_work(void *models, void *const *requests, size_t count);

// Answers a request that could not be computed, for this status and the message of the library.
void serve_models_fail(serve_request *request, tarn_status status);
int serve_models_code(tarn_status status);

void serve_models_close(serve_models *models);

// Seconds of the monotonic clock.
double serve_seconds(void);

#endif
