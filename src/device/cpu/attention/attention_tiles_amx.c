// Kernels for BF16 tensors on processors with tiles (tdpbf16ps), one head of one sequence at a
// time; queries in groups of 32, one per lane of two registers:
//
//   S^T = K Q^T    dP^T = V dO^T                    [keys, queries]: sums and maxima over keys need no shuffles
//   O = P V        dQ = dS K                        [queries, width], of each group
//   dV += P^T dO   dK += dS^T Q                     [keys, width], of up to RANGE queries at once
//
// Every factor is stored tile by tile, 16 lines of 64 bytes: 16 rows of 32 elements of a left factor, 16 pairs of
// neighbouring terms of 16 columns of a right one. Elements after the last row, query or key are zero, and so
// contribute nothing; so are those after the last column of a head whose width is no multiple of 32 (`width` is here
// that multiple, h->width the head's own).
//
//   left     K, V                      [rows / 16][width / 32], copied unchanged
//            P, dS                     [queries / 16][keys / 32]
//            P^T, dS^T                 [keys / 16][queries / 32]
//   right    Q^T, dO^T                 [width / 32][queries / 16], transposed
//            K, V, Q, dO               [rows / 32][width / 16], pairs of rows in the order of tarn__attention_put()
//
// The backward pass of a long sequence takes maxima and sums from the forward pass, and computes rowsum(P dP) from its
// result as rowsum(O dO). So a range of queries passes over the keys once, in chunks, and only the sizes of dK and dV
// grow with them.
//
// P and dS are rounded to bf16 as factors; scores, sums and gradients are fp32. P is divided by its sum at the end, in
// the forward pass after the product. Dropout clears elements of P (and of dP) as they are computed, and the rest is
// scaled together with that factor.
#include "device/cpu/attention/attention_bf16_cpu.h"
#include "device/cpu/attention/attention_head_cpu.h"
#include "device/cpu/isa/amx_config.h"

#include <string.h>

enum {
  LANES = 16,
  GROUP = 32,    // queries of a group, keys of a block
  RANGE = 256,   // queries whose P and dS are kept for the gradients of keys and values
  STEP = 32,     // terms that two tiles multiply
  TILE = 256,    // words
  BLOCK = 1024,  // floats of 2 x 2 tiles of sums, [GROUP][GROUP]
  CHUNK = 512    // keys of a long sequence that a range processes at a time
};

#define UNROLL TARN__ATTENTION_UNROLL

typedef tarn__attention_head head;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t blocks_of(int64_t n) { return (n + GROUP - 1) / GROUP; }

void tarn__attention_tiles_begin(void) { tarn__amx_configure(); }

void tarn__attention_tiles_end(void) { _tile_release(); }

// Tile (i, s) of the left factor is at left + i * left_line + s * left_step, tile (s, j) of the right one likewise.
typedef struct factors {
  const uint32_t *left, *right;
  int64_t left_line, left_step, right_line, right_step;
} factors;

