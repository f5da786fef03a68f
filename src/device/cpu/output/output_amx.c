// Logits of 32 rows and 32 words are sums in four tile registers; while the next ones are computed, they are converted
// to weights. So the tile unit and the vector units work in parallel, and only weights in BF16 leave the L2 cache.
// Compiled for AMX alone and called only if tarn__isa_now() allows it.
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "device/cpu/isa/amx_config.h"
#include "device/cpu/isa/transpose_amx.h"
#include "device/cpu/isa/vec_cpu.h"
#include "device/cpu/output/output_tiles.h"

enum {
  TILE = 512,
  PAIR = TARN__OUTPUT_PAIR,
  NUMBERS = TARN__OUTPUT_PAIR_NUMBERS,
  VISIT = TARN__OUTPUT_VISIT,
  LINES = 16,
  DEEP = 16  // pairs of rows of scaled x that stay in the L1 cache for the words
};

#define INLINE static inline __attribute__((always_inline))

// Tiles 0 to 3: sums; 4, 5: A; 6, 7: B. All are full size.

// Loads one pair of A and one of B: with an A that must not evict B from the L1 cache, or vice versa. All loads precede
// the multiplications, so they overlap those of the previous step.
INLINE void load_past_a(const uint16_t *a, const uint16_t *b) {
  _tile_stream_loadd(4, a, 64);
  _tile_stream_loadd(5, a + TILE, 64);
  _tile_loadd(6, b, 64);
  _tile_loadd(7, b + TILE, 64);
}

INLINE void load_past_b(const uint16_t *a, const uint16_t *b) {
  _tile_stream_loadd(6, b, 64);
  _tile_stream_loadd(7, b + TILE, 64);
  _tile_loadd(4, a, 64);
  _tile_loadd(5, a + TILE, 64);
}

INLINE void multiply(void) {
  _tile_dpbf16ps(0, 4, 6);
  _tile_dpbf16ps(1, 4, 7);
  _tile_dpbf16ps(2, 5, 6);
  _tile_dpbf16ps(3, 5, 7);
}

// The layout of four tiles of sums: consecutive, or as a square of 32 rows.
typedef enum sums_form { TILES, SQUARE } sums_form;

INLINE void store_sums(float *sums, sums_form form) {
  const int64_t right = form == SQUARE ? LINES : 256, below = form == SQUARE ? LINES * PAIR : 512;
  const int64_t row = form == SQUARE ? PAIR * 4 : 64;
  _tile_stored(0, sums, row);
  _tile_stored(1, sums + right, row);
  _tile_stored(2, sums + below, row);
  _tile_stored(3, sums + below + right, row);
}

// The first multiplication of sums, to which those at `from` (TILES) are added unless it is NULL. The tiles still hold
// the previous sums, which are stored to `before` (NULL: none) one by one, so that multiplications follow each other
// without a gap.
INLINE void multiply_first(float *before, sums_form form, const float *from) {
  const int64_t right = form == SQUARE ? LINES : 256, below = form == SQUARE ? LINES * PAIR : 512;
  const int64_t row = form == SQUARE ? PAIR * 4 : 64;
#define TAKE_TURN(tile, place)                           \
  if (before) _tile_stored(tile, before + (place), row); \
  if (from)                                              \
    _tile_stream_loadd(tile, from + 256 * (tile), 64);   \
  else                                                   \
    _tile_zero(tile)
  TAKE_TURN(0, 0);
  _tile_dpbf16ps(0, 4, 6);
  TAKE_TURN(1, right);
  _tile_dpbf16ps(1, 4, 7);
  TAKE_TURN(2, below);
  _tile_dpbf16ps(2, 5, 6);
  TAKE_TURN(3, below + right);
  _tile_dpbf16ps(3, 5, 7);
#undef TAKE_TURN
}

// --- weights

typedef struct weighing {
  const tarn__output_block *block;
  int64_t row, word, visit_pair;  // first row and word; pair of words within the visit
  __mmask16 here[2];              // words that exist
  float *sums;                    // [32][32] logits without the bias
} weighing;

