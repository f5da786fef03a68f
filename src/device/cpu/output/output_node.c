// The output layer in BF16 without matrix tiles (see output_tiles.h; for fp32 see output_blocks.h). It never holds all
// logits: it processes the rows in chunks, and for each chunk computes
//   logits = x table^T + bias;  loss and dlogits;  dtable += dlogits^T x;  dx = dlogits table
// dx comes last, because it may overwrite x. The gradient of the table is as large as the table, so a chunk has many
// rows (most_chunk_rows). Logits in fp32, in addition to dlogits in BF16, live only from their product to their loss:
// they are computed for a part of a chunk at a time, which stays in the last-level cache. The table is packed once.
// So are losses, without gradients, of a model whose table is packed as integers (tarn__model_pack()).
#include <string.h>

#include "device/cpu/cpu_kernels.h"
#include "device/cpu/gemm/gemm.h"
#include "device/cpu/isa/isa.h"
#include "device/cpu/isa/row_cpu.h"
#include "device/cpu/output/output_blocks.h"
#include "device/cpu/output/output_kernels.h"
#include "device/cpu/output/output_tiles.h"

enum {
  CHUNK_BYTES = 24 << 20,  // maximum of dlogits, but at least CHUNK_ROWS (see most_chunk_rows)
  CHUNK_ROWS = 256,
  ROW_UNIT = 16,         // all chunks but the last are multiples of this: rows that do not fill a tile are expensive
  PART_BYTES = 8 << 20,  // of logits stored separately from dlogits, at least PART_ROWS
  PART_ROWS = 48
};

// Offsets in the scratch and sizes of one node.
typedef struct layout {
  int64_t words, d, rows;
  int64_t chunk_rows, chunks;
  int64_t part_rows;  // a chunk is divided into parts of this many rows for its logits
  bool wants_grad;
  size_t logits, dlogits, losses, sums, table, table_dx, products, bytes;  // offsets in the scratch
} layout;

static bool wants_grad(const tarn__node *node) {
  return node->out[1] != NULL || node->dparam[0] != NULL || node->dparam[1] != NULL;
}

static const tarn__param_decoding *decoding_of(const tarn__node *node) { return &node->in[1]->param->decoding; }
static bool is_rounded(const tarn__node *node) { return decoding_of(node)->rounding != TARN__ROUNDING_NONE; }

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// The three products of `rows` rows without memory, which does not exist yet when scratch is measured; only the
// existence of a packed table matters then.
static tarn__gemm logits_shape(const tarn__node *node, const layout *l, int64_t rows) {
  return (tarn__gemm){.m = rows,
                      .n = l->words,
                      .k = l->d,
                      .packed = l,
                      .int8 = decoding_of(node)->rounding == TARN__ROUNDING_INT8,
                      .int4 = decoding_of(node)->rounding == TARN__ROUNDING_INT4,
                      .lda = l->d,
                      .ldb = l->d,
                      .ldc = l->words,
                      .dtype = node->in[0]->dtype,
                      .c_dtype = TARN__F32,
                      .transpose_b = true};
}

static tarn__gemm dtable_shape(const tarn__node *node, const layout *l, int64_t rows) {
  return (tarn__gemm){.m = l->words,
                      .n = l->d,
                      .k = rows,
                      .lda = l->words,
                      .ldb = l->d,
                      .ldc = l->d,
                      .dtype = node->in[0]->dtype,
                      .c_dtype = TARN__F32,
                      .transpose_a = true};
}

static tarn__gemm dx_shape(const tarn__node *node, const layout *l, int64_t rows) {
  return (tarn__gemm){.m = rows,
                      .n = l->d,
                      .k = l->words,
                      .packed = l,
                      .lda = l->words,
                      .ldb = l->d,
                      .ldc = l->d,
                      .dtype = node->in[0]->dtype,
                      .c_dtype = node->out[1]->dtype};
}

static char *row_of(const tarn__tensor *tensor, int64_t row) {
  return (char *)tensor->data + (size_t)(row * tensor->cols) * tarn__dtype_size(tensor->dtype);
}

