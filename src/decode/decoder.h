// One decoder: encodes sentences, runs beam searches over them with incremental decoding, and takes in new sentences as
// others finish, so that its products stay as tall as they began. Several decoders may share a queue, each on a thread
// of its own.
//
// A step computes one row per running hypothesis. Keys and values, of self-attention and of the encoder's output, are
// appended to packed caches, and which rows a hypothesis sees is a list of numbers: no cache is copied when hypotheses
// fork, and a sentence that is finished costs nothing from then on.
#ifndef TARN_DECODE_DECODER_H
#define TARN_DECODE_DECODER_H

#include <pthread.h>
#include <stdint.h>

#include "base/status.h"
#include "decode/translate.h"

// A sentence of the input; `index` is its place there.
typedef struct tarn__item {
  const int32_t *ids;
  int64_t length, index;
} tarn__item;

// The sentences that nobody has taken yet: items[next] .. items[count - 1].
typedef struct tarn__queue {
  pthread_mutex_t lock;
  const tarn__item *items;
  int64_t count, next;
} tarn__queue;

// Most hypotheses of one decoder. Products of so many rows run at full speed; more would only leave the caches.
enum { TARN__DECODER_ROWS = 320 };

typedef struct tarn__decoder tarn__decoder;

// Computes with `threads` threads.
tarn_status tarn__decoder_open(tarn__decoder **decoder, const tarn__model *model, int32_t eos,
                               const tarn__translator_options *options, int threads) TARN_CHECKED;
void tarn__decoder_close(tarn__decoder **decoder);

// Lends memory, aligned to 64 bytes, and gives back all large blocks that the decoder holds (tarn__translator_lend()).
void tarn__decoder_lend(tarn__decoder *decoder, void *memory, size_t bytes);

// Forgets the translations of earlier runs.
void tarn__decoder_reset(tarn__decoder *decoder);

// Translates sentences of the queue until it is empty: translations[index] of each. What they point to belongs to the
// decoder and lives until reset or close. A failure empties the queue, so that other decoders stop as well.
tarn_status tarn__decoder_run(tarn__decoder *decoder, tarn__queue *queue, tarn__translation *translations) TARN_CHECKED;

// Adds what the decoder has done since it was opened.
void tarn__decoder_add_stats(const tarn__decoder *decoder, tarn__translator_stats *stats);

#endif