static const float NOWHERE = -1e30f;  // a logit whose weight is 0

// Removes the targets' logits.
static void take_targets(const weighing *w) {
  const __m512i word = _mm512_set1_epi32((int32_t)w->word), width = _mm512_set1_epi32(PAIR);
  for (int half = 0; half < 2; half++) {
    const int32_t *targets = w->block->targets + w->row + half * LINES;
    const __m512i column = _mm512_sub_epi32(_mm512_loadu_si512(targets), word);
    unsigned found = _mm512_cmplt_epu32_mask(column, width);
    for (; found != 0; found &= found - 1) {
      const int r = __builtin_ctz(found);
      w->sums[(half * LINES + r) * PAIR + targets[r] - w->word] = NOWHERE;
    }
  }
}

INLINE tarn__vec weight(tarn__vec logit, tarn__vec shift, __mmask16 here) {
  return (tarn__vec)_mm512_maskz_mov_ps(here, (__m512)tarn__vec_exp2((logit - shift) * 1.44269504088896341f));
}

// Rows 2 pair and 2 pair + 1.
INLINE void weigh_rows(const weighing *w, int64_t pair) {
  const tarn__output_block *g = w->block;
  tarn__vec bias[2] = {{0}, {0}};
  if (g->bias)
    for (int h = 0; h < 2; h++) bias[h] = (tarn__vec)_mm512_maskz_loadu_ps(w->here[h], g->bias + w->word + 16 * h);
  __m512i line[2];
#pragma GCC unroll 2
  for (int i = 0; i < 2; i++) {
    const int64_t r = 2 * pair + i, row = w->row + r;
    const float *logits = w->sums + r * PAIR;
    const tarn__vec shift = tarn__vec_all(g->shift[row]);
    const tarn__vec low = weight(tarn__vec_load(logits) + bias[0], shift, w->here[0]);
    const tarn__vec high = weight(tarn__vec_load(logits + 16) + bias[1], shift, w->here[1]);
    float *lanes = g->lanes + row * 16;
    tarn__vec_store(lanes, tarn__vec_load(lanes) + (low + high));
    line[i] = (__m512i)_mm512_cvtne2ps_pbh((__m512)high, (__m512)low);
    if (g->table_dx) _mm512_store_si512(g->own + (w->row / PAIR * VISIT + w->visit_pair) * NUMBERS + r * PAIR, line[i]);
  }
  if (!g->weights) return;
  uint16_t *to = g->weights + (w->word / PAIR * g->weights_pairs + w->row / PAIR) * NUMBERS + pair * PAIR;
  _mm512_store_si512(to, _mm512_unpacklo_epi16(line[0], line[1]));
  _mm512_store_si512(to + TILE, _mm512_unpackhi_epi16(line[0], line[1]));
}

INLINE void largest_rows(const weighing *w, int64_t pair) {
  const tarn__output_block *g = w->block;
  for (int64_t r = 2 * pair; r < 2 * pair + 2; r++) {
    tarn__vec *most = (tarn__vec *)(void *)(g->lanes + (w->row + r) * 16);
    for (int h = 0; h < 2; h++) {
      __m512 v = _mm512_loadu_ps(w->sums + r * PAIR + 16 * h);
      if (g->bias) v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(w->here[h], g->bias + w->word + 16 * h));
      *most = tarn__vec_max(*most, (tarn__vec)_mm512_mask_mov_ps(_mm512_set1_ps(NOWHERE), w->here[h], v));
    }
  }
}

// --- logits

// Computes sums of a pair of rows with a pair of words, which stay in the tiles. The previous ones leave the tiles and
// are converted to weights meanwhile (NULL: none). `next` is prefetched into the L2 cache: lines [from, to) of each
// pair of tiles.
INLINE void logits_of(const uint16_t *a, const uint16_t *b, int64_t width, const weighing *before, const uint16_t *next,
                      int from, int to) {
  int64_t done = 0;
  load_past_a(a, b);
  multiply_first(before ? before->sums : NULL, SQUARE, NULL);
  if (before) take_targets(before);
  for (int line = from; line < to; line++) _mm_prefetch((const char *)(next + line * 32), _MM_HINT_T1);
  for (int64_t t = 1; t < width; t++) {
    load_past_a(a + t * NUMBERS, b + t * NUMBERS);
    multiply();
    for (int line = from; line < to; line++) _mm_prefetch((const char *)(next + t * NUMBERS + line * 32), _MM_HINT_T1);
    if (before)
      for (; done * (width - 1) < t * LINES; done++) weigh_rows(before, done);
  }
  if (before)
    for (; done < LINES; done++) weigh_rows(before, done);
}