// Rows [first, first + rows) of x.
static tarn__gemm logits_product(const tarn__node *node, const layout *l, int64_t first, int64_t rows) {
  const tarn__tensor *bias = node->in[2];
  tarn__gemm product = logits_shape(node, l, rows);
  product.a = row_of(node->in[0], first);
  product.b = node->in[1]->data;
  product.packed = is_rounded(node) ? decoding_of(node)->packed : (const char *)node->scratch + l->table;
  product.c = (char *)node->scratch + l->logits;
  product.bias = bias != NULL ? bias->data : NULL;
  return product;
}

static tarn__gemm dtable_product(const tarn__node *node, const layout *l, int64_t first, int64_t rows,
                                 bool accumulate) {
  tarn__gemm product = dtable_shape(node, l, rows);
  product.a = (const char *)node->scratch + l->dlogits;
  product.b = row_of(node->in[0], first);
  product.c = node->dparam[0]->training.grad;
  product.accumulate = accumulate;
  return product;
}

static tarn__gemm dx_product(const tarn__node *node, const layout *l, int64_t first, int64_t rows) {
  tarn__gemm product = dx_shape(node, l, rows);
  product.a = (const char *)node->scratch + l->dlogits;
  product.b = node->in[1]->data;
  product.packed = (const char *)node->scratch + l->table_dx;
  product.c = row_of(node->out[1], first);
  return product;
}

// Chunk c: its first row and number of rows.
static int64_t chunk_start(const layout *l, int64_t c) { return smaller(c * l->chunk_rows, l->rows); }
static int64_t chunk_size(const layout *l, int64_t c) { return chunk_start(l, c + 1) - chunk_start(l, c); }

