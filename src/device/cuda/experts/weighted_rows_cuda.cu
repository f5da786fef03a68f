// Weighted sums of rows by number, and rows of experts: gathered, and their gradient gathered back. Bound by memory.
#include "device/cuda/cuda_kernels.h"
#include "device/cuda/rows/by_number.h"

extern "C" {
#include "ops/route.h"
#include "ops/weighted_rows.h"
}

// y[row] (+)= the sum over j of gates[row, j] table[ids[row, j]]. Ids and gates repeat after `period` rows; block i of
// the rows has its own table and, if `own_gates`, its own gates.
template <typename T>
struct weighted_sum {
  T *y;
  const T *table;
  const int32_t *ids;
  const float *gates;           // NULL: ones
  int64_t period, block, cols;  // block: rows of a table
  int choices;
  bool own_gates, add, whole;
  __device__ void operator()(int64_t row, int64_t column, int left) const {
    float sum[TARN__EIGHT] = {0};
    const int64_t own = row < period ? row : row % period, first = row < period ? 0 : row / period * block;
    if (add) tarn__read8(sum, y + row * cols + column, left, whole);
    for (int j = 0; j < choices; j++) {
      const int32_t id = ids[own * choices + j];
      if (id < 0) continue;
      float v[TARN__EIGHT];
      const float gate = gates ? gates[(own_gates ? row : own) * choices + j] : 1.0f;
      tarn__read8(v, table + (first + id) * cols + column, left, whole);
      for (int i = 0; i < TARN__EIGHT; i++) sum[i] += gate * v[i];
    }
    tarn__write8(y + row * cols + column, sum, left, whole);
  }
};

template <typename T>
static tarn_status sum_rows(const tarn__tensor *y, const void *table, const tarn__tensor *ids, const void *gates,
                            int64_t block, bool own_gates, bool add, cudaStream_t stream) {
  weighted_sum<T> each = {};
  each.y = (T *)y->data;
  each.table = (const T *)table;
  each.ids = (const int32_t *)ids->data;
  each.gates = (const float *)gates;
  each.period = ids->rows;
  each.block = block;
  each.cols = y->cols;
  each.choices = (int)ids->cols;
  each.own_gates = own_gates;
  each.add = add;
  each.whole = tarn__whole_eights(2, y->cols, y->data, table);
  return tarn__each8(each, y->rows, y->cols, stream);
}

static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *table = node->in[TARN__WEIGHTED_TABLE], *ids = node->in[TARN__WEIGHTED_IDS], *y = node->out[0];
  return TARN__BY_DTYPE(sum_rows, y->dtype, y, table->data, ids, node->in[TARN__WEIGHTED_GATES]->data, 0, false, false,
                        tarn__cuda_stream(exec->stream));
}

static tarn_status tangent(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *table = node->in[TARN__WEIGHTED_TABLE], *ids = node->in[TARN__WEIGHTED_IDS], *dy = node->out[0];
  const tarn__tensor *dtable = node->in[TARN__WEIGHTED_TANGENT_TABLE];
  const tarn__tensor *dgates = node->in[TARN__WEIGHTED_TANGENT_GATES];
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  if (dgates) TARN_TRY(sum_rows<float>(dy, table->data, ids, dgates->data, 0, true, false, stream));
  if (!dtable) return TARN_STATUS_OK;
  return sum_rows<float>(dy, dtable->data, ids, node->in[TARN__WEIGHTED_GATES]->data, table->rows, false,
                         dgates != NULL, stream);
}

// --- backward

// dgates[j] = dy[row] . table[ids[j]], and dtable[ids[j]] = gates[j] dy[row]: a warp for each j.
template <typename T>
static __global__ void weighted_rows_backward_kernel(float *dgates, T *dtable, const T *dy, const T *table,
                                                     const int32_t *ids, const float *gates, int64_t items, int choices,
                                                     int64_t cols, bool whole) {
  const int64_t j = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / TARN__WARP_SIZE;
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE;
  if (j >= items) return;
  const int64_t row = tarn__quotient(j, choices);
  const int32_t id = ids[j];
  const float gate = gates[j];
  float sum = 0.0f;
  for (int64_t c = lane * TARN__EIGHT; id >= 0 && c < cols; c += TARN__WARP_SIZE * TARN__EIGHT) {
    const int left = cols - c < TARN__EIGHT ? (int)(cols - c) : TARN__EIGHT;
    float g[TARN__EIGHT], v[TARN__EIGHT];
    tarn__read8(g, dy + row * cols + c, left, whole);
    if (dgates) {
      tarn__read8(v, table + id * cols + c, left, whole);
      for (int i = 0; i < TARN__EIGHT; i++) sum += g[i] * v[i];
    }
    if (dtable) {
      for (int i = 0; i < TARN__EIGHT; i++) g[i] *= gate;
      tarn__write8(dtable + id * cols + c, g, left, whole);
    }
  }
  sum = tarn__warp_sum(sum);
  if (dgates && lane == 0) dgates[j] = sum;
}

