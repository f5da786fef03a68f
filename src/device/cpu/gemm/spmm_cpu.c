// Fast kernels: the rows of a are transposed to columns, so that an entry of the matrix multiplies a register of rows.
#include "device/cpu/gemm/spmm.h"
#include "device/cpu/isa/vec_cpu.h"

enum { WIDE = TARN__SPMM_WIDE, REGISTERS = WIDE / TARN__VEC_LANES, TILE = 16, PIECE = 512 };

// Whether an element is an entry, by its bits: the result must not depend on how a thread treats denormal numbers.
static bool is_entry_f32(const float *dense, int64_t at) {
  uint32_t bits;
  memcpy(&bits, dense + at, sizeof bits);
  return bits << 1 != 0;
}
static bool is_entry_bf16(const uint16_t *dense, int64_t at) { return (dense[at] & 0x7FFF) != 0; }

static int32_t count_row(const void *dense, tarn__dtype dtype, int64_t from, int64_t n) {
  int32_t count = 0;
  if (dtype == TARN__BF16)
    for (int64_t j = 0; j < n; j++) count += is_entry_bf16(dense, from + j);
  else
    for (int64_t j = 0; j < n; j++) count += is_entry_f32(dense, from + j);
  return count;
}

static void count_columns(int32_t *counts, const void *dense, tarn__dtype dtype, int64_t from, int64_t n) {
  if (dtype == TARN__BF16)
    for (int64_t j = 0; j < n; j++) counts[j] += is_entry_bf16(dense, from + j);
  else
    for (int64_t j = 0; j < n; j++) counts[j] += is_entry_f32(dense, from + j);
}

static void count(const tarn__spmm_rows *rows, const void *dense, tarn__dtype dtype, bool transpose, int64_t first,
                  int64_t last) {
  const int64_t n = rows->n;
  int32_t *counts = rows->starts + 1;
  if (!transpose) {
    for (int64_t i = first; i < last; i++) counts[i] = count_row(dense, dtype, i * n, n);
    return;
  }
  for (int64_t j = first; j < last; j++) counts[j] = 0;
  for (int64_t i = 0; i < n; i++) count_columns(counts + first, dense, dtype, i * n + first, last - first);
}

// The entries among n <= PIECE elements: their positions relative to `from`, and their values.
typedef struct found {
  int64_t count;
  int32_t at[PIECE + 16];
  float values[PIECE + 16];
} found;

static void find(found *f, const void *dense, tarn__dtype dtype, int64_t from, int64_t n) {
  int64_t count = 0;
#if defined(__AVX512F__)
  const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  for (int64_t j = 0; j < n; j += 16) {
    const __mmask16 here = n - j < 16 ? (__mmask16)((1u << (n - j)) - 1) : 0xFFFF;
    const __m512i value =
        dtype == TARN__BF16
            ? _mm512_slli_epi32(
                  _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(here, (const uint16_t *)dense + from + j)), 16)
            : _mm512_maskz_loadu_epi32(here, (const float *)dense + from + j);
    const __mmask16 entries = _mm512_test_epi32_mask(value, _mm512_set1_epi32(0x7FFFFFFF));
    const __m512i at = _mm512_add_epi32(lane, _mm512_set1_epi32((int32_t)j));
    _mm512_storeu_si512(f->at + count, _mm512_maskz_compress_epi32(entries, at));
    _mm512_storeu_si512(f->values + count, _mm512_maskz_compress_epi32(entries, value));
    count += __builtin_popcount(entries);
  }
#else
  // A zero is overwritten by the next entry: there is no branch to predict.
  for (int64_t j = 0; j < n; j++) {
    const bool bf16 = dtype == TARN__BF16;
    f->at[count] = (int32_t)j;
    f->values[count] = bf16 ? tarn__bf16_to_f32(((const uint16_t *)dense)[from + j]) : ((const float *)dense)[from + j];
    count += bf16 ? is_entry_bf16(dense, from + j) : is_entry_f32(dense, from + j);
  }
