// The queue of sentences or prompts that the decoders of a run share, each on its own thread.
#ifndef TARN_DECODE_QUEUE_H
#define TARN_DECODE_QUEUE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/work.h"

// A sentence or prompt to process.
typedef struct tarn__item {
  const int32_t *ids;  // [length]; a prompt may be empty
  int64_t length;
  int64_t index;          // of its result
  const int32_t *prefix;  // [prefix_length] tokens with which a translation begins
  int64_t prefix_length;
  // For sampling: the inputs of the random number generator.
  uint64_t key;
  uint32_t sample;
} tarn__item;

// The remaining items: items[next] .. items[count - 1].
typedef struct tarn__queue {
  pthread_mutex_t lock;
  const tarn__item *items;
  int64_t count, next;
  int64_t share;  // maximum of active items per decoder, so that a few items are divided among decoders
  // Progress, in the weight of items: length plus one. NULL: not reported.
  tarn__work *work;
  double weight;
  _Atomic int64_t finished;
} tarn__queue;

// Reports items of this weight as finished.
void tarn__queue_finish(tarn__queue *queue, int64_t weight);
// Empties the queue after a failure, so that other decoders stop as well.
void tarn__queue_stop(tarn__queue *queue);

#endif
