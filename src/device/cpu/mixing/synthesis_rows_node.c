// Synthetic attention of single rows, for decoding. Logits of the dense form are one product per head, for all rows of
// the step; the rest is computed row by row.
#include <math.h>
#include <omp.h>

#include "device/cpu/cpu_kernels.h"
#include "device/cpu/gemm/gemm.h"
#include "device/cpu/isa/isa.h"
#include "device/cpu/isa/row_cpu.h"
#include "device/cpu/mixing/synthesis_kernels.h"
#include "ops/synthesis.h"

static int64_t padded(int64_t n) { return (int64_t)tarn__row_floats(n); }

static void *element(const tarn__tensor *tensor, int64_t at) {
  return tensor->data ? (char *)tensor->data + at * (int64_t)tarn__dtype_size(tensor->dtype) : NULL;
}

// Logits [heads, rows, padded(longest)], in the dense form by a product.
static tarn__gemm logits_of(const tarn__node *node, float *logits, int64_t h) {
  const tarn__synthesis_spec *spec = node->attr;
  const tarn__tensor *source = node->in[TARN__SYNTHESIS_SOURCE], *weight = node->in[TARN__SYNTHESIS_WEIGHT];
  const tarn__tensor *bias = node->in[TARN__SYNTHESIS_BIAS];
  const int64_t width = tarn__synthesis_width(node), first = h * spec->places;
  return (tarn__gemm){.m = source->rows,
                      .n = spec->longest,
                      .k = width,
                      .a = element(source, h * width),
                      .b = element(weight, first * width),
                      .c = logits ? logits + h * source->rows * padded(spec->longest) : NULL,
                      .bias = bias && bias->data ? (const float *)bias->data + first : NULL,
                      .lda = source->cols,
                      .ldb = width,
                      .ldc = padded(spec->longest),
                      .dtype = source->dtype,
                      .fp32 = node->fp32,
                      .transpose_b = true};
}

// Floats of all logits; then for each thread scores, weights, a row of a head.
static size_t logits_floats(const tarn__node *node) {
  const tarn__synthesis_spec *spec = node->attr;
  return (size_t)(spec->heads * node->out[0]->rows * padded(spec->longest));
}

static size_t own_floats(const tarn__node *node) {
  const tarn__synthesis_spec *spec = node->attr;
  return (size_t)(2 * padded(spec->longest) + padded(spec->d / spec->heads));
}

size_t tarn__cpu_synthesis_rows_scratch(const tarn__node *node, int threads) {
  const size_t floats = logits_floats(node) + own_floats(node) * (size_t)threads;
  size_t product = 0;
  if (((const tarn__synthesis_spec *)node->attr)->form == TARN__SYNTHESIS_DENSE) {
    const tarn__gemm g = logits_of(node, NULL, 0);
    product = tarn__gemm_scratch(&g, threads);
  }
  return floats * sizeof(float) + product;
}

// Row i of head h. In the dense form its logits have been computed; otherwise they are computed here.
static void run_row(const tarn__node *node, const tarn__synthesis_row *row, float *logit, float *score, float *mean,
                    int64_t i, int64_t h) {
  const tarn__synthesis_kernels *kernels = TARN__TABLE_NOW(tarn__synthesis_kernels);
  const tarn__synthesis_spec *spec = node->attr;
  const tarn__tensor *x = node->in[TARN__SYNTHESIS_X], *cache = node->in[TARN__SYNTHESIS_CACHE], *y = node->out[0];
  const tarn__tensor *source = node->in[TARN__SYNTHESIS_SOURCE], *weight = node->in[TARN__SYNTHESIS_WEIGHT];
  const int32_t *range = (const int32_t *)node->in[TARN__SYNTHESIS_RANGES]->data + 2 * i;
  const int32_t *list = (const int32_t *)node->in[TARN__SYNTHESIS_LIST]->data + range[0];
  const int64_t head = spec->d / spec->heads, at = h * head, values = row->score ? spec->d : 0;
  const float scale = (float)(1.0 / sqrt((double)head));
  if (spec->form == TARN__SYNTHESIS_RANDOM)
    kernels->copy(logit, weight->data, weight->dtype, (h * spec->places + row->count - 1) * spec->places, row->count);
  else if (spec->form == TARN__SYNTHESIS_FACTORISED)
    kernels->factorised(logit, source->data, source->dtype, i * source->cols + h * tarn__synthesis_width(node),
                        spec->left, row->count);
  for (int64_t j = 0; row->score && j < row->count; j++)
    score[j] = kernels->dot(x->data, i * x->cols + at, cache->data, list[j] * cache->cols + at, x->dtype, head, scale);
  kernels->softmax(row);
  for (int64_t c = 0; c < head; c++) mean[c] = 0.0f;
  for (int64_t j = 0; j < row->count; j++)
    kernels->axpy(mean, row->weight[j], cache->data, cache->dtype, list[j] * cache->cols + values + at, head);
  kernels->put(y->data, y->dtype, i * y->cols + at, mean, head, false);
}

tarn_status tarn__cpu_synthesis_rows(const tarn__exec *exec, const tarn__node *node) {
  const tarn__synthesis_spec *spec = node->attr;
  const tarn__tensor *mix = node->in[TARN__SYNTHESIS_MIX];
  const int32_t *range = node->in[TARN__SYNTHESIS_RANGES]->data;
  const int64_t rows = node->out[0]->rows, ld = padded(spec->longest);
  float *logits = node->scratch, *own = logits + logits_floats(node);
  float share[2] = {1.0f, 0.0f};
  if (mix) {
    const float *m = mix->data;
    share[0] = (float)(1.0 / (1.0 + exp((double)m[1] - (double)m[0])));
    share[1] = (float)(1.0 / (1.0 + exp((double)m[0] - (double)m[1])));
  }
  for (int64_t h = 0; spec->form == TARN__SYNTHESIS_DENSE && h < spec->heads; h++) {
    const tarn__gemm g = logits_of(node, logits, h);
    tarn__gemm_run(&g, exec->threads, own + own_floats(node) * (size_t)exec->threads);
  }
#pragma omp parallel for schedule(static) num_threads(exec->threads)
  for (int64_t task = 0; task < rows * spec->heads; task++) {
    const int64_t i = task / spec->heads, h = task % spec->heads;
    float *room = own + own_floats(node) * (size_t)omp_get_thread_num();
    float *logit = logits + (h * rows + i) * ld, *score = room, *weight = room + ld;
    const int64_t count = range[2 * i + 1] - range[2 * i];
    const tarn__synthesis_row row = {.weight = weight,
                                     .logit = logit,
                                     .score = mix ? score : NULL,
                                     .share = {share[0], share[1]},
                                     .count = count,
                                     .width = padded(count)};
    run_row(node, &row, logit, score, weight + ld, i, h);
  }
  return TARN_STATUS_OK;
}
