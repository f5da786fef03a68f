#include "ops/spmm.h"

#include <math.h>

#include "ops/isa.h"

// The break-even points differ between machines: 0.6 in fp32 and 0.8 in bf16 on Zen 4, 0.85 and 0.65 on a Xeon with
// AVX-512 (docs/performance.md).
bool tarn__spmm_wins(double sparsity) { return sparsity >= 0.85; }

int64_t tarn__spmm_room(int64_t n, double sparsity) {
  const double entries = 1.5 * (1.0 - sparsity) * (double)n * (double)n + 64.0 * (double)n;
  const double all = (double)n * (double)n;
  return (int64_t)fmin(entries, all);
}

static float read_entry(const void *dense, tarn__dtype dtype, int64_t at) {
  return dtype == TARN__BF16 ? tarn__bf16_to_f32(((const uint16_t *)dense)[at]) : ((const float *)dense)[at];
}

static bool take_rows(tarn__spmm_rows *rows, const void *dense, tarn__dtype dtype) {
  const int64_t n = rows->n;
  int64_t count = 0;
  for (int64_t i = 0; i < n; i++) {
    rows->starts[i] = (int32_t)count;
    for (int64_t j = 0; j < n; j++) {
      const float value = read_entry(dense, dtype, i * n + j);
      if (value == 0.0f) continue;
      if (count == rows->room) return false;
      rows->columns[count] = (int32_t)j;
      rows->values[count++] = value;
    }
  }
  rows->starts[n] = (int32_t)count;
  return true;
}

// Counted first, so that the dense matrix is read row by row all the same.
static bool take_columns(tarn__spmm_rows *rows, const void *dense, tarn__dtype dtype) {
  const int64_t n = rows->n;
  int64_t count = 0;
  for (int64_t i = 0; i <= n; i++) rows->starts[i] = 0;
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++)
      if (read_entry(dense, dtype, i * n + j) != 0.0f) {
        rows->starts[j + 1]++;
        count++;
      }
  if (count > rows->room) return false;
  for (int64_t j = 0; j < n; j++) rows->starts[j + 1] += rows->starts[j];
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++) {
      const float value = read_entry(dense, dtype, i * n + j);
      if (value == 0.0f) continue;
      const int32_t at = rows->starts[j]++;
      rows->columns[at] = (int32_t)i;
      rows->values[at] = value;
    }
  // Every start has moved to the next one's place.
  for (int64_t j = n; j > 0; j--) rows->starts[j] = rows->starts[j - 1];
  rows->starts[0] = 0;
  return true;
}

bool tarn__spmm_take(tarn__spmm_rows *rows, const void *dense, tarn__dtype dtype, bool transpose) {
  return transpose ? take_columns(rows, dense, dtype) : take_rows(rows, dense, dtype);
}

void tarn__spmm_run(const tarn__spmm *product) {
  const tarn__spmm_kernels *kernels = TARN__TABLE_NOW(tarn__spmm_kernels);
  for (int64_t first = 0; first < product->m; first += TARN__SPMM_WIDE) {
    const int64_t left = product->m - first;
    kernels->block(product, first, left < TARN__SPMM_WIDE ? left : TARN__SPMM_WIDE);
  }
}
