// The ops token_linear: one product per sentence with the part of the weight that its length reaches. If weights are
// causal, products read a copy of the lower triangle.
#include <string.h>

#include "device/cpu/gemm/gemm.h"
#include "device/cpu/isa/isa.h"
#include "device/cpu/isa/row_cpu.h"
#include "device/cpu/mixing/token_linear_kernels.h"
#include "device/cpu/mixing/token_sentences.h"
#include "ops/token_linear.h"

// The state of a node while its sentences are processed. Pieces of the scratch in bytes: the lower triangle, and, for
// each worker, its sums, those of the bias, scratch of products.
typedef struct job {
  const tarn__node *node;
  const tarn__token_attr *attr;
  const tarn__tensor *weight;
  int64_t d, most_out, most_in;  // maximum rows of a sentence's result and of its x
  tarn__dtype dtype;
  tarn__sentence_work work;
  char *memory;
  const void *weights;  // in the form read by products
  int64_t ld;           // of the weights
  size_t lower, workers;
  size_t own_sums, own_bias, own_products, own;
} job;

static job job_of(const tarn__node *node, const tarn__tensor *offsets, const tarn__tensor *weight,
                  const tarn__tensor *any, int threads) {
  const tarn__token_attr *attr = node->attr;
  job j = {.node = node, .attr = attr, .weight = weight, .d = any->cols, .dtype = any->dtype};
  j.work = tarn__sentence_work_of(offsets, attr->spec.longest, threads);
  j.most_out = attr->spec.form == TARN__TOKENS_IN ? attr->hidden : j.work.longest;
  j.most_in = attr->spec.form == TARN__TOKENS_OUT ? attr->hidden : j.work.longest;
  j.memory = node->scratch;
  return j;
}

// Lays out the scratch: the lower triangle if there is a weight, and for each worker `sums` and `bias` floats.
static void lay_out(job *j, size_t sums, size_t bias,
                    size_t (*product_bytes)(const void *job, int64_t n, int threads)) {
  const int64_t n = j->work.longest;
  size_t at = 0;
  if (j->weight) {
    j->lower = tarn__take_bytes(&at, j->attr->spec.causal ? (size_t)(n * n) * tarn__dtype_size(j->dtype) : 0);
    j->ld = j->attr->spec.causal ? n : j->weight->cols;
    j->weights = j->attr->spec.causal ? tarn__piece(j->memory, j->lower) : j->weight->data;
  }
  j->workers = at;
  at = 0;
  j->own_sums = tarn__take_bytes(&at, sums * sizeof(float));
  j->own_bias = tarn__take_bytes(&at, bias * sizeof(float));
  j->own_products = tarn__take_bytes(&at, tarn__sentence_scratch(&j->work, product_bytes, j));
  j->own = at;
}

static size_t scratch_of(const job *j) { return j->workers + j->own * (size_t)j->work.workers; }

static char *own_of(const job *j, int worker) { return j->memory + j->workers + j->own * (size_t)worker; }

static const void *row_at(const job *j, const tarn__tensor *tensor, int64_t row) {
  return tarn__piece(tensor->data, (size_t)(row * j->d) * tarn__dtype_size(j->dtype));
}

// Copies the lower triangle, with all threads.
static void make_lower(const job *j, int threads) {
  const int64_t n = j->work.longest;
  if (!j->attr->spec.causal) return;
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int part = 0; part < threads; part++)
    TARN__TABLE_NOW(tarn__token_linear_kernels)
        ->lower(j->memory + j->lower, j->weight, n, n * part / threads, n * (part + 1) / threads);
}

// z = W x of a sentence.
static tarn__gemm forward_product(const job *j, const tarn__token_sentence *at, float *z) {
  return (tarn__gemm){.m = at->out,
                      .n = j->d,
                      .k = at->in,
                      .a = j->weights,
                      .b = row_at(j, j->node->in[TARN__TOKENS_X], at->in_row),
                      .c = z,
                      .lda = j->ld,
                      .ldb = j->d,
                      .ldc = j->d,
                      .dtype = j->dtype,
                      .fp32 = j->node->fp32,
                      .c_dtype = TARN__F32};
}

// dx (+)= W^T dz of a sentence.
static tarn__gemm dx_product(const job *j, const tarn__token_sentence *at) {
  const tarn__node *node = j->node;
  const tarn__tensor *dx = node->out[TARN__TOKENS_DX];
  const tarn__tensor *dz = node->out[TARN__TOKENS_DZ] ? node->out[TARN__TOKENS_DZ] : node->in[TARN__TOKENS_DX_DY];
  return (tarn__gemm){.m = at->in,
                      .n = j->d,
                      .k = at->out,
                      .a = j->weights,
                      .b = row_at(j, dz, at->out_row),
                      .c = (void *)(uintptr_t)row_at(j, dx, at->in_row),
                      .lda = j->ld,
                      .ldb = j->d,
                      .ldc = j->d,
                      .dtype = j->dtype,
                      .fp32 = node->fp32,
                      .c_dtype = j->dtype,
                      .transpose_a = true,
                      .accumulate = node->in[TARN__TOKENS_DX_PREVIOUS] != NULL};
}