static void finish_weighing(const weighing *w) {
  for (int64_t pair = 0; pair < LINES; pair++)
    if (w->block->most)
      largest_rows(w, pair);
    else
      weigh_rows(w, pair);
}

static __mmask16 words_here(int64_t left) {
  return left >= 16 ? 0xFFFF : left <= 0 ? 0 : (__mmask16)((1u << left) - 1);
}

// Pairs of words [first, first + count) against all rows.
static void weigh_visit(const tarn__output_block *g, int64_t first, int64_t count) {
  _Alignas(64) float sums[PAIR * PAIR];
  weighing w = {0};
  const int64_t width = g->width_pairs, all = (g->words + PAIR - 1) / PAIR;
  bool waits = false;
  for (int64_t p = first; p < first + count; p++) {
    const uint16_t *b = g->table + p * width * NUMBERS, *next = p + 1 < all ? b + width * NUMBERS : b;
    for (int64_t r = 0; r < g->pairs; r++) {
      const uint16_t *a = g->x + r * width * NUMBERS;
      const int from = (int)(r * PAIR / g->pairs), to = (int)((r + 1) * PAIR / g->pairs);
      if (!waits)
        logits_of(a, b, width, NULL, next, from, to);
      else if (width == 16)
        logits_of(a, b, 16, &w, next, from, to);
      else
        logits_of(a, b, width, &w, next, from, to);
      const int64_t left = g->words - p * PAIR;
      w = (weighing){g, r * PAIR, p * PAIR, p - first, {words_here(left), words_here(left - 16)}, sums};
      waits = g->most == NULL;
      if (waits) continue;
      store_sums(sums, SQUARE);
      finish_weighing(&w);
    }
  }
  if (waits) {
    store_sums(sums, SQUARE);
    take_targets(&w);
    finish_weighing(&w);
  }
  tarn__amx_written();
}

// dx += weights of the visit times its words.
static void add_dx(const tarn__output_block *g, int64_t first, int64_t count) {
  const int64_t width = g->width_pairs;
  const uint16_t *table = g->table_dx + first * width * NUMBERS;
  float *before = NULL;
  for (int64_t q = 0; q < width; q++) {
    const uint16_t *b = table + q * count * NUMBERS;
    for (int64_t r = 0; r < g->pairs; r++) {
      float *c = g->dx + (r * width + q) * NUMBERS;
      const uint16_t *a = g->own + r * VISIT * NUMBERS;
      const int from = (int)(r * PAIR / g->pairs), to = (int)((r + 1) * PAIR / g->pairs);
      for (int64_t t = 0; t < count; t++) {
        load_past_a(a + t * NUMBERS, b + t * NUMBERS);
        if (t == 0)
          multiply_first(before, TILES, first == 0 ? NULL : c);
        else
          multiply();
        for (int line = from; line < to; line++)
          _mm_prefetch((const char *)(b + (count + t) * NUMBERS + line * 32), _MM_HINT_T1);
      }
      before = c;
    }
  }
  if (before) store_sums(before, TILES);
}

void tarn__output_amx_block(const tarn__output_block *g) {
  const int64_t pairs = (g->words + PAIR - 1) / PAIR, rows = g->pairs * PAIR;
  for (int64_t i = 0; i < rows * 16; i++) g->lanes[i] = g->most ? NOWHERE : 0.0f;
  tarn__amx_configure();
  tarn__amx_written();
  for (int64_t first = 0; first < pairs; first += VISIT) {
    const int64_t count = pairs - first < VISIT ? pairs - first : VISIT;
    weigh_visit(g, first, count);
    if (g->table_dx && !g->most) add_dx(g, first, count);
  }
  _tile_release();
  for (int64_t r = 0; r < rows; r++) {
    const tarn__vec lanes = tarn__vec_load(g->lanes + r * 16);
    if (g->most)
      g->most[r] = tarn__vec_max_lane(lanes)[0];
    else
      g->sum[r] = tarn__vec_sum_lanes(lanes)[0];
  }
}

