// Measures of a set that come from the use of a model, such as the translation of its sentences, and not from sums over
// the losses of its batches (tarn__task.scores): an entry a measure, in a file of its own, and its line in the table of
// set_measures.c.
#ifndef TARN_TRAIN_SET_MEASURE_H
#define TARN_TRAIN_SET_MEASURE_H

#include "train/validator.h"

// What is measured on what. It outlives the measurement.
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
  // Takes what the measurement of a set needs; on failure there is nothing to close.
  tarn_status (*open)(void **own, const tarn__set_site *site, int threads) TARN_CHECKED;
  void (*close)(void *own);
  // What two measurements must have in common for their values to be compared: a hash, valid until it is closed.
  const char *(*hash)(const void *own);
  // Sets the measure of the model as it is, in the workspace of the stepper, on rank 0; all ranks take part. Fails with
  // INTERRUPTED soon after *stop becomes other than 0 (NULL: never), by tarn__validator_check_stop().
  tarn_status (*run)(void *own, tarn__validation *result, const tarn__stepper *stepper,
                     const volatile sig_atomic_t *stop) TARN_CHECKED;
} tarn__set_measure;

extern const tarn__set_measure tarn__set_bleu;

// Entry number `index`; NULL behind the last one.
const tarn__set_measure *tarn__set_measure_at(int index);
enum { TARN__SET_MEASURES = 1 };

#endif
