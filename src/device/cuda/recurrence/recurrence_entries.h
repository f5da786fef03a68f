// The sum over the entries of a row of a sparse matrix, with the same bits in every kernel: sixteen shares, share k of
// entries k, k + 16, .., are added in pairs, however many lanes divide them.
#ifndef TARN_DEVICE_CUDA_RECURRENCE_RECURRENCE_ENTRIES_H
#define TARN_DEVICE_CUDA_RECURRENCE_RECURRENCE_ENTRIES_H

#include "device/cuda/recurrence/recurrence_loop.h"

enum { TARN__SHARES = 16 };

// LANES lanes of a warp, STRIDE apart, each with TARN__SHARES / LANES shares; `lane` is this one's number among them.
// at(j): element j of the vector. All lanes of the warp call it, and those of a row get its sum.
template <int LANES, int STRIDE, typename A>
static __device__ __forceinline__ float tarn__entries_sum(const tarn__sparse_rows &m, int64_t row, int lane,
                                                          const A &at) {
  constexpr int OWN = TARN__SHARES / LANES;
  float sum[OWN] = {};
  const int32_t end = m.starts[row + 1];
  for (int32_t first = m.starts[row] + lane; first < end; first += TARN__SHARES)
#pragma unroll
    for (int k = 0; k < OWN; k++) {
      const int32_t e = first + k * LANES;
      if (e < end) sum[k] += m.values[e] * at(m.columns[e]);
    }
#pragma unroll
  for (int by = 1; by < LANES; by *= 2)
#pragma unroll
    for (int k = 0; k < OWN; k++) sum[k] += __shfl_xor_sync(TARN__WARP, sum[k], by * STRIDE);
#pragma unroll
  for (int by = 1; by < OWN; by *= 2)
#pragma unroll
    for (int k = 0; k + by < OWN; k += 2 * by) sum[k] += sum[k + by];
  return sum[0];
}

#endif
