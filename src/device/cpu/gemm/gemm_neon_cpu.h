// What the loops of gemm_arm_cpu.h are made of, with NEON's registers of 128 bits.
#ifndef TARN_DEVICE_CPU_GEMM_GEMM_NEON_CPU_H
#define TARN_DEVICE_CPU_GEMM_GEMM_NEON_CPU_H

#if defined(TARN_NEON)

#include <string.h>

#include "device/cpu/gemm/gemm_kernels.h"
#include "device/cpu/isa/vec_cpu.h"

#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC) && defined(__ARM_FEATURE_MATMUL_INT8)
#define TARN__ARM_BLOCKS 1
#endif

typedef uint32x4_t tarn__arm_units;  // a register of units

TARN__VEC_INLINE uint32x4_t tarn__arm_load(const void *from) { return vreinterpretq_u32_u8(vld1q_u8(from)); }
// Four units, in each 128 bits.
TARN__VEC_INLINE uint32x4_t tarn__arm_load_four(const void *from) { return tarn__arm_load(from); }
TARN__VEC_INLINE uint32x4_t tarn__arm_all(uint32_t unit) { return vdupq_n_u32(unit); }

// sum + the products of the four bytes of each lane of b and of a, both signed. The sum of two products fits 16 bits.
TARN__VEC_INLINE tarn__vec tarn__arm_add_bytes(tarn__vec sum, uint32x4_t b, uint32x4_t a) {
#if defined(__ARM_FEATURE_DOTPROD)
  __asm__("sdot %0.4s, %1.16b, %2.16b" : "+w"(sum) : "w"(b), "w"(a));
#else
  const int8x16_t x = vreinterpretq_s8_u32(b), y = vreinterpretq_s8_u32(a);
  const int16x8_t pairs = vpaddq_s16(vmull_s8(vget_low_s8(x), vget_low_s8(y)), vmull_high_s8(x, y));
  __asm__("sadalp %0.4s, %1.8h" : "+w"(sum) : "w"(pairs));
#endif
  return sum;
}

// One unit for all lanes: sum + a b.
TARN__VEC_INLINE tarn__vec tarn__arm_add(tarn__vec sum, uint32x4_t b, uint32_t a, tarn__gemm_arithmetic arithmetic) {
  if (arithmetic == TARN__GEMM_INT8) return tarn__arm_add_bytes(sum, b, vdupq_n_u32(a));
  float by;
  memcpy(&by, &a, sizeof by);
  return (tarn__vec)vfmaq_n_f32((float32x4_t)sum, (float32x4_t)b, by);
}

// The same with unit `lane` of each 128 bits of a, which is a constant.
#define TARN__ARM_ADD_F32(sum, b, a, lane) \
  (tarn__vec) vfmaq_laneq_f32((float32x4_t)(sum), (float32x4_t)(b), (float32x4_t)(a), lane)
#if defined(__ARM_FEATURE_DOTPROD)
#define TARN__ARM_ADD_BYTES(sum, b, a, lane) \
  __asm__("sdot %0.4s, %1.16b, %2.4b[" #lane "]" : "+w"(sum) : "w"(b), "w"(a))
#else
#define TARN__ARM_ADD_BYTES(sum, b, a, lane) sum = tarn__arm_add_bytes(sum, b, vdupq_laneq_u32(a, lane))
#endif

#if defined(TARN__ARM_BLOCKS)

TARN__VEC_INLINE tarn__vec tarn__arm_add_block(tarn__vec block, uint32x4_t a, uint32x4_t b,
                                               tarn__gemm_arithmetic arithmetic) {
  if (arithmetic == TARN__GEMM_INT8)
    __asm__("smmla %0.4s, %1.16b, %2.16b" : "+w"(block) : "w"(a), "w"(b));
  else
    __asm__("bfmmla %0.4s, %1.8h, %2.8h" : "+w"(block) : "w"(a), "w"(b));
  return block;
}

// Two units of each of two rows, in each 128 bits.
TARN__VEC_INLINE uint32x4_t tarn__arm_both(const char *first, const char *second) {
  return vcombine_u32(vreinterpret_u32_u8(vld1_u8((const uint8_t *)first)),
                      vreinterpret_u32_u8(vld1_u8((const uint8_t *)second)));
}

// The halves of each 128 bits of two registers: the first units of two rows, and the second ones.
TARN__VEC_INLINE uint32x4_t tarn__arm_firsts(uint32x4_t x, uint32x4_t y) {
  return vreinterpretq_u32_u64(vzip1q_u64(vreinterpretq_u64_u32(x), vreinterpretq_u64_u32(y)));
}
TARN__VEC_INLINE uint32x4_t tarn__arm_seconds(uint32x4_t x, uint32x4_t y) {
  return vreinterpretq_u32_u64(vzip2q_u64(vreinterpretq_u64_u32(x), vreinterpretq_u64_u32(y)));
}

// Units of two registers side by side.
TARN__VEC_INLINE void tarn__arm_store_beside(uint32_t *to, uint32x4_t first, uint32x4_t second) {
  vst2q_u32(to, ((uint32x4x2_t){{first, second}}));
}

// The sums of the first and of the second rows, of blocks that lie side by side.
TARN__VEC_INLINE tarn__vec tarn__arm_first_row(tarn__vec left, tarn__vec right) {
  return (tarn__vec)tarn__arm_firsts((uint32x4_t)left, (uint32x4_t)right);
}
TARN__VEC_INLINE tarn__vec tarn__arm_second_row(tarn__vec left, tarn__vec right) {
  return (tarn__vec)tarn__arm_seconds((uint32x4_t)left, (uint32x4_t)right);
}

#endif

#endif

#endif
