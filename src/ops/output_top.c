// The output layer of decoding goes through the rows in chunks, so that logits never leave the last cache.
#include "ops/output_top.h"

#include <omp.h>

#include "device/cpu/gemm.h"
#include "device/cpu/isa.h"
#include "device/variant.h"
#include "ops/ops.h"

enum { CHUNK_BYTES = 4 << 20, CHUNK_ROWS = 48 };  // at most, and in spite of that at least

// Places in the scratch.
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

// The product of `rows` rows; which ones is said when there is memory.
static tarn__gemm product_of(const tarn__node *node, int64_t rows) {
  const tarn__tensor *x = node->in[0], *table = node->in[1], *bias = node->in[2];
  return (tarn__gemm){.m = rows,
                      .n = table->rows,
                      .k = table->cols,
                      .b = table->data,
                      .packed = table->param->packed,
                      .int8 = table->param->packed_int8,
                      .c = node->scratch,
                      .bias = bias ? bias->data : NULL,
                      .lda = x->cols,
                      .ldb = table->cols,
                      .ldc = table->rows,
                      .dtype = x->dtype,
                      .c_dtype = TARN__F32,
                      .transpose_b = true};
}

static size_t scratch(const tarn__node *node, int threads) {
  const int64_t rows = node->in[0]->rows;
  const size_t reference = (size_t)node->in[1]->rows * sizeof(double);
  if (node->in[0]->dtype == TARN__F64 || rows == 0) return reference;
  layout l = layout_of(node, threads);
  tarn__gemm whole = product_of(node, l.chunk_rows), rest = product_of(node, rows % l.chunk_rows);
  const size_t a = tarn__gemm_scratch(&whole, threads), b = tarn__gemm_scratch(&rest, threads);
  const size_t bytes = l.bytes + (a > b ? a : b);
  return bytes > reference ? bytes : reference;
}

static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
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

static double flops(const tarn__node *node) {
  return 2.0 * (double)node->in[0]->rows * (double)node->in[1]->rows * (double)node->in[1]->cols;
}

static const tarn__op op_output_top = {.name = "output_top",
                                       .flops = flops,
                                       .scratch = scratch,
                                       .reference_f32 = tarn__output_top_ref_f32,
                                       .reference_f64 = tarn__output_top_ref_f64,
                                       .cpu = forward};

tarn__top tarn__output_top(tarn__graph *graph, tarn__tensor *x, tarn__param *table, tarn__param *bias, int64_t best,
                           int32_t always) {
  if (x->cols != table->cols || x->dtype != table->dtype || (bias && bias->cols != table->rows) || best < 1 ||
      always < 0 || always >= table->rows)
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "output_top: %s [%lld, %lld] does not fit its input, bias or words",
                     table->name, (long long)table->rows, (long long)table->cols);
  tarn__node *node = tarn__graph_node(graph, &op_output_top, sizeof(tarn__output_top_attr));
  *(tarn__output_top_attr *)node->attr = (tarn__output_top_attr){best, always};
  node->in[0] = x;
  node->in[1] = tarn__graph_param(graph, table);
  node->in[2] = bias ? tarn__graph_param(graph, bias) : NULL;
  const tarn__dtype dtype = x->dtype == TARN__F64 ? TARN__F64 : TARN__F32;
  tarn__top top = {tarn__graph_tensor(graph, dtype, x->rows, best + 1, "best_log_probabilities"),
                   tarn__graph_tensor(graph, TARN__I32, x->rows, best, "best_ids")};
  node->out[0] = top.values;
  node->out[1] = top.ids;
  tarn__graph_emit(graph, node);
  return top;
}
