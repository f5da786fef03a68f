// Packed batches from a shard. Padding does not exist: a batch is the concatenation of its sentences with offsets.
//
//   source.ids     a a a $ | b b $ | c $            source.rows = 9
//   target.ids     $ A A   | $ B B B | $ C          target.rows = 9    (the end of sentence comes first, as in fairseq)
//   targets        A A $   | B B B $ | C $
//   source.offsets 0 4 7 9                          target.offsets 0 3 7 9
//
// The batches of a text (data/shard.h) have no source rows, and all source offsets are 0.
//
// The order of an epoch is a function of (seed, epoch) alone: the sentences get a sort key of their length plus noise,
// neighbours fill batches up to the token budget, and the batches are shuffled. So any step can be reached by a seek.
#ifndef TARN_DATA_BATCH_H
#define TARN_DATA_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "data/packed.h"
#include "data/shard.h"

// The memory belongs to the batcher and is valid until its next call.
typedef struct tarn__batch {
  tarn__packed source;     // each sentence ends in the end of sentence
  tarn__packed target;     // as many sentences; `longest` of both is the tokens of the longest sentence
  const int32_t *targets;  // [target.rows] what follows each row of the target
  const int64_t *index;    // [target.sentences] numbers of the pairs in the shard
} tarn__batch;

typedef struct tarn__batcher_options {
  // Budget: the source tokens and the target tokens of a batch are each at most this, 1 .. 2^24; default 4096.
  int64_t max_tokens;
  int64_t max_sentences;  // most sentences of a batch; default 0: no limit
  // Uniform noise in tokens, 0 .. 2^20, that is added to a sentence's length before sorting; default 2. 0 sorts exactly
  // (only ties are random); a number far above the longest sentence gives batches of random sentences.
  double noise;
  int64_t longest;  // pairs with a side of more tokens are left out; default 0: none is
  uint64_t seed;    // default 1
  bool shuffle;     // default true. false: every epoch is sorted by length, equal lengths in the order of the shard
} tarn__batcher_options;

void tarn__batcher_default(tarn__batcher_options *options);

// The shard must stay open as long as the batcher. No call after open allocates memory. Fails with USAGE if an option
// is out of range, a pair alone is longer than the budget (the message names it) or all are left out; or with MEMORY.
typedef struct tarn__batcher tarn__batcher;
tarn_status tarn__batcher_open(tarn__batcher **batcher, const tarn__shard *shard,
                               const tarn__batcher_options *options) TARN_CHECKED;
void tarn__batcher_close(tarn__batcher **batcher);

// Room for one batch of a batcher. Zero-initialise it; closing accepts that.
typedef struct tarn__batch_room {
  int32_t *source_ids, *target_ids, *targets;
  int32_t *source_positions, *target_positions;
  int32_t *source_offsets, *target_offsets;
  int64_t *index;
} tarn__batch_room;
tarn_status tarn__batch_room_open(tarn__batch_room *room, const tarn__batcher *batcher) TARN_CHECKED;
void tarn__batch_room_close(tarn__batch_room *room);

// Gives the next batch. After the last batch of an epoch the next epoch begins; to read one epoch, call it
// tarn__batcher_batches() times.
void tarn__batcher_next(tarn__batcher *batcher, tarn__batch *batch);
// The same in the caller's room, where the batch stays until that room is used again.
void tarn__batcher_next_into(tarn__batcher *batcher, tarn__batch *batch, const tarn__batch_room *room);

// Pairs that every epoch leaves out because a side is longer than options.longest.
int64_t tarn__batcher_left_out(const tarn__batcher *batcher);

// Batches of the epoch that the next batch belongs to; with noise this number differs a little from epoch to epoch.
int64_t tarn__batcher_batches(const tarn__batcher *batcher);

// Passes over the next `count` batches, which must belong to one epoch.
void tarn__batcher_skip(tarn__batcher *batcher, int64_t count);

// Target tokens of the next `count` batches, which must belong to one epoch.
int64_t tarn__batcher_targets(const tarn__batcher *batcher, int64_t count);

// The position of the next batch: epoch from 0, index 0 .. batches-1. Seeking to a position gives the same batches from
// there on as coming there by next. Fails with DATA if the epoch has no such batch.
void tarn__batcher_position(const tarn__batcher *batcher, int64_t *epoch, int64_t *index);
tarn_status tarn__batcher_seek(tarn__batcher *batcher, int64_t epoch, int64_t index) TARN_CHECKED;

// Most rows of a side of a batch: limits of tokens and of sentences (0: none), tokens of the side in all, and of its
// longest sentence.
int64_t tarn__batch_side_rows(int64_t max_tokens, int64_t max_sentences, int64_t tokens, int64_t longest);

// Upper bounds for any batch of any epoch, to plan memory with.
void tarn__batcher_largest(const tarn__batcher *batcher, int64_t *source_rows, int64_t *target_rows,
                           int64_t *sentences);

#endif
