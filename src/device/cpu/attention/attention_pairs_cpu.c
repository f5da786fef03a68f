// Kernels for BF16 tensors on processors that multiply pairs of bf16 and add in fp32 (vdpbf16ps). One head of one
// sequence at a time; queries in blocks of up to BLOCK, one per lane:
//
//   S^T = K Q^T    dP^T = V dO^T                    [keys, queries]: sums and maxima over keys need no shuffles
//   O = P V        dQ = dS K                        [queries, width]
//   dV += P^T dO   dK += dS^T Q                     [keys, width]
//
// A product broadcasts a 32-bit pair of its left factor to all lanes, and reads a register of pairs of the right one;
// the pairs are neighbours along the sum. So every factor has the layout that its product needs, all of them in L1 for
// sentences:
//
//   rows       K, V                    row by row, unchanged: pairs along the width
//   columns    Q^T, dO^T               [width / 2][BLOCK] pairs along the width, one query per lane
//   ribbons    K, V, Q, dO             [rows / 2][width] pairs of neighbouring rows; see ribbons()
//              P, dS                   [keys / 2][BLOCK] pairs of neighbouring keys, one query per lane
//   turned     P^T, dS^T               [keys][BLOCK / 2] pairs of neighbouring queries: rows of bf16
//
// P and dS are rounded to bf16 as right factors; scores, sums and gradients are fp32. `width` is that of the head,
// h->width, rounded up to a multiple of 32: the columns in between are zero.
#include "device/cpu/attention/attention_head_cpu.h"

#if defined(__AVX512BF16__)

#include <omp.h>
#include <string.h>

#include "device/cpu/attention/attention_bf16_cpu.h"

enum { LANES = 16, VECTORS = 4, BLOCK = LANES * VECTORS, ROWS = 8, WIDTH_STEP = 32 };

#define UNROLL TARN__ATTENTION_UNROLL

// A product of pairs: element (i, p) of the left factor is a[i * a_row + p * a_step], row p of the right one is at
// b + p * b_row.
typedef struct product {
  const uint32_t *a, *b;
  int64_t a_row, a_step, b_row;
} product;

// sum (+)= rows i .. i + rows - 1 times `vectors` registers of columns from column j on, over pairs [begin, end).
TARN__VEC_INLINE void multiply(__m512 sum[ROWS][VECTORS], const product *t, int64_t i, int64_t j, int64_t begin,
                               int64_t end, int rows, int vectors) {
  const uint32_t *a = t->a + i * t->a_row + begin * t->a_step, *b = t->b + begin * t->b_row + j;
  for (int64_t p = begin; p < end; p++) {
    __m512bh right[VECTORS];
    UNROLL for (int v = 0; v < vectors; v++) right[v] = (__m512bh)_mm512_loadu_si512(b + v * LANES);
    UNROLL for (int r = 0; r < rows; r++) {
      const __m512bh left = (__m512bh)_mm512_set1_epi32((int32_t)a[r * t->a_row]);
      UNROLL for (int v = 0; v < vectors; v++) sum[r][v] = _mm512_dpbf16_ps(sum[r][v], left, right[v]);
    }
    a += t->a_step;
    b += t->b_row;
  }
}

// Divides n rows into nearly equal tiles of at most `most`.
static int64_t tile_rows(int64_t left, int64_t most) {
  return (left + (left + most - 1) / most - 1) / ((left + most - 1) / most);
}

// The destination of a product of scores: c [rows of a][c_row], fp32.
typedef struct scores {
  product of;
  float *c;
  int64_t c_row, pairs;
} scores;

TARN__VEC_INLINE void scores_tile(const scores *s, int64_t i, int64_t j, int rows, int vectors) {
  __m512 sum[ROWS][VECTORS];
  UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++) sum[r][v] = _mm512_setzero_ps();
  multiply(sum, &s->of, i, j, 0, s->pairs, rows, vectors);
  UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++)
      _mm512_storeu_ps(s->c + (i + r) * s->c_row + j + v * LANES, sum[r][v]);
}

#define EACH_TILE_ROWS(tile) \
  switch (rows) {            \
    case 1:                  \
      tile(1);               \
      break;                 \
    case 2:                  \
      tile(2);               \
      break;                 \
    case 3:                  \
      tile(3);               \
      break;                 \
    case 4:                  \
      tile(4);               \
      break;                 \
    case 5:                  \
      tile(5);               \
      break;                 \
    case 6:                  \
      tile(6);               \
      break;                 \
    case 7:                  \
      tile(7);               \
      break;                 \
    default:                 \
      tile(8);               \
      break;                 \
  }

