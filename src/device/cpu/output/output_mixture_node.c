// A mixture of softmaxes processes the rows in chunks, for each of which
//   logits = h table^T + bias, a row per softmax;  loss and dlogits in their place;
//   dtable += dlogits^T h;  dh = dlogits table
// The gradient of the table is read and written once per chunk. So if it is large, a chunk may have as many bytes of
// logits as it has.
#include <omp.h>
#include <string.h>

#include "device/cpu/gemm/gemm.h"
#include "device/cpu/isa/isa.h"
#include "device/cpu/isa/row_cpu.h"
#include "device/cpu/output/output_mixture_kernels.h"
#include "device/cpu/output/output_top_kernels.h"

enum {
  CHUNK_BYTES = 8 << 20,  // of logits, but at least
  CHUNK_ROWS = 16         // rows, or all of them if there are fewer
};

typedef struct layout {
  int64_t rows, words, width, mixtures, chunk_rows;
  bool wants_grad;
  size_t thread_floats;                           // of a thread: see thread_floats()
  size_t threads, losses, sums, products, bytes;  // offsets in the scratch, which begins with the logits
} layout;

static const tarn__mixture_attr *attr_of(const tarn__node *node) { return node->attr; }

static const tarn__mixture_kernels *kernels(void) { return TARN__TABLE_NOW(tarn__mixture_kernels); }

static const tarn__output_top_kernels *top_kernels(void) { return TARN__TABLE_NOW(tarn__output_top_kernels); }

static bool wants_grad(const tarn__node *node) {
  return attr_of(node)->mode == TARN__MIXTURE_LOSS &&
         (node->out[TARN__MIXTURE_DH] || node->out[TARN__MIXTURE_DPRIOR] || node->dparam[0] || node->dparam[1]);
}

static size_t after(size_t *offset, size_t bytes) {
  const size_t at = *offset;
  *offset = (at + bytes + 63) & ~(size_t)63;
  return at;
}

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

static char *vectors_of(const tarn__tensor *tensor, int64_t row) {
  return (char *)tensor->data + (size_t)(row * tensor->cols) * tarn__dtype_size(tensor->dtype);
}

// Without memory, which does not exist yet when scratch is measured.
static tarn__gemm logits_shape(const tarn__node *node, const layout *l, int64_t rows) {
  const tarn__tensor *table = node->in[TARN__MIXTURE_TABLE], *bias = node->in[TARN__MIXTURE_BIAS];
  return (tarn__gemm){.m = rows * l->mixtures,
                      .n = l->words,
                      .k = l->width,
                      .b = table->data,
                      .packed = table->param->decoding.packed,
                      .int8 = table->param->decoding.rounding == TARN__ROUNDING_INT8,
                      .int4 = table->param->decoding.rounding == TARN__ROUNDING_INT4,
                      .bias = bias ? bias->data : NULL,
                      .lda = l->width,
                      .ldb = l->width,
                      .ldc = l->words,
                      .dtype = table->dtype,
                      .fp32 = node->fp32,
                      .c_dtype = TARN__F32,
                      .transpose_b = true};
}

// The rows of dlogits begin where those of the logits did.
static int64_t row_distance(const tarn__node *node, const layout *l) {
  return node->in[TARN__MIXTURE_H]->dtype == TARN__BF16 ? 2 * l->words : l->words;
}

static tarn__gemm dtable_shape(const tarn__node *node, const layout *l, int64_t rows) {
  return (tarn__gemm){.m = l->words,
                      .n = l->width,
                      .k = rows * l->mixtures,
                      .lda = row_distance(node, l),
                      .ldb = l->width,
                      .ldc = l->width,
                      .dtype = node->in[TARN__MIXTURE_H]->dtype,
                      .fp32 = node->fp32,
                      .c_dtype = TARN__F32,
                      .transpose_a = true};
}

static tarn__gemm dh_shape(const tarn__node *node, const layout *l, int64_t rows) {
  return (tarn__gemm){.m = rows * l->mixtures,
                      .n = l->width,
                      .k = l->words,
                      .b = node->in[TARN__MIXTURE_TABLE]->data,
                      .lda = row_distance(node, l),
                      .ldb = l->width,
                      .ldc = l->width,
                      .dtype = node->in[TARN__MIXTURE_H]->dtype,
                      .fp32 = node->fp32,
                      .c_dtype = node->in[TARN__MIXTURE_H]->dtype};
}

