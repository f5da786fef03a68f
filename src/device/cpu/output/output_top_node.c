// The output layer of decoding. A task is a part of the words: their logits for a chunk of rows, which stay in the L2
// cache of the thread that computes them, until it has taken from each row what the best words need
// (output_top_kernels.h). So logits of all words never exist, and all threads read different parts of the table. What
// several threads have found of a row is joined at the end. The logits of a task are at most 256 KB for up to 128 rows,
// and 1 MB, a visit, for more: half of an L2 cache of 2 MB, with which that was measured. From a smaller one those of
// many rows, as of a decoder that is full (655 KB), fall to the last level.
#include <omp.h>
#include <string.h>

#include "device/cpu/cpu_kernels.h"
#include "device/cpu/gemm/gemm.h"
#include "device/cpu/isa/isa.h"
#include "device/cpu/output/output_top_kernels.h"

enum {
  CHUNK_ROWS = 512,        // maximum
  TASK_BYTES = 256 << 10,  // of logits, but at least one visit
  TASKS = 2                // per thread, at least
};
_Static_assert(TARN__TOP_VISIT % TARN__GEMM_PART == 0, "tasks take parts of the table's columns");

// Offsets in the scratch: of all threads rows of A as bytes with their scales (INT8), the parts of rows, the logits of
// `always`; and of each thread logits, what it has found, and memory for products.
typedef struct layout {
  int64_t words, visits, best, chunk_rows;
  int64_t task_visits, tasks;
  int64_t byte_row;  // 0: not INT8
  int threads;
  size_t bytes_a, scales, parts, always, own, all;
  size_t own_values, own_ids, own_counts, own_products, own_bytes;
} layout;

static const tarn__output_top_kernels *kernels(void) { return TARN__TABLE_NOW(tarn__output_top_kernels); }

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t parts(int64_t n, int64_t of) { return (n + of - 1) / of; }

static size_t after(size_t *end, size_t bytes) {
  const size_t at = *end;
  *end = (at + bytes + 63) & ~(size_t)63;
  return at;
}

// The logits of words [first, first + count) for `rows` rows; the addresses of A and C are set when memory exists.
static tarn__gemm product_of(const tarn__node *node, int64_t rows, int64_t first, int64_t count) {
  const tarn__tensor *x = node->in[0], *table = node->in[1], *bias = node->in[2];
  const tarn__rounding rounding = table->param->decoding.rounding;
  const void *packed = table->param->decoding.packed;
  const int64_t skipped = packed ? 0 : first * table->cols * (int64_t)tarn__dtype_size(table->dtype);
  return (tarn__gemm){.m = rows,
                      .n = count,
                      .k = table->cols,
                      .b = table->data ? (const char *)table->data + skipped : NULL,
                      .packed = packed,
                      .first = packed ? first : 0,
                      .of = packed ? table->rows : 0,
                      .int8 = rounding == TARN__ROUNDING_INT8,
                      .int4 = rounding == TARN__ROUNDING_INT4,
                      .bias = bias && bias->data ? (const float *)bias->data + first : NULL,
                      .lda = x->cols,
                      .ldb = table->cols,
                      .ldc = count,
                      .dtype = x->dtype,
                      .fp32 = node->fp32,
                      .c_dtype = TARN__F32,
                      .transpose_b = true};
}

static size_t product_bytes(const tarn__node *node, const layout *l, int64_t rows, int64_t words) {
  tarn__gemm product = product_of(node, rows, 0, words);
  product.a_rounded = l->byte_row > 0;
  return tarn__gemm_scratch(&product, 1);
}

// The maximum of all products: of the last chunk and the last task, too.
static size_t most_product_bytes(const tarn__node *node, const layout *l) {
  const int64_t words = smaller(l->task_visits * TARN__TOP_VISIT, l->words);
  const int64_t sizes[2] = {words, l->words - (l->tasks - 1) * l->task_visits * TARN__TOP_VISIT};
  const int64_t rows[2] = {l->chunk_rows, node->in[0]->rows % l->chunk_rows};
  size_t most = 0;
  for (int i = 0; i < 4; i++) {
    if (rows[i / 2] == 0) continue;
    const size_t bytes = product_bytes(node, l, rows[i / 2], sizes[i % 2]);
    if (bytes > most) most = bytes;
  }
  return most;
}

static layout layout_of(const tarn__node *node, int threads) {
  const int64_t rows = node->in[0]->rows;
  layout l = {
      .words = node->in[1]->rows, .best = ((const tarn__output_top_attr *)node->attr)->best, .threads = threads};
  l.visits = tarn__top_visits(l.words);
  l.chunk_rows = parts(rows, parts(rows, CHUNK_ROWS));
  const int64_t visit_bytes = l.chunk_rows * TARN__TOP_VISIT * (int64_t)sizeof(float);
  const int64_t tasks = threads == 1 ? 1 : (int64_t)TASKS * threads, fit = TASK_BYTES / visit_bytes;
  l.task_visits = smaller(fit > 1 ? fit : 1, parts(l.visits, tasks));
  l.tasks = parts(l.visits, l.task_visits);
  if (node->in[1]->param->decoding.rounding == TARN__ROUNDING_INT8) l.byte_row = tarn__gemm_int8_row(node->in[1]->cols);
  const size_t chunk = (size_t)l.chunk_rows, words = (size_t)smaller(l.task_visits * TARN__TOP_VISIT, l.words);
  const size_t padded = (size_t)parts(l.chunk_rows, TARN__GEMM_INT8_ROWS) * TARN__GEMM_INT8_ROWS;
  l.bytes_a = after(&l.all, l.byte_row > 0 ? padded * (size_t)l.byte_row : 0);
  l.scales = after(&l.all, l.byte_row > 0 ? padded * sizeof(float) : 0);
  l.parts = after(&l.all, chunk * (size_t)l.visits * sizeof(tarn__top_part));
  l.always = after(&l.all, chunk * sizeof(float));
  (void)after(&l.own_bytes, chunk * words * sizeof(float));
  l.own_values = after(&l.own_bytes, chunk * (size_t)l.best * sizeof(float));
  l.own_ids = after(&l.own_bytes, chunk * (size_t)l.best * sizeof(int32_t));
  l.own_counts = after(&l.own_bytes, chunk * sizeof(int64_t));
  l.own_products = after(&l.own_bytes, most_product_bytes(node, &l));
  l.own = after(&l.all, l.own_bytes * (size_t)threads);
  return l;
}