TARN__VEC_INLINE void scores_rows(const scores *s, int64_t i, int64_t j, int64_t rows, int vectors) {
#define TILE(n) scores_tile(s, i, j, n, vectors)
  EACH_TILE_ROWS(TILE)
#undef TILE
}

typedef tarn__attention_head head;

// Queries [first, first + rows) of a head; lanes: rows rounded up to whole registers; keys: those that any of them
// sees.
typedef struct block {
  int64_t first, rows, lanes, keys;
  bool causal;
} block;

static block block_of(const head *h, int64_t first) {
  block k = {.first = first, .rows = h->queries - first, .keys = h->keys, .causal = h->spec->causal};
  if (k.rows > BLOCK) k.rows = BLOCK;
  k.lanes = (k.rows + LANES - 1) / LANES * LANES;
  if (k.causal && k.keys > first + k.rows) k.keys = first + k.rows;
  return k;
}

// c [keys][BLOCK] = rows of keys or values times columns of queries or gradients. Registers of lanes that see none of a
// tile's keys are skipped.
static void scores_product(const block *k, float *c, const uint32_t *rows_of, const uint32_t *columns, int64_t width) {
  const scores s = {{rows_of, columns, width / 2, 1, BLOCK}, c, BLOCK, width / 2};
  for (int64_t i = 0, rows; i < k->keys; i += rows) {
    rows = tile_rows(k->keys - i, 6);
    const int64_t j = k->causal && i > k->first ? (i - k->first) / LANES * LANES : 0;
    switch ((k->lanes - j) / LANES) {
      case 1:
        rows = tile_rows(k->keys - i, 8), scores_rows(&s, i, j, rows, 1);
        break;
      case 2:
        rows = tile_rows(k->keys - i, 8), scores_rows(&s, i, j, rows, 2);
        break;
      case 3:
        scores_rows(&s, i, j, rows, 3);
        break;
      default:
        scores_rows(&s, i, j, rows, 4);
        break;
    }
  }
}

// The destination of a product with ribbons: rows of `width` floats in the order of ribbons, or `own` columns of a
// tensor, or both in turn.
typedef struct target {
  float *sums;  // read if `add_sums`; written if `out` is NULL
  bool add_sums;
  const tarn__tensor *out;
  bool add;                         // to the contents of the tensor
  int64_t row, column, own, width;  // first row and column in the tensor
} target;

TARN__VEC_INLINE void target_tile(const target *to, const product *t, int64_t i, int64_t j, int64_t begin, int64_t end,
                                  int rows, int vectors) {
  __m512 sum[ROWS][VECTORS];
  UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++) sum[r][v] =
      to->add_sums ? _mm512_loadu_ps(to->sums + (i + r) * to->width + j + v * LANES) : _mm512_setzero_ps();
  multiply(sum, t, i, j, begin, end, rows, vectors);
  UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v += 2) {
    if (to->out) {
      uint16_t *out = tarn__attention_at(to->out, to->row + i + r, to->column + j + v * LANES);
      tarn__attention_put(out, to->own - j - v * LANES, to->add, sum[r][v], sum[r][v + 1]);
    } else {
      float *sums = to->sums + (i + r) * to->width + j + v * LANES;
      _mm512_storeu_ps(sums, sum[r][v]);
      _mm512_storeu_ps(sums + LANES, sum[r][v + 1]);
    }
  }
}

// `rows` rows, at most 6, and all columns.
static void target_rows(const target *to, const product *t, int64_t i, int64_t begin, int64_t end, int64_t rows) {
  int64_t j = 0;
#define TILE(n) target_tile(to, t, i, j, begin, end, n, 4)
  for (; j + 2 * WIDTH_STEP <= to->width; j += 2 * WIDTH_STEP) EACH_TILE_ROWS(TILE)
#undef TILE
#define TILE(n) target_tile(to, t, i, j, begin, end, n, 2)
  for (; j < to->width; j += WIDTH_STEP) EACH_TILE_ROWS(TILE)
#undef TILE
}

