// Element types of arrays in device memory.
#ifndef TARN_DEVICE_DTYPE_H
#define TARN_DEVICE_DTYPE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef enum tarn__dtype { TARN__F32, TARN__BF16, TARN__F64, TARN__I32 } tarn__dtype;
enum { TARN__DTYPES = TARN__I32 + 1 };

// How fp32 matrix products are computed.
typedef enum tarn__fp32 {
  TARN__FP32_EXACT,   // in fp32
  TARN__FP32_SPLIT6,  // each factor as a sum of three bf16 numbers: six products, rms error at most 1.2 times as large
  TARN__FP32_SPLIT3,  // each factor as a sum of two bf16 numbers: three products, 10 to 33 times the error
  TARN__FP32_TF32     // each factor rounded to 10 bits of mantissa, on tensor cores of a card
} tarn__fp32;

// How weights of products are rounded when they are packed.
typedef enum tarn__rounding {
  TARN__ROUNDING_NONE,
  TARN__ROUNDING_INT8,  // 8-bit integers with a scale for each output
  TARN__ROUNDING_INT4   // 4-bit integers with a factor for 32 terms of an output as well (int4.h)
} tarn__rounding;

// For messages.
static inline const char *tarn__dtype_name(tarn__dtype dtype) {
  static const char *const names[TARN__DTYPES] = {"fp32", "bf16", "fp64", "int32"};
  return names[dtype];
}

static inline size_t tarn__dtype_size(tarn__dtype dtype) {
  return dtype == TARN__BF16 ? 2 : dtype == TARN__F64 ? 8 : 4;
}

static inline float tarn__bf16_to_f32(uint16_t h) {
  uint32_t bits = (uint32_t)h << 16;
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

// Rounds to nearest, ties to even; a NaN stays a NaN.
static inline uint16_t tarn__bf16_from_f32(float f) {
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  uint32_t rounded = (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16;
  return (uint16_t)((bits & 0x7FFFFFFFu) > 0x7F800000u ? bits >> 16 | 0x40u : rounded);
}

#endif
