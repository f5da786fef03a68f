#include "base/fixed.h"
#include "device/cpu/isa/row_cpu.h"
#include "device/cpu/mixing/fourier_kernels.h"
#include "ops/fourier.h"

static void make_wave(float *wave, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    const double turn = (double)i / (double)n;
    wave[i] = (float)tarn__fixed_cos_turn(turn);
    wave[n + i] = (float)tarn__fixed_cos_turn(turn < 0.25 ? turn + 0.75 : turn - 0.25);
  }
}

// row[k] = from[(at + step k) mod n].
static void walk(float *row, const float *from, int64_t at, int64_t step, int64_t n, int64_t count) {
  for (int64_t k = 0; k < count; k++) {
    row[k] = from[at];
    at += step;
    at = at >= n ? at - n : at;
  }
}

static void make_table(void *table, tarn__dtype dtype, const float *wave, int64_t n, bool across, int64_t first,
                       int64_t last, float *row) {
  const int64_t cosines = tarn__fourier_cosines(n), sines = n - cosines;
  for (int64_t i = first; i < last; i++) {
    if (across) {  // all frequencies of number i
      walk(row, wave, 0, i, n, cosines);
      walk(row + cosines, wave + n, i, i, n, sines);
    } else if (i < cosines) {
      walk(row, wave, 0, i, n, n);
    } else {
      walk(row, wave + n, 0, i - cosines + 1, n, n);
    }
    tarn__row_write(table, dtype, i * n, n, row);
  }
}

static void unfold(void *y, tarn__dtype dtype, const float *cosines, const float *sines, int64_t n, int64_t d,
                   int64_t first, int64_t last, bool add, float *row) {
  const int64_t wide = tarn__fourier_cosines(d), narrow = tarn__fourier_sines(d);
  for (int64_t i = first; i < last; i++) {
    const int64_t folded = 2 * i <= n ? i : n - i;
    const float *c = cosines + folded * wide, *s = sines + (folded - 1) * narrow;
    const float sign = folded == i ? 1.0f : -1.0f;
    const bool both = folded > 0 && 2 * folded != n;
    memcpy(row, c, (size_t)wide * sizeof *row);
    for (int64_t j = 1; j <= narrow; j++) row[d - j] = c[j];
    if (both) {
      for (int64_t j = 1; j <= narrow; j++) row[j] -= sign * s[j - 1];
      for (int64_t j = 1; j <= narrow; j++) row[d - j] += sign * s[j - 1];
    }
    if (add) {
      tarn__row_copy(row + d, y, dtype, i * d, d);
      tarn__row_add(row, row + d, d);
    }
    tarn__row_write(y, dtype, i * d, d, row);
  }
}

const tarn__fourier_kernels TARN__FAST(tarn__fourier_kernels) = {make_wave, make_table, unfold};
