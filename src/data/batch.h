// Packed batches from a shard. Padding does not exist: a batch is the concatenation of its sentences with offsets.
//
//   source.ids     a a a $ | b b $ | c $            source.rows = 9
//   target.ids     $ A A   | $ B B B | $ C          target.rows = 9    (the end of sentence comes first, as in fairseq)
//   targets        A A $   | B B B $ | C $
//   source.offsets 0 4 7 9                          target.offsets 0 3 7 9
//
// The batches of a text (data/shard.h) have no source rows, and all source offsets are 0.
//
// That is the form of tasks that predict the next token. In the other one the rows of the target are its sentences as
// they are, with a token in front where there is one, and what is predicted comes from whoever finishes the batch:
//
//   target.ids     ^ A A $ | ^ B B B $ | ^ C $      ^ begins each sentence (a special token of the vocabulary)
//   selected       1 2         6 8         10       targets: what is to be predicted at these rows
//
// Where the rows of a text are windows of a stream, what comes first is the token before the window (data/shard.h).
//
// Tracks: with options.tracks the windows are read in order. The text is cut into tracks of consecutive windows, whose
// lengths differ by one at most, the longer ones first; the batches of an epoch hold the first window of every track,
// then the second, and so on, `tracks` batches for each. So sentence s of a batch goes on with sentence s of the batch
// `tracks` before it.
//
// A batcher takes 48 bytes for each sentence of its shard, which takes 8 itself (of tracks, nothing, because their
// order is computed batch by batch); of the ids it reads those of a batch,
// and gives back the pages they are in after every TARN__BATCH_RELEASED sentences.
//
// The order of an epoch is a function of (seed, epoch) alone: the sentences get a sort key of their length plus noise,
// neighbours fill batches up to the token budget, and the batches are shuffled. So any step can be reached by a seek.
//
// Blocks: of more than TARN__BATCH_BLOCK sentences in several files, not all are ordered at the same time. An epoch
// shuffles stretches of consecutive sentences, and every TARN__BATCH_BLOCK / TARN__BATCH_STRETCH of them are a block,
// of which the sentences are sorted, cut into batches and shuffled as above, with random numbers of its own. Then a
// batcher takes the 48 bytes for the sentences of a block only; at the beginning of an epoch it goes through all
// blocks, to count their batches.
#ifndef TARN_DATA_BATCH_H
#define TARN_DATA_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "data/packed.h"
#include "data/shard.h"

// The memory belongs to the batcher and is valid until its next call. Pointers may be NULL where a graph is only
// planned.
typedef struct tarn__batch {
  tarn__packed source;      // each sentence ends in the end of sentence
  tarn__packed target;      // as many sentences; `longest` of both is the rows of the longest sentence
  const int64_t *index;     // [target.sentences] numbers of the pairs in the shard
  int64_t predictions;      // what the loss is summed over
  const int32_t *selected;  // [predictions] rows of the target that they are made from; NULL: the task knows
  const int32_t *targets;   // [predictions] tokens or classes to predict; next token: what follows each target row
  const float *values;      // [predictions] numbers to predict; NULL: there are targets
} tarn__batch;

enum { TARN__BATCH_BLOCK = 1 << 20, TARN__BATCH_STRETCH = 256 };  // sentences
// Pages of a larger shard are given back after so many sentences. With each the system maps what its page cache holds
// in one piece with it: 64 kB, or half a megabyte where its folios are large (measured on Linux 6.18).
enum { TARN__BATCH_RELEASED = 64, TARN__BATCH_RESIDENT = TARN__BATCH_RELEASED << 20 };

// Room for one batch of a batcher. Zero-initialise it; closing accepts that.
typedef struct tarn__batch_room {
  int32_t *source_ids, *target_ids, *targets;
  int32_t *source_positions, *target_positions;
  int32_t *source_offsets, *target_offsets;
  int32_t *segments;  // of target rows
  int32_t *selected;  // as many as target rows, as targets and values
  float *values;
  int64_t *index;
} tarn__batch_room;

// What a row of the target side is.
typedef enum tarn__row_form {
  TARN__ROWS_NEXT,  // the token before the one to be predicted, which is the next one; the batcher gives the targets
  TARN__ROWS_WHOLE  // a token of the sentence, end of sentence included
} tarn__row_form;

// What finishes batches of whole sentences: it says what is predicted, and may change ids for it (masks). All that it
// does is a function of (seed, epoch, number of the sentence). It is called in the thread that makes the batches, one
// call at a time.
typedef struct tarn__batch_finish {
  void *user;
  // Predictions that a sentence will have.
  int64_t (*count)(void *user, int64_t pair, uint64_t seed, int64_t epoch);
  // Sets predictions, and selected, targets or values in the room's memory; room->target_ids may be changed. epoch is
  // TARN__BATCH_FIXED where every epoch is to be the same.
  void (*run)(void *user, tarn__batch *batch, const tarn__batch_room *room, uint64_t seed, int64_t epoch);
  void (*close)(void *user);
  char text[96];  // what it does: of equal data and equal texts, fixed batches are equal; "": nothing
} tarn__batch_finish;
enum { TARN__BATCH_FIXED = -1 };

