// The output layer never holds all logits: it goes through the rows in chunks, and for each chunk computes
//   logits = x table^T + bias;  loss and dlogits in place;  dtable += dlogits^T x;  dx = dlogits table
// so that the largest tensor of the model costs one buffer of CHUNK_BYTES. dx comes last: it may lie in the memory of
// x.
#include "ops/output.h"

#include <string.h>

#include "ops/gemm.h"
#include "ops/isa.h"
#include "ops/ops.h"
#include "ops/row_cpu.h"

enum { CHUNK_BYTES = 24 << 20, CHUNK_ROWS = 128 };  // at most, and in spite of that at least

// Places in the scratch and sizes of one node.
typedef struct layout {
  int64_t words, d, rows;
  int64_t chunk_rows;  // a multiple of 16
  int64_t chunks;
  int64_t x_rows, dx_rows;  // with spare rows
  bool wants_grad;
  size_t logits, dlogits, losses, sums, products, bytes;  // offsets in the scratch
} layout;

static bool wants_grad(const tarn__node *node) {
  return node->out[1] != NULL || node->dparam[0] != NULL || node->dparam[1] != NULL;
}

static int64_t round_rows(int64_t rows) { return (rows + TARN__ROW_TILE - 1) / TARN__ROW_TILE * TARN__ROW_TILE; }

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// Rows [first, first + rows) of x and of the chunk.
static tarn__gemm logits_product(const tarn__node *node, const layout *l, int64_t first, int64_t rows) {
  const tarn__tensor *x = node->in[0], *table = node->in[1], *bias = node->in[2];
  return (tarn__gemm){.m = smaller(round_rows(rows), l->x_rows - first),
                      .n = l->words,
                      .k = l->d,
                      .a = (const char *)x->data + (size_t)(first * l->d) * tarn__dtype_size(x->dtype),
                      .b = table->data,
                      .c = (char *)node->scratch + l->logits,
                      .bias = bias != NULL ? bias->data : NULL,
                      .lda = l->d,
                      .ldb = l->d,
                      .ldc = l->words,
                      .dtype = x->dtype,
                      .c_dtype = TARN__F32,
                      .transpose_b = true};
}

static tarn__gemm dtable_product(const tarn__node *node, const layout *l, int64_t first, int64_t rows,
                                 bool accumulate) {
  const tarn__tensor *x = node->in[0];
  return (tarn__gemm){.m = l->words,
                      .n = l->d,
                      .k = smaller(round_rows(rows), l->x_rows - first),
                      .a = (const char *)node->scratch + l->dlogits,
                      .b = (const char *)x->data + (size_t)(first * l->d) * tarn__dtype_size(x->dtype),
                      .c = node->dparam[0]->grad,
                      .lda = l->words,
                      .ldb = l->d,
                      .ldc = l->d,
                      .dtype = x->dtype,
                      .c_dtype = TARN__F32,
                      .transpose_a = true,
                      .accumulate = accumulate};
}

static tarn__gemm dx_product(const tarn__node *node, const layout *l, int64_t first, int64_t rows) {
  const tarn__tensor *table = node->in[1], *dx = node->out[1];
  return (tarn__gemm){.m = smaller(round_rows(rows), l->dx_rows - first),
                      .n = l->d,
                      .k = l->words,
                      .a = (const char *)node->scratch + l->dlogits,
                      .b = table->data,
                      .c = (char *)dx->data + (size_t)(first * l->d) * tarn__dtype_size(dx->dtype),
                      .lda = l->words,
                      .ldb = l->d,
                      .ldc = l->d,
                      .dtype = dx->dtype,
                      .c_dtype = dx->dtype};
}

// Chunk c: its first row and number of rows. Only the last one is not a multiple of 16.
static int64_t chunk_start(const layout *l, int64_t c) { return smaller(c * l->chunk_rows, l->rows); }
static int64_t chunk_size(const layout *l, int64_t c) { return chunk_start(l, c + 1) - chunk_start(l, c); }

