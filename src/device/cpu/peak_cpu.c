// Multiply-adds in registers: chains that do not wait for each other, as many as a latency of 6 cycles at two
// instructions a cycle asks for.
#include "device/cpu/peak_kernels.h"
#include "device/cpu/vec_cpu.h"

enum { CHAINS = 12 };

static float total(const tarn__vec *sum) {
  float all = 0.0f;
  for (int i = 0; i < CHAINS; i++) all += sum[i][0];
  return all;
}

static float loop_f32(int64_t rounds) {
  const tarn__vec a = tarn__vec_all(0.999f), b = tarn__vec_all(1e-3f);
  tarn__vec sum[CHAINS];
  for (int i = 0; i < CHAINS; i++) sum[i] = tarn__vec_all((float)i);
  for (int64_t n = 0; n < rounds; n++)
#pragma GCC unroll 12
    for (int i = 0; i < CHAINS; i++) sum[i] = tarn__vec_fma(sum[i], a, b);
  return total(sum);
}

#if defined(__AVX512BF16__)
static float loop_bf16(int64_t rounds) {
  const __m512bh a = _mm512_cvtne2ps_pbh(_mm512_set1_ps(1e-3f), _mm512_set1_ps(1e-3f));
  tarn__vec sum[CHAINS];
  for (int i = 0; i < CHAINS; i++) sum[i] = tarn__vec_all((float)i);
  for (int64_t n = 0; n < rounds; n++)
#pragma GCC unroll 12
    for (int i = 0; i < CHAINS; i++) sum[i] = (tarn__vec)_mm512_dpbf16_ps((__m512)sum[i], a, a);
  return total(sum);
}
enum { PAIRS = 2 };
#else
// Products of BF16 are those of floats.
#define loop_bf16 loop_f32
enum { PAIRS = 1 };
#endif

const tarn__peak_kernels TARN__FAST(tarn__peak_kernels) = {
    .f32 = loop_f32,
    .bf16 = loop_bf16,
    .f32_flops = 2.0 * CHAINS * TARN__VEC_LANES,
    .bf16_flops = 2.0 * CHAINS * TARN__VEC_LANES * PAIRS,
};
