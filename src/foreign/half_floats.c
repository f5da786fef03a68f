#include "foreign/half_floats.h"

#include <math.h>
#include <string.h>

#include "device/dtype.h"

float tarn__half_to_float(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float size = exponent == 31  ? (fraction ? NAN : INFINITY)
                     : exponent == 0 ? ldexpf((float)fraction, -24)
                                     : ldexpf((float)(fraction + 1024), exponent - 25);
  return bits >> 15 ? -size : size;
}

// The fraction is shifted to the half's place, and what falls off decides; a carry goes into the exponent, as it
// should.
uint16_t tarn__float_to_half(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000u);
  const int exponent = (int)(bits >> 23 & 0xFFu) - 127 + 15;
  uint32_t fraction = bits & 0x7FFFFFu;
  if ((bits >> 23 & 0xFFu) == 0xFFu) return (uint16_t)(sign | 0x7C00u | (fraction ? 0x200u : 0));
  if (exponent >= 31) return (uint16_t)(sign | 0x7C00u);
  if (exponent < -10) return sign;
  int dropped = 13;
  uint32_t whole = (uint32_t)(exponent > 0 ? exponent : 0) << 10;
  if (exponent <= 0) {  // a subnormal half
    fraction |= 0x800000u;
    dropped = 14 - exponent;
  }
  whole += fraction >> dropped;
  const uint32_t rest = fraction & ((1u << dropped) - 1), half = 1u << (dropped - 1);
  if (rest > half || (rest == half && (whole & 1u))) whole++;
  return (uint16_t)(sign | whole);
}

typedef enum format { F32, F16, BF16, Q8_0, NONE } format;

static format format_of(const char *dtype) {
  static const char *const words[NONE] = {"F32", "F16", "BF16", "Q8_0"};
  int i = 0;
  while (i < NONE && strcmp(words[i], dtype) != 0) i++;
  return (format)i;
}

bool tarn__floats_known(const char *dtype) { return format_of(dtype) != NONE; }

static uint16_t half_at(const void *data, size_t at) {
  uint16_t half;
  memcpy(&half, (const char *)data + at, sizeof half);
  return half;
}

static void read_q8(float *values, const void *data, size_t first, size_t count) {
  float scale = 0.0f;
  for (size_t i = 0; i < count; i++) {
    const size_t block = (first + i) / TARN__Q8_BLOCK * TARN__Q8_BYTES, place = (first + i) % TARN__Q8_BLOCK;
    if (i == 0 || place == 0) scale = tarn__half_to_float(half_at(data, block));
    values[i] = scale * (float)((const int8_t *)data)[block + 2 + place];
  }
}

bool tarn__floats_read(float *values, const char *dtype, const void *data, size_t first, size_t count) {
  switch (format_of(dtype)) {
    case F32:
      memcpy(values, (const char *)data + first * sizeof *values, count * sizeof *values);
      return true;
    case F16:
      for (size_t i = 0; i < count; i++) values[i] = tarn__half_to_float(half_at(data, 2 * (first + i)));
      return true;
    case BF16:
      for (size_t i = 0; i < count; i++) values[i] = tarn__bf16_to_f32(half_at(data, 2 * (first + i)));
      return true;
    case Q8_0:
      read_q8(values, data, first, count);
      return true;
    default:
      return false;
  }
}

void tarn__floats_to_q8(void *blocks, const float *values, size_t count) {
  for (size_t at = 0; at < count; at += TARN__Q8_BLOCK) {
    uint8_t *block = (uint8_t *)blocks + at / TARN__Q8_BLOCK * TARN__Q8_BYTES;
    float largest = 0.0f;
    for (int i = 0; i < TARN__Q8_BLOCK; i++) largest = fmaxf(largest, fabsf(values[at + i]));
    const float scale = largest / 127.0f;
    const uint16_t half = tarn__float_to_half(scale);
    memcpy(block, &half, sizeof half);
    for (int i = 0; i < TARN__Q8_BLOCK; i++) {
      const float whole = scale > 0.0f ? roundf(values[at + i] / scale) : 0.0f;
      block[2 + i] = (uint8_t)(int8_t)fmaxf(-127.0f, fminf(127.0f, whole));
    }
  }
}