static size_t products_scratch(const tarn__node *node, const layout *l, int threads) {
  size_t most = 0;
  // All chunks but the last are equal.
  for (int64_t c = l->chunks > 1 ? l->chunks - 2 : 0; c < l->chunks; c++) {
    int64_t first = chunk_start(l, c), rows = chunk_size(l, c);
    tarn__gemm product[4] = {logits_product(node, l, first, rows)};
    int count = 1;
    if (node->out[1] != NULL) product[count++] = dx_product(node, l, first, rows);
    for (int accumulate = 0; node->dparam[0] != NULL && accumulate < 2; accumulate++)
      product[count++] = dtable_product(node, l, first, rows, accumulate);
    for (int i = 0; i < count; i++) {
      size_t bytes = tarn__gemm_scratch(&product[i], threads);
      if (bytes > most) most = bytes;
    }
  }
  return most;
}

static size_t after(size_t *offset, size_t bytes) {
  size_t at = *offset;
  *offset = (at + bytes + 63) & ~(size_t)63;
  return at;
}

static layout layout_of(const tarn__node *node, int threads) {
  const tarn__tensor *x = node->in[0];
  layout l = {.words = node->in[1]->rows, .d = node->in[1]->cols, .rows = x->rows, .wants_grad = wants_grad(node)};
  l.x_rows = tarn__gemm_rows(x);
  l.dx_rows = node->out[1] != NULL ? tarn__gemm_rows(node->out[1]) : 0;
  bool separate = l.wants_grad && x->dtype == TARN__BF16;  // a buffer of their own for BF16 dlogits
  int64_t word_bytes = separate ? sizeof(float) + sizeof(uint16_t) : sizeof(float);
  int64_t most = (int64_t)CHUNK_BYTES / (l.words * word_bytes) / TARN__ROW_TILE * TARN__ROW_TILE;
  if (most < CHUNK_ROWS) most = CHUNK_ROWS;
  l.chunks = (l.rows + most - 1) / most;
  if (l.chunks > 0) l.chunk_rows = round_rows((l.rows + l.chunks - 1) / l.chunks);
  if (l.chunks > 0) l.chunks = (l.rows + l.chunk_rows - 1) / l.chunk_rows;
  size_t end = 0;
  l.logits = after(&end, (size_t)(l.chunk_rows * l.words) * sizeof(float));
  l.dlogits = separate ? after(&end, (size_t)(l.chunk_rows * l.words) * sizeof(uint16_t)) : l.logits;
  l.losses = after(&end, (size_t)l.rows * 2 * sizeof(double));
  l.sums = after(&end, node->dparam[1] != NULL ? (size_t)(l.words * threads) * sizeof(float) : 0);
  l.products = end;
  l.bytes = end;
  return l;
}

static size_t loss_scratch(const tarn__node *node, int threads) {
  if (node->in[0]->dtype == TARN__F64) return (size_t)node->in[1]->rows * sizeof(double);
  layout l = layout_of(node, threads);
  // The reference needs one row of logits, which is less.
  return l.bytes + products_scratch(node, &l, threads);
}

// Loss and gradient of the rows of a chunk.
static void chunk_loss(const tarn__exec *exec, const tarn__node *node, const layout *l, int64_t first, int64_t rows) {
  const tarn__output_kernels *kernels = TARN__TABLE_NOW(tarn__output_kernels);
  const tarn__output_attr *attr = node->attr;
  const int32_t *targets = node->in[3]->data;
  float *logits = (float *)((char *)node->scratch + l->logits), *sums = (float *)((char *)node->scratch + l->sums);
  double *losses = (double *)((char *)node->scratch + l->losses);
  char *dlogits = (char *)node->scratch + l->dlogits;
  size_t size = tarn__dtype_size(node->in[0]->dtype);
#pragma omp parallel for schedule(static) num_threads(exec->threads)
  for (int part = 0; part < exec->threads; part++) {
    tarn__output_row row = {.words = l->words,
                            .smoothing = attr->smoothing,
                            .scale = l->wants_grad ? (float)*attr->grad_scale : 0.0f,
                            .dtype = node->in[0]->dtype,
                            .wants_grad = l->wants_grad,
                            .sums = node->dparam[1] != NULL ? sums + part * l->words : NULL};
    for (int64_t r = rows * part / exec->threads; r < rows * (part + 1) / exec->threads; r++) {
      row.target = targets[first + r];
      kernels->loss(logits + r * l->words, dlogits + (size_t)(r * l->words) * size, losses + 2 * (first + r), &row);
    }
  }
}