static int64_t pairs_of(int64_t n) { return (n + 1) / 2; }

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// O or dQ: P or dS times ribbons of keys; row i needs the keys up to its own in causal attention.
static void queries_product(const block *k, const target *to, const uint32_t *p, const uint32_t *ribbons) {
  const product t = {p, ribbons, 1, BLOCK, to->width};
  for (int64_t i = 0, rows; i < k->rows; i += rows) {
    rows = tile_rows(k->rows - i, 6);
    target_rows(to, &t, i, 0, pairs_of(k->causal ? smaller(k->first + i + rows, k->keys) : k->keys), rows);
  }
}

// dK or dV, keys [from, to): P^T or dS^T times ribbons of queries, from the first query on that sees a key.
static void keys_product(const block *k, const target *to, const uint32_t *turned, const uint32_t *ribbons,
                         int64_t from, int64_t end) {
  const product t = {turned, ribbons, BLOCK / 2, 1, to->width};
  for (int64_t j = from, rows; j < end; j += rows) {
    rows = tile_rows(end - j, 6);
    target_rows(to, &t, j, k->causal && j > k->first ? (j - k->first) / 2 : 0, pairs_of(k->rows), rows);
  }
}

static void copy_rows(uint32_t *out, const tarn__tensor *tensor, int64_t first, int64_t column, int64_t rows,
                      int64_t own) {
  for (int64_t i = 0; i < rows; i++, out += tarn__attention_padded(own) / 2) {
    const uint16_t *row = tarn__attention_at(tensor, first + i, column);
    for (int64_t c = 0; c < own; c += WIDTH_STEP)
      _mm512_storeu_si512(out + c / 2, tarn__attention_read(row + c, own - c));
  }
}

// out[i / 2][...]: pairs of elements of rows i and i + 1 (zero after the end). Of 32 columns, columns 0-3, 8-11, 16-19
// and 24-27 come first, as a result of unpacking; tarn__attention_put() reverses that.
static void ribbons(uint32_t *out, const tarn__tensor *tensor, int64_t first, int64_t column, int64_t rows,
                    int64_t own) {
  for (int64_t i = 0; i < rows; i += 2, out += tarn__attention_padded(own)) {
    const uint16_t *row = tarn__attention_at(tensor, first + i, column),
                   *next = i + 1 < rows ? row + tensor->cols : NULL;
    for (int64_t c = 0; c < own; c += WIDTH_STEP) {
      const __m512i a = tarn__attention_read(row + c, own - c);
      const __m512i b = next ? tarn__attention_read(next + c, own - c) : _mm512_setzero_si512();
      _mm512_storeu_si512(out + c, _mm512_unpacklo_epi16(a, b));
      _mm512_storeu_si512(out + c + LANES, _mm512_unpackhi_epi16(a, b));
    }
  }
}

// out[c / 2][i]: elements c and c + 1 of row i, zero after the last row.
static void columns(uint32_t *out, const tarn__tensor *tensor, int64_t first, int64_t column, int64_t rows,
                    int64_t own) {
  for (int64_t i = 0; i < rows; i += LANES)
    for (int64_t c = 0; c < own; c += WIDTH_STEP) {
      __m512i x[LANES];
      const uint16_t *row = tarn__attention_at(tensor, first + i, column + c);
      if (rows - i >= LANES) {
        UNROLL for (int r = 0; r < LANES; r++) x[r] = tarn__attention_read(row + r * tensor->cols, own - c);
      } else {
        const int64_t some = rows - i;
        UNROLL for (int r = 0; r < LANES; r++) x[r] =
            r < some ? tarn__attention_read(row + r * tensor->cols, own - c) : _mm512_setzero_si512();
      }
      tarn__attention_transpose(x);
      UNROLL for (int r = 0; r < LANES; r++) _mm512_storeu_si512(out + (c / 2 + r) * BLOCK + i, x[r]);
    }
}

// Queries of register v of a block that see key j.
TARN__VEC_INLINE __mmask16 seen(const block *k, int64_t j, int64_t v) {
  const int64_t unseeing = k->causal ? j - k->first - v * LANES : 0;
  return unseeing <= 0 ? 0xFFFF : unseeing >= LANES ? 0 : (__mmask16)(0xFFFFu << unseeing);
}

// Pairs of two registers: lane i becomes bf16 of (a lane i, b lane i).
TARN__VEC_INLINE __m512i couple(__m512i b_and_a) {
  const __m512i low = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(b_and_a));
  const __m512i high = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(b_and_a, 1));
  return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
}

