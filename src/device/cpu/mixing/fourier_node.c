// The op fourier by products with tables of cosines and sines: one over all rows along features, then two per sentence
// along tokens. With enough sentences each thread processes whole ones; otherwise all threads share each product.
#include "device/cpu/gemm/gemm.h"
#include "device/cpu/isa/isa.h"
#include "device/cpu/isa/row_cpu.h"
#include "device/cpu/mixing/fourier_kernels.h"
#include "device/cpu/mixing/token_sentences.h"
#include "ops/fourier.h"

// Pieces of the scratch in bytes: the table along features, x transformed along features, scratch of their product;
// and, for each worker, the wave and table of a sentence, both halves of the result, a row, scratch of products.
typedef struct layout {
  size_t wave, table, features, products, workers;
  size_t own_table, own_halves, own_row, own_products, own;
  tarn__sentence_work work;
} layout;

// Transforms x, or its gradient or tangent, along features: [x C_d, x S_d].
static tarn__gemm feature_product(const tarn__node *node, char *memory, const layout *l) {
  const tarn__tensor *x = node->in[TARN__FOURIER_X];
  return (tarn__gemm){.m = x->rows,
                      .n = x->cols,
                      .k = x->cols,
                      .a = x->data,
                      .b = tarn__piece(memory, l->table),
                      .c = tarn__piece(memory, l->features),
                      .lda = x->cols,
                      .ldb = x->cols,
                      .ldc = x->cols,
                      .dtype = x->dtype,
                      .fp32 = node->fp32,
                      .c_dtype = x->dtype};
}

// Cosines, or sines, along the tokens of a sentence of n rows that begins at `row`.
static tarn__gemm token_product(const tarn__node *node, char *memory, const layout *l, char *own, int64_t row,
                                int64_t n, bool sines) {
  const tarn__tensor *x = node->in[TARN__FOURIER_X];
  const int64_t d = x->cols, rows = tarn__fourier_cosines(n), columns = tarn__fourier_cosines(d);
  const size_t size = tarn__dtype_size(x->dtype);
  const size_t features = l->features + (size_t)(row * d + (sines ? columns : 0)) * size;
  const size_t halves = l->own_halves + (sines ? (size_t)(rows * columns) * sizeof(float) : 0);
  return (tarn__gemm){.m = sines ? tarn__fourier_sines(n) : rows,
                      .n = sines ? tarn__fourier_sines(d) : columns,
                      .k = n,
                      .a = tarn__piece(own, l->own_table + (sines ? (size_t)(rows * n) * size : 0)),
                      .b = tarn__piece(memory, features),
                      .c = tarn__piece(own, halves),
                      .lda = n,
                      .ldb = d,
                      .ldc = sines ? tarn__fourier_sines(d) : columns,
                      .dtype = x->dtype,
                      .fp32 = node->fp32,
                      .c_dtype = TARN__F32};
}

// Scratch of both products of a sentence, which run one after another.
static size_t product_bytes(const void *user, int64_t n, int threads) {
  const tarn__node *node = user;
  const layout none = {0};
  size_t most = 0;
  for (int sines = 0; sines < 2; sines++) {
    const tarn__gemm product = token_product(node, NULL, &none, NULL, 0, n, sines != 0);
    const size_t bytes = tarn__gemm_scratch(&product, threads);
    if (bytes > most) most = bytes;
  }
  return most;
}

static layout layout_of(const tarn__node *node, int threads) {
  const tarn__tensor *x = node->in[TARN__FOURIER_X];
  const tarn__fourier_attr *attr = node->attr;
  const int64_t d = x->cols;
  const size_t size = tarn__dtype_size(x->dtype);
  layout l = {.work = tarn__sentence_work_of(node->in[TARN__FOURIER_OFFSETS], attr->longest, threads)};
  const int64_t n = l.work.longest;
  size_t at = 0;
  l.wave = tarn__take_bytes(&at, 2 * (size_t)d * sizeof(float));
  l.table = tarn__take_bytes(&at, (size_t)(d * d) * size);
  l.features = tarn__take_bytes(&at, (size_t)(x->rows * d) * size);
  const tarn__gemm product = feature_product(node, NULL, &l);
  l.products = tarn__take_bytes(&at, tarn__gemm_scratch(&product, threads));
  l.workers = at;
  at = 0;
  tarn__take_bytes(&at, 2 * (size_t)n * sizeof(float));
  l.own_table = tarn__take_bytes(&at, (size_t)(n * n) * size);
  // As many numbers as a sentence has, except for the first and last row and column of cosines.
  l.own_halves = tarn__take_bytes(&at, (size_t)((n / 2 + 1) * (d + 1)) * sizeof(float));
  // A row of the result, twice, or one of a table, for each thread.
  l.own_row = tarn__take_bytes(&at, tarn__row_floats(2 * d + n) * sizeof(float) * (size_t)l.work.helpers);
  l.own_products = tarn__take_bytes(&at, tarn__sentence_scratch(&l.work, product_bytes, node));
  l.own = at;
  return l;
}

