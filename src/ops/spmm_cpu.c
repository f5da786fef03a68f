// Fast kernel: the rows of a are turned into columns, so that an entry of the matrix multiplies a register of rows.
#include "ops/spmm.h"
#include "ops/vec_cpu.h"

enum { WIDE = TARN__SPMM_WIDE, REGISTERS = WIDE / TARN__VEC_LANES, TILE = 16 };

// panel[k][i] = a[first + i][k]; lanes without a row are zero.
static void turn(float *panel, const tarn__spmm *p, int64_t first, int64_t count) {
  const int64_t n = p->matrix->n;
  for (int64_t i = 0; i < count; i++) {
    const int64_t at = (first + i) * p->lda;
    if (p->dtype == TARN__BF16)
      for (int64_t k = 0; k < n; k++) panel[k * WIDE + i] = tarn__bf16_to_f32(((const uint16_t *)p->a)[at + k]);
    else
      for (int64_t k = 0; k < n; k++) panel[k * WIDE + i] = ((const float *)p->a)[at + k];
  }
  for (int64_t k = 0; k < n && count < WIDE; k++)
    for (int64_t i = count; i < WIDE; i++) panel[k * WIDE + i] = 0.0f;
}

// One row of the matrix times `registers` registers of rows, a number that the compiler knows, so that sums stay in
// them.
TARN__VEC_INLINE void row_product(float *out, const float *panel, const tarn__spmm_rows *m, int64_t row,
                                  int registers) {
  tarn__vec sum[REGISTERS] = {{0}};
  for (int32_t e = m->starts[row]; e < m->starts[row + 1]; e++) {
    const float *at = panel + (int64_t)m->columns[e] * WIDE;
    const tarn__vec value = (tarn__vec){0} + m->values[e];
    for (int r = 0; r < registers; r++) sum[r] += value * tarn__vec_load(at + r * TARN__VEC_LANES);
  }
  for (int r = 0; r < registers; r++) tarn__vec_store(out + r * TARN__VEC_LANES, sum[r]);
}

// Writes a tile [rows of the matrix][rows of a] where it belongs.
static void put(const tarn__spmm *p, const float *tile, int64_t first, int64_t count, int64_t row, int64_t rows) {
  for (int64_t i = 0; i < count; i++) {
    float *c = p->c + (first + i) * p->ldc + row;
    for (int64_t r = 0; r < rows; r++) {
      const float value = tile[r * WIDE + i];
      c[r] = p->accumulate ? c[r] + value : p->bias ? value + p->bias[row + r] : value;
    }
  }
}

static void block(const tarn__spmm *p, int64_t first, int64_t count) {
  const int64_t n = p->matrix->n;
  float *panel = p->scratch, *tile = p->scratch + n * WIDE;
  turn(panel, p, first, count);
  for (int64_t row = 0; row < n; row += TILE) {
    const int64_t rows = n - row < TILE ? n - row : TILE;
    for (int64_t r = 0; r < rows; r++) {
      if (count > TARN__VEC_LANES)
        row_product(tile + r * WIDE, panel, p->matrix, row + r, REGISTERS);
      else
        row_product(tile + r * WIDE, panel, p->matrix, row + r, 1);
    }
    put(p, tile, first, count, row, rows);
  }
}

const tarn__spmm_kernels TARN__FAST(tarn__spmm_kernels) = {block};
