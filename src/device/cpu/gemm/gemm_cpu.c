// A tile of C is a group of rows times two registers of columns. Each step of k reads two registers of B and broadcasts
// one unit of every row of A; with 12 rows on AVX-512 there are 24 independent sums, more than the latency of the
// multiply-add requires on any such processor.
#include <string.h>

#include "device/cpu/gemm/gemm_arm_cpu.h"
#include "device/cpu/gemm/gemm_kernels.h"
#include "device/cpu/gemm/gemm_pack_cpu.h"
#include "device/cpu/isa/row_cpu.h"
#include "device/cpu/isa/vec_cpu.h"

// LANES floats per register; a group has at most STEPS STEP rows.
#if defined(__AVX512F__)
enum { LANES = 16, STEP = 4, STEPS = 3 };
#elif defined(__AVX2__)
enum { LANES = 8, STEP = 2, STEPS = 3 };
#elif defined(TARN__ARM_LOOPS)
enum { LANES = TARN__VEC_LANES, STEP = TARN__ARM_STEP, STEPS = TARN__ARM_ROWS / STEP };
#else
enum { LANES = 4, STEP = 2, STEPS = 3 };
#endif
enum { PANEL = 2 * LANES, GROUP = STEPS * STEP, AHEAD = 1024 };  // AHEAD: bytes of B by which prefetching is ahead
_Static_assert(TARN__GEMM_PART % PANEL == 0, "a part of the columns begins with a panel");

// The byte of A that represents 0 (INT8), the units of a line that lie side by side, and whether BF16 is multiplied as
// such.
#if defined(TARN__ARM_LOOPS)
enum { ZERO = 0, BESIDE = TARN__ARM_BESIDE };
#else
enum { ZERO = TARN__GEMM_ZERO, BESIDE = 1 };
#endif
#if defined(__AVX512BF16__) || defined(TARN__ARM_BLOCKS)
#define HAS_BF16 1
#endif

typedef tarn__vec vec;
typedef float vec_any __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef uint32_t unit_any __attribute__((aligned(1), may_alias));
typedef int32_t mask __attribute__((vector_size(4 * LANES)));
typedef int32_t mask_any __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef uint32_t units_any __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

#define INLINE static inline __attribute__((always_inline))

// sum + a b; a is one unit for all lanes. Sums of INT8 are integers in the bits of the register.
INLINE vec add_product(vec sum, uint32_t a, units_any b, tarn__gemm_arithmetic arithmetic) {
#if defined(TARN__ARM_LOOPS)
  return tarn__arm_add(sum, (tarn__arm_units)b, a, arithmetic);
#else
  if (arithmetic == TARN__GEMM_INT8) {
#if defined(__AVX512VNNI__)
    // With the intrinsic, gcc 12 copies every sum twice, because it changes the type of its register.
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(_mm512_set1_epi32((int32_t)a)), "v"(b));
    return sum;
#else
    mask total = (mask)sum;
    for (int i = 0; i < 4; i++) total += (int32_t)(a >> 8 * i & 255) * ((mask)(b << (24 - 8 * i)) >> 24);
    return (vec)total;
#endif
  }
#if defined(__AVX512BF16__)
  if (arithmetic == TARN__GEMM_BF16)
    return (vec)_mm512_dpbf16_ps((__m512)sum, (__m512bh)_mm512_set1_epi32((int32_t)a), (__m512bh)b);
#endif
  return tarn__vec_axpy(tarn__row_bits_to_float(a), (vec)b, sum);
#endif
}

// Stores two registers of a row of C.
INLINE void store_row(void *c, tarn__dtype dtype, vec low, vec high) {
  if (dtype == TARN__F32) {
    ((vec_any *)c)[0] = low;
    ((vec_any *)c)[1] = high;
    return;
  }
#if defined(__AVX512BF16__)
  _mm512_storeu_si512(c, (__m512i)_mm512_cvtne2ps_pbh((__m512)high, (__m512)low));
#elif defined(TARN__ARM_LOOPS)
  tarn__vec_store_bf16(c, low);
  tarn__vec_store_bf16((uint16_t *)c + LANES, high);
#else
  float row[PANEL];
  memcpy(row, &low, sizeof low);
  memcpy(row + LANES, &high, sizeof high);
  tarn__row_to_bf16(c, row, PANEL);
#endif
}