// c [GROUP][GROUP] (+)= `rows` lines of tiles from i on times `columns` from j on, over steps [begin, end).
TARN__VEC_INLINE void multiply(float *c, bool add, const factors *f, int64_t i, int64_t j, int64_t begin, int64_t end,
                               int rows, int columns) {
  const uint32_t *a = f->left + i * f->left_line + begin * f->left_step;
  const uint32_t *b = f->right + j * f->right_line + begin * f->right_step;
  float *right = c + LANES, *below = c + LANES * GROUP, *across = below + LANES;
  enum { LINE = GROUP * sizeof(float) };
  tarn__amx_written();
  if (add) {
    _tile_loadd(0, c, LINE);
    if (columns > 1) _tile_loadd(1, right, LINE);
    if (rows > 1) _tile_loadd(2, below, LINE);
    if (rows > 1 && columns > 1) _tile_loadd(3, across, LINE);
  } else {
    _tile_zero(0);
    if (columns > 1) _tile_zero(1);
    if (rows > 1) _tile_zero(2);
    if (rows > 1 && columns > 1) _tile_zero(3);
  }
  for (int64_t s = begin; s < end; s++, a += f->left_step, b += f->right_step) {
    _tile_loadd(4, a, 64);
    _tile_loadd(6, b, 64);
    _tile_dpbf16ps(0, 4, 6);
    if (columns > 1) {
      _tile_loadd(7, b + f->right_line, 64);
      _tile_dpbf16ps(1, 4, 7);
    }
    if (rows > 1) {
      _tile_loadd(5, a + f->left_line, 64);
      _tile_dpbf16ps(2, 5, 6);
      if (columns > 1) _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_stored(0, c, LINE);
  if (columns > 1) _tile_stored(1, right, LINE);
  if (rows > 1) _tile_stored(2, below, LINE);
  if (rows > 1 && columns > 1) _tile_stored(3, across, LINE);
}

// Queries [first, first + rows) of a head, and the keys that any of them sees.
typedef struct group {
  int64_t first, rows, keys;
  bool causal;
} group;

static group group_of(const head *h, int64_t first) {
  group g = {first, smaller(GROUP, h->queries - first), h->keys, h->spec->causal};
  if (g.causal) g.keys = smaller(g.keys, first + g.rows);
  return g;
}

// Scores c [keys][GROUP], in blocks: rows of keys or values times columns of queries or of the result's gradients.
static void scores_product(const group *g, float *c, const uint32_t *rows, const uint32_t *columns, int64_t width) {
  const factors f = {rows, columns, width / STEP * TILE, TILE, TILE, 2 * TILE};
  const int64_t steps = width / STEP;
  const bool wide = g->rows > LANES;
  for (int64_t i = 0; i < g->keys; i += GROUP, c += BLOCK) {
    const int64_t line = i / LANES;
    if (g->keys - i > LANES)
      wide ? multiply(c, false, &f, line, 0, 0, steps, 2, 2) : multiply(c, false, &f, line, 0, 0, steps, 2, 1);
    else
      wide ? multiply(c, false, &f, line, 0, 0, steps, 1, 2) : multiply(c, false, &f, line, 0, 0, steps, 1, 1);
  }
}

// O or dQ: P or dS (left) times rows of values or keys. factor: of each query, or NULL.
static void queries_product(const head *h, const group *g, const uint32_t *left, const uint32_t *right,
                            const float *factor, const tarn__tensor *out, bool add, int64_t column) {
  _Alignas(64) float c[BLOCK];
  const int64_t steps = blocks_of(g->keys), tiles = tarn__attention_padded(h->width) / LANES;
  const factors f = {left, right, blocks_of(h->keys) * TILE, TILE, TILE, tiles * TILE};
  for (int64_t j = 0; j < tiles; j += 2) {
    g->rows > LANES ? multiply(c, false, &f, 0, j, 0, steps, 2, 2) : multiply(c, false, &f, 0, j, 0, steps, 1, 2);
    for (int64_t r = 0; r < g->rows; r++) {
      __m512 low = _mm512_load_ps(c + r * GROUP), high = _mm512_load_ps(c + r * GROUP + LANES);
      if (factor) {
        const __m512 all = _mm512_set1_ps(factor[r]);
        low = _mm512_mul_ps(low, all), high = _mm512_mul_ps(high, all);
      }
      tarn__attention_put(tarn__attention_at(out, h->query + g->first + r, column + j * LANES), h->width - j * LANES,
                          add, low, high);
    }
  }
}

// Rows as left tiles [rows / 16][width / 32].
static void left_rows(uint32_t *out, const tarn__tensor *tensor, int64_t first, int64_t column, int64_t rows,
                      int64_t own) {
  const int64_t width = tarn__attention_padded(own);
  for (int64_t i = 0; i < rows; i += LANES, out += width / STEP * TILE) {
    const int64_t some = smaller(LANES, rows - i);
    for (int64_t r = 0; r < LANES; r++)
      for (int64_t c = 0; c < width; c += STEP)
        _mm512_store_si512(out + c / STEP * TILE + r * LANES,
                           r < some
                               ? tarn__attention_read(tarn__attention_at(tensor, first + i + r, column + c), own - c)
                               : _mm512_setzero_si512());
  }
}

// Rows as right tiles [rows / 32][width / 16]: pairs of neighbouring rows.
static void right_rows(uint32_t *out, const tarn__tensor *tensor, int64_t first, int64_t column, int64_t rows,
                       int64_t own) {
  const int64_t width = tarn__attention_padded(own);
  const __m512i zero = _mm512_setzero_si512();
  for (int64_t i = 0; i < rows; i += GROUP, out += width / LANES * TILE)
    for (int64_t r = 0; r < GROUP; r += 2) {
      const int64_t left = rows - i - r;
      uint32_t *to = out + r / 2 * LANES;
      for (int64_t c = 0; c < width; c += STEP, to += 2 * TILE) {
        const uint16_t *row = tarn__attention_at(tensor, first + i + r, column + c);
        const __m512i a = left > 0 ? tarn__attention_read(row, own - c) : zero;
        const __m512i b = left > 1 ? tarn__attention_read(row + tensor->cols, own - c) : zero;
        _mm512_store_si512(to, _mm512_unpacklo_epi16(a, b));
        _mm512_store_si512(to + TILE, _mm512_unpackhi_epi16(a, b));
      }
    }
}

// Up to GROUP rows, transposed, as right tiles [width / 32][2].
static void right_columns(uint32_t *out, const tarn__tensor *tensor, int64_t first, int64_t column, int64_t rows,
                          int64_t own) {
  for (int64_t i = 0; i < rows; i += LANES, out += TILE) {
    const int64_t some = smaller(LANES, rows - i);
    for (int64_t c = 0; c < own; c += STEP) {
      __m512i x[LANES];
      UNROLL for (int r = 0; r < LANES; r++) x[r] =
          r < some ? tarn__attention_read(tarn__attention_at(tensor, first + i + r, column + c), own - c)
                   : _mm512_setzero_si512();
      tarn__attention_transpose(x);
      UNROLL for (int r = 0; r < LANES; r++) _mm512_store_si512(out + 2 * c / STEP * TILE + r * LANES, x[r]);
    }
  }
}

// Queries of register v of a group that see key j.
TARN__VEC_INLINE __mmask16 seen(const group *g, int64_t j, int v, bool causal) {
  const int64_t unseeing = causal ? j - g->first - v * LANES : 0;
  return unseeing <= 0 ? 0xFFFF : unseeing >= LANES ? 0 : (__mmask16)(0xFFFFu << unseeing);
}

// Adds the biases of key j and register v of queries to their scores.
TARN__VEC_INLINE __m512 biased(const head *h, const group *g, float *s, int64_t j, int v) {
  const __m512 sum = _mm512_add_ps(_mm512_load_ps(s), _mm512_loadu_ps(h->bias + g->first + v * LANES - j));
  _mm512_store_ps(s, sum);
  return sum;
}

TARN__VEC_INLINE __m512 largest_of(const head *h, const group *g, float *s, int v, __m512 scale, bool causal,
                                   bool bias) {
  __m512 most[2] = {_mm512_set1_ps(-1e30f), _mm512_set1_ps(-1e30f)};
  s += v * LANES;
  int64_t j = 0;
  for (; j + 2 <= g->keys; j += 2) UNROLL for (int k = 0; k < 2; k++) {
      float *at = s + (j + k) * GROUP;
      const __m512 score = bias ? biased(h, g, at, j + k, v) : _mm512_load_ps(at);
      most[k] = _mm512_mask_max_ps(most[k], seen(g, j + k, v, causal), most[k], score);
    }
  if (j < g->keys) {
    const __m512 score = bias ? biased(h, g, s + j * GROUP, j, v) : _mm512_load_ps(s + j * GROUP);
    most[0] = _mm512_mask_max_ps(most[0], seen(g, j, v, causal), most[0], score);
  }
  return _mm512_mul_ps(_mm512_max_ps(most[0], most[1]), scale);
}

// The largest score of each lane of register v, times the factor of softmax(). Adds biases first, if there are any.
TARN__VEC_INLINE __m512 largest(const head *h, const group *g, float *s, int v, __m512 scale, bool causal) {
  return h->bias ? largest_of(h, g, s, v, scale, causal, true) : largest_of(h, g, s, v, scale, causal, false);
}

// P or dS of GROUP queries and of the keys of a step: [half][pair of keys], where lanes are the pairs of queries 0-3,
// 8-11, 16-19, 24-27, and of the others.
typedef struct step_pairs {
  _Alignas(64) uint32_t of[2][LANES][LANES];
} step_pairs;

// Interleaves two neighbouring keys, each with 32 queries.
TARN__VEC_INLINE void couple(step_pairs *pairs, int64_t t, __m512i a, __m512i b) {
  _mm512_store_si512(pairs->of[0][t], _mm512_unpacklo_epi16(a, b));
  _mm512_store_si512(pairs->of[1][t], _mm512_unpackhi_epi16(a, b));
}

// Converts them to a left tile for each 16 queries.
TARN__VEC_INLINE void turn(uint32_t *out, int64_t line, const step_pairs *pairs, int vectors) {
  UNROLL for (int half = 0; half < 2; half++) {
    __m512i x[LANES];
    UNROLL for (int t = 0; t < LANES; t++) x[t] = _mm512_load_si512(pairs->of[half][t]);
    tarn__attention_transpose(x);
    UNROLL for (int r = 0; r < 8 * vectors; r++) {
      const int query = r / 4 * 8 + 4 * half + r % 4;
      _mm512_store_si512(out + query / LANES * line + query % LANES * LANES, x[r]);
    }
  }
}

// 1 / sum; 0 for an empty sum.
TARN__VEC_INLINE __m512 inverse(const group *g, __m512 sum) {
  return g->keys > 0 ? _mm512_div_ps(_mm512_set1_ps(1.0f), sum) : _mm512_setzero_ps();
}

// The dropout masks for all queries and the keys of a step.
typedef struct step_kept {
  __mmask16 of[STEP / TARN__DROPOUT_BLOCK][2][TARN__DROPOUT_BLOCK];
} step_kept;

TARN__VEC_INLINE void make_kept(step_kept *kept, const head *h, const group *g, int64_t first, int vectors) {
  for (int64_t b = 0; b < STEP / TARN__DROPOUT_BLOCK && first < g->keys; b++, first += TARN__DROPOUT_BLOCK)
    tarn__attention_kept(kept->of[b], h, g->first, first, vectors);
}

TARN__VEC_INLINE __mmask16 kept_of(const step_kept *kept, int64_t j, int v) {
  return kept->of[j % STEP / TARN__DROPOUT_BLOCK][v][j % TARN__DROPOUT_BLOCK];
}

// Per query of a group: its largest score, times the factor of softmax(); 1 / its sum, 0 for an empty sum; the factor
// of the sum of P.
typedef struct totals {
  _Alignas(64) float shift[GROUP], inverse[GROUP], factor[GROUP];
} totals;

// Converts scores to P, as left tiles, up to a factor per query.
TARN__VEC_INLINE void softmax_of(const head *h, const group *g, float *s, uint32_t *p, totals *to, int vectors,
                                 bool causal, bool drop) {
  const __m512 scale = _mm512_set1_ps(h->scale * 1.44269504088896341f);
  const int64_t line = blocks_of(h->keys) * TILE;
  __m512 shift[2], sum[2];
  UNROLL for (int v = 0; v < vectors; v++) shift[v] = largest(h, g, s, v, scale, causal), sum[v] = _mm512_setzero_ps();
  const __m512 keep_scale = _mm512_set1_ps((float)tarn__dropout_scale(h->dropout));
  for (int64_t first = 0; first < g->keys; first += STEP, p += TILE) {
    step_pairs pairs;
    step_kept kept;
    if (drop) make_kept(&kept, h, g, first, vectors);
    for (int64_t t = 0; t < LANES; t++) {
      __m512i row[2];
      UNROLL for (int k = 0; k < 2; k++) {
        const int64_t j = first + 2 * t + k;
        __m512 e[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
        UNROLL for (int v = 0; v < vectors; v++) {
          if (j >= g->keys) continue;
          e[v] = tarn__attention_probability(s + j * GROUP + v * LANES, seen(g, j, v, causal), scale, shift[v]);
          sum[v] = _mm512_add_ps(sum[v], e[v]);
          if (drop) e[v] = _mm512_maskz_mov_ps(kept_of(&kept, j, v), e[v]);
        }
        row[k] = (__m512i)_mm512_cvtne2ps_pbh(e[1], e[0]);
      }
      couple(&pairs, t, row[0], row[1]);
    }
    turn(p, line, &pairs, vectors);
  }
  UNROLL for (int v = 0; v < vectors; v++) {
    const __m512 factor = inverse(g, sum[v]);
    _mm512_store_ps(to->shift + v * LANES, shift[v]);
    _mm512_store_ps(to->inverse + v * LANES, factor);
    _mm512_store_ps(to->factor + v * LANES, drop ? _mm512_mul_ps(factor, keep_scale) : factor);
  }
}

static void softmax(const head *h, const group *g, float *s, uint32_t *p, totals *to) {
  const bool drop = h->dropout.threshold > 0;
  if (g->rows > LANES) {
    if (drop)
      softmax_of(h, g, s, p, to, 2, g->causal, true);
    else
      g->causal ? softmax_of(h, g, s, p, to, 2, true, false) : softmax_of(h, g, s, p, to, 2, false, false);
  } else {
    if (drop)
      softmax_of(h, g, s, p, to, 1, g->causal, true);
    else
      g->causal ? softmax_of(h, g, s, p, to, 1, true, false) : softmax_of(h, g, s, p, to, 1, false, false);
  }
}

// The results of softmax_gradient() from the scores s and dP, both [keys][GROUP]: left tiles.
typedef struct gradients {
  float *s, *dp;
  uint32_t *ds;                    // [queries / 16][keys / 32], of the group
  uint32_t *p_turned, *ds_turned;  // [keys / 16][queries / 32], of a range
  int64_t turned_line;
} gradients;

// Quantities per query for gradients of scores: P is e times `factor`, which dropout scales; dS is e times to_gradient
// times (dP - dot).
typedef struct weights {
  __m512 factor[2], to_gradient[2], dot[2], keep_scale;
} weights;

// Keys of a step, from key `first` on, and their destination: line `line` of the keys of to->*_turned and to->ds, for
// the group with number `at` in its range. ds_line: words between 16 queries of to->ds and the next.
typedef struct step {
  int64_t first, line, at, ds_line;
} step;

// The gradient of one step: replaces e, negative where it was dropped, and dP, both [STEP][GROUP], by P and dS.
TARN__VEC_INLINE void gradient_step(const group *g, const weights *w, const gradients *to, step at, const float *e_of,
                                    const float *dp_of, int vectors, bool causal, bool drop) {
  const __m512 zero = _mm512_setzero_ps();
  step_pairs pairs;
  for (int64_t t = 0; t < LANES; t++) {
    __m512i row[2];
    UNROLL for (int k = 0; k < 2; k++) {
      const int64_t i = 2 * t + k, j = at.first + i, line = at.line + i;
      __m512 p[2] = {zero, zero}, ds[2] = {zero, zero};
      UNROLL for (int v = 0; v < vectors; v++) {
        if (j >= g->keys) continue;
        __m512 e = _mm512_load_ps(e_of + i * GROUP + v * LANES), dp;
        if (drop) {
          const __mmask16 kept_mask = _knot_mask16(_mm512_movepi32_mask(_mm512_castps_si512(e)));
          p[v] = _mm512_maskz_mul_ps(kept_mask, e, w->factor[v]);
          dp = _mm512_maskz_load_ps(seen(g, j, v, causal) & kept_mask, dp_of + i * GROUP + v * LANES);
          dp = _mm512_mul_ps(dp, w->keep_scale), e = _mm512_abs_ps(e);
        } else {
          p[v] = _mm512_mul_ps(e, w->factor[v]);
          dp = _mm512_maskz_load_ps(seen(g, j, v, causal), dp_of + i * GROUP + v * LANES);
        }
        ds[v] = _mm512_mul_ps(_mm512_mul_ps(e, w->to_gradient[v]), _mm512_sub_ps(dp, w->dot[v]));
      }
      row[k] = (__m512i)_mm512_cvtne2ps_pbh(ds[1], ds[0]);
      const int64_t turned = line / LANES * to->turned_line + at.at * TILE + line % LANES * LANES;
      _mm512_store_si512(to->p_turned + turned, (__m512i)_mm512_cvtne2ps_pbh(p[1], p[0]));
      _mm512_store_si512(to->ds_turned + turned, row[k]);
    }
    couple(&pairs, t, row[0], row[1]);
  }
  turn(to->ds + at.line / STEP * TILE, at.ds_line, &pairs, vectors);
}

// P = softmax(S), dS = P (dP - rowsum(P dP)) scale. `at`: number of the group in its range. With dropout, dropped
// elements of P are negative between the two passes.
TARN__VEC_INLINE void gradient_of(const head *h, const group *g, const gradients *to, int64_t at, int vectors,
                                  bool causal, bool drop) {
  const __m512 scale = _mm512_set1_ps(h->scale * 1.44269504088896341f);
  __m512 shift[2], sum[2], dot[2];
  weights w = {.keep_scale = _mm512_set1_ps((float)tarn__dropout_scale(h->dropout))};
  UNROLL for (int v = 0; v < vectors; v++) {
    shift[v] = largest(h, g, to->s, v, scale, causal);
    sum[v] = dot[v] = _mm512_setzero_ps();
  }
  step_kept kept;
  for (int64_t j = 0; j < g->keys; j++) {
    if (drop && j % STEP == 0) make_kept(&kept, h, g, j, vectors);
    UNROLL for (int v = 0; v < vectors; v++) {
      float *s = to->s + j * GROUP + v * LANES;
      const __mmask16 mask = seen(g, j, v, causal), kept_mask = drop ? kept_of(&kept, j, v) : 0xFFFF;
      const __m512 e = tarn__attention_probability(s, mask, scale, shift[v]);
      _mm512_store_ps(s, drop ? _mm512_mask_sub_ps(e, _knot_mask16(kept_mask), _mm512_set1_ps(-0.0f), e) : e);
      sum[v] = _mm512_add_ps(sum[v], e);
      dot[v] = _mm512_mask3_fmadd_ps(e, _mm512_load_ps(to->dp + j * GROUP + v * LANES), dot[v], mask & kept_mask);
    }
  }
  UNROLL for (int v = 0; v < vectors; v++) {
    w.factor[v] = inverse(g, sum[v]), w.dot[v] = _mm512_mul_ps(dot[v], w.factor[v]);
    w.to_gradient[v] = _mm512_mul_ps(w.factor[v], _mm512_set1_ps(h->scale));
    if (drop) w.dot[v] = _mm512_mul_ps(w.dot[v], w.keep_scale), w.factor[v] = _mm512_mul_ps(w.factor[v], w.keep_scale);
  }
  for (int64_t first = 0; first < g->keys; first += STEP)
    gradient_step(g, &w, to, (step){first, first, at, blocks_of(h->keys) * TILE}, to->s + first * GROUP,
                  to->dp + first * GROUP, vectors, causal, drop);
}

static void softmax_gradient(const head *h, const group *g, const gradients *to, int64_t at) {
  const bool drop = h->dropout.threshold > 0;
  if (g->rows > LANES) {
    if (drop)
      gradient_of(h, g, to, at, 2, g->causal, true);
    else
      g->causal ? gradient_of(h, g, to, at, 2, true, false) : gradient_of(h, g, to, at, 2, false, false);
  } else {
    if (drop)
      gradient_of(h, g, to, at, 1, g->causal, true);
    else
      g->causal ? gradient_of(h, g, to, at, 1, true, false) : gradient_of(h, g, to, at, 1, false, false);
  }
}

static uint32_t *take(head *h, int64_t words) { return (uint32_t *)tarn__attention_take(h, words); }

int64_t tarn__attention_tiles_floats(const tarn__attention_attr *attr) {
  const tarn__attention_spec *spec = &attr->spec;
  const int64_t width = tarn__attention_padded(spec->d / spec->heads), keys = blocks_of(spec->longest) * GROUP;
  return keys * width + GROUP * width / 2 + keys * GROUP + keys * LANES + tarn__attention_bias_floats(attr);
}

// The address of the statistics of queries from `first` of the head on; which: 0 or 1.
static float *statistics_of(const head *h, const tarn__tensor *statistics, int which, int64_t first) {
  return (float *)statistics->data + (2 * h->column / h->width + which) * statistics->cols + h->query + first;
}

void tarn__attention_tiles_forward(head *h, const tarn__node *node) {
  const tarn__tensor *statistics = node->out[TARN__ATTENTION_STATISTICS];
  const tarn__tensor *queries = node->in[TARN__ATTENTION_QUERIES], *kv = node->in[TARN__ATTENTION_KEYS_VALUES];
  const tarn__attention_spec *spec = h->spec;
  const int64_t width = tarn__attention_padded(h->width), keys = blocks_of(h->keys) * GROUP;
  uint32_t *k = take(h, keys * width / 2), *v = take(h, keys * width / 2), *q = take(h, GROUP * width / 2);
  uint32_t *p = take(h, keys * LANES);
  float *s = tarn__attention_take(h, keys * GROUP);
  totals to;
  tarn__attention_biases(h, -1);
  left_rows(k, kv, h->key, spec->key_column + h->kv_column, h->keys, h->width);
  tarn__attention_fetch(h);
  right_rows(v, kv, h->key, spec->value_column + h->kv_column, h->keys, h->width);
  tarn__attention_fetch(h);
  for (int64_t first = 0; first < h->queries; first += GROUP) {
    const group g = group_of(h, first);
    right_columns(q, queries, h->query + first, spec->query_column + h->column, g.rows, h->width);
    tarn__attention_fetch(h);
    scores_product(&g, s, k, q, width);
    tarn__attention_fetch(h);
    softmax(h, &g, s, p, &to);
    if (statistics && h->keys > TARN__ATTENTION_LONG) {
      memcpy(statistics_of(h, statistics, 0, g.first), to.shift, (size_t)g.rows * sizeof(float));
      memcpy(statistics_of(h, statistics, 1, g.first), to.inverse, (size_t)g.rows * sizeof(float));
    }
    tarn__attention_fetch(h);
    queries_product(h, &g, p, v, to.factor, node->out[0], false, h->column);
    tarn__attention_fetch(h);
  }
}

// Scratch of a backward head.
typedef struct buffers {
  uint32_t *k_left, *v_left, *k, *q, *dout, *q_columns, *dout_columns;
  float *dk, *dv;  // [keys / GROUP][width / GROUP] blocks, if there are more queries than a range
  float *dq;       // the same for the queries of a range, if the sequence is long
  gradients g;
} buffers;

// Floats of a head, whose `queries`, up to a range, and `keys` are whole blocks.
static int64_t floats_of(int64_t width, int64_t queries, int64_t keys) {
  const int64_t always = 3 * keys * width / 2 + queries * width + 2 * keys * width;
  if (keys > TARN__ATTENTION_LONG) return always + 2 * queries * width + 2 * BLOCK + CHUNK * LANES + CHUNK * queries;
  return always + GROUP * width + 2 * keys * GROUP + keys * LANES + keys * queries;
}

int64_t tarn__attention_tiles_backward_floats(const tarn__attention_attr *attr) {
  const tarn__attention_spec *spec = &attr->spec;
  const int64_t width = tarn__attention_padded(spec->d / spec->heads), keys = blocks_of(spec->longest) * GROUP;
  const int64_t longest = floats_of(width, RANGE, keys), shorter = floats_of(width, RANGE, TARN__ATTENTION_LONG);
  return tarn__attention_backward_bias_floats(attr) +
         (keys > TARN__ATTENTION_LONG && shorter > longest ? shorter : longest);
}

static bool is_long(const head *h) { return h->keys > TARN__ATTENTION_LONG; }

static buffers buffers_of(head *h) {
  const int64_t width = tarn__attention_padded(h->width), keys = blocks_of(h->keys) * GROUP;
  const int64_t queries = smaller(RANGE, blocks_of(h->queries) * GROUP);
  const int64_t columns = is_long(h) ? queries : GROUP, scores = is_long(h) ? GROUP : keys;
  const int64_t turned = is_long(h) ? CHUNK : keys;
  buffers f = {.k_left = take(h, keys * width / 2),
               .v_left = take(h, keys * width / 2),
               .k = take(h, keys * width / 2),
               .q = take(h, queries * width / 2),
               .dout = take(h, queries * width / 2),
               .q_columns = take(h, columns * width / 2),
               .dout_columns = take(h, columns * width / 2)};
  f.g = (gradients){.s = tarn__attention_take(h, scores * GROUP),
                    .dp = tarn__attention_take(h, scores * GROUP),
                    .ds = take(h, turned * LANES),
                    .p_turned = take(h, turned * queries / 2),
                    .ds_turned = take(h, turned * queries / 2),
                    .turned_line = queries / GROUP * TILE};
  f.dk = tarn__attention_take(h, keys * width), f.dv = tarn__attention_take(h, keys * width);
  if (is_long(h)) f.dq = tarn__attention_take(h, queries * width);
  return f;
}

// Queries [first, last) of a head.
typedef struct range {
  int64_t first, last;
} range;

// dK or dV of keys [from, to): summed in fp32 over the ranges and the heads of a group, and stored by the last range.
// The left factors begin with key `from`.
static void keys_gradient(const head *h, const tarn__attention_backward *b, range r, int64_t from, int64_t to,
                          int64_t column, float *sums, const factors *f) {
  const bool causal = h->spec->causal, done = r.last == h->queries && h->group_last;
  const int64_t steps = blocks_of(r.last - r.first), across = tarn__attention_padded(h->width) / GROUP;
  const int64_t keys = smaller(to, causal && !done ? smaller(r.last, h->keys) : h->keys);
  _Alignas(64) float own[BLOCK];
  for (int64_t i = from; i < keys; i += GROUP) {
    // An earlier range or head saw these keys.
    const bool old = !h->group_first || (causal ? i < r.first : r.first > 0);
    const int64_t begin = causal && i > r.first ? smaller((i - r.first) / GROUP, steps) : 0;
    const int64_t rows = smaller(GROUP, h->keys - i);
    for (int64_t j = 0; j < across; j++) {
      float *c = old || !done ? sums + (i / GROUP * across + j) * BLOCK : own;
      if (rows > LANES)
        multiply(c, old, f, (i - from) / LANES, 2 * j, begin, steps, 2, 2);
      else
        multiply(c, old, f, (i - from) / LANES, 2 * j, begin, steps, 1, 2);
      for (int64_t row = 0; done && row < rows; row++)
        tarn__attention_put(tarn__attention_at(b->dkeys_values, h->key + i + row, column + j * GROUP),
                            h->width - j * GROUP, b->add_keys_values, _mm512_load_ps(c + row * GROUP),
                            _mm512_load_ps(c + row * GROUP + LANES));
    }
  }
}

// Adds dS of a group, number `at` of its range, and of keys [from, end) to the sums by distance.
static void sum_distances(head *h, const group *g, const gradients *of, int64_t at, int64_t from, int64_t end) {
  for (int64_t j = 0; j < end - from; j++) {
    const uint32_t *line = of->ds_turned + j / LANES * of->turned_line + at * TILE + j % LANES * LANES;
    const __m512i ds = _mm512_load_si512(line);
    const __m512i low = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(ds));
    const int64_t n = g->first - from - j;
    tarn__attention_sums_add(&h->sums, n, (tarn__vec)_mm512_slli_epi32(low, 16));
    if (g->rows <= LANES) continue;
    const __m512i high = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(ds, 1));
    tarn__attention_sums_add(&h->sums, n + LANES, (tarn__vec)_mm512_slli_epi32(high, 16));
  }
}

static void backward_group(head *h, const tarn__attention_backward *b, const buffers *f, int64_t first, int64_t at) {
  const tarn__attention_spec *spec = h->spec;
  const group g = group_of(h, first);
  const int64_t width = tarn__attention_padded(h->width), row = h->query + first;
  const int64_t query_column = spec->query_column + h->column;
  right_columns(f->q_columns, b->queries, row, query_column, g.rows, h->width);
  right_columns(f->dout_columns, b->dout, row, h->column, g.rows, h->width);
  tarn__attention_fetch(h);
  scores_product(&g, f->g.s, f->k_left, f->q_columns, width);
  tarn__attention_fetch(h);
  scores_product(&g, f->g.dp, f->v_left, f->dout_columns, width);
  tarn__attention_fetch(h);
  softmax_gradient(h, &g, &f->g, at);
  if (h->sums.rows) sum_distances(h, &g, &f->g, at, 0, g.keys);
  tarn__attention_fetch(h);
  if (b->dkeys_values) {
    right_rows(f->q + at * GROUP * width / 2, b->queries, row, query_column, g.rows, h->width);
    right_rows(f->dout + at * GROUP * width / 2, b->dout, row, h->column, g.rows, h->width);
  }
  if (b->dqueries) queries_product(h, &g, f->g.ds, f->k, NULL, b->dqueries, b->add_queries, query_column);
  tarn__attention_fetch(h);
}

// Statistics of the forward pass for the queries of a range; 0 after the last one, so that their P and dS are 0.
typedef struct known {
  _Alignas(64) float shift[RANGE], inverse[RANGE], dot[RANGE];
} known;

static void find_known(const head *h, const tarn__attention_backward *b, range r, known *to) {
  const size_t bytes = (size_t)(r.last - r.first) * sizeof(float);
  memset(to, 0, sizeof *to);
  if (bytes == 0) return;
  memcpy(to->shift, statistics_of(h, b->statistics, 0, r.first), bytes);
  memcpy(to->inverse, statistics_of(h, b->statistics, 1, r.first), bytes);
  for (int64_t i = r.first; i < r.last; i++) {
    const uint16_t *o = tarn__attention_at(b->result, h->query + i, h->column);
    const uint16_t *dout = tarn__attention_at(b->dout, h->query + i, h->column);
    __m512 sum = _mm512_setzero_ps();
    for (int64_t c = 0; c < h->width; c += STEP)
      sum = _mm512_dpbf16_ps(sum, (__m512bh)tarn__attention_read(o + c, h->width - c),
                             (__m512bh)tarn__attention_read(dout + c, h->width - c));
    to->dot[i - r.first] = tarn__vec_sum_lanes((tarn__vec)sum)[0];
  }
}

// P and dS of a group and of keys [from, end), step by step.
TARN__VEC_INLINE void chunk_of(const head *h, const group *g, const buffers *f, const known *of, int64_t at,
                               int64_t from, int64_t end, int vectors, bool drop) {
  const __m512 scale = _mm512_set1_ps(h->scale * 1.44269504088896341f);
  const int64_t width = tarn__attention_padded(h->width), columns = at * GROUP * width / 2, query = at * GROUP;
  __m512 shift[2];
  weights w = {.keep_scale = _mm512_set1_ps((float)tarn__dropout_scale(h->dropout))};
  UNROLL for (int v = 0; v < vectors; v++) {
    shift[v] = _mm512_load_ps(of->shift + query + v * LANES);
    w.factor[v] = _mm512_load_ps(of->inverse + query + v * LANES);
    w.dot[v] = _mm512_load_ps(of->dot + query + v * LANES);
    w.to_gradient[v] = _mm512_mul_ps(w.factor[v], _mm512_set1_ps(h->scale));
    if (drop) w.factor[v] = _mm512_mul_ps(w.factor[v], w.keep_scale);
  }
  for (int64_t first = from; first < end; first += STEP) {
    const group one = {g->first, g->rows, smaller(STEP, end - first), g->causal};
    const int64_t rows = first / LANES * (width / STEP) * TILE;
    step_kept kept;
    scores_product(&one, f->g.s, f->k_left + rows, f->q_columns + columns, width);
    for (int64_t i = 0; h->bias && i < one.keys; i++)
      UNROLL for (int v = 0; v < vectors; v++) biased(h, g, f->g.s + i * GROUP + v * LANES, first + i, v);
    scores_product(&one, f->g.dp, f->v_left + rows, f->dout_columns + columns, width);
    if (drop) make_kept(&kept, h, g, first, vectors);
    for (int64_t i = 0; i < one.keys; i++) UNROLL for (int v = 0; v < vectors; v++) {
        float *s = f->g.s + i * GROUP + v * LANES;
        const __m512 e = tarn__attention_probability(s, seen(g, first + i, v, g->causal), scale, shift[v]);
        const __mmask16 dropped = drop ? _knot_mask16(kept_of(&kept, i, v)) : 0;
        _mm512_store_ps(s, drop ? _mm512_mask_sub_ps(e, dropped, _mm512_set1_ps(-0.0f), e) : e);
      }
    gradient_step(g, &w, &f->g, (step){first, first - from, at, CHUNK / STEP * TILE}, f->g.s, f->g.dp, vectors,
                  g->causal, drop);
  }
}

static void chunk_gradient(const head *h, const group *g, const buffers *f, const known *of, int64_t at, int64_t from,
                           int64_t end) {
  const bool drop = h->dropout.threshold > 0;
  if (g->rows > LANES)
    drop ? chunk_of(h, g, f, of, at, from, end, 2, true) : chunk_of(h, g, f, of, at, from, end, 2, false);
  else
    drop ? chunk_of(h, g, f, of, at, from, end, 1, true) : chunk_of(h, g, f, of, at, from, end, 1, false);
}

// dQ of a group += dS of keys [from, end) times them.
static void add_queries(const head *h, const group *g, const buffers *f, int64_t at, int64_t from, int64_t end) {
  const int64_t tiles = tarn__attention_padded(h->width) / LANES, steps = blocks_of(end - from);
  const factors q = {f->g.ds, f->k + from / GROUP * tiles * TILE, CHUNK / STEP * TILE, TILE, TILE, tiles * TILE};
  for (int64_t j = 0; j < tiles; j += 2) {
    float *c = f->dq + (at * tiles + j) / 2 * BLOCK;
    g->rows > LANES ? multiply(c, from > 0, &q, 0, j, 0, steps, 2, 2) : multiply(c, from > 0, &q, 0, j, 0, steps, 1, 2);
  }
}

static void store_queries(const head *h, const tarn__attention_backward *b, const group *g, const float *dq,
                          int64_t at) {
  const int64_t across = tarn__attention_padded(h->width) / GROUP;
  for (int64_t j = 0; j < across; j++)
    for (int64_t r = 0; r < g->rows; r++) {
      const float *c = dq + (at * across + j) * BLOCK + r * GROUP;
      tarn__attention_put(
          tarn__attention_at(b->dqueries, h->query + g->first + r, h->spec->query_column + h->column + j * GROUP),
          h->width - j * GROUP, b->add_queries, _mm512_load_ps(c), _mm512_load_ps(c + LANES));
    }
}

// All of a range of a long sequence.
static void backward_range(head *h, const tarn__attention_backward *b, const buffers *f, range r,
                           const factors *v_factors, const factors *k_factors) {
  const int64_t width = tarn__attention_padded(h->width), query_column = h->spec->query_column + h->column;
  known of;
  find_known(h, b, r, &of);
  for (int64_t first = r.first; first < r.last; first += GROUP) {
    const int64_t row = h->query + first, rows = smaller(GROUP, r.last - first), at = (first - r.first) * width / 2;
    right_columns(f->q_columns + at, b->queries, row, query_column, rows, h->width);
    right_columns(f->dout_columns + at, b->dout, row, h->column, rows, h->width);
    right_rows(f->q + at, b->queries, row, query_column, rows, h->width);
    right_rows(f->dout + at, b->dout, row, h->column, rows, h->width);
  }
  for (int64_t from = 0; from < h->keys; from += CHUNK) {
    const int64_t to = smaller(from + CHUNK, h->keys);
    for (int64_t first = r.first; first < r.last; first += GROUP) {
      const group g = group_of(h, first);
      const int64_t at = (first - r.first) / GROUP, end = smaller(to, g.keys);
      if (from >= end) continue;
      chunk_gradient(h, &g, f, &of, at, from, end);
      if (h->sums.rows) sum_distances(h, &g, &f->g, at, from, end);
      if (b->dqueries) add_queries(h, &g, f, at, from, end);
    }
    if (!b->dkeys_values) continue;
    keys_gradient(h, b, r, from, to, h->spec->value_column + h->kv_column, f->dv, v_factors);
    keys_gradient(h, b, r, from, to, h->spec->key_column + h->kv_column, f->dk, k_factors);
  }
  for (int64_t first = r.first; b->dqueries && first < r.last; first += GROUP) {
    const group g = group_of(h, first);
    store_queries(h, b, &g, f->dq, (first - r.first) / GROUP);
  }
}

void tarn__attention_tiles_backward(head *h, const tarn__attention_backward *b) {
  const tarn__attention_spec *spec = h->spec;
  const buffers f = buffers_of(h);
  const int64_t width = tarn__attention_padded(h->width), key_column = spec->key_column + h->kv_column;
  const int64_t value_column = spec->value_column + h->kv_column;
  tarn__attention_biases(h, -1);
  tarn__attention_begin_sums(h, b);
  const factors v_factors = {f.g.p_turned, f.dout, f.g.turned_line, TILE, TILE, width / LANES * TILE};
  const factors k_factors = {f.g.ds_turned, f.q, f.g.turned_line, TILE, TILE, width / LANES * TILE};
  left_rows(f.v_left, b->keys_values, h->key, value_column, h->keys, h->width);
  left_rows(f.k_left, b->keys_values, h->key, key_column, h->keys, h->width);
  right_rows(f.k, b->keys_values, h->key, key_column, h->keys, h->width);
  range r = {0, 0};
  do {  // at least once: keys that no query sees have gradients too
    r.last = smaller(r.first + RANGE, h->queries);
    if (is_long(h)) {
      backward_range(h, b, &f, r, &v_factors, &k_factors);
      r.first += RANGE;
      continue;
    }
    for (int64_t first = r.first; first < r.last; first += GROUP)
      backward_group(h, b, &f, first, (first - r.first) / GROUP);
    if (b->dkeys_values) {
      keys_gradient(h, b, r, 0, h->keys, value_column, f.dv, &v_factors);
      tarn__attention_fetch(h);
      keys_gradient(h, b, r, 0, h->keys, key_column, f.dk, &k_factors);
    }
    r.first += RANGE;
  } while (r.first < h->queries);
  tarn__attention_end_sums(h, b, -1);
}