// What follows from the dlogits of a chunk.
static tarn_status chunk_gradients(const tarn__exec *exec, const tarn__node *node, const layout *l, int64_t first,
                                   int64_t rows, bool accumulate) {
  char *products = (char *)node->scratch + l->products;
  if (node->dparam[0] != NULL) {
    tarn__gemm product = dtable_product(node, l, first, rows, accumulate);
    const tarn__tensor *x = node->in[0];
    size_t spare = (size_t)(product.k - rows), size = tarn__dtype_size(x->dtype);
    memset((char *)node->scratch + l->dlogits + (size_t)(rows * l->words) * size, 0, spare * (size_t)l->words * size);
    memset((char *)x->data + (size_t)((first + rows) * l->d) * size, 0, spare * (size_t)l->d * size);
    TARN_TRY(tarn__gemm_run(&product, exec->threads, products));
  }
  if (node->out[1] == NULL) return TARN_STATUS_OK;
  tarn__gemm product = dx_product(node, l, first, rows);
  return tarn__gemm_run(&product, exec->threads, products);
}

static void add_bias_gradient(const tarn__exec *exec, const tarn__node *node, const layout *l) {
  tarn__param *bias = node->dparam[1];
  float *grad = bias->grad, *sums = (float *)((char *)node->scratch + l->sums);
  if (!tarn__param_accumulate(bias)) memset(grad, 0, (size_t)l->words * sizeof *grad);
  for (int part = 0; part < exec->threads; part++) tarn__row_add(grad, sums + part * l->words, l->words);
}

static tarn_status loss_cpu(const tarn__exec *exec, const tarn__node *node) {
  layout l = layout_of(node, exec->threads);
  const int32_t *targets = node->in[3]->data;
  for (int64_t r = 0; r < l.rows; r++)
    TARN_REQUIRE(targets[r] >= 0 && targets[r] < l.words, INTERNAL, "target %d is no word of the output layer",
                 targets[r]);
  if (node->dparam[1] != NULL)
    memset((char *)node->scratch + l.sums, 0, (size_t)(l.words * exec->threads) * sizeof(float));
  bool accumulate = node->dparam[0] != NULL && tarn__param_accumulate(node->dparam[0]);
  for (int64_t c = 0; c < l.chunks; c++) {
    int64_t first = chunk_start(&l, c), rows = chunk_size(&l, c);
    tarn__gemm product = logits_product(node, &l, first, rows);
    TARN_TRY(tarn__gemm_run(&product, exec->threads, (char *)node->scratch + l.products));
    chunk_loss(exec, node, &l, first, rows);
    TARN_TRY(chunk_gradients(exec, node, &l, first, rows, accumulate || c > 0));
  }
  if (node->dparam[1] != NULL) add_bias_gradient(exec, node, &l);
  // In the order of the rows, for any number of threads.
  const double *losses = (const double *)((const char *)node->scratch + l.losses);
  double *loss = node->out[0]->data;
  loss[0] = loss[1] = 0.0;
  for (int64_t r = 0; r < l.rows; r++) {
    loss[0] += losses[2 * r];
    loss[1] += losses[2 * r + 1];
  }
  return TARN_STATUS_OK;
}

static tarn__gemm log_product(const tarn__node *node) {
  const tarn__tensor *x = node->in[0], *table = node->in[1], *bias = node->in[2], *out = node->out[0];
  return (tarn__gemm){.m = smaller(tarn__gemm_rows(x), tarn__gemm_rows(out)),
                      .n = table->rows,
                      .k = table->cols,
                      .a = x->data,
                      .b = table->data,
                      .c = out->data,
                      .bias = bias != NULL ? bias->data : NULL,
                      .lda = x->cols,
                      .ldb = table->cols,
                      .ldc = out->cols,
                      .dtype = x->dtype,
                      .c_dtype = TARN__F32,
                      .transpose_b = true};
}

static size_t log_scratch(const tarn__node *node, int threads) {
  tarn__gemm product = log_product(node);
  return tarn__gemm_scratch(&product, threads);
}

