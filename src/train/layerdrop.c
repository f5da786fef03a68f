#include "train/layerdrop.h"

#include "base/random.h"

// Keeps these blocks of the generator apart from those of other uses of the same key ("drop").
static const uint32_t TAG = 0x64726F70u;

void tarn__layerdrop_draw(bool *skip, int layers, double p, uint64_t seed, uint32_t step, tarn__stack_id stack) {
  const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
  for (int i = 0; i < layers; i++) {
    const uint32_t counter[4] = {step, (uint32_t)i, (uint32_t)stack, TAG};
    uint32_t words[4];
    tarn__philox(words, counter, key);
    uint64_t bits = ((uint64_t)words[1] << 32 | words[0]) >> 11;
    skip[i] = (double)bits * 0x1p-53 < p;
  }
}