template <typename T>
static tarn_status backward_rows(const tarn__node *node, cudaStream_t stream) {
  const tarn__tensor *table = node->in[TARN__WEIGHTED_TABLE], *ids = node->in[TARN__WEIGHTED_IDS];
  const tarn__tensor *dy = node->in[TARN__WEIGHTED_DY];
  const tarn__tensor *dgates = node->out[TARN__WEIGHTED_DGATES], *dtable = node->out[TARN__WEIGHTED_DTABLE];
  const int64_t items = ids->rows * ids->cols;
  if (!dgates && !dtable) return TARN_STATUS_OK;
  const bool whole = tarn__whole_eights(2, dy->cols, dy->data, table->data, dtable ? dtable->data : NULL);
  TARN__LAUNCH(weighted_rows_backward_kernel<T>, tarn__blocks(items * TARN__WARP_SIZE, 256), 256, 0, stream,
               dgates ? (float *)dgates->data : (float *)NULL, dtable ? (T *)dtable->data : (T *)NULL,
               (const T *)dy->data, (const T *)table->data, (const int32_t *)ids->data,
               (const float *)node->in[TARN__WEIGHTED_GATES]->data, items, (int)ids->cols, dy->cols, whole);
  return TARN_STATUS_OK;
}

template <typename T>
struct gated_row {
  const T *dy;
  const float *gates;
  int64_t cols;
  int choices;
  bool whole;
  __device__ void operator()(float v[TARN__EIGHT], int64_t item, int64_t column, int left) const {
    const float gate = gates[item];
    tarn__read8(v, dy + tarn__quotient(item, choices) * cols + column, left, whole);
    for (int i = 0; i < TARN__EIGHT; i++) v[i] *= gate;
  }
};

template <typename T>
static tarn_status table_gradient(const tarn__node *node, cudaStream_t stream) {
  const tarn__tensor *ids = node->in[TARN__WEIGHTED_IDS], *dy = node->in[TARN__WEIGHTED_DY];
  if (!node->dparam[0]) return TARN_STATUS_OK;
  const gated_row<T> row = {(const T *)dy->data, (const float *)node->in[TARN__WEIGHTED_GATES]->data, dy->cols,
                            (int)ids->cols, tarn__whole_eights(2, dy->cols, dy->data)};
  return tarn__table_gradient(node->dparam[0], row, (const int32_t *)ids->data, ids->rows * ids->cols, node->scratch,
                              stream);
}

template <typename T>
static tarn_status backward(const tarn__exec *exec, const tarn__node *node) {
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  TARN_TRY(backward_rows<T>(node, stream));
  return table_gradient<T>(node, stream);
}

static tarn_status backward_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(backward, node->in[TARN__WEIGHTED_DY]->dtype, exec, node);
}

static size_t backward_scratch(const tarn__node *node, int threads) {
  (void)threads;
  const tarn__tensor *ids = node->in[TARN__WEIGHTED_IDS];
  if (!node->dparam[0]) return 0;
  return tarn__by_number_bytes(ids->rows * ids->cols, node->in[TARN__WEIGHTED_DY]->cols);
}

// --- gathering

// Row `item` / choices of x goes to row places[item] of its block of y.
template <typename T>
struct gathered {
  T *y;
  const T *x;
  const int32_t *places;
  int64_t period, block, cols;  // period: rows that there are places of
  int choices;
  bool whole;
  __device__ void operator()(int64_t row, int64_t column, int left) const {
    const int64_t own = row < period ? row : row % period, first = row < period ? 0 : row / period * block;
    float v[TARN__EIGHT];
    tarn__read8(v, x + row * cols + column, left, whole);
    for (int j = 0; j < choices; j++) {
      const int32_t place = places[own * choices + j];
      if (place >= 0) tarn__write8(y + (first + place) * cols + column, v, left, whole);
    }
  }
};

template <typename T>
static tarn_status gather(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *x = node->in[TARN__GATHER_X], *places = node->in[TARN__GATHER_PLACES], *y = node->out[0];
  gathered<T> each = {};
  each.y = (T *)y->data;
  each.x = (const T *)x->data;
  each.places = (const int32_t *)places->data;
  each.period = places->rows;
  each.block = tarn__gather_block(node);
  each.cols = x->cols;
  each.choices = (int)places->cols;
  each.whole = tarn__whole_eights(2, x->cols, x->data, y->data);
  return tarn__each8(each, x->rows, x->cols, tarn__cuda_stream(exec->stream));
}

static tarn_status gather_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(gather, node->out[0]->dtype, exec, node);
}

static tarn_status gather_backward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *dy = node->in[TARN__GATHER_DY], *places = node->in[TARN__GATHER_PLACES], *dx = node->out[0];
  return TARN__BY_DTYPE(sum_rows, dx->dtype, dx, dy->data, places, NULL, 0, false,
                        node->in[TARN__GATHER_PREVIOUS] != NULL, tarn__cuda_stream(exec->stream));
}

void tarn__cuda_weighted_rows_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_WEIGHTED_ROWS].run = forward;
  kernels[TARN__OP_WEIGHTED_ROWS_BACKWARD] = {backward_node, backward_scratch};
  kernels[TARN__OP_WEIGHTED_ROWS_TANGENT].run = tangent;
  kernels[TARN__OP_GATHER_ROWS].run = gather_node;
  kernels[TARN__OP_GATHER_ROWS_BACKWARD].run = gather_backward;
}
