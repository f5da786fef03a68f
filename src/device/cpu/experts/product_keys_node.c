// Product keys: the scores of a few rows at a time are products with each group of keys (head and half); then the
// nearest pairs of every row are selected.
#include "device/cpu/cpu_kernels.h"
#include "device/cpu/experts/experts_kernels.h"
#include "device/cpu/gemm/gemm_within.h"
#include "device/cpu/isa/isa.h"
#include "ops/product_keys.h"

enum { ROWS = 128, ROOM = 4 * TARN__PRODUCT_KEYS_MOST };

static int64_t groups_of(const tarn__node *node) { return 2 * ((const tarn__product_keys_spec *)node->attr)->heads; }

// Rows first .. first + rows - 1 with the keys of one group.
static tarn__gemm product_of(const tarn__node *node, float *scores, int64_t group, int64_t first, int64_t rows) {
  const tarn__tensor *queries = node->in[TARN__PRODUCT_KEYS_QUERIES], *keys = node->in[TARN__PRODUCT_KEYS_KEYS];
  const int64_t n = keys->rows / groups_of(node), w = keys->cols;
  return (tarn__gemm){.m = rows,
                      .n = n,
                      .k = w,
                      .a = tarn__gemm_element(queries->data, queries->dtype, first * queries->cols + group * w),
                      .b = tarn__gemm_element(keys->data, keys->dtype, group * n * w),
                      .c = scores,
                      .lda = queries->cols,
                      .ldb = w,
                      .ldc = n,
                      .dtype = queries->dtype,
                      .fp32 = node->fp32,
                      .c_dtype = TARN__F32,
                      .transpose_b = true};
}

static int64_t most_rows(const tarn__node *node) {
  const int64_t rows = node->in[TARN__PRODUCT_KEYS_QUERIES]->rows;
  return rows < ROWS ? rows : ROWS;
}

// Bytes before the scratch of products: scores, and buffers for each thread.
static size_t own_bytes(const tarn__node *node, int threads) {
  const size_t scores = (size_t)(most_rows(node) * node->in[TARN__PRODUCT_KEYS_KEYS]->rows) * sizeof(float);
  return (scores + 63) / 64 * 64 + (size_t)threads * ROOM * sizeof(float);
}

size_t tarn__cpu_product_keys_scratch(const tarn__node *node, int threads) {
  const tarn__gemm product = product_of(node, NULL, 0, 0, most_rows(node));
  return own_bytes(node, threads) + tarn__gemm_scratch_within(&product, threads);
}

tarn_status tarn__cpu_product_keys(const tarn__exec *exec, const tarn__node *node) {
  const tarn__product_keys_kernels *kernels = TARN__TABLE_NOW(tarn__product_keys_kernels);
  const int64_t rows = node->in[TARN__PRODUCT_KEYS_QUERIES]->rows, groups = groups_of(node);
  const int64_t n = node->in[TARN__PRODUCT_KEYS_KEYS]->rows / groups, stride = most_rows(node) * n;
  const size_t own = own_bytes(node, exec->threads);
  float *scores = node->scratch;
  float *rooms = (float *)(void *)((char *)node->scratch + own) - (size_t)exec->threads * ROOM;
  for (int64_t first = 0; first < rows; first += ROWS) {
    const int64_t count = rows - first < ROWS ? rows - first : ROWS;
    for (int64_t group = 0; group < groups; group++) {
      const tarn__gemm product = product_of(node, scores + group * stride, group, first, count);
      tarn__gemm_run_within(&product, exec->threads, (char *)node->scratch + own, node->scratch_bytes - own);
    }
#pragma omp parallel for num_threads(exec->threads) schedule(static, 1)
    for (int part = 0; part < exec->threads; part++)
      for (int64_t r = count * part / exec->threads; r < count * (part + 1) / exec->threads; r++)
        kernels->choose(node, scores + r * n, stride, first + r, rooms + (size_t)part * ROOM);
  }
  return TARN_STATUS_OK;
}
