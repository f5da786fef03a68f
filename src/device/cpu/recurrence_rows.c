// One step of a recurrence for incremental decoding.
#include "device/cpu/gemm.h"
#include "device/cpu/isa.h"
#include "device/cpu/row_cpu.h"
#include "ops/recurrence.h"

int64_t tarn__recurrence_cache_width(tarn__cell cell, int64_t hidden) {
  return cell == TARN__CELL_LSTM ? 2 * hidden : hidden;
}

// Every range must name rows that exist, its own the last of them.
static tarn_status check(const tarn__node *node) {
  const tarn__recurrence_rows_attr *attr = node->attr;
  const tarn__tensor *list = node->in[TARN__RECURRENCE_ROWS_ROWS], *cache = node->in[TARN__RECURRENCE_ROWS_CACHE];
  const int32_t *row = list->data, *range = node->in[TARN__RECURRENCE_ROWS_RANGES]->data;
  for (int64_t i = 0; i < node->in[TARN__RECURRENCE_ROWS_X]->rows; i++) {
    const int64_t first = range[2 * i], last = range[2 * i + 1];
    TARN_REQUIRE(first >= 0 && first < last && last <= list->cols && row[last - 1] == attr->first_row + i, INTERNAL,
                 "recurrence_rows: row %lld has the range %lld .. %lld, which does not end with it", (long long)i,
                 (long long)first, (long long)last);
    const int64_t before = tarn__recurrence_row_before(node, i);
    TARN_REQUIRE(before < cache->rows && (before >= 0 || last - first == 1), INTERNAL,
                 "recurrence_rows: row %lld follows row %lld of %lld", (long long)i, (long long)before,
                 (long long)cache->rows);
  }
  return TARN_STATUS_OK;
}

// What a step needs beside the tensors.
typedef struct room {
  float *state, *cell, *u;
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
                      .packed = weight->param->packed,
                      .int8 = weight->param->packed_int8,
                      .bias = bias ? bias->data : NULL,
                      .lda = weight->cols,
                      .ldb = weight->cols,
                      .ldc = weight->rows,
                      .dtype = weight->dtype,
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
  r.product = take(base, &r.bytes, (int64_t)tarn__gemm_scratch(&g, threads), 1);
  return r;
}

static size_t scratch(const tarn__node *node, int threads) {
  const tarn__tensor *weight = node->in[TARN__RECURRENCE_ROWS_WEIGHT];
  const size_t reference = (size_t)(weight->rows + 2 * weight->cols) * sizeof(double);
  const size_t bytes = lay_out(node, threads, NULL).bytes;
  return bytes > reference ? bytes : reference;
}

// The states of the rows before, zeros where there are none.
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

static tarn_status forward_cpu(const tarn__exec *exec, const tarn__node *node) {
  const tarn__recurrence_rows_attr *attr = node->attr;
  const tarn__tensor *x = node->in[TARN__RECURRENCE_ROWS_X], *cache = node->in[TARN__RECURRENCE_ROWS_CACHE];
  const int64_t n = attr->spec.hidden;
  const bool lstm = attr->spec.cell == TARN__CELL_LSTM;
  const room r = lay_out(node, exec->threads, node->scratch);
  gather(node, &r, n, lstm);
  tarn__gemm product = product_of(node);
  product.a = r.operand;
  product.c = r.u;
  tarn__gemm_run(&product, exec->threads, r.product);
  const tarn__recurrence_step step = {.spec = attr->spec,
                                      .dtype = x->dtype,
                                      .count = x->rows,
                                      .rows = r.rows,
                                      .state = r.state,
                                      .cell = r.cell,
                                      .operand = r.operand,
                                      .u = r.u,
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

static double flops(const tarn__node *node) {
  const tarn__tensor *weight = node->in[TARN__RECURRENCE_ROWS_WEIGHT];
  return 2.0 * (double)node->in[TARN__RECURRENCE_ROWS_X]->rows * (double)weight->rows * (double)weight->cols;
}

static const tarn__op recurrence_rows_op = {.name = "recurrence_rows",
                                            .flops = flops,
                                            .scratch = scratch,
                                            .check = check,
                                            .reference_f32 = tarn__recurrence_rows_ref_f32,
                                            .reference_f64 = tarn__recurrence_rows_ref_f64,
                                            .cpu = forward_cpu};

tarn__tensor *tarn__recurrence_rows(tarn__graph *graph, tarn__tensor *x, tarn__tensor *cache, int64_t first_row,
                                    tarn__tensor *rows, tarn__tensor *ranges, tarn__recurrent weights,
                                    tarn__recurrence_spec spec) {
  const int64_t n = spec.hidden, width = tarn__recurrence_gates(&spec) * n;
  bool fits = spec.directions == 1 && !spec.reverse && x->cols == width && weights.weight->rows == width &&
              weights.weight->cols == n && weights.weight->dtype == x->dtype && cache->dtype == x->dtype;
  fits = fits && cache->cols == tarn__recurrence_cache_width(spec.cell, n) && first_row >= 0 &&
         first_row + x->rows <= cache->rows && rows->dtype == TARN__I32 && ranges->dtype == TARN__I32 &&
         ranges->cols == 2 * x->rows && (!weights.bias || weights.bias->cols == width);
  if (!fits) tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "recurrence_rows: its inputs do not fit together");
  tarn__node *node = tarn__graph_node(graph, &recurrence_rows_op, sizeof(tarn__recurrence_rows_attr));
  *(tarn__recurrence_rows_attr *)node->attr = (tarn__recurrence_rows_attr){spec, first_row};
  node->in[TARN__RECURRENCE_ROWS_X] = x;
  node->in[TARN__RECURRENCE_ROWS_CACHE] = cache;
  node->in[TARN__RECURRENCE_ROWS_ROWS] = rows;
  node->in[TARN__RECURRENCE_ROWS_RANGES] = ranges;
  node->in[TARN__RECURRENCE_ROWS_WEIGHT] = tarn__graph_param(graph, weights.weight);
  node->in[TARN__RECURRENCE_ROWS_BIAS] = weights.bias ? tarn__graph_param(graph, weights.bias) : NULL;
  tarn__tensor *y = node->out[0] = tarn__graph_tensor(graph, x->dtype, x->rows, n, "recurrence");
  tarn__graph_emit(graph, node);
  return y;
}
