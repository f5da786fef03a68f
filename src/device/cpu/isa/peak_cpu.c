// Multiply-adds in registers: independent chains, as many as a latency of 6 cycles requires at two instructions per
// cycle; on ARM as one of 4 to 5 cycles requires at four instructions.
#include "device/cpu/isa/peak_kernels.h"
#include "device/cpu/isa/vec_cpu.h"

// The chains are separate variables: compilers keep an array of them in memory.
#define EACH_OF_12(act) act(0) act(1) act(2) act(3) act(4) act(5) act(6) act(7) act(8) act(9) act(10) act(11)
#if defined(TARN_NEON) || defined(TARN_SVE)
enum { CHAINS = 20 };
#define EACH(act) EACH_OF_12(act) act(12) act(13) act(14) act(15) act(16) act(17) act(18) act(19)
#else
enum { CHAINS = 12 };
#define EACH(act) EACH_OF_12(act)
#endif
#define DECLARE(i) tarn__vec s##i = tarn__vec_all((float)(i));
#define ADD(i) total += s##i[0];

static float loop_f32(int64_t rounds) {
  const tarn__vec a = tarn__vec_all(0.999f), b = tarn__vec_all(1e-3f);
  float total = 0.0f;
  EACH(DECLARE)
#define STEP(i) s##i = tarn__vec_fma(s##i, a, b);
  for (int64_t n = 0; n < rounds; n++) {
    EACH(STEP)
  }
#undef STEP
  EACH(ADD)
  return total;
}

#if defined(__AVX512BF16__)
static float loop_bf16(int64_t rounds) {
  const __m512bh a = _mm512_cvtne2ps_pbh(_mm512_set1_ps(1e-3f), _mm512_set1_ps(1e-3f));
  float total = 0.0f;
  EACH(DECLARE)
#define STEP(i) s##i = (tarn__vec)_mm512_dpbf16_ps((__m512)s##i, a, a);
  for (int64_t n = 0; n < rounds; n++) {
    EACH(STEP)
  }
#undef STEP
  EACH(ADD)
  return total;
}
enum { PAIRS = 2 };
#elif defined(TARN_NEON) && defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
// Products of blocks of two rows and two columns, four terms at a time.
static float loop_bf16(int64_t rounds) {
  const uint32x4_t a = vdupq_n_u32(0x3A833A83);  // 1e-3
  float total = 0.0f;
  EACH(DECLARE)
#define STEP(i) s##i = (tarn__vec)vbfmmlaq_f32((float32x4_t)s##i, vreinterpretq_bf16_u32(a), vreinterpretq_bf16_u32(a));
  for (int64_t n = 0; n < rounds; n++) {
    EACH(STEP)
  }
#undef STEP
  EACH(ADD)
  return total;
}
enum { PAIRS = 4 };
#elif defined(TARN_SVE) && defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
// Products of blocks of two rows and two columns, four terms at a time.
static float loop_bf16(int64_t rounds) {
  const svbfloat16_t a = svreinterpret_bf16_u32(svdup_u32(0x3A833A83));  // 1e-3
  float total = 0.0f;
  EACH(DECLARE)
#define STEP(i) s##i = (tarn__vec)svbfmmla_f32((svfloat32_t)s##i, a, a);
  for (int64_t n = 0; n < rounds; n++) {
    EACH(STEP)
  }
#undef STEP
  EACH(ADD)
  return total;
}
enum { PAIRS = 4 };
#else
// Products of BF16 are computed as those of floats.
#define loop_bf16 loop_f32
enum { PAIRS = 1 };
#endif

const tarn__peak_kernels TARN__FAST(tarn__peak_kernels) = {
    .f32 = loop_f32,
    .bf16 = loop_bf16,
    .f32_flops = 2.0 * CHAINS * TARN__VEC_LANES,
    .bf16_flops = 2.0 * CHAINS * TARN__VEC_LANES * PAIRS,
};
