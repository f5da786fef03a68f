// Moments in BF16. An update changes the second moment by a share of 1 - beta2, which is far below the resolution of
// BF16 (8 bits): rounded to the nearest, it would never move again. So moments are rounded at random, up or down with
// probabilities that make the expectation the fp32 value: a random number of 16 bits is added to the bits of the float,
// whose upper half is what is kept. The numbers are those of dropout (ops/dropout.h), a function of
//
//   key = seed and a word of their own;  counter = (element / 8, 0, number of the parameter, update)
//
// so that they depend on neither threads nor the order of parameters in an update. The generator costs more than the
// update itself, so the second moment has the number of the first one times an odd constant: a permutation of the 65536
// numbers, which leaves each as likely as the other, and spreads the pairs evenly over the square.
#ifndef TARN_OPTIM_MOMENTS_H
#define TARN_OPTIM_MOMENTS_H

#include <string.h>

#include "ops/dropout.h"

// Where the numbers come from: row 0 of dropout at the site of the parameter's number.
static inline tarn__exec tarn__moment_stream(uint64_t seed, uint32_t step) {
  return (tarn__exec){.seed = seed ^ 0x6D6F6D7400000000u, .step = step};
}

static inline uint16_t tarn__moment_second(uint16_t number) { return (uint16_t)(number * 40503u); }

// What is not a number stays so; infinity stays.
static inline uint16_t tarn__moment_round(float value, uint16_t number) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  const bool nan = (bits & 0x7FFFFFFFu) > 0x7F800000u;
  return (uint16_t)((nan ? bits | 0x400000u : bits + number) >> 16);
}

#endif