// Scores of key j and register v of queries, with biases added.
TARN__VEC_INLINE __m512 scores_of(const head *h, const block *k, float *s, int64_t j, int64_t v, bool bias) {
  const __m512 there = _mm512_loadu_ps(s + j * BLOCK);
  if (!bias) return there;
  const __m512 sum = _mm512_add_ps(there, _mm512_loadu_ps(h->bias + k->first + v * LANES - j));
  _mm512_storeu_ps(s + j * BLOCK, sum);
  return sum;
}

TARN__VEC_INLINE __m512 largest_of(const head *h, const block *k, float *s, int64_t v, __m512 scale, bool bias) {
  __m512 most = _mm512_set1_ps(-1e30f), other = most;
  int64_t j = 0;
  for (; j + 2 <= k->keys; j += 2) {
    most = _mm512_mask_max_ps(most, seen(k, j, v), most, scores_of(h, k, s, j, v, bias));
    other = _mm512_mask_max_ps(other, seen(k, j + 1, v), other, scores_of(h, k, s, j + 1, v, bias));
  }
  if (j < k->keys) most = _mm512_mask_max_ps(most, seen(k, j, v), most, scores_of(h, k, s, j, v, bias));
  return _mm512_mul_ps(_mm512_max_ps(most, other), scale);
}

// The largest score of each lane, times the factor of softmax(). Adds biases first, if there are any.
TARN__VEC_INLINE __m512 largest(const head *h, const block *k, float *s, int64_t v, __m512 scale) {
  return h->bias ? largest_of(h, k, s, v, scale, true) : largest_of(h, k, s, v, scale, false);
}

// With dropout, makes e_j of register v of queries negative where it is dropped; call it once for each key in order.
// `kept` belongs to the caller, for the keys of a block of numbers.
TARN__VEC_INLINE __m512 mark(__mmask16 kept[1][TARN__DROPOUT_BLOCK], const head *h, const block *k, int64_t v,
                             int64_t j, __m512 e) {
  if (j % TARN__DROPOUT_BLOCK == 0) tarn__attention_kept(kept, h, k->first + v * LANES, j, 1);
  return _mm512_mask_sub_ps(e, _knot_mask16(kept[0][j % TARN__DROPOUT_BLOCK]), _mm512_set1_ps(-0.0f), e);
}

// Lanes that are not marked.
TARN__VEC_INLINE __mmask16 unmarked(__m512 e) { return _knot_mask16(_mm512_movepi32_mask(_mm512_castps_si512(e))); }

// Converts scores s [keys][BLOCK] to P, as ribbons of keys p [pairs of keys][BLOCK].
TARN__VEC_INLINE void softmax_of(const head *h, const block *k, float *scores_of, uint32_t *pairs, bool drop) {
  __mmask16 kept[1][TARN__DROPOUT_BLOCK];
  const __m512 scale = _mm512_set1_ps(h->scale * 1.44269504088896341f);
  for (int64_t v = 0; v < k->lanes / LANES; v++) {
    float *s = scores_of + v * LANES;
    uint32_t *p = pairs + v * LANES;
    const __m512 shift = largest(h, k, s, v, scale);
    __m512 sum = _mm512_setzero_ps();
    for (int64_t j = 0; j < k->keys; j++) {
      const __m512 e = tarn__attention_probability(s + j * BLOCK, seen(k, j, v), scale, shift);
      _mm512_storeu_ps(s + j * BLOCK, drop ? mark(kept, h, k, v, j, e) : e);
      sum = _mm512_add_ps(sum, e);
    }
    __m512 factor = _mm512_div_ps(_mm512_set1_ps(1.0f), sum);
    if (drop) factor = _mm512_mul_ps(factor, _mm512_set1_ps((float)tarn__dropout_scale(h->dropout)));
    for (int64_t j = 0; j < k->keys; j += 2) {
      __m512 a = _mm512_mul_ps(_mm512_loadu_ps(s + j * BLOCK), factor);
      __m512 b = j + 1 < k->keys ? _mm512_mul_ps(_mm512_loadu_ps(s + (j + 1) * BLOCK), factor) : _mm512_setzero_ps();
      if (drop) a = _mm512_max_ps(a, _mm512_setzero_ps()), b = _mm512_max_ps(b, _mm512_setzero_ps());
      _mm512_storeu_si512(p + j / 2 * BLOCK, couple((__m512i)_mm512_cvtne2ps_pbh(b, a)));
    }
  }
}