size_t tarn__cpu_fourier_scratch(const tarn__node *node, int threads) {
  const layout l = layout_of(node, threads);
  return l.workers + l.own * (size_t)l.work.workers;
}

typedef struct job {
  const tarn__node *node;
  const layout *l;
  char *memory;
} job;

static void run_sentence(const void *user, int worker, int64_t s, int64_t row, int64_t n) {
  const job *j = user;
  const layout *l = j->l;
  const tarn__fourier_kernels *kernels = TARN__TABLE_NOW(tarn__fourier_kernels);
  const tarn__tensor *y = j->node->out[0];
  char *own = j->memory + l->workers + l->own * (size_t)worker;
  float *wave = (float *)(void *)own, *halves = (float *)(void *)(own + l->own_halves);
  float *rows = (float *)(void *)(own + l->own_row);
  const int helpers = l->work.helpers;
  const int64_t d = y->cols;
  (void)s;
  if (n == 0) return;
  kernels->wave(wave, n);
#pragma omp parallel for num_threads(helpers) schedule(static, 1)
  for (int part = 0; part < helpers; part++)
    kernels->table(own + l->own_table, y->dtype, wave, n, false, n * part / helpers, n * (part + 1) / helpers,
                   rows + (size_t)part * tarn__row_floats(2 * d + l->work.longest));
  for (int sines = 0; sines < 2; sines++) {
    const tarn__gemm product = token_product(j->node, j->memory, l, own, row, n, sines != 0);
    if (product.m > 0 && product.n > 0) tarn__gemm_run(&product, helpers, own + l->own_products);
  }
  char *out = (char *)y->data + (size_t)(row * d) * tarn__dtype_size(y->dtype);
  const float *sine_half = halves + tarn__fourier_cosines(n) * tarn__fourier_cosines(d);
#pragma omp parallel for num_threads(helpers) schedule(static, 1)
  for (int part = 0; part < helpers; part++)
    kernels->unfold(out, y->dtype, halves, sine_half, n, d, n * part / helpers, n * (part + 1) / helpers,
                    j->node->in[TARN__FOURIER_PREVIOUS] != NULL,
                    rows + (size_t)part * tarn__row_floats(2 * d + l->work.longest));
}

tarn_status tarn__cpu_fourier(const tarn__exec *exec, const tarn__node *node) {
  const tarn__fourier_kernels *kernels = TARN__TABLE_NOW(tarn__fourier_kernels);
  const tarn__tensor *x = node->in[TARN__FOURIER_X];
  const layout l = layout_of(node, exec->threads);
  const int64_t d = x->cols;
  char *memory = node->scratch;
  float *wave = (float *)(void *)(memory + l.wave);
  if (x->rows == 0) return TARN_STATUS_OK;
  kernels->wave(wave, d);
  // These rows are in memory that later becomes scratch of the product, or of workers.
#pragma omp parallel for num_threads(exec->threads) schedule(static, 1)
  for (int part = 0; part < exec->threads; part++) {
    const int worker = part % l.work.workers, helper = part / l.work.workers;
    float *row = (float *)(void *)(memory + l.workers + l.own * (size_t)worker + l.own_row);
    kernels->table(memory + l.table, x->dtype, wave, d, true, d * part / exec->threads, d * (part + 1) / exec->threads,
                   row + (size_t)helper * tarn__row_floats(2 * d + l.work.longest));
  }
  const tarn__gemm product = feature_product(node, memory, &l);
  tarn__gemm_run(&product, exec->threads, memory + l.products);
  tarn__sentences_run(&l.work, node->in[TARN__FOURIER_OFFSETS], run_sentence, &(job){node, &l, memory});
  return TARN_STATUS_OK;
}
