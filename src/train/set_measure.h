// Measures of a set that are computed by running the model, such as translating its sentences, and not from sums over
// the losses of its batches (tarn__task.scores). Each has a file of its own and a line in the table of set_measures.c.
#ifndef TARN_TRAIN_SET_MEASURE_H
#define TARN_TRAIN_SET_MEASURE_H

#include "train/validator.h"

// The arguments of a measurement. They must outlive it.
typedef struct tarn__set_site {
  const tarn__validator_data *what;
  const tarn__model *model;
  const tarn__shard *shard;
  const tarn_vocab *target;
  tarn__comm *comm;
} tarn__set_site;

typedef struct tarn__set_measure {
  int metric;
  bool (*wanted)(const tarn__validator_data *what);
  // Allocates what the measurement of a set needs; after a failure there is nothing to close.
  tarn_status (*open)(void **own, const tarn__set_site *site, int threads) TARN_CHECKED;
  void (*close)(void *own);
  // A hash that two measurements must share for their values to be comparable; valid until close.
  const char *(*hash)(const void *own);
  // Computes the measure of the current model in the workspace of the stepper, on rank 0; all ranks take part. Fails
  // with INTERRUPTED soon after *stop becomes nonzero (NULL: never), by tarn__validator_check_stop().
  tarn_status (*run)(void *own, tarn__validation *result, const tarn__stepper *stepper,
                     const volatile sig_atomic_t *stop) TARN_CHECKED;
} tarn__set_measure;

extern const tarn__set_measure tarn__set_bleu;

// Entry number `index`; NULL after the last one.
const tarn__set_measure *tarn__set_measure_at(int index);
enum { TARN__SET_MEASURES = 1 };

#endif
