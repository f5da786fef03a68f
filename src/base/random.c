// Compiled without contraction of a*b+c (see CMakeLists.txt), so that the normal deviates have equal bits everywhere.
#include "base/random.h"

#include <math.h>

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

// Natural logarithm of x in (0, 1]: x = m * 2^e with m in [sqrt(1/2), sqrt(2)), then the series of artanh. Only
// operations that IEEE 754 rounds exactly are used, in a fixed order.
static double fixed_log(double x) {
  int exponent;
  double m = frexp(x, &exponent);
  if (m < 0.70710678118654752) {
    m *= 2.0;
    exponent--;
  }
  double t = (m - 1.0) / (m + 1.0);
  double t2 = t * t;
  double sum = 0.0;
  for (int k = 23; k >= 1; k -= 2) sum = sum * t2 + 1.0 / k;
  return 2.0 * t * sum + exponent * 0.69314718055994530942;
}

// cos(2 pi u) for u in [0, 1) by reduction to an eighth of a turn and Taylor series.
static double fixed_cos_turn(double u) {
  double v = u < 0.5 ? u : 1.0 - u;  // cos is even: v in [0, 1/2]
  double sign = 1.0;
  if (v > 0.25) {  // cos(pi - x) = -cos(x)
    v = 0.5 - v;
    sign = -1.0;
  }
  double x = v * 6.28318530717958647692;  // in [0, pi/2]
  double x2 = x * x;
  double sum = 1.0;
  for (int k = 22; k >= 2; k -= 2) sum = 1.0 - x2 / ((k - 1) * k) * sum;
  return sign * sum;
}

double tarn__random_normal(tarn__random *random) {
  double u = 1.0 - tarn__random_uniform(random);
  double v = tarn__random_uniform(random);
  return sqrt(-2.0 * fixed_log(u)) * fixed_cos_turn(v);
}

void tarn__random_shuffle(tarn__random *random, int64_t *items, int64_t n) {
  for (int64_t i = n - 1; i > 0; i--) {
    int64_t j = (int64_t)tarn__random_below(random, (uint64_t)i + 1);
    int64_t keep = items[i];
    items[i] = items[j];
    items[j] = keep;
  }
}
