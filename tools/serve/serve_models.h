// The model of a server: opened for all that it can be used for, and batches of requests computed by it.
#ifndef TARN_TOOLS_SERVE_MODELS_H
#define TARN_TOOLS_SERVE_MODELS_H

#include "serve/serve_metrics.h"
#include "serve/serve_request.h"
#include "tarn/classify.h"
#include "tarn/lab/states.h"
#include "tarn/lm.h"
#include "tarn/translate.h"

enum { SERVE_MODELS_BATCH = 1024 };  // most requests that are computed together

typedef struct serve_models_options {
  const char *path;  // of a checkpoint
  int64_t beam;      // of translation; 0: what the model's description says
  tarn_translate_precision precision;
  tarn_translate_overlong overlong;  // texts of more tokens than the model takes
  int threads;
} serve_models_options;

typedef struct serve_models {
  serve_models_options options;
  serve_metrics *metrics;
  void (*done)(serve_request *request);  // called when a request has its answer, which then is the receiver's
  bool uses[SERVE_USES];                 // what the model is for
  const tarn_verb *verb;                 // of SERVE_LABEL
  tarn_translator *translator;
  tarn_lm *lm;
  tarn_generator *generator;
  tarn_classifier *classifier;
  tarn_states *states;                 // looks into the translator's model; opened when there is use for it
  int64_t beam;                        // of translation: the default of a request, and the most that it may ask for
  double length_penalty;               // of translation: the default of a request
  char name[256];                      // of the model, for people: the last two parts of its path
  tarn_translate_precision precision;  // that it computes in, never AUTO
  // The texts of a batch, and their results.
  const char **texts;
  size_t *lengths, texts_room;
  void *results;
  size_t results_bytes;
} serve_models;

// For the queue's options (tarn/work_queue.h), with the models as `user`: opens them, and computes a batch of
// requests that go together.
tarn_status serve_models_start(void *models);
void serve_models_work(void *models, void *const *requests, size_t count);

void serve_models_close(serve_models *models);

// Seconds of the monotonic clock.
double serve_seconds(void);

#endif