// --- packing

// Numbers [0, n) of a line of 32, padded with zeros.
INLINE __m512i line_of(const uint16_t *from, int64_t n) {
  return n >= PAIR ? _mm512_loadu_si512(from) : _mm512_maskz_loadu_epi16((__mmask32)((UINT64_C(1) << n) - 1), from);
}

void tarn__output_amx_pack_rows(uint16_t *out, const uint16_t *x, int64_t rows, int64_t d) {
  for (int64_t first = 0; first < rows; first += PAIR)
    for (int64_t j = 0; j < d; j += PAIR)
      for (int64_t r = first; r < first + PAIR; r++, out += PAIR)
        _mm512_store_si512(out, r < rows ? line_of(x + r * d + j, d - j) : _mm512_setzero_si512());
}

void tarn__output_amx_pack_words(uint16_t *out, uint16_t *dx, const uint16_t *table, int64_t count, int64_t d) {
  const int64_t pairs = (count + PAIR - 1) / PAIR, width = (d + PAIR - 1) / PAIR;
  for (int64_t p = 0; p < pairs; p++)
    for (int64_t q = 0; q < width; q++) {
      const uint16_t *from = table + p * PAIR * d + q * PAIR;
      const int64_t here = count - p * PAIR, n = d - q * PAIR;
      uint16_t *to = out + (p * width + q) * NUMBERS;
      for (int half = 0; half < 2; half++, to += TILE) {
        __m512i v[LINES];
        for (int i = 0; i < LINES; i++)
          v[i] = half * LINES + i < here ? line_of(from + (half * LINES + i) * d, n) : _mm512_setzero_si512();
        tarn__transpose_units(v);
        for (int i = 0; i < LINES; i++) _mm512_store_si512(to + i * 32, v[i]);
      }
      if (!dx) continue;
      const __m512i step_2 = _mm512_set1_epi32(0x00200000),
                    low = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
      // Number i of both lines, next to each other.
      const __m512i first = _mm512_or_si512(_mm512_or_si512(low, _mm512_slli_epi32(low, 16)), step_2);
      const __m512i second = _mm512_add_epi16(first, _mm512_set1_epi16(16));
      to = dx + (q * pairs + p) * NUMBERS;
      for (int i = 0; i < LINES; i++, to += 32) {
        const __m512i even = 2 * i < here ? line_of(from + 2 * i * d, n) : _mm512_setzero_si512();
        const __m512i odd = 2 * i + 1 < here ? line_of(from + (2 * i + 1) * d, n) : _mm512_setzero_si512();
        _mm512_store_si512(to, _mm512_permutex2var_epi16(even, first, odd));
        _mm512_store_si512(to + TILE, _mm512_permutex2var_epi16(even, second, odd));
      }
    }
}

// Loads the existing BF16 numbers as fp32.
INLINE __m512 wide(const uint16_t *x, __mmask16 here) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(here, x)), 16));
}

// 16 columns of a pair of rows, scaled, as units of two rows.
INLINE __m512i scaled_units(const uint16_t *x, const float *factors, int64_t here, int64_t d, __mmask16 columns) {
  __m512i units = _mm512_setzero_si512();
  for (int i = 0; i < 2 && i < here; i++) {
    const __m512 v = _mm512_mul_ps(wide(x + i * d, columns), _mm512_set1_ps(factors[i]));
    const __m512i narrow = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(v));
    units = _mm512_or_si512(units, i == 0 ? narrow : _mm512_slli_epi32(narrow, 16));
  }
  return units;
}

