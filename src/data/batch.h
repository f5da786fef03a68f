// Packed batches from a shard. Padding does not exist: a batch is the concatenation of its sentences with offsets.
//
//   source.ids     a a a $ | b b $ | c $            source.rows = 9
//   target.ids     $ A A   | $ B B B | $ C          target.rows = 9    (the end of sentence comes first, as in fairseq)
//   targets        A A $   | B B B $ | C $
//   source.offsets 0 4 7 9                          target.offsets 0 3 7 9
//
// The batches of a text (data/shard.h) have no source rows, and all source offsets are 0.
//
// That is the form for tasks that predict the next token. In the other form the rows of the target are its whole
// sentences, with a token in front if there is one, and the code that finishes the batch sets the predictions:
//
//   target.ids     ^ A A $ | ^ B B B $ | ^ C $      ^ begins each sentence (a special token of the vocabulary)
//   selected       1 2         6 8         10       targets: the tokens to predict at these rows
//
// If the rows of a text are windows of a stream, the token before the window comes first (data/shard.h).
//
// Tracks: with options.tracks the windows are read in order. The text is cut into tracks of consecutive windows, whose
// lengths differ by at most one, the longer ones first. The batches of an epoch hold the first window of every track,
// then the second, and so on, `tracks` batches for each. So sentence s of a batch continues sentence s of the batch
// `tracks` before it.
//
// A batcher takes 48 bytes per sentence of its shard, which itself takes 8; with tracks it takes nothing, because their
// order is computed batch by batch. It reads the ids of one batch at a time and releases their pages after every
// TARN__BATCH_RELEASED sentences.
//
// The order of an epoch is a function of (seed, epoch) alone, so a seek can reach any step: the sentences get a sort
// key of their length plus noise, neighbours fill batches up to the token budget, and the batches are shuffled.
//
// Blocks: more than TARN__BATCH_BLOCK sentences in several files are not ordered all at once. An epoch shuffles
// stretches of consecutive sentences; every TARN__BATCH_BLOCK / TARN__BATCH_STRETCH stretches form a block, whose
// sentences are sorted, cut into batches and shuffled as above, with its own random numbers. A batcher then takes the
// 48 bytes only for the sentences of one block; at the start of an epoch it goes through all blocks to count their
// batches.
#ifndef TARN_DATA_BATCH_H
#define TARN_DATA_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "data/packed.h"
#include "data/shard.h"

// The memory belongs to the batcher and is valid until its next call. Pointers may be NULL if a graph is only planned.
typedef struct tarn__batch {
  tarn__packed source;      // each sentence ends in the end of sentence
  tarn__packed target;      // as many sentences; `longest` of both counts the rows of the longest sentence
  const int64_t *index;     // [target.sentences] numbers of the pairs in the shard
  int64_t predictions;      // the terms of the loss
  const int32_t *selected;  // [predictions] target rows with a prediction; NULL: the task knows them
  const int32_t *targets;   // [predictions] tokens or classes to predict; next token: the one after each target row
  const float *values;      // [predictions] numbers to predict; NULL: targets are predicted
  // For models that edit sentences (task/edits.h), whose target has a placeholder at each selected row: the sentences
  // without these, and [kept.rows - kept.sentences] how many of them stand behind each token but the last of a
  // sentence. kept.rows 0: no such model.
  tarn__packed kept;
  const int32_t *gaps;
} tarn__batch;

enum { TARN__BATCH_BLOCK = 1 << 20, TARN__BATCH_STRETCH = 256 };  // sentences
// Pages of a larger shard are released after so many sentences. With each page the system maps its whole folio of the
// page cache: 64 kB, or half a megabyte if folios are large (measured on Linux 6.18).
enum { TARN__BATCH_RELEASED = 64, TARN__BATCH_RESIDENT = TARN__BATCH_RELEASED << 20 };

// Memory for one batch of a batcher. Zero-initialise it; closing accepts that.
typedef struct tarn__batch_room {
  int32_t *source_ids, *target_ids, *targets;
  int32_t *source_positions, *target_positions;
  int32_t *source_offsets, *target_offsets;
  int32_t *segments;  // of target rows
  int32_t *pixels;    // of target rows, if they are patches
  int32_t *selected;  // as many as target rows, as targets and values
  float *values;
  int32_t *kept_ids, *kept_positions, *kept_offsets, *gaps;  // of models that edit
  int64_t *index;
} tarn__batch_room;

// The meaning of a row of the target side.
typedef enum tarn__row_form {
  TARN__ROWS_NEXT,  // the token before the one to predict; the batcher sets the targets
  TARN__ROWS_WHOLE  // a token of the sentence, including its end of sentence
} tarn__row_form;

// Finishes batches of whole sentences: sets the predictions, and may change ids for them (masks). The result must be a
// function of (seed, epoch, number of the sentence). Called in the thread that makes the batches, one call at a time.
typedef struct tarn__batch_finish {
  void *user;
  // The number of predictions of a sentence.
  int64_t (*count)(void *user, int64_t pair, uint64_t seed, int64_t epoch);
  // Sets predictions, and selected, targets or values in the room's memory; room->target_ids may be changed. epoch is
  // TARN__BATCH_FIXED if all epochs must be equal.
  void (*run)(void *user, tarn__batch *batch, const tarn__batch_room *room, uint64_t seed, int64_t epoch);
  void (*close)(void *user);
  bool edits;     // `run` sets the batch's kept and gaps, too
  char text[96];  // describes it: fixed batches are equal for equal data and equal texts; "": nothing
} tarn__batch_finish;
enum { TARN__BATCH_FIXED = -1 };