INLINE vec load_c(const void *c, tarn__dtype dtype, int half) {
  if (dtype == TARN__F32) return ((const vec_any *)c)[half];
#if defined(TARN__ARM_LOOPS)
  return tarn__vec_load_bf16((const uint16_t *)c + half * LANES);
#else
  float row[LANES];
  vec v;
  tarn__row_from_bf16(row, (const uint16_t *)c + half * LANES, LANES);
  memcpy(&v, row, sizeof v);
  return v;
#endif
}

// Keeps NaN.
INLINE vec positive(vec v) { return (vec)((mask)v & ~(v < 0.0f)); }

static const float no_bias[PANEL];

// The operations on the sums of a tile. There is always a bias: so every tile of INT8 adds it in one multiply-add, and
// all of them round in the same place.
typedef struct finish {
  char *c;
  int64_t row_bytes;
  tarn__dtype dtype;
  const float *bias;  // [PANEL]
  bool accumulate, relu;
  const float *row_scales, *column_scales;  // INT8
  const int32_t *column_sums;
} finish;

// Converts integer sums of a row to floats and adds the bias. The bytes of A are offset by ZERO.
INLINE vec dequantise(vec sum, vec bias, const finish *f, int row, int half) {
  mask whole = (mask)sum - ZERO * ((const mask_any *)f->column_sums)[half];
  return tarn__vec_fma(__builtin_convertvector(whole, vec),
                       f->row_scales[row] * ((const vec_any *)f->column_scales)[half], bias);
}

INLINE void finish_rows(vec sums[GROUP][2], int rows, tarn__gemm_arithmetic arithmetic, const finish *f) {
  const vec bias0 = ((const vec_any *)f->bias)[0], bias1 = ((const vec_any *)f->bias)[1];
#pragma GCC unroll 12
  for (int r = 0; r < rows; r++) {
    char *c = f->c + r * f->row_bytes;
    bool whole = arithmetic == TARN__GEMM_INT8;
    vec low = whole ? dequantise(sums[r][0], bias0, f, r, 0) : sums[r][0] + bias0;
    vec high = whole ? dequantise(sums[r][1], bias1, f, r, 1) : sums[r][1] + bias1;
    if (f->accumulate) {
      low += load_c(c, f->dtype, 0);
      high += load_c(c, f->dtype, 1);
    }
    if (f->relu) {
      low = positive(low);
      high = positive(high);
    }
    store_row(c, f->dtype, low, high);
  }
}

#if defined(TARN__ARM_LOOPS)
INLINE void sum_tile(vec sums[GROUP][2], const char *a, int64_t row_bytes, const uint32_t *b, int64_t units, int rows,
                     tarn__gemm_arithmetic arithmetic) {
#if defined(TARN__ARM_BLOCKS)
  if (arithmetic != TARN__GEMM_F32) {
    tarn__arm_block_tile(sums, a, row_bytes, b, units, rows, arithmetic);
    return;
  }
#endif
  tarn__arm_tile(sums, a, row_bytes, b, units, rows, arithmetic);
}
#else
INLINE void sum_tile(vec sums[GROUP][2], const char *a, int64_t row_bytes, const uint32_t *b, int64_t units, int rows,
                     tarn__gemm_arithmetic arithmetic) {
  const int64_t row = row_bytes != 0 ? row_bytes : 4, unit = row_bytes != 0 ? 4 : 4 * rows;
  // Three rows are addressed from one base: base, base + row, base + 2 row.
  enum { BASES = (GROUP + 2) / 3 };
  const char *base[BASES];
  for (int i = 0; i < BASES; i++) base[i] = a + 3 * i * row;
  for (int64_t u = 0; u < units; u++) {
    units_any low = ((const units_any *)b)[0], high = ((const units_any *)b)[1];
    __builtin_prefetch((const char *)b + AHEAD);
    if (PANEL * 4 > 64) __builtin_prefetch((const char *)b + AHEAD + 64);
#pragma GCC unroll 12
    for (int r = 0; r < rows; r++) {
      uint32_t spread = *(const unit_any *)(base[r / 3] + r % 3 * row);
      sums[r][0] = add_product(sums[r][0], spread, low, arithmetic);
      sums[r][1] = add_product(sums[r][1], spread, high, arithmetic);
    }
    for (int i = 0; i < BASES; i++) base[i] += unit;
    b += PANEL;
  }
}
#endif