static void softmax(const head *h, const block *k, float *scores_of, uint32_t *pairs) {
  h->dropout.threshold > 0 ? softmax_of(h, k, scores_of, pairs, true) : softmax_of(h, k, scores_of, pairs, false);
}

// Inputs of softmax_gradient(), scores and dP, both [keys][BLOCK], and its outputs.
typedef struct gradients {
  float *s, *dp;
  uint32_t *p_turned, *ds_turned;  // [keys, rounded up to 2][BLOCK / 2]
  uint32_t *ds;                    // [pairs of keys][BLOCK]
} gradients;

TARN__VEC_INLINE void store_turned(uint32_t *out, __m512i b_and_a) {
  _mm256_storeu_si256((__m256i *)(void *)out, _mm512_castsi512_si256(b_and_a));
  _mm256_storeu_si256((__m256i *)(void *)(out + BLOCK / 2), _mm512_extracti64x4_epi64(b_and_a, 1));
}

// P = softmax(S), dS = P (dP - rowsum(P dP)) scale; the sum over keys is here a sum over registers.
TARN__VEC_INLINE void gradient_of(const head *h, const block *k, const gradients *g, bool drop) {
  const __m512 keep_scale = _mm512_set1_ps((float)tarn__dropout_scale(h->dropout));
  __mmask16 kept[1][TARN__DROPOUT_BLOCK];
  const __m512 scale = _mm512_set1_ps(h->scale * 1.44269504088896341f), zero = _mm512_setzero_ps();
  for (int64_t v = 0; v < k->lanes / LANES; v++) {
    float *s = g->s + v * LANES;
    const float *dp = g->dp + v * LANES;
    const __m512 shift = largest(h, k, s, v, scale);
    __m512 sum = zero, dot = zero;
    for (int64_t j = 0; j < k->keys; j++) {
      const __mmask16 mask = seen(k, j, v);
      const __m512 e = tarn__attention_probability(s + j * BLOCK, mask, scale, shift);
      const __m512 marked = drop ? mark(kept, h, k, v, j, e) : e;
      _mm512_storeu_ps(s + j * BLOCK, marked);
      sum = _mm512_add_ps(sum, e);
      dot = _mm512_mask3_fmadd_ps(e, _mm512_loadu_ps(dp + j * BLOCK), dot, drop ? mask & unmarked(marked) : mask);
    }
    const __m512 factor = _mm512_div_ps(_mm512_set1_ps(1.0f), sum);
    const __m512 mean = _mm512_mul_ps(dot, drop ? _mm512_mul_ps(factor, keep_scale) : factor);
    const __m512 to_gradient = _mm512_mul_ps(factor, _mm512_set1_ps(h->scale));
    for (int64_t j = 0; j < k->keys; j += 2) {
      const bool two = j + 1 < k->keys;
      __m512 a = _mm512_loadu_ps(s + j * BLOCK), b = two ? _mm512_loadu_ps(s + (j + 1) * BLOCK) : zero;
      const __mmask16 of_a = drop ? unmarked(a) : 0xFFFF, of_b = drop ? unmarked(b) : 0xFFFF;
      __m512 da = _mm512_maskz_loadu_ps(seen(k, j, v) & of_a, dp + j * BLOCK);
      __m512 db = two ? _mm512_maskz_loadu_ps(seen(k, j + 1, v) & of_b, dp + (j + 1) * BLOCK) : zero;
      __m512 pa = _mm512_mul_ps(a, factor), pb = _mm512_mul_ps(b, factor);
      if (drop) {
        pa = _mm512_maskz_mul_ps(of_a, pa, keep_scale), pb = _mm512_maskz_mul_ps(of_b, pb, keep_scale);
        da = _mm512_mul_ps(da, keep_scale), db = _mm512_mul_ps(db, keep_scale);
        a = _mm512_abs_ps(a), b = _mm512_abs_ps(b);
      }
      const __m512i p = (__m512i)_mm512_cvtne2ps_pbh(pb, pa);
      const __m512i ds =
          (__m512i)_mm512_cvtne2ps_pbh(_mm512_mul_ps(_mm512_mul_ps(b, to_gradient), _mm512_sub_ps(db, mean)),
                                       _mm512_mul_ps(_mm512_mul_ps(a, to_gradient), _mm512_sub_ps(da, mean)));
      store_turned(g->p_turned + j * (BLOCK / 2) + v * LANES / 2, p);
      store_turned(g->ds_turned + j * (BLOCK / 2) + v * LANES / 2, ds);
      _mm512_storeu_si512(g->ds + j / 2 * BLOCK + v * LANES, couple(ds));
    }
  }
}

