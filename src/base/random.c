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
