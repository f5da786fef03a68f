// Transposes 16 x 16 units of 32 bits in registers.
#ifndef TARN_DEVICE_CPU_ISA_TRANSPOSE_AMX_H
#define TARN_DEVICE_CPU_ISA_TRANSPOSE_AMX_H

#include <immintrin.h>

static inline __attribute__((always_inline)) void tarn__transpose_units(__m512i v[16]) {
  __m512i w[16];
  for (int i = 0; i < 16; i += 2) {
    w[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
    w[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    v[i] = _mm512_unpacklo_epi64(w[i], w[i + 2]);
    v[i + 1] = _mm512_unpackhi_epi64(w[i], w[i + 2]);
    v[i + 2] = _mm512_unpacklo_epi64(w[i + 1], w[i + 3]);
    v[i + 3] = _mm512_unpackhi_epi64(w[i + 1], w[i + 3]);
  }
  // Lane l of v[4 q + c] holds column 4 l + c of rows 4 q to 4 q + 3.
  for (int c = 0; c < 4; c++) {
    const __m512i even01 = _mm512_shuffle_i32x4(v[c], v[c + 4], 0x88),
                  odd01 = _mm512_shuffle_i32x4(v[c], v[c + 4], 0xDD);
    const __m512i even23 = _mm512_shuffle_i32x4(v[c + 8], v[c + 12], 0x88);
    const __m512i odd23 = _mm512_shuffle_i32x4(v[c + 8], v[c + 12], 0xDD);
    w[c] = _mm512_shuffle_i32x4(even01, even23, 0x88);
    w[c + 4] = _mm512_shuffle_i32x4(odd01, odd23, 0x88);
    w[c + 8] = _mm512_shuffle_i32x4(even01, even23, 0xDD);
    w[c + 12] = _mm512_shuffle_i32x4(odd01, odd23, 0xDD);
  }
  for (int i = 0; i < 16; i++) v[i] = w[i];
}

#endif