// rows: 1 to STEPS times STEP. row_bytes: 0 for a packed group of A.
INLINE void tile(const char *a, int64_t row_bytes, const uint32_t *b, int64_t units, int rows,
                 tarn__gemm_arithmetic arithmetic, const finish *f) {
  vec sums[GROUP][2] = {{{0}}};
  for (int r = 0; r < rows; r++) {
    __builtin_prefetch(f->c + r * f->row_bytes, 1);
    __builtin_prefetch(f->c + r * f->row_bytes + 64, 1);
  }
  sum_tile(sums, a, row_bytes, b, units, rows, arithmetic);
  finish_rows(sums, rows, arithmetic, f);
}

typedef void (*tile_function)(const char *a, int64_t row_bytes, const uint32_t *b, int64_t units, const finish *f);

#define TILE(name, rows, arithmetic)                                                                                   \
  static void name##_packed(const char *a, int64_t row_bytes, const uint32_t *b, int64_t units, const finish *f) {     \
    (void)row_bytes;                                                                                                   \
    tile(a, 0, b, units, rows, arithmetic, f);                                                                         \
  }                                                                                                                    \
  static void name##_as_it_lies(const char *a, int64_t row_bytes, const uint32_t *b, int64_t units, const finish *f) { \
    tile(a, row_bytes, b, units, rows, arithmetic, f);                                                                 \
  }
