// Moments in BF16. An update changes the second moment by a share of 1 - beta2, far below the resolution of BF16 (8
// bits): rounded to nearest, it would never move again. So moments are rounded stochastically, with the fp32 value as
// expectation: a random number of 16 bits is added to the bits of the float, whose upper half is kept. The numbers are
// those of dropout (ops/dropout.h), a function of
//
//   key = seed and a word of their own;  counter = (element / 8, 0, number of the parameter, update)
//
// so they depend neither on threads nor on the order of parameters in an update. The generator costs more than the
// update itself, so the second moment uses the first one's number times an odd constant: a permutation of the 65536
// numbers, which keeps them equally likely and spreads the pairs evenly over the square.
#ifndef TARN_OPTIM_MOMENTS_H
#define TARN_OPTIM_MOMENTS_H

#include <string.h>

#include "ops/dropout.h"

// The source of the numbers: row 0 of dropout at the site of the parameter's number.
static inline tarn__exec tarn__moment_stream(uint64_t seed, uint32_t step) {
  tarn__exec stream;
  memset(&stream, 0, sizeof stream);
  stream.seed = seed ^ 0x6D6F6D7400000000u;
  stream.step = step;
  return stream;
}

static inline TARN__HOST_DEVICE uint16_t tarn__moment_second(uint16_t number) { return (uint16_t)(number * 40503u); }

// NaN and infinity stay.
static inline TARN__HOST_DEVICE uint16_t tarn__moment_round(float value, uint16_t number) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  const bool nan = (bits & 0x7FFFFFFFu) > 0x7F800000u;
  return (uint16_t)((nan ? bits | 0x400000u : bits + number) >> 16);
}

#endif
