// Moments in fewer bytes than fp32.
//
// BF16. An update changes the second moment by a share of 1 - beta2, far below the resolution of BF16 (8 bits): rounded
// to nearest, it would never move again. So moments are rounded stochastically, with the fp32 value as expectation: a
// random number of 16 bits is added to the bits of the float, whose upper half is kept. The numbers are those of
// dropout (ops/dropout.h), a function of
//
//   key = seed and a word of their own;  counter = (element / 8, 0, number of the parameter, update)
//
// so they depend neither on threads nor on the order of parameters in an update. The generator costs more than the
// update itself, so the second moment uses the first one's number times an odd constant: a permutation of the 65536
// numbers, which keeps them equally likely and spreads the pairs evenly over the square.
//
// F8. As in 8-bit Adam (Dettmers et al. 2022, arXiv 2110.02861), every 256 elements of a parameter are a block with a
// scale of its own. Their codes are floats of 8 bits with 3 bits of mantissa, in multiples of a unit that is a power of
// two: the first moment has a sign and 4 bits of exponent (E4M3), the second one 5 (E5M3). Unlike in OCP's E4M3 every
// code is a number; a block that is not finite has an infinite unit.
//
//   code 0 .. 7: unit * code / 8 (subnormal);   from 8 on: unit * 2^(code / 8 - 1) * (1 + code % 8 / 8)
//
// The unit is the smallest with which the largest element of the block does not overflow, so a block reaches down to
// 2^-17 of it (2^-33 for the second moment, a square). Dettmers et al. use a code that is finer near the largest and
// coarser below. With random rounding its squared error is a third of this one's where the elements of a block are
// alike, and eight to nine times this one's where their gradients differ by factors of 5 (bench/performance.md).
//
// A second moment above 0 is never rounded to 0: the step, divided by its root, would have no bound. Only there, below
// an eighth of the unit, rounding has a bias.
#ifndef TARN_OPTIM_MOMENTS_H
#define TARN_OPTIM_MOMENTS_H

#include <string.h>

#include "graph/param.h"
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

// --- F8

enum {
  TARN__MOMENT_SPAN1 = 14,  // octaves above the unit that the largest element may be, by the width of the exponent
  TARN__MOMENT_SPAN2 = 30,
  TARN__MOMENT_DROPPED = 20  // bits of a float's mantissa that a code lacks
};

typedef struct tarn__moment_block {
  float unit;
  uint8_t codes[TARN__MOMENT_BLOCK];
} tarn__moment_block;

static inline TARN__HOST_DEVICE uint32_t tarn__moment_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static inline TARN__HOST_DEVICE float tarn__moment_float(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

// The unit of a block, from the bits of its largest magnitude, which may become the next code above it. Infinite for
// one that is not finite, or above 1.875 * 2^127: then all elements are read as infinite or NaN.
static inline TARN__HOST_DEVICE float tarn__moment_unit_of(uint32_t largest, int span) {
  const int carried = (int)((largest + (1u << TARN__MOMENT_DROPPED) - 1) >> 23), least = TARN__MOMENT_LEAST_UNIT;
  const int exponent = carried >= 255 ? 255 : carried - span > least ? carried - span : least;
  return tarn__moment_float((uint32_t)exponent << 23);
}

// The code of a magnitude: below the unit it is moved up by one octave, where its bits count eighths of the unit. Those
// of a NaN are lowered: a card's (0x7FFFFFFF) would carry into the sign, and be read as -0.
static inline TARN__HOST_DEVICE uint32_t tarn__moment_code(float magnitude, float unit, uint16_t number) {
  const uint32_t random = ((uint32_t)number << 4) + 8u;
  const float moved = magnitude < unit ? magnitude + unit : magnitude;
  const uint32_t bits = tarn__moment_bits(moved), most = 0x7FE00000u, lowered = bits < most ? bits : most;
  const uint32_t code =
      ((lowered + random) >> TARN__MOMENT_DROPPED) - (tarn__moment_bits(unit) >> TARN__MOMENT_DROPPED);
  return magnitude < unit ? code : code + 8u;
}

static inline TARN__HOST_DEVICE float tarn__moment_magnitude(uint32_t code, float unit) {
  const uint32_t eighths = code < 8u ? code : code - 8u;
  const float moved = tarn__moment_float(tarn__moment_bits(unit) + (eighths << TARN__MOMENT_DROPPED));
  return code < 8u ? moved - unit : moved;
}

static inline TARN__HOST_DEVICE uint8_t tarn__moment_code1(float value, float unit, uint16_t number) {
  const uint32_t bits = tarn__moment_bits(value);
  return (uint8_t)(tarn__moment_code(tarn__moment_float(bits & 0x7FFFFFFFu), unit, number) | (bits >> 24 & 0x80u));
}

static inline TARN__HOST_DEVICE float tarn__moment_value1(uint8_t code, float unit) {
  const float magnitude = tarn__moment_magnitude(code & 0x7Fu, unit);
  return tarn__moment_float(tarn__moment_bits(magnitude) ^ (uint32_t)(code & 0x80u) << 24);
}

static inline TARN__HOST_DEVICE uint8_t tarn__moment_code2(float value, float unit, uint16_t number) {
  const uint32_t code = tarn__moment_code(value, unit, tarn__moment_second(number));
  return (uint8_t)(value > 0.0f && code == 0u ? 1u : code);
}

static inline TARN__HOST_DEVICE float tarn__moment_value2(uint8_t code, float unit) {
  return tarn__moment_magnitude(code, unit);
}

#endif
