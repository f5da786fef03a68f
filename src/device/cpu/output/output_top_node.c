// The output layer of decoding processes the rows in chunks, so that logits never leave the last-level cache.
#include <omp.h>

#include "device/cpu/cpu_kernels.h"
#include "device/cpu/gemm/gemm.h"
#include "device/cpu/isa/isa.h"
#include "device/cpu/output/output_top_kernels.h"

enum { CHUNK_BYTES = 8 << 20, CHUNK_ROWS = 48 };  // maximum, but at least

// Offsets in the scratch.
typedef struct layout {
  int64_t words, chunk_rows;
  size_t maxima, thread_maxima, products, bytes;
} layout;

static const tarn__output_top_kernels *kernels(void) { return TARN__TABLE_NOW(tarn__output_top_kernels); }

static layout layout_of(const tarn__node *node, int threads) {
  layout l = {.words = node->in[1]->rows};
  const int64_t rows = node->in[0]->rows, fit = (int64_t)CHUNK_BYTES / (l.words * (int64_t)sizeof(float));
  const int64_t most = fit > CHUNK_ROWS ? fit : CHUNK_ROWS, chunks = (rows + most - 1) / most;
  l.chunk_rows = chunks > 0 ? (rows + chunks - 1) / chunks : 0;
  const size_t logits = (size_t)(l.chunk_rows * l.words) * sizeof(float);
  l.thread_maxima = kernels()->scratch_floats(l.words) * sizeof(float);
  l.maxima = (logits + 63) & ~(size_t)63;
  l.products = l.maxima + l.thread_maxima * (size_t)threads;
  l.bytes = l.products;
  return l;
}

// The product of `rows` rows; their addresses are set when memory exists.
static tarn__gemm product_of(const tarn__node *node, int64_t rows) {
  const tarn__tensor *x = node->in[0], *table = node->in[1], *bias = node->in[2];
  return (tarn__gemm){.m = rows,
                      .n = table->rows,
                      .k = table->cols,
                      .b = table->data,
                      .packed = table->param->decoding.packed,
                      .int8 = table->param->decoding.rounding == TARN__ROUNDING_INT8,
                      .int4 = table->param->decoding.rounding == TARN__ROUNDING_INT4,
                      .c = node->scratch,
                      .bias = bias ? bias->data : NULL,
                      .lda = x->cols,
                      .ldb = table->cols,
                      .ldc = table->rows,
                      .dtype = x->dtype,
                      .fp32 = node->fp32,
                      .c_dtype = TARN__F32,
                      .transpose_b = true};
}

size_t tarn__cpu_output_top_scratch(const tarn__node *node, int threads) {
  const int64_t rows = node->in[0]->rows;
  if (rows == 0) return 0;
  layout l = layout_of(node, threads);
  tarn__gemm whole = product_of(node, l.chunk_rows), rest = product_of(node, rows % l.chunk_rows);
  const size_t a = tarn__gemm_scratch(&whole, threads), b = tarn__gemm_scratch(&rest, threads);
  return l.bytes + (a > b ? a : b);
}

tarn_status tarn__cpu_output_top(const tarn__exec *exec, const tarn__node *node) {
  const tarn__output_top_attr *attr = node->attr;
  const tarn__tensor *x = node->in[0];
  const int64_t rows = x->rows, best = attr->best;
  layout l = layout_of(node, exec->threads);
  char *memory = node->scratch;
  float *values = node->out[0]->data;
  int32_t *ids = node->out[1]->data;
  for (int64_t first = 0; first < rows; first += l.chunk_rows) {
    const int64_t count = rows - first < l.chunk_rows ? rows - first : l.chunk_rows;
    tarn__gemm product = product_of(node, count);
    product.a = (const char *)x->data + (size_t)(first * x->cols) * tarn__dtype_size(x->dtype);
    tarn__gemm_run(&product, exec->threads, memory + l.products);
#pragma omp parallel for schedule(static) num_threads(exec->threads)
    for (int64_t r = 0; r < count; r++)
      kernels()->row(values + (first + r) * (best + 1), ids + (first + r) * best, (const float *)memory + r * l.words,
                     l.words, attr,
                     (float *)(void *)(memory + l.maxima + l.thread_maxima * (size_t)omp_get_thread_num()));
  }
  return TARN_STATUS_OK;
}