// A worker's sums += dz x^T of a sentence.
static tarn__gemm dweight_product(const job *j, const tarn__token_sentence *at, float *sums) {
  return (tarn__gemm){.m = at->out,
                      .n = at->in,
                      .k = j->d,
                      .a = row_at(j, j->node->in[TARN__TOKENS_DWEIGHT_DZ], at->out_row),
                      .b = row_at(j, j->node->in[TARN__TOKENS_DWEIGHT_X], at->in_row),
                      .c = sums,
                      .lda = j->d,
                      .ldb = j->d,
                      .ldc = j->most_in,
                      .dtype = j->dtype,
                      .fp32 = j->node->fp32,
                      .c_dtype = TARN__F32,
                      .transpose_b = true,
                      .accumulate = true};
}

static size_t forward_bytes(const void *user, int64_t n, int threads) {
  const job *j = user;
  const tarn__token_sentence at = tarn__token_sentence_of(j->attr, 0, 0, n);
  const tarn__gemm product = forward_product(j, &at, NULL);
  return tarn__gemm_scratch(&product, threads);
}

static size_t dx_bytes(const void *user, int64_t n, int threads) {
  const job *j = user;
  const tarn__token_sentence at = tarn__token_sentence_of(j->attr, 0, 0, n);
  const tarn__gemm product = dx_product(j, &at);
  return tarn__gemm_scratch(&product, threads);
}

static size_t dweight_bytes(const void *user, int64_t n, int threads) {
  const job *j = user;
  const tarn__token_sentence at = tarn__token_sentence_of(j->attr, 0, 0, n);
  const tarn__gemm product = dweight_product(j, &at, NULL);
  return tarn__gemm_scratch(&product, threads);
}

static job forward_job(const tarn__node *node, int threads) {
  job j =
      job_of(node, node->in[TARN__TOKENS_OFFSETS], node->in[TARN__TOKENS_WEIGHT], node->in[TARN__TOKENS_X], threads);
  lay_out(&j, (size_t)(j.most_out * j.d), 0, forward_bytes);
  return j;
}

static void forward_sentence(const void *user, int worker, int64_t s, int64_t row, int64_t n) {
  const job *j = user;
  const tarn__token_sentence at = tarn__token_sentence_of(j->attr, s, row, n);
  const int helpers = j->work.helpers;
  if (at.out == 0) return;
  char *own = own_of(j, worker);
  float *z = (float *)(void *)(own + j->own_sums);
  const tarn__gemm product = forward_product(j, &at, z);
  tarn__gemm_run(&product, helpers, own + j->own_products);
#pragma omp parallel for num_threads(helpers) schedule(static, 1)
  for (int part = 0; part < helpers; part++)
    TARN__TABLE_NOW(tarn__token_linear_kernels)
        ->finish(j->node, z, at.out_row, at.out * part / helpers, at.out * (part + 1) / helpers);
}

tarn_status tarn__cpu_token_linear(const tarn__exec *exec, const tarn__node *node) {
  const job j = forward_job(node, exec->threads);
  make_lower(&j, exec->threads);
  tarn__sentences_run(&j.work, node->in[TARN__TOKENS_OFFSETS], forward_sentence, &j);
  return TARN_STATUS_OK;
}

size_t tarn__cpu_token_linear_scratch(const tarn__node *node, int threads) {
  const job j = forward_job(node, threads);
  return scratch_of(&j);
}

static job dx_job(const tarn__node *node, int threads) {
  job j = job_of(node, node->in[TARN__TOKENS_DX_OFFSETS], node->in[TARN__TOKENS_DX_WEIGHT],
                 node->in[TARN__TOKENS_DX_DY], threads);
  if (!node->out[TARN__TOKENS_DX]) return j;
  lay_out(&j, 0, 0, dx_bytes);
  return j;
}

static void dx_sentence(const void *user, int worker, int64_t s, int64_t row, int64_t n) {
  const job *j = user;
  const tarn__token_sentence at = tarn__token_sentence_of(j->attr, s, row, n);
  const int helpers = j->work.helpers;
  if (j->node->out[TARN__TOKENS_DZ]) {
#pragma omp parallel for num_threads(helpers) schedule(static, 1)
    for (int part = 0; part < helpers; part++)
      TARN__TABLE_NOW(tarn__token_linear_kernels)
          ->through_gate(j->node, row + n * part / helpers, row + n * (part + 1) / helpers);
  }
  if (!j->node->out[TARN__TOKENS_DX] || at.in == 0) return;
  const tarn__gemm product = dx_product(j, &at);
  tarn__gemm_run(&product, helpers, own_of(j, worker) + j->own_products);
}

