// Scores on held-out sentences, of the validation data or a scored set: the loss, measures derived from it, and the
// BLEU of their translations.
//
// All ranks compute: batch k is processed by rank k modulo the number of ranks, and sentences to translate are
// distributed. Rank 0 adds the results in the order of the batches, so scores are bit-identical for any number of
// ranks. If windows of a text continue those before them, the work cannot be divided: rank 0 computes.
#ifndef TARN_TRAIN_VALIDATOR_H
#define TARN_TRAIN_VALIDATOR_H

#include <signal.h>

#include "comm/comm.h"
#include "decode/translate.h"
#include "tarn/measure.h"
#include "tarn/score.h"
#include "tarn/vocab.h"
#include "train/stepper.h"

typedef struct tarn__validation {
  double scores[TARN_MEASURES];         // by measure; NAN: not computed
  char signature[TARN_SIGNATURE_TEXT];  // of the BLEU; "": not computed
  double seconds;
} tarn__validation;

// Options of translation during validation. Its batches are a quarter of the training batches (and no larger than
// translate.max_tokens), so that they fit into the workspace of the training step.
void tarn__validator_translation(tarn__translator_options *options, const tarn_config *config, int threads);

typedef struct tarn__validator tarn__validator;

// The sentences and how to score them. Other settings are those of tarn_config.valid.
typedef struct tarn__validator_data {
  const char *data, *reference;  // as in tarn_config_scored_set
  bool bleu;
  int64_t max_sentences;
  const char *of;  // the loss, in messages: " of the validation loss"
} tarn__validator_data;

// Reads the shard and the references. All arguments must outlive the validator; the model need not be allocated yet.
tarn_status tarn__validator_open(tarn__validator **validator, const tarn__validator_data *what,
                                 const tarn__model *model, const tarn_vocab *source, const tarn_vocab *target,
                                 tarn__comm *comm, int threads) TARN_CHECKED;
void tarn__validator_close(tarn__validator **validator);
// Warns of sentences longer than the model's maximum.
void tarn__validator_warn_left_out(const tarn__validator *validator);
// Hashes that two validations must share for their scores to be comparable. The loss: the validation data, and how many
// of their sentences fit the model. BLEU ("" without it): the data, the number of translated sentences, the length at
// which they are truncated, and the references if they come from a file. The first function covers both: resumption
// requires that they are unchanged.
const char *tarn__validator_hash(const tarn__validator *validator);
const char *tarn__validator_loss_hash(const tarn__validator *validator);
const char *tarn__validator_bleu_hash(const tarn__validator *validator);
// Fails with IO if the validation data were modified or deleted since they were opened (base/map.h).
tarn_status tarn__validator_check(const tarn__validator *validator) TARN_CHECKED;
// Extends the bounds of a stepper's batches (zero: no batches) to include the validator's.
void tarn__validator_bounds(const tarn__validator *validator, tarn__stepper_bounds *bounds);

// If a text is read in tracks (tarn__config_reads_tracks()), windows continue those before them. There are as many
// tracks as in a training batch, but at most one window in TARN__VALIDATOR_WINDOWS may begin without a preceding one.
enum { TARN__VALIDATOR_WINDOWS = 64 };
// The number of tracks; 0 if the text is not read in tracks.
int64_t tarn__validator_tracks(const tarn_config *config, const tarn__shard *shard);

// Validates the current model in the workspace of the stepper; collective, with the result on rank 0. Stops with
// TARN_STATUS_INTERRUPTED soon after *stop becomes nonzero (NULL: never) on any rank.
tarn_status tarn__validator_run(tarn__validator *validator, tarn__validation *result, tarn__stepper *stepper,
                                const volatile sig_atomic_t *stop) TARN_CHECKED;
// Collective: fails with INTERRUPTED if any rank is asked to stop.
tarn_status tarn__validator_check_stop(tarn__comm *comm, const volatile sig_atomic_t *stop) TARN_CHECKED;

#endif