size_t tarn__cpu_output_top_scratch(const tarn__node *node, int threads) {
  return node->in[0]->rows > 0 ? layout_of(node, threads).all : 0;
}

// A chunk of rows.
typedef struct work {
  const tarn__node *node;
  const layout *l;
  const char *x;  // its first row
  int64_t rows;
} work;

static char *at(const work *w, size_t offset) { return (char *)w->node->scratch + offset; }
static char *own_of(const work *w, int thread) { return at(w, w->l->own) + w->l->own_bytes * (size_t)thread; }
static tarn__top_part *parts_of(const work *w, int64_t row) {
  return (tarn__top_part *)(void *)at(w, w->l->parts) + row * w->l->visits;
}
static float *always_of(const work *w) { return (float *)(void *)at(w, w->l->always); }

// What a thread has found of a row, beside its number.
static tarn__top_found found_of(const work *w, int thread, int64_t row) {
  char *own = own_of(w, thread);
  const layout *l = w->l;
  return (tarn__top_found){.values = (float *)(void *)(own + l->own_values) + row * l->best,
                           .ids = (int32_t *)(void *)(own + l->own_ids) + row * l->best,
                           .count = ((const int64_t *)(const void *)(own + l->own_counts))[row],
                           .limit = l->best};
}

static void quantise(const work *w, int64_t row) {
  const tarn__tensor *x = w->node->in[0];
  tarn__gemm_quantise_row((uint8_t *)at(w, w->l->bytes_a) + row * w->l->byte_row,
                          (float *)(void *)at(w, w->l->scales) + row,
                          w->x + (size_t)(row * x->cols) * tarn__dtype_size(x->dtype), x->dtype, x->cols);
}

static void run_task(const work *w, int64_t task, int thread) {
  const layout *l = w->l;
  const int64_t always = ((const tarn__output_top_attr *)w->node->attr)->always;
  const int64_t first = task * l->task_visits * TARN__TOP_VISIT;
  const int64_t count = smaller(l->task_visits * TARN__TOP_VISIT, l->words - first);
  char *own = own_of(w, thread);
  float *logits = (float *)(void *)own;
  tarn__gemm product = product_of(w->node, w->rows, first, count);
  product.a = w->x;
  product.c = logits;
  if (l->byte_row > 0) {
    product.a = at(w, l->bytes_a);
    product.a_rounded = true;
    product.a_scales = (const float *)(const void *)at(w, l->scales);
    product.lda = l->byte_row;
  }
  tarn__gemm_run(&product, 1, own + l->own_products);
  for (int64_t r = 0; r < w->rows; r++, logits += count) {
    tarn__top_found found = found_of(w, thread, r);
    for (int64_t i = 0; i < count; i += TARN__TOP_VISIT)
      parts_of(w, r)[(first + i) / TARN__TOP_VISIT] =
          kernels()->visit(&found, logits + i, first + i, smaller(TARN__TOP_VISIT, count - i));
    ((int64_t *)(void *)(own + l->own_counts))[r] = found.count;
    if (always >= first && always < first + count) always_of(w)[r] = logits[always - first];
  }
}

static void finish(const work *w, int64_t row, float *values, int32_t *ids) {
  tarn__top_found all = found_of(w, 0, row);
  for (int thread = 1; thread < w->l->threads; thread++) {
    const tarn__top_found other = found_of(w, thread, row);
    kernels()->join(&all, &other);
  }
  kernels()->finish(values, ids, &all, parts_of(w, row), w->l->visits, always_of(w)[row]);
}

tarn_status tarn__cpu_output_top(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *x = node->in[0];
  const int64_t rows = x->rows;
  if (rows == 0) return TARN_STATUS_OK;
  const layout l = layout_of(node, exec->threads);
  float *values = node->out[0]->data;
  int32_t *ids = node->out[1]->data;
  for (int64_t first = 0; first < rows; first += l.chunk_rows) {
    const work w = {.node = node,
                    .l = &l,
                    .x = (const char *)x->data + (size_t)(first * x->cols) * tarn__dtype_size(x->dtype),
                    .rows = smaller(l.chunk_rows, rows - first)};
    // Whichever threads there are, all of what might have been found is looked at.
    for (int thread = 0; thread < l.threads; thread++)
      memset(own_of(&w, thread) + l.own_counts, 0, (size_t)w.rows * sizeof(int64_t));
#pragma omp parallel num_threads(l.threads)
    {
      if (l.byte_row > 0) {
#pragma omp for schedule(static)
        for (int64_t r = 0; r < w.rows; r++) quantise(&w, r);
      }
#pragma omp for schedule(dynamic, 1)
      for (int64_t task = 0; task < l.tasks; task++) run_task(&w, task, omp_get_thread_num());
#pragma omp for schedule(static)
      for (int64_t r = 0; r < w.rows; r++)
        finish(&w, r, values + (first + r) * (l.best + 1), ids + (first + r) * l.best);
    }
  }
  return TARN_STATUS_OK;
}
