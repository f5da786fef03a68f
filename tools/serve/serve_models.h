// The model of a server: opened for all its uses, and computing batches of requests.
#ifndef TARN_TOOLS_SERVE_MODELS_H
#define TARN_TOOLS_SERVE_MODELS_H

#include "serve/serve_metrics.h"
#include "serve/serve_request.h"
#include "tarn/checkpoint.h"
#include "tarn/classify.h"
#include "tarn/lab/states.h"
#include "tarn/lm.h"
#include "tarn/translate.h"
#include "tarn/work_queue.h"

enum { SERVE_MODELS_BATCH = 1024 };  // maximum requests per batch

typedef struct serve_models_options {
  const char *given;  // a checkpoint or a run directory
  tarn_checkpoint_choice choice;
  int64_t beam;  // of translation; 0: from the model's description
  tarn_translate_precision precision;
  tarn_translate_overlong overlong;  // for texts of more tokens than the model's maximum
  int threads;
} serve_models_options;

// Time in which nothing was computed, because a model was read: requests of before may wait longer.
typedef struct serve_pause {
  double until, seconds;
} serve_pause;

typedef struct serve_models {
  serve_models_options options;
  tarn_work_queue *queue;  // from which requests join a running batch
  serve_metrics *metrics;
  const serve_pause *pause;
  int64_t most_requests, most_bytes;     // of a running batch: no more join it
  void (*done)(serve_request *request);  // called when a request has its answer; the callee owns the request
  serve_offer *offer;                    // what clients know of it
  tarn_checkpoint_found found;
  bool loaded;
  tarn_translator *translator;
  tarn_lm *lm;
  tarn_generator *generator;
  tarn_classifier *classifier;
  tarn_states *states;  // states of the translator's model; opened on first use
  bool refines, edits;  // it translates without a beam; and without a length beam (tarn_config_has_use())
  // The texts of a batch, and their results.
  const char **texts;
  size_t *lengths, texts_room;
  void *results;
  size_t results_bytes;
} serve_models;

// Finds the file, and what it can be used for: into models->offer, where `limits` that do not depend on the model stay.
tarn_status serve_models_look(serve_models *models);
// Reads it for all its uses.
tarn_status serve_models_open(serve_models *models);
// Forgets what was read; it may be opened again.
void serve_models_close(serve_models *models);

// Computes a batch of compatible requests, at most SERVE_MODELS_BATCH.
void serve_models_run(serve_models *models, serve_request *const *requests, size_t count);

// The options of a request for translations, complete.
tarn_translator_options serve_models_translation(const serve_models *models, const serve_request *request);

// Whether a request has waited too long.
bool serve_models_late(const serve_models *models, const serve_request *request, double now);

// Answers a request that could not be computed, for this status and the message of the library.
void serve_models_fail(serve_request *request, tarn_status status);
int serve_models_code(tarn_status status);

// Seconds of the monotonic clock.
double serve_seconds(void);

#endif
