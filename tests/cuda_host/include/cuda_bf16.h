// bf16 for the compilation of kernels by a C++ compiler (cuda_runtime.h beside this file).
#ifndef TARN_TESTS_CUDA_HOST_CUDA_BF16_H
#define TARN_TESTS_CUDA_HOST_CUDA_BF16_H

#include <stdint.h>
#include <string.h>

struct __nv_bfloat16 {
  uint16_t bits;
};
struct __nv_bfloat162 {
  __nv_bfloat16 x, y;
};

static inline float __bfloat162float(__nv_bfloat16 x) {
  const uint32_t bits = (uint32_t)x.bits << 16;
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

static inline __nv_bfloat16 __float2bfloat16_rn(float f) {
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  const uint32_t rounded = (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16;
  const __nv_bfloat16 x = {(uint16_t)((bits & 0x7FFFFFFFu) > 0x7F800000u ? 0x7FFFu : rounded)};
  return x;
}

static inline __nv_bfloat162 __floats2bfloat162_rn(float a, float b) {
  const __nv_bfloat162 pair = {__float2bfloat16_rn(a), __float2bfloat16_rn(b)};
  return pair;
}

#endif