#if defined(TARN__ARM_LOOPS)
#define TILES(name, arithmetic)                                                    \
  TILE(name##_1, STEP, arithmetic)                                                 \
  TILE(name##_2, 2 * STEP, arithmetic)                                             \
  static const tile_function name[2][STEPS] = {{name##_1_packed, name##_2_packed}, \
                                               {name##_1_as_it_lies, name##_2_as_it_lies}};
#else
#define TILES(name, arithmetic)                                                                     \
  TILE(name##_1, STEP, arithmetic)                                                                  \
  TILE(name##_2, 2 * STEP, arithmetic)                                                              \
  TILE(name##_3, 3 * STEP, arithmetic)                                                              \
  static const tile_function name[2][STEPS] = {{name##_1_packed, name##_2_packed, name##_3_packed}, \
                                               {name##_1_as_it_lies, name##_2_as_it_lies, name##_3_as_it_lies}};
#endif
TILES(tiles_f32, TARN__GEMM_F32)
TILES(tiles_int8, TARN__GEMM_INT8)
#if defined(HAS_BF16)
TILES(tiles_bf16, TARN__GEMM_BF16)
#endif

// One unit of each of the panels, which are `panel` units apart, for a few rows of A.
INLINE void few_step(vec sums[2][GROUP][2], const char *const at[STEP], int64_t a, const uint32_t *b, int64_t panel,
                     int rows, int panels, tarn__gemm_arithmetic arithmetic) {
#pragma GCC unroll 2
  for (int p = 0; p < panels; p++) {
    const units_any *from = (const units_any *)(b + p * panel);
    const units_any low = from[0], high = from[1];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) {
      const uint32_t spread = *(const unit_any *)(at[r] + a);
      sums[p][r][0] = add_product(sums[p][r][0], spread, low, arithmetic);
      sums[p][r][1] = add_product(sums[p][r][1], spread, high, arithmetic);
    }
  }
}

// Few rows: nearly all time is that of reading B from memory, once. Two panels are read side by side, far enough ahead
// to keep as many cache lines on their way as the L2 cache allows, and no row is multiplied that C does not have. Every
// sum is that of other tiles, term by term. f: of the first panel.
INLINE void sum_few(vec sums[2][GROUP][2], const char *a, int64_t row_bytes, const uint32_t *b, int64_t units, int rows,
                    int panels, tarn__gemm_arithmetic arithmetic) {
  enum { TOGETHER = 2, FAR = 4096 };  // units; bytes by which prefetching is ahead
#if defined(TARN__ARM_BLOCKS)
  if (arithmetic != TARN__GEMM_F32) {
    tarn__arm_block_few(sums, a, row_bytes, b, units, units * PANEL, rows, panels, arithmetic);
    return;
  }
#endif
  const char *at[STEP];
  const int64_t row = row_bytes != 0 ? row_bytes : 4, unit = row_bytes != 0 ? 4 : 4 * STEP, panel = units * PANEL;
  for (int r = 0; r < rows; r++) at[r] = a + r * row;
  int64_t u = 0;
  for (; u + TOGETHER <= units; u += TOGETHER, b += TOGETHER * PANEL) {
    for (int p = 0; p < panels; p++)
      for (int line = 0; line < TOGETHER * PANEL * 4; line += 64)
        __builtin_prefetch((const char *)(b + p * panel) + FAR + line);
    few_step(sums, at, u * unit, b, panel, rows, panels, arithmetic);
    few_step(sums, at, (u + 1) * unit, b + PANEL, panel, rows, panels, arithmetic);
  }
  if (u < units) few_step(sums, at, u * unit, b, panel, rows, panels, arithmetic);
}

INLINE void few_tile(const char *a, int64_t row_bytes, const uint32_t *b, int64_t units, int rows, int panels,
                     tarn__gemm_arithmetic arithmetic, const finish *f) {
  vec sums[2][GROUP][2] = {{{{0}}}};
  sum_few(sums, a, row_bytes, b, units, rows, panels, arithmetic);
  for (int p = 0; p < panels; p++) {
    finish own = *f;
    own.c += p * PANEL * (int64_t)tarn__dtype_size(f->dtype);
    if (f->bias != no_bias) own.bias += p * PANEL;
    if (arithmetic == TARN__GEMM_INT8) own.column_scales += p * PANEL, own.column_sums += p * PANEL;
    finish_rows(sums[p], rows, arithmetic, &own);
  }
}

#define FEW(name, rows, panels, arithmetic)                                                               \
  static void name(const char *a, int64_t row_bytes, const uint32_t *b, int64_t units, const finish *f) { \
    few_tile(a, row_bytes, b, units, rows, panels, arithmetic, f);                                        \
  }
#if defined(__AVX512F__) || defined(TARN__ARM_LOOPS)
#define FEW_TABLE(name, arithmetic)                                                             \
  FEW(name##_1_1, 1, 1, arithmetic)                                                             \
  FEW(name##_2_1, 2, 1, arithmetic)                                                             \
  FEW(name##_3_1, 3, 1, arithmetic)                                                             \
  FEW(name##_4_1, 4, 1, arithmetic)                                                             \
  FEW(name##_1_2, 1, 2, arithmetic)                                                             \
  FEW(name##_2_2, 2, 2, arithmetic)                                                             \
  FEW(name##_3_2, 3, 2, arithmetic)                                                             \
  FEW(name##_4_2, 4, 2, arithmetic)                                                             \
  static const tile_function name[2][STEP] = {{name##_1_1, name##_2_1, name##_3_1, name##_4_1}, \
                                              {name##_1_2, name##_2_2, name##_3_2, name##_4_2}};
#else
#define FEW_TABLE(name, arithmetic) \
  FEW(name##_1_1, 1, 1, arithmetic) \
  FEW(name##_2_1, 2, 1, arithmetic) \
  FEW(name##_1_2, 1, 2, arithmetic) \
  FEW(name##_2_2, 2, 2, arithmetic) \
  static const tile_function name[2][STEP] = {{name##_1_1, name##_2_1}, {name##_1_2, name##_2_2}};
#endif
FEW_TABLE(few_f32, TARN__GEMM_F32)
FEW_TABLE(few_int8, TARN__GEMM_INT8)
#if defined(HAS_BF16)
FEW_TABLE(few_bf16, TARN__GEMM_BF16)
#endif

// An incomplete tile is computed as a whole one on copies of the existing parts of C and the bias, so its rows have the
// same bits as in other tiles.
static void edge_tile(tile_function run, const char *a, const uint32_t *b, const tarn__gemm_block *g, int64_t rows,
                      int64_t cols, const finish *f) {
  TARN__ROW_ALIGNED float copy[GROUP * PANEL];
  float bias[PANEL] = {0};
  const size_t size = tarn__dtype_size(f->dtype), bytes = (size_t)cols * size;
  finish whole = *f;
  whole.c = (char *)copy;
  whole.row_bytes = PANEL * (int64_t)size;
  if (f->bias != no_bias) whole.bias = memcpy(bias, f->bias, (size_t)cols * sizeof *bias);
  if (f->accumulate) {
    memset(copy, 0, sizeof copy);
    for (int64_t r = 0; r < rows; r++) memcpy(whole.c + r * whole.row_bytes, f->c + r * f->row_bytes, bytes);
  }
  run(a, g->row_bytes, b, g->units, &whole);
  for (int64_t r = 0; r < rows; r++) memcpy(f->c + r * f->row_bytes, whole.c + r * whole.row_bytes, bytes);
}

// The next part of A, prefetched into the L2 cache, a few lines with every tile.
typedef struct ahead {
  const char *row;  // the next one
  int64_t row_bytes, length, at, rows, lines;
} ahead;

static ahead ahead_of(const tarn__gemm_block *g) {
  ahead next = {.row = g->next, .row_bytes = g->row_bytes, .length = 4 * g->units, .rows = g->next_rows};
  int64_t tiles = ((g->n + PANEL - 1) / PANEL) * ((g->m + GROUP - 1) / GROUP);
  int64_t lines = next.rows * (next.length / 64 + 1);
  next.lines = (lines + tiles - 1) / tiles;
  return next;
}

INLINE void fetch_ahead(ahead *next) {
  for (int64_t i = 0; i < next->lines && next->rows > 0; i++) {
    __builtin_prefetch(next->row + next->at, 0, 2);
    next->at += 64;
    if (next->at < next->length) continue;
    next->at = 0;
    next->row += next->row_bytes;
    next->rows--;
  }
}

static finish finish_of(const tarn__gemm_block *g, int64_t i, int64_t j) {
  const int64_t size = (int64_t)tarn__dtype_size(g->c_dtype);
  finish f = {.c = (char *)g->c + (i * g->ldc + j) * size,
              .row_bytes = g->ldc * size,
              .dtype = g->c_dtype,
              .bias = g->bias != NULL ? g->bias + j : no_bias,
              .accumulate = g->accumulate,
              .relu = g->relu};
  if (g->row_scales != NULL) {
    f.row_scales = g->row_scales + i;
    f.column_scales = g->column_scales + j;
    f.column_sums = g->column_sums + j;
  }
  return f;
}

static void multiply_few(const tarn__gemm_block *g, const tile_function few[2][STEP]) {
  const uint32_t *b = g->b;
  for (int64_t j = 0; j < g->n;) {
    const int64_t cols = g->n - j, panels = cols < 2 * PANEL ? 1 : 2;
    const tile_function run = few[panels - 1][g->m - 1];
    const finish f = finish_of(g, 0, j);
    if (cols >= PANEL)
      run(g->a, g->row_bytes, b, g->units, &f);
    else
      edge_tile(run, g->a, b, g, g->m, cols, &f);
    j += panels * PANEL;
    b += panels * PANEL * g->units;
  }
}

static void multiply(const tarn__gemm_block *g, const tile_function tiles[2][STEPS], const tile_function few[2][STEP]) {
  if (g->m <= STEP) {
    multiply_few(g, few);
    return;
  }
  const tile_function *run = tiles[g->row_bytes != 0];
  const uint32_t *b = g->b;
  ahead next = ahead_of(g);
  for (int64_t j = 0; j < g->n; j += PANEL, b += PANEL * g->units) {
    int64_t cols = g->n - j < PANEL ? g->n - j : PANEL;
    const char *a = g->a;
    for (int64_t i = 0; i < g->m; i += GROUP) {
      int64_t rows = g->m - i < GROUP ? g->m - i : GROUP, group = tarn__gemm_group(rows, GROUP, STEP);
      fetch_ahead(&next);
      const finish f = finish_of(g, i, j);
      if (rows == group && cols == PANEL) {
        run[group / STEP - 1](a, g->row_bytes, b, g->units, &f);
      } else {
        edge_tile(run[group / STEP - 1], a, b, g, rows, cols, &f);
      }
      a += group * (g->row_bytes != 0 ? g->row_bytes : 4 * g->units);
    }
  }
}

static void multiply_int8(const tarn__gemm_block *g) { multiply(g, tiles_int8, few_int8); }
static void multiply_f32(const tarn__gemm_block *g) { multiply(g, tiles_f32, few_f32); }
#if defined(HAS_BF16)
static void multiply_bf16(const tarn__gemm_block *g) { multiply(g, tiles_bf16, few_bf16); }
#endif

enum { PIECE = 512 };

static float magnitude(const void *x, tarn__dtype dtype, int64_t n) {
  TARN__ROW_ALIGNED float piece[PIECE];
  uint32_t bits = 0;  // of magnitudes, which have the same order as the numbers, with NaN above all
  for (int64_t first = 0; first < n; first += PIECE) {
    int64_t count = n - first < PIECE ? n - first : PIECE;
    const float *row = tarn__row_read(x, dtype, first, count, piece);
#pragma omp simd reduction(max : bits)
    for (int64_t i = 0; i < count; i++) {
      uint32_t own = tarn__row_float_to_bits(row[i]) & 0x7FFFFFFFu;
      bits = own > bits ? own : bits;
    }
  }
  return tarn__row_bits_to_float(bits);
}

// Adding 1.5 * 2^23 rounds to the nearest integer, ties to even, and leaves it in the low bits.
static int32_t quantise(uint8_t *out, const void *x, tarn__dtype dtype, int64_t n, float inverse, int zero) {
  TARN__ROW_ALIGNED float piece[PIECE];
  int32_t sum = 0;
  for (int64_t first = 0; first < n; first += PIECE) {
    int64_t count = n - first < PIECE ? n - first : PIECE;
    const float *row = tarn__row_read(x, dtype, first, count, piece);
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < count; i++) {
      int32_t whole = (int32_t)(tarn__row_float_to_bits(tarn__fma(row[i], inverse, 12582912.0f)) - 0x4B400000u);
      sum += (signed char)whole;  // of numbers that are not finite it may be any, and sums of those do not fit
      out[first + i] = (uint8_t)(whole + zero);
    }
  }
  for (int64_t i = n; i % 4 != 0; i++) out[i] = (uint8_t)zero;
  return sum;
}

// Passes the possible widths as constants.
static void pack(uint32_t *out, const tarn__gemm_lines *l) {
#if defined(TARN__ARM_BLOCKS)
  if (tarn__gemm_unit_terms(l->arithmetic) > 1) {
    tarn__gemm_pack_beside(out, l);
    return;
  }
#endif
  if (l->across) {
    if (l->width == PANEL)
      tarn__gemm_pack_across(out, l, PANEL);
    else if (l->width == GROUP)
      tarn__gemm_pack_across(out, l, GROUP);
    else
      tarn__gemm_pack_across(out, l, l->width);
    return;
  }
  for (int64_t first = 0; first < l->count; first += l->width, out += l->stride) {
    int64_t count = l->count - first < l->width ? l->count - first : l->width;
    if (l->arithmetic == TARN__GEMM_WIDE)
      tarn__gemm_pack_wide(out, l, first, count);
    else
      tarn__gemm_pack_along(out, l, first, count, 4 / tarn__gemm_unit_terms(l->arithmetic));
  }
}

const tarn__gemm_kernels TARN__FAST(tarn__gemm_kernels) = {.panel = PANEL,
                                                           .group = GROUP,
                                                           .step = STEP,
                                                           .group_bf16 = GROUP,
                                                           .step_bf16 = STEP,
                                                           .beside = BESIDE,
                                                           .zero = ZERO,
                                                           .pack = pack,
                                                           .multiply_f32 = multiply_f32,
                                                           .multiply_int8 = multiply_int8,
                                                           .magnitude = magnitude,
                                                           .quantise = quantise,
#if defined(HAS_BF16)
                                                           .multiply_bf16 = multiply_bf16
#endif
};