#endif
  f->count = count;
}

static void fill(const tarn__spmm_rows *rows, const void *dense, tarn__dtype dtype, bool transpose, int64_t first,
                 int64_t last) {
  const int64_t n = rows->n, row_first = transpose ? 0 : first, row_last = transpose ? n : last;
  const int64_t column_first = transpose ? first : 0, column_last = transpose ? last : n;
  int32_t *next = rows->starts + 1;
  found f;
  for (int64_t i = row_first; i < row_last; i++)
    for (int64_t j = column_first; j < column_last; j += PIECE) {
      find(&f, dense, dtype, i * n + j, column_last - j < PIECE ? column_last - j : PIECE);
      for (int64_t e = 0; e < f.count; e++) {
        const int64_t column = j + f.at[e];
        const int32_t at = transpose ? next[column]++ : next[i]++;
        rows->columns[at] = (int32_t)(transpose ? i : column);
        rows->values[at] = f.values[e];
      }
    }
}

// panel[k][i] = a[first + i][k] for the columns k in [column, last); lanes without a row are zero.
static void turn(const tarn__spmm *p, int64_t first, int64_t count, int64_t column, int64_t last) {
  float *panel = p->scratch;
  for (int64_t i = 0; i < count; i++) {
    const int64_t at = (first + i) * p->lda;
    if (p->dtype == TARN__BF16)
      for (int64_t k = column; k < last; k++) panel[k * WIDE + i] = tarn__bf16_to_f32(((const uint16_t *)p->a)[at + k]);
    else
      for (int64_t k = column; k < last; k++) panel[k * WIDE + i] = ((const float *)p->a)[at + k];
  }
  for (int64_t k = column; k < last && count < WIDE; k++)
    for (int64_t i = count; i < WIDE; i++) panel[k * WIDE + i] = 0.0f;
}

// One row of the matrix times `registers` registers of rows, a compile-time constant, so that sums stay in them.
TARN__VEC_INLINE void row_product(float *out, const float *panel, const tarn__spmm_rows *m, int64_t row,
                                  int registers) {
  tarn__vec sum[REGISTERS] = {{0}};
  for (int32_t e = m->starts[row]; e < m->starts[row + 1]; e++) {
    const float *at = panel + (int64_t)m->columns[e] * WIDE;
    const tarn__vec value = tarn__vec_all(m->values[e]);
    for (int r = 0; r < registers; r++) sum[r] = tarn__vec_fma(value, tarn__vec_load(at + r * TARN__VEC_LANES), sum[r]);
  }
  for (int r = 0; r < registers; r++) tarn__vec_store(out + r * TARN__VEC_LANES, sum[r]);
}

// Writes a tile [rows of the matrix][rows of a] to the result.
static void put(const tarn__spmm *p, const float *tile, int64_t first, int64_t count, int64_t row, int64_t rows) {
  for (int64_t i = 0; i < count; i++) {
    float *c = p->c + (first + i) * p->ldc + row;
    for (int64_t r = 0; r < rows; r++) {
      const float value = tile[r * WIDE + i];
      c[r] = p->accumulate ? c[r] + value : p->bias ? value + p->bias[row + r] : value;
    }
  }
}

static void multiply(const tarn__spmm *p, int64_t first, int64_t count, int64_t row, int64_t last) {
  const float *panel = p->scratch;
  float tile[TILE * WIDE] __attribute__((aligned(64)));
  for (; row < last; row += TILE) {
    const int64_t rows = last - row < TILE ? last - row : TILE;
    for (int64_t r = 0; r < rows; r++) {
      if (count > TARN__VEC_LANES)
        row_product(tile + r * WIDE, panel, p->matrix, row + r, REGISTERS);
      else
        row_product(tile + r * WIDE, panel, p->matrix, row + r, 1);
    }
    put(p, tile, first, count, row, rows);
  }
}

const tarn__spmm_kernels TARN__FAST(tarn__spmm_kernels) = {
    .count = count, .fill = fill, .turn = turn, .multiply = multiply};