typedef struct tarn__batcher_options {
  // Budget: the source tokens and the target tokens of a batch are each at most this, 1 .. 2^24; default 4096.
  int64_t max_tokens;
  int64_t max_sentences;  // most sentences of a batch; default 0: no limit
  // Uniform noise in tokens, 0 .. 2^20, that is added to a sentence's length before sorting; default 2. 0 sorts exactly
  // (only ties are random); a number far above the longest sentence gives batches of random sentences.
  double noise;
  int64_t longest;  // pairs with a side of more tokens are left out; default 0: none is
  uint64_t seed;    // default 1
  bool shuffle;     // default true. false: every epoch is sorted by length, equal lengths in the order of the shard,
                    // and finished as TARN__BATCH_FIXED
  tarn__row_form rows;  // default NEXT
  // Tracks, for windows of a stream: how many batches together hold one window of every track. Each has as many tracks
  // as its limits allow windows of the longest length, but no more than there are windows for; the order is the same in
  // every epoch. Default 0: no tracks
  int64_t tracks;
  // Sentences of a block, for tests; default 0: TARN__BATCH_BLOCK for a shard of several files, and one block for
  // others.
  int64_t block;
  // The token in front of each sentence; default -1: none, and of rows NEXT the end of sentence, or the token before
  // a window of a stream.
  int32_t first;
  int32_t segments;           // of whole rows: how many segments target.segments may name; default 0: it is NULL
  tarn__batch_finish finish;  // of whole rows; default: none, then nothing is predicted. The batcher closes it
} tarn__batcher_options;

void tarn__batcher_default(tarn__batcher_options *options);

// The shard must stay open as long as the batcher. No call after open allocates memory. Fails with USAGE if an option
// is out of range, there are fewer windows than batches of tracks at a time, a pair alone is longer than the budget
// (the message names it) or all are left out; or with MEMORY. options->finish is closed in any case.
typedef struct tarn__batcher tarn__batcher;
tarn_status tarn__batcher_open(tarn__batcher **batcher, const tarn__shard *shard,
                               const tarn__batcher_options *options) TARN_CHECKED;
void tarn__batcher_close(tarn__batcher **batcher);

tarn_status tarn__batch_room_open(tarn__batch_room *room, const tarn__batcher *batcher) TARN_CHECKED;
void tarn__batch_room_close(tarn__batch_room *room);

// Gives the next batch. After the last batch of an epoch the next epoch begins; to read one epoch, call it
// tarn__batcher_batches() times.
void tarn__batcher_next(tarn__batcher *batcher, tarn__batch *batch);
// The same in the caller's room, where the batch stays until that room is used again.
void tarn__batcher_next_into(tarn__batcher *batcher, tarn__batch *batch, const tarn__batch_room *room);

// Sentences of a batch of tracks, the number of tracks that it has; 0: there are none.
int64_t tarn__batcher_tracks(const tarn__batcher *batcher);

// What a training goes on with: equal for shards of equal contents (shard->hash) whose rows are ordered in the same
// way, in blocks or not. The other one is that of the same rows in the other way, which a training cannot go on with.
const char *tarn__batcher_hash(const tarn__batcher *batcher);
const char *tarn__batcher_other_hash(const tarn__batcher *batcher);

// Pairs that every epoch leaves out because a side is longer than options.longest.
int64_t tarn__batcher_left_out(const tarn__batcher *batcher);

// Batches of the epoch that the next batch belongs to; with noise this number differs a little from epoch to epoch.
int64_t tarn__batcher_batches(const tarn__batcher *batcher);

// Passes over the next `count` batches, which must belong to one epoch.
void tarn__batcher_skip(tarn__batcher *batcher, int64_t count);

// Predictions of the next `count` batches, which must belong to one epoch.
int64_t tarn__batcher_predictions(tarn__batcher *batcher, int64_t count);

// The position of the next batch: epoch from 0, index 0 .. batches-1. Seeking to a position gives the same batches from
// there on as coming there by next. Fails with DATA if the epoch has no such batch.
void tarn__batcher_position(const tarn__batcher *batcher, int64_t *epoch, int64_t *index);
tarn_status tarn__batcher_seek(tarn__batcher *batcher, int64_t epoch, int64_t index) TARN_CHECKED;

// Rows of the longest sentence of the target side, left out or not.
int64_t tarn__batcher_longest_target(const tarn__batcher *batcher);

// Bytes that a batcher of a shard keeps by default, beside the rooms of batches; whether it has options.tracks, and
// options.shuffle.
size_t tarn__batcher_bytes(const tarn__shard *shard, bool tracks, bool shuffle);

// Most rows of a side of a batch: limits of tokens and of sentences (0: none), tokens of the side in all, and of its
// longest sentence.
int64_t tarn__batch_side_rows(int64_t max_tokens, int64_t max_sentences, int64_t tokens, int64_t longest);

// Upper bounds for any batch of any epoch, to plan memory with.
void tarn__batcher_largest(const tarn__batcher *batcher, int64_t *source_rows, int64_t *target_rows,
                           int64_t *sentences);

#endif