typedef struct tarn__batcher_options {
  // Budget: the most source tokens, and the most target tokens, of a batch, 1 .. 2^24; default 4096.
  int64_t max_tokens;
  int64_t max_sentences;  // most sentences of a batch; default 0: no limit
  // Uniform noise in tokens, 0 .. 2^20, added to a sentence's length before sorting; default 2. 0 sorts exactly (only
  // ties are random); noise far above the longest sentence gives batches of random sentences.
  double noise;
  int64_t longest;  // pairs with a longer side are skipped; default 0: none
  uint64_t seed;    // default 1
  bool shuffle;     // default true. false: every epoch is sorted by length, equal lengths in the order of the shard,
                    // and finished as TARN__BATCH_FIXED
  tarn__row_form rows;  // default NEXT
  // Tracks, for windows of a stream: the number of batches that together hold one window of every track. Each batch has
  // as many tracks as its limits allow windows of the longest length, but no more than there are windows for. The order
  // is the same in every epoch. Default 0: no tracks
  int64_t tracks;
  // Sentences per block, for tests; default 0: TARN__BATCH_BLOCK for a shard of several files, one block for others.
  int64_t block;
  // The token in front of each sentence; default -1: none; with rows NEXT, the end of sentence. The windows of a stream
  // after the first have the token before them.
  int32_t first;
  int32_t segments;           // for whole rows: the number of segments in target.segments; default 0: it is NULL
  tarn__batch_finish finish;  // for whole rows; default: none, and no predictions. The batcher closes it
} tarn__batcher_options;

void tarn__batcher_default(tarn__batcher_options *options);

// The shard must stay open as long as the batcher. No call after open allocates memory. Fails with USAGE if an option
// is out of range, there are fewer windows than options.tracks, a single pair is longer than the budget (the message
// names it) or all pairs are skipped; or with MEMORY. options->finish is closed in any case.
typedef struct tarn__batcher tarn__batcher;
tarn_status tarn__batcher_open(tarn__batcher **batcher, const tarn__shard *shard,
                               const tarn__batcher_options *options) TARN_CHECKED;
void tarn__batcher_close(tarn__batcher **batcher);

tarn_status tarn__batch_room_open(tarn__batch_room *room, const tarn__batcher *batcher) TARN_CHECKED;
void tarn__batch_room_close(tarn__batch_room *room);

// Returns the next batch. The next epoch follows the last batch of an epoch; to read one epoch, call this
// tarn__batcher_batches() times.
void tarn__batcher_next(tarn__batcher *batcher, tarn__batch *batch);
// The same in the caller's memory `room`, where the batch stays until the room is used again.
void tarn__batcher_next_into(tarn__batcher *batcher, tarn__batch *batch, const tarn__batch_room *room);

// The number of tracks, and so of sentences, of a batch; 0: no tracks.
int64_t tarn__batcher_tracks(const tarn__batcher *batcher);

// Identifies the data that a training can resume with: equal for shards of equal contents (shard->hash) with the same
// kind of order, in blocks or not. The other hash is that of the same rows in the other order, with which a training
// cannot resume.
const char *tarn__batcher_hash(const tarn__batcher *batcher);
const char *tarn__batcher_other_hash(const tarn__batcher *batcher);
// That of a shard in blocks, which has another order than the same rows without blocks.
void tarn__batcher_hash_in_blocks(char hash[TARN__HASH_TEXT], const char *shard_hash);

// Pairs that every epoch skips because a side is longer than options.longest.
int64_t tarn__batcher_left_out(const tarn__batcher *batcher);

// Batches of the epoch of the next batch; with noise this number differs slightly between epochs.
int64_t tarn__batcher_batches(const tarn__batcher *batcher);

// Skips the next `count` batches, which must belong to one epoch.
void tarn__batcher_skip(tarn__batcher *batcher, int64_t count);

// Predictions of the next `count` batches, which must belong to one epoch.
int64_t tarn__batcher_predictions(tarn__batcher *batcher, int64_t count);

// The position of the next batch: epoch from 0, index 0 .. batches-1. Seeking to a position gives the same batches as
// reading up to it. Fails with DATA if the epoch has no such batch.
void tarn__batcher_position(const tarn__batcher *batcher, int64_t *epoch, int64_t *index);
tarn_status tarn__batcher_seek(tarn__batcher *batcher, int64_t epoch, int64_t index) TARN_CHECKED;

// Rows of the longest sentence of the target side, skipped or not.
int64_t tarn__batcher_longest_target(const tarn__batcher *batcher);

// Bytes that a batcher of a shard keeps, without the memory of batches. Of the options tracks, shuffle, max_tokens and
// max_sentences count.
size_t tarn__batcher_bytes(const tarn__shard *shard, const tarn__batcher_options *options);

// The most rows of a side of a batch, from the limits of tokens and of sentences (0: none), the tokens of the side in
// all, and those of its longest sentence.
int64_t tarn__batch_side_rows(int64_t max_tokens, int64_t max_sentences, int64_t tokens, int64_t longest);

// Upper bounds for any batch of any epoch, for memory plans.
void tarn__batcher_largest(const tarn__batcher *batcher, int64_t *source_rows, int64_t *target_rows,
                           int64_t *sentences);

#endif
