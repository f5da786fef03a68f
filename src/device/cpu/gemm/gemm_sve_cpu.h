// What the loops of gemm_arm_cpu.h are made of, with SVE's registers of the length that the set is compiled for. What
// takes a lane or a block of NEON takes it from each 128 bits here.
#ifndef TARN_DEVICE_CPU_GEMM_GEMM_SVE_CPU_H
#define TARN_DEVICE_CPU_GEMM_GEMM_SVE_CPU_H

#if defined(TARN_SVE)

#include <string.h>

#include "device/cpu/gemm/gemm_kernels.h"
#include "device/cpu/isa/vec_cpu.h"

#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC) && defined(__ARM_FEATURE_SVE_MATMUL_INT8)
#define TARN__ARM_BLOCKS 1
#endif

typedef tarn__vec_bits tarn__arm_units;                                             // a register of units
typedef uint64_t tarn__arm_twos __attribute__((vector_size(4 * TARN__VEC_LANES)));  // of two units

TARN__VEC_INLINE tarn__vec_bits tarn__arm_load(const void *from) {
  return (tarn__vec_bits)svld1_u8(svptrue_b8(), from);
}
// Four units, in each 128 bits.
TARN__VEC_INLINE tarn__vec_bits tarn__arm_load_four(const void *from) {
  return (tarn__vec_bits)svld1rq_u8(svptrue_b8(), from);
}
TARN__VEC_INLINE tarn__vec_bits tarn__arm_all(uint32_t unit) { return (tarn__vec_bits)svdup_u32(unit); }

// sum + the products of the four bytes of each lane of b and of a, both signed.
TARN__VEC_INLINE tarn__vec tarn__arm_add_bytes(tarn__vec sum, tarn__vec_bits b, tarn__vec_bits a) {
  __asm__("sdot %0.s, %1.b, %2.b" : "+w"(sum) : "w"(b), "w"(a));
  return sum;
}

// sum + a b with unit `lane` of each 128 bits of a, which is a constant. Only eight registers can be such an a.
#define TARN__ARM_ADD_F32(sum, b, a, lane) \
  (tarn__vec) svmla_lane_f32((svfloat32_t)(sum), (svfloat32_t)(b), (svfloat32_t)(a), lane)
#define TARN__ARM_ADD_BYTES(sum, b, a, lane) __asm__("sdot %0.s, %1.b, %2.b[" #lane "]" : "+w"(sum) : "w"(b), "y"(a))

// One unit for all lanes: sum + a b.
TARN__VEC_INLINE tarn__vec tarn__arm_add(tarn__vec sum, tarn__vec_bits b, uint32_t a,
                                         tarn__gemm_arithmetic arithmetic) {
  const tarn__vec_bits all = tarn__arm_all(a);
  if (arithmetic == TARN__GEMM_INT8) return tarn__arm_add_bytes(sum, b, all);
  // Lanes that a predicate leaves out would be those of the sum, so gcc overwrites no other register, and copies none.
  return (tarn__vec)svmla_f32_m(svptrue_b32(), (svfloat32_t)sum, (svfloat32_t)b, (svfloat32_t)all);
}

#if defined(TARN__ARM_BLOCKS)

TARN__VEC_INLINE tarn__vec tarn__arm_add_block(tarn__vec block, tarn__vec_bits a, tarn__vec_bits b,
                                               tarn__gemm_arithmetic arithmetic) {
  if (arithmetic == TARN__GEMM_INT8)
    __asm__("smmla %0.s, %1.b, %2.b" : "+w"(block) : "w"(a), "w"(b));
  else
    __asm__("bfmmla %0.s, %1.h, %2.h" : "+w"(block) : "w"(a), "w"(b));
  return block;
}

// The halves of each 128 bits of two registers: the first units of two rows, and the second ones.
TARN__VEC_INLINE tarn__vec_bits tarn__arm_firsts(tarn__vec_bits x, tarn__vec_bits y) {
  return (tarn__vec_bits)svtrn1_u64((svuint64_t)(tarn__arm_twos)x, (svuint64_t)(tarn__arm_twos)y);
}
TARN__VEC_INLINE tarn__vec_bits tarn__arm_seconds(tarn__vec_bits x, tarn__vec_bits y) {
  return (tarn__vec_bits)svtrn2_u64((svuint64_t)(tarn__arm_twos)x, (svuint64_t)(tarn__arm_twos)y);
}

// Two units of each of two rows, in each 128 bits.
TARN__VEC_INLINE tarn__vec_bits tarn__arm_both(const char *first, const char *second) {
  uint64_t x, y;
  memcpy(&x, first, sizeof x);
  memcpy(&y, second, sizeof y);
  return tarn__arm_firsts((tarn__vec_bits)svdup_u64(x), (tarn__vec_bits)svdup_u64(y));
}

// Units of two registers side by side.
TARN__VEC_INLINE void tarn__arm_store_beside(uint32_t *to, tarn__vec_bits first, tarn__vec_bits second) {
  svst2_u32(svptrue_b32(), to, svcreate2_u32((svuint32_t)first, (svuint32_t)second));
}

// The sums of the first and of the second rows, of blocks that lie side by side.
TARN__VEC_INLINE tarn__vec tarn__arm_first_row(tarn__vec left, tarn__vec right) {
  return (tarn__vec)svuzp1_u64((svuint64_t)(tarn__arm_twos)left, (svuint64_t)(tarn__arm_twos)right);
}
TARN__VEC_INLINE tarn__vec tarn__arm_second_row(tarn__vec left, tarn__vec right) {
  return (tarn__vec)svuzp2_u64((svuint64_t)(tarn__arm_twos)left, (svuint64_t)(tarn__arm_twos)right);
}

#endif

#endif

#endif
