// Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011): random numbers
// as a function of a counter and a key, so any element can be recomputed, in any order, on any thread.
#ifndef TARN_BASE_RANDOM_H
#define TARN_BASE_RANDOM_H

#include <stdint.h>

#include "base/host_device.h"

// One block: four words for one counter under one key.
static inline TARN__HOST_DEVICE void tarn__philox(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2]) {
  uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
  uint32_t k0 = key[0], k1 = key[1];
  for (int round = 0; round < 10; round++) {
    uint64_t p0 = (uint64_t)0xD2511F53u * c0;
    uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
    uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
    uint32_t n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c1 = (uint32_t)p1;
    c3 = (uint32_t)p0;
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  out[0] = c0;
  out[1] = c1;
  out[2] = c2;
  out[3] = c3;
}

// A sequential stream over Philox for code that is not parallel (shuffles, samplers, generators of text).
typedef struct tarn__random {
  uint32_t key[2];
  uint64_t block;     // next counter
  uint32_t words[4];  // words of the previous block
  int left;           // words not yet used
  uint32_t stream;    // separates streams of one seed
} tarn__random;

// Starts the stream `stream` of a seed. Equal (seed, stream) give equal numbers on every machine.
void tarn__random_init(tarn__random *random, uint64_t seed, uint32_t stream);
uint32_t tarn__random_u32(tarn__random *random);
uint64_t tarn__random_u64(tarn__random *random);
// Uniform in [0, 1) with 53 random bits.
double tarn__random_uniform(tarn__random *random);
// Among the next `count` uniform numbers, the ascending indices of those below `share` (0 .. 1); returns how many. A
// faster equivalent of `count` calls of tarn__random_uniform(). `places` has space for `count`.
int64_t tarn__random_places(int32_t *places, tarn__random *random, double share, int64_t count);
// Uniform in 0 .. n-1 without bias; n > 0.
uint64_t tarn__random_below(tarn__random *random, uint64_t n);
// Normal deviate (Box-Muller) computed with arithmetic of our own in fixed order: equal bits on every machine.
double tarn__random_normal(tarn__random *random);
// Fisher-Yates shuffle of n indices.
void tarn__random_shuffle(tarn__random *random, int64_t *items, int64_t n);

#endif