static tarn_status log_cpu(const tarn__exec *exec, const tarn__node *node) {
  const tarn__output_kernels *kernels = TARN__TABLE_NOW(tarn__output_kernels);
  tarn__gemm product = log_product(node);
  TARN_TRY(tarn__gemm_run(&product, exec->threads, node->scratch));
  const tarn__tensor *out = node->out[0];
#pragma omp parallel for schedule(static) num_threads(exec->threads)
  for (int64_t r = 0; r < out->rows; r++) kernels->log_softmax((float *)out->data + r * out->cols, out->cols);
  return TARN_STATUS_OK;
}

static double product_flops(const tarn__node *node) {
  return 2.0 * (double)node->in[0]->rows * (double)node->in[1]->rows * (double)node->in[1]->cols;
}

static double loss_gradient_flops(const tarn__node *node) {
  return product_flops(node) * ((node->out[1] != NULL) + (node->dparam[0] != NULL));
}

// The gradients come from the forward node itself, which gets the outputs that it lacked.
static void loss_gradient(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *x = node->in[0], *table = node->in[1], *bias = node->in[2];
  if (table->needs_grad) node->dparam[0] = table->param;
  if (bias != NULL && bias->needs_grad) node->dparam[1] = bias->param;
  if (!x->needs_grad) return;
  node->out[1] = tarn__graph_tensor(graph, x->dtype, x->rows, x->cols, "output_dx");
  tarn__grad_add(graph, x, node->out[1]);
}

static const tarn__op loss_op = {.name = "output_loss",
                                 .grad = loss_gradient,
                                 .flops = product_flops,
                                 .gradient_flops = loss_gradient_flops,
                                 .scratch = loss_scratch,
                                 .in_place = true,
                                 .inplace_out = 1,
                                 .inplace_in = 0,
                                 .reference_f32 = tarn__output_loss_ref_f32,
                                 .reference_f64 = tarn__output_loss_ref_f64,
                                 .cpu = loss_cpu};

static const tarn__op log_op = {.name = "output_log_probabilities",
                                .flops = product_flops,
                                .scratch = log_scratch,
                                .reference_f32 = tarn__output_log_ref_f32,
                                .reference_f64 = tarn__output_log_ref_f64,
                                .cpu = log_cpu};

static tarn__node *output_node(tarn__graph *graph, const tarn__op *op, size_t attr_size, tarn__tensor *x,
                               tarn__param *table, tarn__param *bias) {
  if (x->cols != table->cols || x->dtype != table->dtype || (bias != NULL && bias->cols != table->rows))
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "output layer: %s [%lld, %lld] does not fit its input or bias",
                     table->name, (long long)table->rows, (long long)table->cols);
  tarn__node *node = tarn__graph_node(graph, op, attr_size);
  node->in[0] = x;
  node->in[1] = tarn__graph_param(graph, table);
  node->in[2] = bias != NULL ? tarn__graph_param(graph, bias) : NULL;
  return node;
}

tarn__tensor *tarn__output_loss(tarn__graph *graph, tarn__tensor *x, tarn__param *table, tarn__param *bias,
                                tarn__tensor *targets, double smoothing, const double *grad_scale) {
  if (targets->cols != x->rows || targets->dtype != TARN__I32)
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "output loss: there must be one target for every row");
  tarn__node *node = output_node(graph, &loss_op, sizeof(tarn__output_attr), x, table, bias);
  *(tarn__output_attr *)node->attr = (tarn__output_attr){.smoothing = smoothing, .grad_scale = grad_scale};
  node->in[3] = targets;
  tarn__tensor *loss = node->out[0] = tarn__graph_tensor(graph, TARN__F64, 1, 2, "loss");
  tarn__graph_emit(graph, node);
  return loss;
}

tarn__tensor *tarn__output_log_probabilities(tarn__graph *graph, tarn__tensor *x, tarn__param *table,
                                             tarn__param *bias) {
  tarn__node *node = output_node(graph, &log_op, 0, x, table, bias);
  tarn__dtype dtype = x->dtype == TARN__F64 ? TARN__F64 : TARN__F32;
  tarn__tensor *out = node->out[0] = tarn__graph_tensor(graph, dtype, x->rows, table->rows, "log_probabilities");
  tarn__graph_emit(graph, node);
  return out;
}