static size_t products_scratch(const tarn__node *node, const layout *l, int threads) {
  const int64_t sizes[] = {l->chunk_rows, l->rows % larger(l->chunk_rows, 1)};
  size_t most = 0;
  for (int i = 0; i < 2; i++) {
    const tarn__gemm products[] = {logits_shape(node, l, sizes[i]), dh_shape(node, l, sizes[i]),
                                   dtable_shape(node, l, sizes[i])};
    for (int p = 0; p < (l->wants_grad ? 3 : 1); p++) {
      const size_t bytes = tarn__gemm_scratch(&products[p], threads);
      if (bytes > most) most = bytes;
    }
  }
  return most;
}

// Floats of a thread: the prior and its gradient, the kernel's scratch or a row of log-probabilities, and the parts of
// its sum when the best words are found.
static size_t thread_floats(const layout *l) {
  return 2 * tarn__row_floats(l->mixtures) + 2 * tarn__row_floats(l->words) +
         tarn__row_floats(tarn__top_visits(l->words) * (int64_t)(sizeof(tarn__top_part) / sizeof(float)));
}

static layout layout_of(const tarn__node *node, int threads) {
  const tarn__tensor *table = node->in[TARN__MIXTURE_TABLE];
  layout l = {.rows = node->in[TARN__MIXTURE_H]->rows,
              .words = table->rows,
              .width = table->cols,
              .mixtures = node->in[TARN__MIXTURE_PRIOR]->cols,
              .wants_grad = wants_grad(node)};
  const int64_t row_bytes = l.mixtures * l.words * (int64_t)sizeof(float);
  const int64_t gradient = l.wants_grad ? l.words * l.width * (int64_t)sizeof(float) : 0;
  l.chunk_rows = larger(larger(CHUNK_BYTES, gradient) / row_bytes, CHUNK_ROWS);
  if (l.chunk_rows > l.rows) l.chunk_rows = l.rows;
  size_t end = 0;
  after(&end, (size_t)(l.chunk_rows * row_bytes));
  l.thread_floats = thread_floats(&l);
  l.threads = after(&end, (size_t)threads * l.thread_floats * sizeof(float));
  l.losses = after(&end, (size_t)l.rows * 2 * sizeof(double));
  l.sums = after(&end, node->dparam[1] ? (size_t)(l.words * threads) * sizeof(float) : 0);
  l.products = l.bytes = end;
  return l;
}

size_t tarn__cpu_output_mixture_scratch(const tarn__node *node, int threads) {
  const layout l = layout_of(node, threads);
  return l.bytes + products_scratch(node, &l, threads);
}

static double *losses_of(const tarn__node *node, const layout *l) {
  return node->out[TARN__MIXTURE_ROWS] ? node->out[TARN__MIXTURE_ROWS]->data
                                       : (void *)((char *)node->scratch + l->losses);
}

// Completes row `row` of the whole, whose logits have been computed.
static void finish_row(const tarn__node *node, const layout *l, tarn__mixture_row *own, float *logits, float *memory,
                       int64_t row) {
  const tarn__mixture_attr *attr = attr_of(node);
  const tarn__tensor *prior = node->in[TARN__MIXTURE_PRIOR];
  float *log_p = memory + 2 * tarn__row_floats(l->mixtures);
  own->prior = tarn__row_read(prior->data, prior->dtype, row * l->mixtures, l->mixtures, memory);
  own->dprior = memory + tarn__row_floats(l->mixtures);
  own->scratch = log_p;
  if (attr->mode == TARN__MIXTURE_LOSS) {
    own->target = ((const int32_t *)node->in[TARN__MIXTURE_TARGETS]->data)[row];
    kernels()->loss(logits, losses_of(node, l) + 2 * row, own);
    tarn__tensor *dprior = node->out[TARN__MIXTURE_DPRIOR];
    for (int64_t k = 0; dprior && k < l->mixtures; k++) {
      const int64_t at = row * l->mixtures + k;
      if (dprior->dtype == TARN__BF16)
        ((uint16_t *)dprior->data)[at] = tarn__bf16_from_f32(own->dprior[k]);
      else
        ((float *)dprior->data)[at] = own->dprior[k];
    }
    return;
  }
  if (attr->mode == TARN__MIXTURE_LOG) {
    kernels()->log((float *)node->out[0]->data + row * l->words, logits, own);
    return;
  }
  kernels()->log(log_p, logits, own);
  top_kernels()->row((float *)node->out[0]->data + row * (attr->top.best + 1),
                     (int32_t *)node->out[1]->data + row * attr->top.best, log_p, l->words, &attr->top,
                     (tarn__top_part *)(void *)(log_p + 2 * tarn__row_floats(l->words)));
}

