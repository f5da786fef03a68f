// Work on packed sentences, each with products of its own: assignment to threads, and scratch. With many sentences,
// each thread is a worker that takes whole ones; with few, there is one worker, whose products all threads share.
// Products have equal bits either way.
#ifndef TARN_DEVICE_CPU_MIXING_TOKEN_SENTENCES_H
#define TARN_DEVICE_CPU_MIXING_TOKEN_SENTENCES_H

#include "graph/graph.h"

typedef struct tarn__sentence_work {
  int workers, helpers;  // helpers: threads of each worker's products
  int64_t longest;       // maximum rows of a sentence
  const tarn__tensor *offsets;
} tarn__sentence_work;

// longest: an upper bound; if the offsets are known, the actual maximum is used instead.
tarn__sentence_work tarn__sentence_work_of(const tarn__tensor *offsets, int64_t longest, int threads);

// The maximum of `bytes` over sentence lengths, with `helpers` threads: over the actual lengths, or, while the offsets
// are unknown, over all up to the longest.
size_t tarn__sentence_scratch(const tarn__sentence_work *work,
                              size_t (*bytes)(const void *user, int64_t n, int threads), const void *user);

// Calls `run` for every sentence. The assignment does not depend on the speed of threads: worker w of W has the
// sentences from sentences w / W to sentences (w + 1) / W.
void tarn__sentences_run(const tarn__sentence_work *work, const tarn__tensor *offsets,
                         void (*run)(const void *user, int worker, int64_t s, int64_t row, int64_t n),
                         const void *user);

// The offset of a piece of scratch of `bytes`, aligned to 64; *at advances past it.
static inline size_t tarn__take_bytes(size_t *at, size_t bytes) {
  const size_t here = *at;
  *at = here + ((bytes + 63) & ~(size_t)63);
  return here;
}

// The piece at `offset` of memory; NULL while a graph is only planned.
static inline void *tarn__piece(char *memory, size_t offset) { return memory ? memory + offset : NULL; }

#endif