static size_t products_scratch(const tarn__node *node, const layout *l, int threads) {
  size_t most = 0;
  // All chunks but the last are equal, and so are all parts of a chunk but the last.
  for (int64_t c = l->chunks > 1 ? l->chunks - 2 : 0; c < l->chunks; c++) {
    int64_t rows = chunk_size(l, c), rest = rows % l->part_rows;
    tarn__gemm product[4] = {logits_shape(node, l, smaller(rows, l->part_rows)), logits_shape(node, l, rest)};
    int count = 2;
    if (node->out[1] != NULL) product[count++] = dx_shape(node, l, rows);
    if (node->dparam[0] != NULL) product[count++] = dtable_shape(node, l, rows);
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

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

// Each chunk reads and writes the gradient of the table once. In BF16 products are fast enough for that to matter, so
// dlogits may take half as much memory as the gradient.
static int64_t most_chunk_rows(const layout *l, int64_t row_bytes) {
  const int64_t bytes = larger(CHUNK_BYTES, l->words * l->d * (int64_t)sizeof(float) / 2);
  return larger(bytes / row_bytes, CHUNK_ROWS);
}

static layout layout_of(const tarn__node *node, int threads) {
  const tarn__tensor *x = node->in[0];
  layout l = {.words = node->in[1]->rows, .d = node->in[1]->cols, .rows = x->rows, .wants_grad = wants_grad(node)};
  int64_t part = larger((int64_t)PART_BYTES / (l.words * (int64_t)sizeof(float)), PART_ROWS);
  int64_t most = l.wants_grad ? most_chunk_rows(&l, l.words * (int64_t)sizeof(uint16_t)) : part;
  // Without rows there is one empty chunk: its product clears the gradient of the table.
  l.chunks = larger((l.rows + most - 1) / most, 1);
  l.chunk_rows = (l.rows + l.chunks - 1) / l.chunks;
  if (l.chunks > 1) {
    l.chunk_rows = smaller((l.chunk_rows + ROW_UNIT - 1) / ROW_UNIT * ROW_UNIT, most);
    l.chunks = (l.rows + l.chunk_rows - 1) / l.chunk_rows;
  }
  l.part_rows = l.wants_grad && part < l.chunk_rows ? part : larger(l.chunk_rows, 1);
  size_t end = 0;
  l.logits = after(&end, (size_t)(l.part_rows * l.words) * sizeof(float));
  l.dlogits = after(&end, l.wants_grad ? (size_t)(l.chunk_rows * l.words) * sizeof(uint16_t) : 0);
  l.losses = after(&end, (size_t)l.rows * 2 * sizeof(double));
  l.sums = after(&end, node->dparam[1] != NULL ? (size_t)(l.words * threads) * sizeof(float) : 0);
  tarn__gemm logits = logits_shape(node, &l, 1);
  l.table = after(&end, is_rounded(node) ? 0 : tarn__gemm_pack_bytes(&logits));
  l.table_dx = end;
  if (node->out[1] != NULL) {
    tarn__gemm dx = dx_shape(node, &l, 1);
    l.table_dx = after(&end, tarn__gemm_pack_bytes(&dx));
  }
  l.products = end;
  l.bytes = end;
  return l;
}

size_t tarn__cpu_output_loss_scratch(const tarn__node *node, int threads) {
  if (tarn__output_tiles_fit(node)) return tarn__output_tiles_scratch(node, threads);
  if (!is_rounded(node) && tarn__output_blocks_fit(node)) return tarn__output_blocks_scratch(node, threads);
  layout l = layout_of(node, threads);
  return l.bytes + products_scratch(node, &l, threads);
}

// Losses of the rows [rows, 2]: an output of the node if they are wanted.
static double *losses_of(const tarn__node *node, const layout *l) {
  return node->out[2] != NULL ? node->out[2]->data : (void *)((char *)node->scratch + l->losses);
}

// Loss and gradient of the rows whose logits have been computed; their dlogits go to row `to` of the buffer.
static void part_loss(const tarn__exec *exec, const tarn__node *node, const layout *l, int64_t first, int64_t rows,
                      int64_t to) {
  const tarn__output_kernels *kernels = TARN__TABLE_NOW(tarn__output_kernels);
  const tarn__output_attr *attr = node->attr;
  const int32_t *targets = node->in[3]->data;
  float *logits = (float *)((char *)node->scratch + l->logits);
  float *sums = (float *)((char *)node->scratch + l->sums);
  double *losses = losses_of(node, l);
  uint16_t *dlogits = (uint16_t *)(void *)((char *)node->scratch + l->dlogits) + to * l->words;
#pragma omp parallel for schedule(static) num_threads(exec->threads)
  for (int part = 0; part < exec->threads; part++) {
    tarn__output_row row = {.words = l->words,
                            .smoothing = attr->smoothing,
                            .scale = l->wants_grad ? (float)attr->grad_scale : 0.0f,
                            .wants_grad = l->wants_grad,
                            .sums = node->dparam[1] != NULL ? sums + part * l->words : NULL};
    for (int64_t r = rows * part / exec->threads; r < rows * (part + 1) / exec->threads; r++) {
      row.target = targets[first + r];
      kernels->loss(logits + r * l->words, dlogits + r * l->words, losses + 2 * (first + r), &row);
    }
  }
}

// Logits, loss and dlogits of a chunk, part by part.
static void chunk_loss(const tarn__exec *exec, const tarn__node *node, const layout *l, int64_t first, int64_t rows) {
  for (int64_t done = 0; done < rows; done += l->part_rows) {
    int64_t part = smaller(l->part_rows, rows - done);
    tarn__gemm product = logits_product(node, l, first + done, part);
    tarn__gemm_run(&product, exec->threads, (char *)node->scratch + l->products);
    part_loss(exec, node, l, first + done, part, done);
  }
}

// Computes the gradients from the dlogits of a chunk.
static void chunk_gradients(const tarn__exec *exec, const tarn__node *node, const layout *l, int64_t first,
                            int64_t rows, bool accumulate) {
  char *products = (char *)node->scratch + l->products;
  if (node->dparam[0] != NULL) {
    tarn__gemm product = dtable_product(node, l, first, rows, accumulate);
    tarn__gemm_run(&product, exec->threads, products);
  }
  if (node->out[1] != NULL) {
    tarn__gemm product = dx_product(node, l, first, rows);
    tarn__gemm_run(&product, exec->threads, products);
  }
}

static void pack_table(const tarn__exec *exec, const tarn__node *node, const layout *l) {
  if (is_rounded(node)) return;
  tarn__gemm logits = logits_product(node, l, 0, 1);
  tarn__gemm_pack((char *)node->scratch + l->table, &logits, exec->threads);
  if (node->out[1] == NULL) return;
  tarn__gemm dx = dx_product(node, l, 0, 1);
  tarn__gemm_pack((char *)node->scratch + l->table_dx, &dx, exec->threads);
}

static void add_bias_gradient(const tarn__exec *exec, const tarn__node *node, const layout *l) {
  tarn__param *bias = node->dparam[1];
  float *grad = bias->training.grad, *sums = (float *)((char *)node->scratch + l->sums);
  if (!tarn__param_accumulate(bias)) memset(grad, 0, (size_t)l->words * sizeof *grad);
  for (int part = 0; part < exec->threads; part++) tarn__row_add(grad, sums + part * l->words, l->words);
}

tarn_status tarn__cpu_output_loss(const tarn__exec *exec, const tarn__node *node) {
  if (tarn__output_tiles_fit(node)) {
    tarn__output_tiles_run(exec, node);
    return TARN_STATUS_OK;
  }
  if (!is_rounded(node) && tarn__output_blocks_fit(node)) {
    tarn__output_blocks_run(exec, node);
    return TARN_STATUS_OK;
  }
  layout l = layout_of(node, exec->threads);
  if (node->dparam[1] != NULL)
    memset((char *)node->scratch + l.sums, 0, (size_t)(l.words * exec->threads) * sizeof(float));
  bool accumulate = node->dparam[0] != NULL && tarn__param_accumulate(node->dparam[0]);
  pack_table(exec, node, &l);
  for (int64_t c = 0; c < l.chunks; c++) {
    int64_t first = chunk_start(&l, c), rows = chunk_size(&l, c);
    chunk_loss(exec, node, &l, first, rows);
    chunk_gradients(exec, node, &l, first, rows, accumulate || c > 0);
  }
  if (node->dparam[1] != NULL) add_bias_gradient(exec, node, &l);
  // In the order of the rows, for any number of threads.
  const double *losses = losses_of(node, &l);
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
  return (tarn__gemm){.m = x->rows,
                      .n = table->rows,
                      .k = table->cols,
                      .a = x->data,
                      .b = table->data,
                      .packed = table->param->decoding.packed,
                      .int8 = table->param->decoding.rounding == TARN__ROUNDING_INT8,
                      .int4 = table->param->decoding.rounding == TARN__ROUNDING_INT4,
                      .c = out->data,
                      .bias = bias != NULL ? bias->data : NULL,
                      .lda = x->cols,
                      .ldb = table->cols,
                      .ldc = out->cols,
                      .dtype = x->dtype,
                      .fp32 = node->fp32,
                      .c_dtype = TARN__F32,
                      .transpose_b = true};
}

size_t tarn__cpu_output_log_scratch(const tarn__node *node, int threads) {
  tarn__gemm product = log_product(node);
  return tarn__gemm_scratch(&product, threads);
}

tarn_status tarn__cpu_output_log(const tarn__exec *exec, const tarn__node *node) {
  const tarn__output_kernels *kernels = TARN__TABLE_NOW(tarn__output_kernels);
  tarn__gemm product = log_product(node);
  tarn__gemm_run(&product, exec->threads, node->scratch);
  const tarn__tensor *out = node->out[0];
  if (((const tarn__output_log_attr *)node->attr)->raw) return TARN_STATUS_OK;
#pragma omp parallel for schedule(static) num_threads(exec->threads)
  for (int64_t r = 0; r < out->rows; r++) kernels->log_softmax((float *)out->data + r * out->cols, out->cols);
  return TARN_STATUS_OK;
}
