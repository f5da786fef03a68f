// Compiled without contraction of a*b+c (see CMakeLists.txt), so that the normal deviates have equal bits everywhere.
#include "base/random.h"

#include <math.h>

#include "base/fixed.h"

void tarn__random_init(tarn__random *random, uint64_t seed, uint32_t stream) {
  *random = (tarn__random){.key = {(uint32_t)seed, (uint32_t)(seed >> 32)}, .stream = stream};
}

uint32_t tarn__random_u32(tarn__random *random) {
  if (random->left == 0) {
    uint32_t counter[4] = {(uint32_t)random->block, (uint32_t)(random->block >> 32), random->stream, 0x7461726Eu};
    tarn__philox(random->words, counter, random->key);
    random->block++;
    random->left = 4;
  }
  return random->words[4 - random->left--];
}

uint64_t tarn__random_u64(tarn__random *random) {
  uint64_t low = tarn__random_u32(random);
  return low | (uint64_t)tarn__random_u32(random) << 32;
}

double tarn__random_uniform(tarn__random *random) { return (double)(tarn__random_u64(random) >> 11) * 0x1p-53; }

enum { BATCH = 64 };  // blocks computed together

// The words of blocks from the next one on, words[w][i] of block i, in loops that compilers turn into vectors.
static void draw_batch(uint32_t words[4][BATCH], tarn__random *random) {
  for (int i = 0; i < BATCH; i++) {
    const uint64_t block = random->block + (uint64_t)i;
    words[0][i] = (uint32_t)block;
    words[1][i] = (uint32_t)(block >> 32);
    words[2][i] = random->stream;
    words[3][i] = 0x7461726Eu;
  }
  uint32_t k0 = random->key[0], k1 = random->key[1];
  for (int round = 0; round < 10; round++) {
    for (int i = 0; i < BATCH; i++) {
      const uint64_t p0 = (uint64_t)0xD2511F53u * words[0][i], p1 = (uint64_t)0xCD9E8D57u * words[2][i];
      words[0][i] = (uint32_t)(p1 >> 32) ^ words[1][i] ^ k0;
      words[2][i] = (uint32_t)(p0 >> 32) ^ words[3][i] ^ k1;
      words[1][i] = (uint32_t)p1;
      words[3][i] = (uint32_t)p0;
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  random->block += BATCH;
}

int64_t tarn__random_places(int32_t *places, tarn__random *random, double share, int64_t count) {
  // A number k / 2^53 is below the share where k is below the share times 2^53, which is exact.
  const uint64_t below = (uint64_t)ceil(share * 0x1p53);
  uint32_t words[4][BATCH];
  int64_t found = 0, at = 0;
  while (at < count) {
    if (random->left != 0 || count - at < 2 * BATCH) {
      places[found] = (int32_t)at++;
      found += tarn__random_u64(random) >> 11 < below;
      continue;
    }
    draw_batch(words, random);
    for (int i = 0; i < BATCH; i++) {
      const uint64_t first = words[0][i] | (uint64_t)words[1][i] << 32,
                     second = words[2][i] | (uint64_t)words[3][i] << 32;
      places[found] = (int32_t)at++;
      found += first >> 11 < below;
      places[found] = (int32_t)at++;
      found += second >> 11 < below;
    }
  }
  return found;
}

uint64_t tarn__random_below(tarn__random *random, uint64_t n) {
  uint64_t limit = UINT64_MAX - UINT64_MAX % n;
  uint64_t value;
  do {
    value = tarn__random_u64(random);
  } while (value >= limit);
  return value % n;
}

double tarn__random_normal(tarn__random *random) {
  double u = 1.0 - tarn__random_uniform(random);
  double v = tarn__random_uniform(random);
  return sqrt(-2.0 * tarn__fixed_log(u)) * tarn__fixed_cos_turn(v);
}

void tarn__random_shuffle(tarn__random *random, int64_t *items, int64_t n) {
  for (int64_t i = n - 1; i > 0; i--) {
    int64_t j = (int64_t)tarn__random_below(random, (uint64_t)i + 1);
    int64_t keep = items[i];
    items[i] = items[j];
    items[j] = keep;
  }
}
