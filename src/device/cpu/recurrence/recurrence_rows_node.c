// One step of a recurrence for incremental decoding.
#include <string.h>

#include "device/cpu/cpu_kernels.h"
#include "device/cpu/gemm/gemm.h"
#include "device/cpu/gemm/spmm.h"
#include "device/cpu/isa/isa.h"
#include "device/cpu/isa/row_cpu.h"
#include "device/cpu/recurrence/recurrence_kernels.h"

// The scratch of a step.
typedef struct room {
  float *state, *cell, *u;
  float *panel;  // for a weight in CSR format
  void *operand;
  int32_t *rows;
  void *product;
  size_t bytes;
} room;

static tarn__gemm product_of(const tarn__node *node) {
  const tarn__tensor *weight = node->in[TARN__RECURRENCE_ROWS_WEIGHT], *bias = node->in[TARN__RECURRENCE_ROWS_BIAS];
  return (tarn__gemm){.m = node->in[TARN__RECURRENCE_ROWS_X]->rows,
                      .n = weight->rows,
                      .k = weight->cols,
                      .b = weight->data,
                      .packed = weight->param->decoding.packed,
                      .int8 = weight->param->decoding.rounding == TARN__ROUNDING_INT8,
                      .int4 = weight->param->decoding.rounding == TARN__ROUNDING_INT4,
                      .bias = bias ? bias->data : NULL,
                      .lda = weight->cols,
                      .ldb = weight->cols,
                      .ldc = weight->rows,
                      .dtype = weight->dtype,
                      .fp32 = node->fp32,
                      .c_dtype = TARN__F32,
                      .transpose_b = true};
}

static void *take(char *base, size_t *used, int64_t count, size_t size) {
  void *at = base ? base + *used : NULL;
  *used += ((size_t)count * size + 63) & ~(size_t)63;
  return at;
}

static room lay_out(const tarn__node *node, int threads, char *base) {
  const tarn__gemm g = product_of(node);
  room r = {0};
  r.state = take(base, &r.bytes, g.m * g.k, sizeof(float));
  r.cell = take(base, &r.bytes, g.m * g.k, sizeof(float));
  r.u = take(base, &r.bytes, g.m * g.n, sizeof(float));
  r.operand = g.dtype == TARN__F32 ? r.state : take(base, &r.bytes, g.m * g.k, tarn__dtype_size(g.dtype));
  r.rows = take(base, &r.bytes, g.m, sizeof *r.rows);
  if (node->in[TARN__RECURRENCE_ROWS_WEIGHT]->param->entries > 0)
    r.panel = take(base, &r.bytes, tarn__spmm_scratch(g.k), sizeof(float));
  else
    r.product = take(base, &r.bytes, (int64_t)tarn__gemm_scratch(&g, threads), 1);
  return r;
}

size_t tarn__cpu_recurrence_rows_scratch(const tarn__node *node, int threads) {
  return lay_out(node, threads, NULL).bytes;
}

// The previous states, zero if there are none.
static void gather(const tarn__node *node, const room *r, int64_t n, bool lstm) {
  const tarn__tensor *cache = node->in[TARN__RECURRENCE_ROWS_CACHE];
  for (int64_t i = 0; i < node->in[TARN__RECURRENCE_ROWS_X]->rows; i++) {
    const int64_t before = tarn__recurrence_row_before(node, i);
    r->rows[i] = (int32_t)i;
    if (before < 0) {
      memset(r->state + i * n, 0, (size_t)n * sizeof(float));
      memset(r->cell + i * n, 0, (size_t)n * sizeof(float));
    } else {
      tarn__row_copy(r->state + i * n, cache->data, cache->dtype, before * cache->cols, n);
      if (lstm) tarn__row_copy(r->cell + i * n, cache->data, cache->dtype, before * cache->cols + n, n);
    }
    tarn__row_write(r->operand, cache->dtype, i * n, n, r->state + i * n);
  }
}

// u = the previous states times W^T, + b.
static void multiply(const tarn__node *node, const room *r, int threads) {
  const tarn__tensor *weight = node->in[TARN__RECURRENCE_ROWS_WEIGHT];
  tarn__gemm product = product_of(node);
  if (weight->param->entries > 0) {
    const tarn__spmm_rows matrix = tarn__spmm_of(weight);
    const tarn__spmm sparse = {.matrix = &matrix,
                               .a = r->operand,
                               .m = product.m,
                               .lda = product.lda,
                               .ldc = product.ldc,
                               .dtype = product.dtype,
                               .bias = product.bias,
                               .c = r->u,
                               .scratch = r->panel};
    tarn__spmm_run(&sparse, threads);
    return;
  }
  product.a = r->operand;
  product.c = r->u;
  tarn__gemm_run(&product, threads, r->product);
}

tarn_status tarn__cpu_recurrence_rows(const tarn__exec *exec, const tarn__node *node) {
  const tarn__recurrence_rows_attr *attr = node->attr;
  const tarn__tensor *x = node->in[TARN__RECURRENCE_ROWS_X], *cache = node->in[TARN__RECURRENCE_ROWS_CACHE];
  const int64_t n = attr->spec.hidden;
  const bool lstm = attr->spec.cell == TARN__CELL_LSTM;
  const room r = lay_out(node, exec->threads, node->scratch);
  gather(node, &r, n, lstm);
  multiply(node, &r, exec->threads);
  const tarn__tensor *leaks = node->in[TARN__RECURRENCE_ROWS_LEAKS];
  const tarn__recurrence_step step = {.spec = attr->spec,
                                      .dtype = x->dtype,
                                      .count = x->rows,
                                      .rows = r.rows,
                                      .state = r.state,
                                      .cell = r.cell,
                                      .operand = r.operand,
                                      .u = r.u,
                                      .leaks = leaks ? leaks->data : NULL,
                                      .state_ld = n,
                                      .operand_ld = n,
                                      .u_ld = x->cols,
                                      .y = {node->out[0]->data, n, 0},
                                      .x = {x->data, x->cols, 0}};
  TARN__TABLE_NOW(tarn__recurrence_kernels)->forward(&step, 0, n);
  for (int64_t i = 0; i < x->rows; i++) {
    const int64_t at = (attr->first_row + i) * cache->cols;
    tarn__row_write(cache->data, cache->dtype, at, n, r.state + i * n);
    if (lstm) tarn__row_write(cache->data, cache->dtype, at + n, n, r.cell + i * n);
  }
  return TARN_STATUS_OK;
}