static void softmax_gradient(const head *h, const block *k, const gradients *g) {
  h->dropout.threshold > 0 ? gradient_of(h, k, g, true) : gradient_of(h, k, g, false);
}

static uint32_t *take(head *h, int64_t words) { return (uint32_t *)tarn__attention_take(h, words); }

int64_t tarn__attention_pairs_floats(const tarn__attention_attr *attr) {
  const tarn__attention_spec *spec = &attr->spec;
  const int64_t width = tarn__attention_padded(spec->d / spec->heads), keys = spec->longest + 1;
  return keys * width + width / 2 * BLOCK + keys * BLOCK + keys / 2 * BLOCK + 16 * 8 +
         tarn__attention_bias_floats(attr);
}

void tarn__attention_pairs_forward(head *h, const tarn__node *node) {
  const tarn__tensor *queries = node->in[TARN__ATTENTION_QUERIES], *kv = node->in[TARN__ATTENTION_KEYS_VALUES];
  const tarn__attention_spec *spec = h->spec;
  const int64_t width = tarn__attention_padded(h->width), pairs = pairs_of(h->keys);
  uint32_t *k_rows = take(h, h->keys * width / 2), *v = take(h, pairs * width), *q = take(h, width / 2 * BLOCK);
  uint32_t *p = take(h, pairs * BLOCK);
  float *s = tarn__attention_take(h, h->keys * BLOCK);
  tarn__attention_biases(h, -1);
  copy_rows(k_rows, kv, h->key, spec->key_column + h->kv_column, h->keys, h->width);
  tarn__attention_fetch(h);
  ribbons(v, kv, h->key, spec->value_column + h->kv_column, h->keys, h->width);
  tarn__attention_fetch(h);
  for (int64_t first = 0; first < h->queries; first += BLOCK) {
    const block k = block_of(h, first);
    columns(q, queries, h->query + first, spec->query_column + h->column, k.rows, h->width);
    tarn__attention_fetch(h);
    scores_product(&k, s, k_rows, q, width);
    tarn__attention_fetch(h);
    softmax(h, &k, s, p);
    tarn__attention_fetch(h);
    const target to = {
        .out = node->out[0], .row = h->query + first, .column = h->column, .own = h->width, .width = width};
    queries_product(&k, &to, p, v);
    tarn__attention_fetch(h);
  }
}

// Scratch of a backward head.
typedef struct buffers {
  uint32_t *k_rows, *v_rows, *k, *q, *dout, *q_columns, *dout_columns;
  float *dk, *dv;
  gradients g;
} buffers;

int64_t tarn__attention_pairs_backward_floats(const tarn__attention_attr *attr) {
  const tarn__attention_spec *spec = &attr->spec;
  const int64_t width = tarn__attention_padded(spec->d / spec->heads), keys = spec->longest + 1;
  return keys * width * 2 + keys / 2 * width + 4 * BLOCK / 2 * width + 2 * keys * width + 2 * keys * BLOCK +
         2 * (keys + 1) * BLOCK / 2 + keys / 2 * BLOCK + 16 * 16 + tarn__attention_backward_bias_floats(attr);
}

static buffers buffers_of(head *h) {
  const int64_t width = tarn__attention_padded(h->width), pairs = pairs_of(h->keys);
  buffers f = {.k_rows = take(h, h->keys * width / 2),
               .v_rows = take(h, h->keys * width / 2),
               .k = take(h, pairs * width),
               .q = take(h, BLOCK / 2 * width),
               .dout = take(h, BLOCK / 2 * width),
               .q_columns = take(h, width / 2 * BLOCK),
               .dout_columns = take(h, width / 2 * BLOCK)};
  f.g = (gradients){.s = tarn__attention_take(h, h->keys * BLOCK),
                    .dp = tarn__attention_take(h, h->keys * BLOCK),
                    .p_turned = take(h, pairs * BLOCK),
                    .ds_turned = take(h, pairs * BLOCK),
                    .ds = take(h, pairs * BLOCK)};
  f.dk = tarn__attention_take(h, h->keys * width), f.dv = tarn__attention_take(h, h->keys * width);
  return f;
}

