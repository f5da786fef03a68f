// Grouped products. How many rows a group has is only known on the card, so blocks find their group themselves: there
// are as many of them as groups can need together, and those that are left over end at once.
#include "device/cuda/cuda_kernels.h"
#include "device/cuda/products/activation_cuda.h"
#include "device/cuda/products/activation_op_cuda.h"
#include "device/cuda/products/tile_cuda.h"

extern "C" {
#include "ops/grouped.h"
#include "ops/linear.h"
}

// The tile of rows of a block: rows [first, last) of group e.
struct group_tile {
  int64_t group, first, last;
};

// Tile number `tile` of all groups in their order. Lanes look at 32 groups at a time; every warp finds the same. With
// `found` false there are fewer tiles.
static __device__ __forceinline__ bool find_tile(group_tile *found, const int32_t *offsets, int64_t groups,
                                                 int64_t tile) {
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE;
  for (int64_t start = 0; start < groups; start += TARN__WARP_SIZE) {
    const int64_t e = start + lane;
    const int rows = e < groups ? offsets[e + 1] - offsets[e] : 0;
    int tiles = (rows + TARN__TILE - 1) / TARN__TILE, sum = tiles;
    for (int by = 1; by < TARN__WARP_SIZE; by *= 2) {
      const int other = __shfl_up_sync(TARN__WARP, sum, by);
      if (lane >= by) sum += other;
    }
    const unsigned behind = __ballot_sync(TARN__WARP, sum > tile);
    if (behind) {
      const int at = __ffs((int)behind) - 1;
      const int64_t before = tile - (__shfl_sync(TARN__WARP, sum, at) - __shfl_sync(TARN__WARP, tiles, at));
      found->group = start + at;
      found->first = offsets[start + at] + before * TARN__TILE;
      found->last = offsets[start + at + 1];
      return true;
    }
    tile -= __shfl_sync(TARN__WARP, sum, TARN__WARP_SIZE - 1);
  }
  return false;
}

// Tiles of rows that `rows` rows in `groups` groups can have.
static int64_t most_tiles(int64_t rows, int64_t groups) { return rows / TARN__TILE + groups; }

// The shape of what a kernel of rows computes: out [*, n] from rows [*, k], in blocks of `block` rows.
struct row_shape {
  int64_t n, k, block, groups;
};

// y and z, of x [rows, k] and weight [groups n, k]: one block of a tile of columns (x), a tile of rows (y), and a block
// of rows (z).
template <typename T>
static __global__ void grouped_kernel(T *y, T *z, const T *x, const T *weight, const float *bias,
                                      const int32_t *offsets, row_shape shape, tarn__activation form) {
  TARN__SHARED(T, shared);
  group_tile at;
  if (!find_tile(&at, offsets, shape.groups, blockIdx.y)) return;
  const int64_t column = (int64_t)blockIdx.x * TARN__TILE, start = blockIdx.z * shape.block;
  const tarn__tile_factor<T> a = {x + start * shape.k, shape.k, at.first, at.last, shape.k, TARN__TILE_ALL};
  const tarn__tile_factor<T> b = {
      weight + at.group * shape.n * shape.k, shape.k, column, shape.n, shape.k, TARN__TILE_ALL};
  tarn__tile_sums<T> sums = {};
  tarn__tile_add<true, true>(sums, a, b, 0, shared);
  tarn__tile_each(sums, [&](int i, int j, float sum) {
    if (at.first + i >= at.last || column + j >= shape.n) return;
    const int64_t to = (start + at.first + i) * shape.n + column + j;
    if (bias) sum += bias[at.group * shape.n + column + j];
    sum = tarn__rounded<T>(sum);
    if (z) tarn__set(z + to, sum);
    tarn__set(y + to, tarn__activation_of(sum, form));
  });
}