// The factors of a pair of rows in two parts of BF16, as two columns.
static void factor_columns(uint16_t *to, const float *factors, int64_t here) {
  memset(to, 0, NUMBERS * sizeof *to);
  for (int64_t r = 0; r < here && r < PAIR; r++) {
    to[r] = tarn__bf16_from_f32(factors[r]);
    to[PAIR + r] = tarn__bf16_from_f32(factors[r] - tarn__bf16_to_f32(to[r]));
  }
}

void tarn__output_amx_pack_scaled(uint16_t *out, const uint16_t *x, const float *factors, int64_t rows, int64_t d,
                                  int64_t pairs, bool bias) {
  const int64_t width = (d + PAIR - 1) / PAIR;
  for (int64_t p = 0; p < rows; p += PAIR) {
    for (int64_t j = 0; j < width * PAIR; j += LINES) {
      uint16_t *to = out + (j / PAIR * pairs + p / PAIR) * NUMBERS + j % PAIR / LINES * TILE;
      const __mmask16 columns = words_here(d - j);
      __m512i v[LINES];
      for (int i = 0; i < LINES; i++)
        v[i] = scaled_units(x + (p + 2 * i) * d + j, factors + p + 2 * i, rows - p - 2 * i, d, columns);
      tarn__transpose_units(v);
      for (int i = 0; i < LINES; i++) _mm512_store_si512(to + i * PAIR, v[i]);
    }
    if (bias) factor_columns(out + (width * pairs + p / PAIR) * NUMBERS, factors + p, rows - p);
  }
}

// --- gradients of the words

// Writes 16 columns of 16 words, [column][word], to the words' rows.
static void write_words(const tarn__output_words *g, const float *sums, int64_t first, int tile, int64_t j) {
  const __mmask16 columns = words_here(g->d - j);
  const __m512 offset = g->offset ? _mm512_maskz_loadu_ps(columns, g->offset + j) : _mm512_setzero_ps();
  __m512i v[LINES];
  for (int i = 0; i < LINES; i++) v[i] = _mm512_load_si512(sums + i * LINES);
  tarn__transpose_units(v);
  for (int i = 0; i < LINES; i++) {
    const int64_t word = first + i / 4 * 8 + tile * 4 + i % 4;
    if (word >= g->words) continue;
    float *to = g->table + word * g->d + j;
    __m512 sum = _mm512_add_ps(_mm512_castsi512_ps(v[i]), offset);
    if (g->table_accumulate) sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(columns, to));
    _mm512_mask_storeu_ps(to, columns, sum);
  }
}

static void write_bias(const tarn__output_words *g, const float *sums, int64_t first, int tile) {
  for (int i = 0; i < LINES; i++) {
    const int64_t word = first + i / 4 * 8 + tile * 4 + i % 4;
    if (word >= g->words) continue;
    const float sum = sums[i] + sums[LINES + i] + g->bias_offset;
    g->bias[word] = g->bias_accumulate ? g->bias[word] + sum : sum;
  }
}

// Adds complete sums to the gradients, row by row.
static void write_sums(const tarn__output_words *g, int64_t width) {
  for (int64_t p = 0; p < g->count; p++)
    for (int tile = 0; tile < 2; tile++) {
      const float *sums = g->sums + p * NUMBERS + 256 * tile;
      const int64_t first = g->first + p * PAIR;
      for (int64_t j = 0; g->table && j < g->d; j += LINES)
        write_words(g, sums + j / PAIR * g->count * NUMBERS + j % PAIR / LINES * TILE, first, tile, j);
      if (g->bias) write_bias(g, sums + width * g->count * NUMBERS, first, tile);
    }
}

// Prefetches part `part` of `all` parts of what this call writes and the next one reads into the L2 cache.
static void fetch_words(const tarn__output_words *g, int64_t part, int64_t all) {
  const int64_t left = g->words - g->first, words = left < g->count * PAIR ? left : g->count * PAIR;
  const int64_t row = words * g->d * (int64_t)sizeof(float) / 64, weights = g->count * g->x_pairs * NUMBERS * 2 / 64;
  const char *table = (const char *)(g->table + g->first * g->d);
  const char *next = (const char *)(g->weights + g->count * g->x_pairs * NUMBERS);
  if (g->table)
    for (int64_t i = row * part / all; i < row * (part + 1) / all; i++) _mm_prefetch(table + 64 * i, _MM_HINT_T1);
  for (int64_t i = weights * part / all; i < weights * (part + 1) / all; i++) _mm_prefetch(next + 64 * i, _MM_HINT_T1);
}

