// The product library keeps no memory of ours: its scratch comes from the workspace of the graph.
#include "ops/gemm.h"

#include <limits.h>
#include <omp.h>
#include <pthread.h>
#include <string.h>

#include "base/memory.h"
#include "graph/graph.h"
#include "ops/gemm_primitive.h"
#include "ops/isa.h"
#include "ops/row_cpu.h"

enum {
  TILE_ROWS = 256,      // rows of C in a tile, at most
  CHUNK = 512,          // terms of a sum that are added at once where A is transposed
  NARROW = 64,          // rows a thread below which the columns of C are divided instead
  COLUMN_UNIT = 64,     // columns of C are divided in multiples of this
  COPY_WIDTH = 4096,    // rows of a transposed A up to this long are worth copying
  MAX_PRIMITIVES = 48,  // different tiles of one product
};

// `total` cut into `pieces` of nearly equal numbers of units.
typedef struct split {
  int64_t total, unit, units, pieces;
} split;

static split split_whole(int64_t total) { return (split){total, total, 1, 1}; }

// At most `most` a piece; the number of pieces is a multiple of `threads` if there is more than one.
static split split_at_most(int64_t total, int64_t unit, int64_t most, int64_t threads) {
  int64_t units = (total + unit - 1) / unit;
  int64_t pieces = (total + most - 1) / most;
  pieces = (pieces + threads - 1) / threads * threads;
  return (split){total, unit, units, pieces < units ? pieces : units};
}

static int64_t split_start(const split *s, int64_t piece) {
  int64_t start = s->units * piece / s->pieces * s->unit;
  return start < s->total ? start : s->total;
}

static int64_t split_size(const split *s, int64_t piece) { return split_start(s, piece + 1) - split_start(s, piece); }

// How a product runs: its tiles, their primitives, and the parts of the scratch.
typedef struct plan {
  split m, n, k;
  bool widen;  // BF16 on a processor without dot products of bf16: converted to F32 in the scratch
  bool copy;   // a tile of a transposed A is copied: the library's best code for BF16 wants it without gaps
  int count;
  tarn__primitive_key keys[MAX_PRIMITIVES];
  tarn__primitive *primitives[MAX_PRIMITIVES];
  size_t library_bytes, a_bytes, c_bytes, thread_bytes, b_bytes;  // thread_bytes: all that is one thread's own
} plan;