// dK and dV: summed in fp32 over the blocks and the heads of a group, and stored by the last block, which sees all
// keys.
static void keys_gradient(const head *h, const tarn__attention_backward *b, const block *k, int64_t column, float *sums,
                          const uint32_t *turned, const uint32_t *ribbons_of) {
  target to = {.sums = sums,
               .out = k->first + k->rows == h->queries && h->group_last ? b->dkeys_values : NULL,
               .add = b->add_keys_values,
               .row = h->key,
               .column = column + h->kv_column,
               .own = h->width,
               .width = tarn__attention_padded(h->width)};
  // Keys seen by an earlier block or head.
  const int64_t old = !h->group_first ? k->keys : k->first == 0 ? 0 : k->causal ? k->first : k->keys;
  to.add_sums = true;
  keys_product(k, &to, turned, ribbons_of, 0, old);
  to.add_sums = false;
  keys_product(k, &to, turned, ribbons_of, old, k->keys);
}

// Adds dS of a block to the sums by distance.
static void sum_distances(head *h, const block *k, const uint32_t *ds_turned) {
  for (int64_t j = 0; j < k->keys; j++)
    for (int64_t v = 0; v < k->lanes; v += LANES) {
      const uint32_t *at = ds_turned + j * (BLOCK / 2) + v / 2;
      const __m512i ds = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)at));
      tarn__attention_sums_add(&h->sums, k->first + v - j, (tarn__vec)_mm512_slli_epi32(ds, 16));
    }
}

static void backward_block(head *h, const tarn__attention_backward *b, const buffers *f, int64_t first) {
  const tarn__attention_spec *spec = h->spec;
  const block k = block_of(h, first);
  const int64_t width = tarn__attention_padded(h->width), row = h->query + first;
  const int64_t query_column = spec->query_column + h->column;
  columns(f->q_columns, b->queries, row, query_column, k.rows, h->width);
  columns(f->dout_columns, b->dout, row, h->column, k.rows, h->width);
  tarn__attention_fetch(h);
  scores_product(&k, f->g.s, f->k_rows, f->q_columns, width);
  tarn__attention_fetch(h);
  scores_product(&k, f->g.dp, f->v_rows, f->dout_columns, width);
  tarn__attention_fetch(h);
  softmax_gradient(h, &k, &f->g);
  if (h->sums.rows) sum_distances(h, &k, f->g.ds_turned);
  tarn__attention_fetch(h);
  if (b->dkeys_values) {
    ribbons(f->q, b->queries, row, query_column, k.rows, h->width);
    ribbons(f->dout, b->dout, row, h->column, k.rows, h->width);
  }
  if (b->dqueries) {
    const target to = {
        .out = b->dqueries, .add = b->add_queries, .row = row, .column = query_column, .own = h->width, .width = width};
    queries_product(&k, &to, f->g.ds, f->k);
    tarn__attention_fetch(h);
  }
  if (!b->dkeys_values) return;
  keys_gradient(h, b, &k, spec->value_column, f->dv, f->g.p_turned, f->dout);
  tarn__attention_fetch(h);
  keys_gradient(h, b, &k, spec->key_column, f->dk, f->g.ds_turned, f->q);
}

void tarn__attention_pairs_backward(head *h, const tarn__attention_backward *b) {
  const tarn__attention_spec *spec = h->spec;
  const buffers f = buffers_of(h);
  tarn__attention_biases(h, -1);
  tarn__attention_begin_sums(h, b);
  copy_rows(f.v_rows, b->keys_values, h->key, spec->value_column + h->kv_column, h->keys, h->width);
  copy_rows(f.k_rows, b->keys_values, h->key, spec->key_column + h->kv_column, h->keys, h->width);
  ribbons(f.k, b->keys_values, h->key, spec->key_column + h->kv_column, h->keys, h->width);
  for (int64_t first = 0; first < h->queries; first += BLOCK) backward_block(h, b, &f, first);
  tarn__attention_end_sums(h, b, -1);
  if (h->queries > 0 || !b->dkeys_values || b->add_keys_values) return;
  // Keys that no query sees.
  for (int64_t j = h->key; j < h->key + h->keys; j++) {
    uint16_t *row = tarn__attention_at(b->dkeys_values, j, h->kv_column);
    memset(row + spec->key_column, 0, (size_t)h->width * sizeof *row);
    memset(row + spec->value_column, 0, (size_t)h->width * sizeof *row);
  }
}

#endif