tarn_status tarn__cpu_token_linear_dx(const tarn__exec *exec, const tarn__node *node) {
  const job j = dx_job(node, exec->threads);
  if (node->out[TARN__TOKENS_DX]) make_lower(&j, exec->threads);
  tarn__sentences_run(&j.work, node->in[TARN__TOKENS_DX_OFFSETS], dx_sentence, &j);
  return TARN_STATUS_OK;
}

size_t tarn__cpu_token_linear_dx_scratch(const tarn__node *node, int threads) {
  const job j = dx_job(node, threads);
  return scratch_of(&j);
}

static size_t no_bytes(const void *user, int64_t n, int threads) {
  (void)user, (void)n, (void)threads;
  return 0;
}

static job dweight_job(const tarn__node *node, int threads) {
  job j = job_of(node, node->in[TARN__TOKENS_DWEIGHT_OFFSETS], NULL, node->in[TARN__TOKENS_DWEIGHT_DZ], threads);
  const bool weight = node->dparam[0] != NULL;
  lay_out(&j, weight ? (size_t)(j.most_out * j.most_in) : 0, (size_t)j.most_out, weight ? dweight_bytes : no_bytes);
  return j;
}

static void dweight_sentence(const void *user, int worker, int64_t s, int64_t row, int64_t n) {
  const job *j = user;
  const tarn__node *node = j->node;
  const tarn__token_sentence at = tarn__token_sentence_of(j->attr, s, row, n);
  char *own = own_of(j, worker);
  if (node->dparam[1])
    TARN__TABLE_NOW(tarn__token_linear_kernels)
        ->sum_rows((float *)(void *)(own + j->own_bias), node->in[TARN__TOKENS_DWEIGHT_DZ], at.out_row,
                   at.out_row + at.out);
  if (!node->dparam[0] || at.out == 0 || at.in == 0) return;
  const tarn__gemm product = dweight_product(j, &at, (float *)(void *)(own + j->own_sums));
  tarn__gemm_run(&product, j->work.helpers, own + j->own_products);
}

// Adds columns [0, count) of row i of the workers' sums, which begin at `sums` of each and are `width` wide, to a
// gradient's row of `cols`, or stores them there.
static void add_row(const job *j, float *to, int64_t cols, size_t sums, int64_t width, int64_t i, int64_t count,
                    bool accumulate) {
  if (!accumulate) memset(to, 0, (size_t)cols * sizeof *to);
  for (int worker = 0; worker < j->work.workers; worker++)
    tarn__row_add(to, (const float *)(const void *)(own_of(j, worker) + sums) + i * width, count);
}

tarn_status tarn__cpu_token_linear_dweight(const tarn__exec *exec, const tarn__node *node) {
  const job j = dweight_job(node, exec->threads);
#pragma omp parallel for num_threads(j.work.workers) schedule(static, 1)
  for (int worker = 0; worker < j.work.workers; worker++) memset(own_of(&j, worker), 0, j.own_products);
  tarn__sentences_run(&j.work, node->in[TARN__TOKENS_DWEIGHT_OFFSETS], dweight_sentence, &j);
  if (node->dparam[1]) {
    tarn__param *bias = node->dparam[1];
    add_row(&j, bias->training.grad, bias->cols, j.own_bias, 0, 0, j.most_out, tarn__param_accumulate(bias) != 0);
  }
  if (!node->dparam[0]) return TARN_STATUS_OK;
  tarn__param *weight = node->dparam[0];
  const bool accumulate = tarn__param_accumulate(weight) != 0, causal = j.attr->spec.causal;
#pragma omp parallel for num_threads(exec->threads) schedule(static)
  for (int64_t i = 0; i < weight->rows; i++)
    add_row(&j, (float *)weight->training.grad + i * weight->cols, weight->cols, j.own_sums, j.most_in,
            i < j.most_out ? i : 0,
            i >= j.most_out ? 0
            : causal        ? i + 1
                            : j.most_in,
            accumulate);
  return TARN_STATUS_OK;
}

size_t tarn__cpu_token_linear_dweight_scratch(const tarn__node *node, int threads) {
  const job j = dweight_job(node, threads);
  return scratch_of(&j);
}

tarn_status tarn__cpu_token_linear_rows(const tarn__exec *exec, const tarn__node *node) {
  const int64_t rows = node->out[0]->rows;
  const size_t width = tarn__row_floats(node->in[TARN__TOKENS_WEIGHT]->cols);
#pragma omp parallel for num_threads(exec->threads) schedule(static, 1)
  for (int part = 0; part < exec->threads; part++)
    TARN__TABLE_NOW(tarn__token_linear_kernels)
        ->step(node, rows * part / exec->threads, rows * (part + 1) / exec->threads,
               (float *)node->scratch + (size_t)part * width);
  return TARN_STATUS_OK;
}

size_t tarn__cpu_token_linear_rows_scratch(const tarn__node *node, int threads) {
  return tarn__row_floats(node->in[TARN__TOKENS_WEIGHT]->cols) * sizeof(float) * (size_t)threads;
}
