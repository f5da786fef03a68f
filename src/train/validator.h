// Scores of sentences that are not trained on, those of validation or of a scored set: the loss, what follows from it,
// and the BLEU of their translations.
//
// All ranks compute: batch k is rank k modulo the number of ranks', and sentences are dealt out to be translated. What
// comes of it is added up by rank 0 in the order of the batches, so that scores are the same bits for any number of
// ranks. Where windows of a text go on with those before them there is nothing to share: rank 0 computes.
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
  char signature[TARN_SIGNATURE_TEXT];  // of the BLEU; "": it was not computed
  double seconds;
} tarn__validation;

// How validation translates. Its batches are a quarter of the training's (not larger than translate.max_tokens asks
// for), so that they find room in the workspace of the training step.
void tarn__validator_translation(tarn__translator_options *options, const tarn_config *config, int threads);

typedef struct tarn__validator tarn__validator;

// Which sentences, and how. What is not said here is as tarn_config.valid says.
typedef struct tarn__validator_data {
  const char *data, *reference;  // as in tarn_config_scored_set
  bool bleu;
  int64_t max_sentences;
  const char *of;  // the loss, in messages: " of the validation loss"
} tarn__validator_data;

// Reads the shard and the references. Everything that is given must outlive the validator; the model needs no memory
// yet.
tarn_status tarn__validator_open(tarn__validator **validator, const tarn__validator_data *what,
                                 const tarn__model *model, const tarn_vocab *source, const tarn_vocab *target,
                                 tarn__comm *comm, int threads) TARN_CHECKED;
void tarn__validator_close(tarn__validator **validator);
// Warns of sentences that are longer than the model takes.
void tarn__validator_warn_left_out(const tarn__validator *validator);
// What two validations must have in common for their scores to be compared, as hashes. The loss: the validation data,
// and how many sentences of them the model takes. BLEU ("" without it): the data, how many sentences are translated and
// what they are cut to, and the references where they come from a file. The first is of both: a training that goes on
// needs the same.
const char *tarn__validator_hash(const tarn__validator *validator);
const char *tarn__validator_loss_hash(const tarn__validator *validator);
const char *tarn__validator_bleu_hash(const tarn__validator *validator);
// Fails with IO if the validation data were changed or lost since they were opened (base/map.h).
tarn_status tarn__validator_check(const tarn__validator *validator) TARN_CHECKED;
// Makes the bounds of a stepper's batches (zero: of none) wide enough for its own.
void tarn__validator_bounds(const tarn__validator *validator, tarn__stepper_bounds *bounds);

// Where a text is read in tracks (tarn__config_reads_tracks()) windows go on with those before them, in as many tracks
// as a batch of the training takes, but so few that at most one window in TARN__VALIDATOR_WINDOWS begins without one
// before it.
enum { TARN__VALIDATOR_WINDOWS = 64 };
// How many tracks; 0 where it is not.
int64_t tarn__validator_tracks(const tarn_config *config, const tarn__shard *shard);

// Validates the model as it is, in the workspace of the stepper; a call of all ranks, of which rank 0 has the result.
// Stops with TARN_STATUS_INTERRUPTED soon after *stop becomes other than 0 (NULL: never) on any of them.
tarn_status tarn__validator_run(tarn__validator *validator, tarn__validation *result, tarn__stepper *stepper,
                                const volatile sig_atomic_t *stop) TARN_CHECKED;
// A call of all ranks: fails with INTERRUPTED where one of them is asked to stop.
tarn_status tarn__validator_check_stop(tarn__comm *comm, const volatile sig_atomic_t *stop) TARN_CHECKED;

#endif