static void finish_rows(const tarn__exec *exec, const tarn__node *node, const layout *l, int64_t first, int64_t rows) {
  const tarn__mixture_attr *attr = attr_of(node);
  float *logits = node->scratch, *sums = (float *)(void *)((char *)node->scratch + l->sums);
#pragma omp parallel for schedule(static) num_threads(exec->threads)
  for (int part = 0; part < exec->threads; part++) {
    float *memory = (float *)(void *)((char *)node->scratch + l->threads) + (size_t)part * l->thread_floats;
    tarn__mixture_row row = {.words = l->words,
                             .mixtures = l->mixtures,
                             .smoothing = attr->smoothing,
                             .scale = l->wants_grad ? (float)attr->grad_scale : 0.0f,
                             .wants_grad = l->wants_grad,
                             .dtype = node->in[TARN__MIXTURE_H]->dtype,
                             .sums = node->dparam[1] ? sums + part * l->words : NULL};
    for (int64_t r = rows * part / exec->threads; r < rows * (part + 1) / exec->threads; r++)
      finish_row(node, l, &row, logits + r * l->mixtures * l->words, memory, first + r);
  }
}

// Computes the gradients from the dlogits of a chunk.
static void chunk_gradients(const tarn__exec *exec, const tarn__node *node, const layout *l, int64_t first,
                            int64_t rows, bool accumulate) {
  void *scratch = (char *)node->scratch + l->products;
  if (node->dparam[0]) {
    tarn__gemm product = dtable_shape(node, l, rows);
    product.a = node->scratch;
    product.b = vectors_of(node->in[TARN__MIXTURE_H], first);
    product.c = node->dparam[0]->training.grad;
    product.accumulate = accumulate;
    tarn__gemm_run(&product, exec->threads, scratch);
  }
  if (node->out[TARN__MIXTURE_DH]) {
    tarn__gemm product = dh_shape(node, l, rows);
    product.a = node->scratch;
    product.c = vectors_of(node->out[TARN__MIXTURE_DH], first);
    tarn__gemm_run(&product, exec->threads, scratch);
  }
}

static void add_bias_gradient(const tarn__exec *exec, const tarn__node *node, const layout *l) {
  tarn__param *bias = node->dparam[1];
  float *grad = bias->training.grad, *sums = (float *)(void *)((char *)node->scratch + l->sums);
  if (!tarn__param_accumulate(bias)) memset(grad, 0, (size_t)l->words * sizeof *grad);
  for (int part = 0; part < exec->threads; part++) tarn__row_add(grad, sums + part * l->words, l->words);
}

// In the order of the rows, for any number of threads.
static void add_losses(const tarn__node *node, const layout *l) {
  const double *losses = losses_of(node, l);
  double *loss = node->out[TARN__MIXTURE_SUMS]->data;
  loss[0] = loss[1] = 0.0;
  for (int64_t r = 0; r < l->rows; r++) {
    loss[0] += losses[2 * r];
    loss[1] += losses[2 * r + 1];
  }
}

tarn_status tarn__cpu_output_mixture(const tarn__exec *exec, const tarn__node *node) {
  const layout l = layout_of(node, exec->threads);
  const bool accumulate = node->dparam[0] && tarn__param_accumulate(node->dparam[0]);
  if (node->dparam[1]) memset((char *)node->scratch + l.sums, 0, (size_t)(l.words * exec->threads) * sizeof(float));
  // Without rows there is one empty chunk: its product clears the gradient of the table.
  int64_t first = 0;
  do {
    const int64_t rows = l.rows - first < l.chunk_rows ? l.rows - first : l.chunk_rows;
    tarn__gemm product = logits_shape(node, &l, rows);
    product.a = vectors_of(node->in[TARN__MIXTURE_H], first);
    product.c = node->scratch;
    tarn__gemm_run(&product, exec->threads, (char *)node->scratch + l.products);
    finish_rows(exec, node, &l, first, rows);
    if (l.wants_grad) chunk_gradients(exec, node, &l, first, rows, accumulate || first > 0);
    first += rows;
  } while (first < l.rows);
  if (node->dparam[1]) add_bias_gradient(exec, node, &l);
  if (attr_of(node)->mode == TARN__MIXTURE_LOSS) add_losses(node, &l);
  return TARN_STATUS_OK;
}
