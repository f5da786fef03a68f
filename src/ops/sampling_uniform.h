// The random numbers of sampler.h, for the host and for kernels.
#ifndef TARN_OPS_SAMPLING_UNIFORM_H
#define TARN_OPS_SAMPLING_UNIFORM_H

#include "base/random.h"

// tarn__sampling_uniform()
static inline TARN__HOST_DEVICE double tarn__sampling_number(uint64_t seed, uint64_t key, uint32_t sample,
                                                             uint32_t position) {
  const uint32_t counter[4] = {position, sample, (uint32_t)key, (uint32_t)(key >> 32)};
  const uint32_t philox_key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
  uint32_t words[4];
  tarn__philox(words, counter, philox_key);
  const uint64_t bits = (uint64_t)words[0] << 32 | words[1];
  return (double)(bits >> 11) / 9007199254740992.0;  // 2^53
}

#endif