template <typename T>
static tarn_status grouped(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *x = node->in[TARN__GROUPED_X], *bias = node->in[TARN__GROUPED_BIAS];
  const tarn__tensor *y = node->out[TARN__LINEAR_Y], *z = node->out[TARN__LINEAR_Z];
  const row_shape shape = {y->cols, x->cols, tarn__grouped_block(node), node->in[TARN__GROUPED_OFFSETS]->cols - 1};
  const dim3 blocks(tarn__blocks(shape.n, TARN__TILE), (unsigned)most_tiles(shape.block, shape.groups),
                    (unsigned)tarn__grouped_blocks(node));
  TARN__LAUNCH(grouped_kernel<T>, blocks, TARN__TILE_THREADS, TARN__TILE_BYTES<T>, tarn__cuda_stream(exec->stream),
               (T *)y->data, z ? (T *)z->data : (T *)nullptr, (const T *)x->data,
               (const T *)node->in[TARN__GROUPED_WEIGHT]->data,
               bias ? (const float *)bias->data : (const float *)nullptr,
               (const int32_t *)node->in[TARN__GROUPED_OFFSETS]->data, shape, *(const tarn__activation *)node->attr);
  return TARN_STATUS_OK;
}

static tarn_status grouped_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(grouped, node->in[TARN__GROUPED_X]->dtype, exec, node);
}

// dx (+)= dz weight_e, of dz [rows, k] and weight [groups k, n].
template <typename T>
static __global__ void grouped_dx_kernel(T *dx, const T *dz, const T *weight, const int32_t *offsets, row_shape shape,
                                         bool accumulate) {
  TARN__SHARED(T, shared);
  group_tile at;
  if (!find_tile(&at, offsets, shape.groups, blockIdx.y)) return;
  const int64_t column = (int64_t)blockIdx.x * TARN__TILE;
  const tarn__tile_factor<T> a = {dz, shape.k, at.first, at.last, shape.k, TARN__TILE_ALL};
  const tarn__tile_factor<T> b = {
      weight + at.group * shape.n * shape.k, shape.n, column, shape.n, shape.k, TARN__TILE_ALL};
  tarn__tile_sums<T> sums = {};
  tarn__tile_add<true, false>(sums, a, b, 0, shared);
  tarn__tile_each(sums, [&](int i, int j, float sum) {
    if (at.first + i >= at.last || column + j >= shape.n) return;
    T *to = dx + (at.first + i) * shape.n + column + j;
    tarn__set(to, accumulate ? tarn__get(*to) + sum : sum);
  });
}

template <typename T>
static tarn_status grouped_dx(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *dz = node->in[TARN__GROUPED_DX_DZ], *dx = node->out[0];
  const row_shape shape = {dx->cols, dz->cols, dz->rows, node->in[TARN__GROUPED_DX_OFFSETS]->cols - 1};
  const dim3 blocks(tarn__blocks(shape.n, TARN__TILE), (unsigned)most_tiles(shape.block, shape.groups));
  TARN__LAUNCH(grouped_dx_kernel<T>, blocks, TARN__TILE_THREADS, TARN__TILE_BYTES<T>, tarn__cuda_stream(exec->stream),
               (T *)dx->data, (const T *)dz->data, (const T *)node->in[TARN__GROUPED_DX_WEIGHT]->data,
               (const int32_t *)node->in[TARN__GROUPED_DX_OFFSETS]->data, shape,
               node->in[TARN__GROUPED_DX_PREVIOUS] != NULL);
  const tarn__tensor *saved = node->in[TARN__GROUPED_DX_SAVED];
  if (!saved) return TARN_STATUS_OK;
  return tarn__cuda_through_activation(dx, saved, ((const tarn__linear_attr *)node->attr)->activation, nullptr, nullptr,
                                       tarn__cuda_stream(exec->stream));
}

static tarn_status grouped_dx_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(grouped_dx, node->in[TARN__GROUPED_DX_DZ]->dtype, exec, node);
}

