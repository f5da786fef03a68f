// Work on packed sentences, each by products of its own: who does what, and how much scratch that takes. Where there
// are many sentences, each thread is a worker that takes whole ones; where there are few, there is one worker, whose
// products all threads share. Products have equal bits both ways.
#ifndef TARN_DEVICE_CPU_MIXING_TOKEN_SENTENCES_H
#define TARN_DEVICE_CPU_MIXING_TOKEN_SENTENCES_H

#include "graph/graph.h"

typedef struct tarn__sentence_work {
  int workers, helpers;  // helpers: threads of each worker's products
  int64_t longest;       // rows of a sentence, at most
  const tarn__tensor *offsets;
} tarn__sentence_work;

// longest: an upper bound; where the offsets are known, that of the sentences takes its place.
tarn__sentence_work tarn__sentence_work_of(const tarn__tensor *offsets, int64_t longest, int threads);

// The most that `bytes` says of a sentence's length, in `helpers` threads: of the lengths that there are, or, while
// the offsets are not known, of all up to the longest.
size_t tarn__sentence_scratch(const tarn__sentence_work *work,
                              size_t (*bytes)(const void *user, int64_t n, int threads), const void *user);

// Calls `run` for every sentence. By whom does not depend on how fast threads are: worker w of W has the
// sentences from sentences w / W to sentences (w + 1) / W.
void tarn__sentences_run(const tarn__sentence_work *work, const tarn__tensor *offsets,
                         void (*run)(const void *user, int worker, int64_t s, int64_t row, int64_t n),
                         const void *user);

// Where a piece of scratch of `bytes` begins, aligned to 64; *at goes on behind it.
static inline size_t tarn__take_bytes(size_t *at, size_t bytes) {
  const size_t here = *at;
  *at = here + ((bytes + 63) & ~(size_t)63);
  return here;
}

// The piece at `offset` of memory that is there; NULL while a graph is only planned.
static inline void *tarn__piece(char *memory, size_t offset) { return memory ? memory + offset : NULL; }

#endif