static size_t aligned(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

static tarn__primitive_key key_of_tile(const tarn__gemm *g, const plan *p, int64_t mi, int64_t ni, int64_t ki) {
  int64_t m = split_size(&p->m, mi), n = split_size(&p->n, ni), k = split_size(&p->k, ki);
  tarn__dtype dtype = p->widen ? TARN__F32 : g->dtype;
  return (tarn__primitive_key){
      .m = m,
      .n = n,
      .k = k,
      .lda = !p->widen && !p->copy ? g->lda
             : g->transpose_a      ? m
                                   : k,
      .ldb = !p->widen        ? g->ldb
             : g->transpose_b ? g->k
                              : g->n,
      .ldc = p->widen && g->c_dtype == TARN__BF16 ? n : g->ldc,
      .dtype = dtype,
      .c_dtype = p->widen ? TARN__F32 : g->c_dtype,
      .transpose_a = g->transpose_a,
      .transpose_b = g->transpose_b,
      .accumulate = g->accumulate || ki > 0,
      .bias = g->bias != NULL,
      .relu = g->relu,
  };
}

static int find_primitive(const plan *p, const tarn__primitive_key *key) {
  int i = 0;
  while (i < p->count && memcmp(&p->keys[i], key, sizeof *key) != 0) i++;
  return i;
}

static void plan_close(plan *p) {
  for (int i = 0; i < p->count; i++) tarn__primitive_release(p->primitives[i]);
  p->count = 0;
}

static tarn_status plan_add(plan *p, const tarn__primitive_key *key) {
  if (find_primitive(p, key) < p->count) return TARN_STATUS_OK;
  TARN_REQUIRE(p->count < MAX_PRIMITIVES, INTERNAL, "a product has too many kinds of tiles");
  TARN_TRY(tarn__primitive_acquire(&p->primitives[p->count], key));
  size_t bytes = tarn__primitive_scratch(p->primitives[p->count]);
  p->keys[p->count++] = *key;
  if (bytes > p->library_bytes) p->library_bytes = bytes;
  size_t a = (size_t)(key->m * key->k) * tarn__dtype_size(key->dtype), c = (size_t)(key->m * key->n) * sizeof(float);
  if ((p->widen || p->copy) && a > p->a_bytes) p->a_bytes = a;
  if (p->widen && c > p->c_bytes) p->c_bytes = c;
  return TARN_STATUS_OK;
}

static tarn_status plan_primitives(plan *p, const tarn__gemm *g) {
  for (int64_t mi = 0; mi < p->m.pieces; mi++)
    for (int64_t ni = 0; ni < p->n.pieces; ni++)
      for (int64_t ki = 0; ki < p->k.pieces; ki++) {
        tarn__primitive_key key = key_of_tile(g, p, mi, ni, ki);
        TARN_TRY(plan_add(p, &key));
      }
  return TARN_STATUS_OK;
}

static tarn_status plan_open(plan *p, const tarn__gemm *g, int threads) {
  *p = (plan){.widen = g->dtype == TARN__BF16 && tarn__isa_now() < TARN__ISA_AVX512_BF16};
  bool narrow = g->m < (int64_t)NARROW * threads && g->n >= (int64_t)COLUMN_UNIT * threads;
  p->m = split_at_most(g->m, TARN__ROW_TILE, TILE_ROWS, narrow ? 1 : threads);
  p->n = narrow ? split_at_most(g->n, COLUMN_UNIT, (g->n + threads - 1) / threads, threads) : split_whole(g->n);
  p->copy = !p->widen && g->dtype == TARN__BF16 && g->transpose_a && g->lda <= COPY_WIDTH && p->m.pieces > 1;
  // Bias and relu belong to the end of the sum, and BF16 must be rounded to once only.
  bool chunked = g->transpose_a && g->bias == NULL && !g->relu && g->c_dtype == TARN__F32;
  p->k = chunked ? split_at_most(g->k, TARN__ROW_TILE, CHUNK, 1) : split_whole(g->k);
  tarn_status status = plan_primitives(p, g);
  if (status != TARN_STATUS_OK) {
    plan_close(p);
    return status;
  }
  if (p->widen) {
    p->b_bytes = aligned((size_t)(g->n * g->k) * sizeof(float));
    if (g->c_dtype == TARN__F32) p->c_bytes = 0;
  }
  p->library_bytes = aligned(p->library_bytes);
  p->a_bytes = aligned(p->a_bytes);
  p->c_bytes = aligned(p->c_bytes);
  p->thread_bytes = p->library_bytes + p->a_bytes + p->c_bytes;
  return TARN_STATUS_OK;
}

int64_t tarn__gemm_rows(const tarn__tensor *tensor) {
  const tarn__tensor *owner = tensor;
  while (owner->shares != NULL) owner = owner->shares;
  if (owner->place != TARN__WORKSPACE || tensor->rows <= 1 || owner->rows != tensor->rows) return tensor->rows;
  return (tensor->rows + TARN__ROW_TILE - 1) / TARN__ROW_TILE * TARN__ROW_TILE;
}

size_t tarn__gemm_scratch(const tarn__gemm *gemm, int threads) {
  plan p;
  if (gemm->m == 0 || gemm->n == 0 || gemm->k == 0 || gemm->dtype == TARN__F64) return 0;
  // A failure shows again, with its message, when the product runs.
  if (plan_open(&p, gemm, threads) != TARN_STATUS_OK) return 0;
  size_t bytes = p.b_bytes + p.thread_bytes * (size_t)threads;
  plan_close(&p);
  return bytes;
}

static const char *element(const void *data, tarn__dtype dtype, int64_t index) {
  return (const char *)data + (size_t)index * tarn__dtype_size(dtype);
}

// Rows of BF16 with leading dimension `ld` to dense rows of floats.
static void widen_rows(float *out, const void *in, int64_t ld, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; r++) tarn__row_from_bf16(out + r * cols, (const uint16_t *)in + r * ld, cols);
}

// A tile of A without gaps, in the type of the product.
static const void *gather(void *out, const void *in, const tarn__gemm *g, const plan *p, int64_t rows, int64_t cols) {
  if (p->widen) {
    widen_rows(out, in, g->lda, rows, cols);
    return out;
  }
  size_t size = tarn__dtype_size(g->dtype), row = (size_t)cols * size, distance = (size_t)g->lda * size;
  for (int64_t r = 0; r < rows; r++)
    memcpy((char *)out + (size_t)r * row, (const char *)in + (size_t)r * distance, row);
  return out;
}