// dweight_e (+)= dz_e^T x_e, of dz [rows, n] and x [rows, m]: one block of a tile of columns (x) and of rows (y) of the
// weight of a group (z).
template <typename T>
static __global__ void grouped_dweight_kernel(float *dweight, const T *dz, const T *x, const int32_t *offsets,
                                              int64_t n, int64_t m, bool accumulate) {
  TARN__SHARED(T, shared);
  const int64_t row = (int64_t)blockIdx.y * TARN__TILE, column = (int64_t)blockIdx.x * TARN__TILE;
  const int64_t first = offsets[blockIdx.z], count = offsets[blockIdx.z + 1] - first;
  const tarn__tile_factor<T> a = {dz + first * n, n, row, n, count, TARN__TILE_ALL};
  const tarn__tile_factor<T> b = {x + first * m, m, column, m, count, TARN__TILE_ALL};
  tarn__tile_sums<T> sums = {};
  tarn__tile_add<false, false>(sums, a, b, 0, shared);
  tarn__tile_each(sums, [&](int i, int j, float sum) {
    if (row + i >= n || column + j >= m) return;
    float *to = dweight + (blockIdx.z * n + row + i) * m + column + j;
    *to = accumulate ? *to + sum : sum;
  });
}

enum { THREADS = 256, WARPS = THREADS / TARN__WARP_SIZE };

// dbias_e (+)= column sums of dz_e: a block has 32 columns of a group, each of its warps every eighth row.
template <typename T>
static __global__ void grouped_dbias_kernel(float *dbias, const T *dz, const int32_t *offsets, int64_t n,
                                            bool accumulate) {
  TARN__SHARED(float, shared);
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE, warp = (int)threadIdx.x / TARN__WARP_SIZE;
  const int64_t column = (int64_t)blockIdx.x * TARN__WARP_SIZE + lane;
  float sum = 0.0f;
  for (int64_t r = offsets[blockIdx.y] + warp; r < offsets[blockIdx.y + 1] && column < n; r += WARPS)
    sum += tarn__get(dz[r * n + column]);
  shared[threadIdx.x] = sum;
  __syncthreads();
  if (warp != 0 || column >= n) return;
  float *to = dbias + blockIdx.y * n + column;
  sum = accumulate ? *to : 0.0f;
  for (int w = 0; w < WARPS; w++) sum += shared[w * TARN__WARP_SIZE + lane];
  *to = sum;
}

template <typename T>
static tarn_status grouped_dweight(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *dz = node->in[TARN__GROUPED_DWEIGHT_DZ], *x = node->in[TARN__GROUPED_DWEIGHT_X];
  const tarn__tensor *offsets = node->in[TARN__GROUPED_DWEIGHT_OFFSETS];
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  const unsigned groups = (unsigned)(offsets->cols - 1);
  tarn__param *weight = node->dparam[0], *bias = node->dparam[1];
  if (weight) {
    const dim3 blocks(tarn__blocks(x->cols, TARN__TILE), tarn__blocks(dz->cols, TARN__TILE), groups);
    TARN__LAUNCH(grouped_dweight_kernel<T>, blocks, TARN__TILE_THREADS, TARN__TILE_BYTES<T>, stream,
                 (float *)weight->training.grad, (const T *)dz->data, (const T *)x->data,
                 (const int32_t *)offsets->data, dz->cols, x->cols, tarn__param_accumulate(weight) != 0);
  }
  if (bias) {
    const dim3 blocks(tarn__blocks(dz->cols, TARN__WARP_SIZE), groups);
    TARN__LAUNCH(grouped_dbias_kernel<T>, blocks, THREADS, THREADS * sizeof(float), stream,
                 (float *)bias->training.grad, (const T *)dz->data, (const int32_t *)offsets->data, dz->cols,
                 tarn__param_accumulate(bias) != 0);
  }
  return TARN_STATUS_OK;
}

static tarn_status grouped_dweight_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(grouped_dweight, node->in[TARN__GROUPED_DWEIGHT_DZ]->dtype, exec, node);
}

void tarn__cuda_grouped_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_GROUPED_LINEAR].run = grouped_node;
  kernels[TARN__OP_GROUPED_LINEAR_DX].run = grouped_dx_node;
  kernels[TARN__OP_GROUPED_LINEAR_DWEIGHT].run = grouped_dweight_node;
}