void tarn__output_amx_words(const tarn__output_words *g) {
  const int64_t width = (g->d + PAIR - 1) / PAIR, first = g->table ? 0 : width, end = width + (g->bias != NULL);
  tarn__amx_configure();
  tarn__amx_written();
  float *before = NULL;
  int64_t part = 0, parts = (end - first) * ((g->pairs + DEEP - 1) / DEEP);
  for (int64_t from = 0; from < g->pairs; from += DEEP) {
    const int64_t deep = g->pairs - from < DEEP ? g->pairs - from : DEEP;
    for (int64_t q = first; q < end; q++) {
      const uint16_t *a = g->x + (q * g->x_pairs + from) * NUMBERS;
      fetch_words(g, part++, parts);
      for (int64_t p = 0; p < g->count; p++) {
        const uint16_t *b = g->weights + (p * g->x_pairs + from) * NUMBERS;
        float *sums = g->sums + (q * g->count + p) * NUMBERS;
        load_past_b(a, b);
        multiply_first(before, TILES, from == 0 ? NULL : sums);
        for (int64_t t = 1; t < deep; t++) {
          load_past_b(a + t * NUMBERS, b + t * NUMBERS);
          multiply();
        }
        before = sums;
      }
    }
  }
  if (before) store_sums(before, TILES);
  _tile_release();
  write_sums(g, width);
}

// --- sums over columns and rows

void tarn__output_amx_column_sums(float *sums, const uint16_t *x, int64_t rows, int64_t d) {
  for (int64_t j = 0; j < d; j += 16) {
    const __mmask16 here = words_here(d - j);
    __m512 sum = _mm512_setzero_ps();
    for (int64_t r = 0; r < rows; r++) sum = _mm512_add_ps(sum, wide(x + r * d + j, here));
    _mm512_mask_storeu_ps(sums + j, here, sum);
  }
}

float tarn__output_amx_dot(const uint16_t *x, const uint16_t *y, int64_t d) {
  __m512 sum = _mm512_setzero_ps();
  for (int64_t j = 0; j < d; j += 16)
    sum = _mm512_fmadd_ps(wide(x + j, words_here(d - j)), wide(y + j, words_here(d - j)), sum);
  return tarn__vec_sum_lanes((tarn__vec)sum)[0];
}

float tarn__output_amx_dot_floats(const uint16_t *x, const float *y, int64_t d) {
  __m512 sum = _mm512_setzero_ps();
  for (int64_t j = 0; j < d; j += 16)
    sum = _mm512_fmadd_ps(wide(x + j, words_here(d - j)), _mm512_maskz_loadu_ps(words_here(d - j), y + j), sum);
  return tarn__vec_sum_lanes((tarn__vec)sum)[0];
}

void tarn__output_amx_finish_dx(uint16_t *dx, const tarn__output_block *g, int64_t row, int64_t d, float factor,
                                float wanted, const uint16_t *table, float offset, const float *table_sums) {
  const float *sums = g->dx + row / PAIR * g->width_pairs * NUMBERS + row % PAIR / LINES * TILE + row % LINES * 16;
  for (int64_t j = 0; j < d; j += 16) {
    const __mmask16 here = words_here(d - j);
    __m512 v = _mm512_mul_ps(_mm512_set1_ps(factor), _mm512_load_ps(sums + j / PAIR * NUMBERS + j % PAIR / 16 * 256));
    v = _mm512_fmadd_ps(_mm512_set1_ps(wanted), wide(table + j, here), v);
    v = _mm512_fnmadd_ps(_mm512_set1_ps(offset), _mm512_maskz_loadu_ps(here, table_sums + j), v);
    _mm256_mask_storeu_epi16(dx + j, here, (__m256i)_mm512_cvtneps_pbh(v));
  }
}