// One tile: one block of C, summed over all chunks of k in order.
static tarn_status run_tile(const tarn__gemm *g, const plan *p, const void *b, char *scratch, int64_t tile) {
  int64_t mi = tile / p->n.pieces, ni = tile % p->n.pieces;
  int64_t m0 = split_start(&p->m, mi), n0 = split_start(&p->n, ni);
  int64_t rows = split_size(&p->m, mi), cols = split_size(&p->n, ni);
  char *c = (char *)g->c + (size_t)(m0 * g->ldc + n0) * tarn__dtype_size(g->c_dtype);
  void *dense_a = scratch + p->library_bytes;
  float *wide_c = p->c_bytes > 0 ? (float *)(scratch + p->library_bytes + p->a_bytes) : NULL;
  if (wide_c != NULL && g->accumulate) widen_rows(wide_c, c, g->ldc, rows, cols);
  for (int64_t ki = 0; ki < p->k.pieces; ki++) {
    tarn__primitive_key key = key_of_tile(g, p, mi, ni, ki);
    int64_t k0 = split_start(&p->k, ki);
    const void *a = element(g->a, g->dtype, g->transpose_a ? k0 * g->lda + m0 : m0 * g->lda + k0);
    if (p->widen || p->copy) a = gather(dense_a, a, g, p, g->transpose_a ? key.k : rows, g->transpose_a ? rows : key.k);
    const void *b_tile = element(b, key.dtype, g->transpose_b ? n0 * key.ldb + k0 : k0 * key.ldb + n0);
    TARN_TRY(tarn__primitive_run(p->primitives[find_primitive(p, &key)], a, b_tile,
                                 g->bias == NULL ? NULL : g->bias + n0, wide_c != NULL ? (void *)wide_c : (void *)c,
                                 scratch));
  }
  for (int64_t r = 0; wide_c != NULL && r < rows; r++)
    tarn__row_to_bf16((uint16_t *)c + r * g->ldc, wide_c + r * cols, cols);
  return TARN_STATUS_OK;
}

// C = act(bias), for an empty sum.
static void empty_sum(const tarn__gemm *g) {
  for (int64_t r = 0; r < g->m && !g->accumulate; r++)
    for (int64_t j = 0; j < g->n; j++) {
      float value = g->bias == NULL ? 0.0f : g->bias[j];
      if (g->relu && value < 0.0f) value = 0.0f;
      tarn__row_write(g->c, g->c_dtype, r * g->ldc + j, 1, &value);
    }
}

tarn_status tarn__gemm_run(const tarn__gemm *gemm, int threads, void *scratch) {
  if (gemm->m == 0 || gemm->n == 0) return TARN_STATUS_OK;
  if (gemm->k == 0) {
    empty_sum(gemm);
    return TARN_STATUS_OK;
  }
  plan p;
  TARN_TRY(plan_open(&p, gemm, threads));
  const void *b = p.widen ? scratch : gemm->b;
  char *own = (char *)scratch + p.b_bytes;
  int64_t tiles = p.m.pieces * p.n.pieces;
  tarn_status failure = TARN_STATUS_OK;
#pragma omp parallel num_threads(threads)
  {
    // Holds only within the region: a primitive runs on the thread that calls it.
    omp_set_num_threads(1);
    tarn_status status = TARN_STATUS_OK;
    if (p.widen) {
      int64_t rows = gemm->transpose_b ? gemm->n : gemm->k, cols = gemm->transpose_b ? gemm->k : gemm->n;
#pragma omp for schedule(static)
      for (int64_t r = 0; r < rows; r++)
        widen_rows((float *)scratch + r * cols, (const uint16_t *)gemm->b + r * gemm->ldb, gemm->ldb, 1, cols);
    }
#pragma omp for schedule(dynamic, 1)
    for (int64_t tile = 0; tile < tiles; tile++)
      if (status == TARN_STATUS_OK)
        status = run_tile(gemm, &p, b, own + p.thread_bytes * (size_t)omp_get_thread_num(), tile);
    if (status != TARN_STATUS_OK) {
#pragma omp atomic write
      failure = status;
    }
  }
  plan_close(&p);
  // The message of another thread is not this thread's.
  TARN_REQUIRE(failure == TARN_STATUS_OK, INTERNAL, "a dense product of %lld x %lld x %lld failed", (long long)gemm->m,
               (long long)gemm->n, (long long)gemm->k);
  return TARN_STATUS_OK;
}
