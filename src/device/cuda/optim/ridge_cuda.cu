// Ridge regression (optim/ridge.h), in double. Products and Cholesky's factorisation share a kernel for sums of outer
// products, in tiles on and above the diagonal.
#include "device/cuda/optim/optimiser.h"

enum {
  THREADS = 256,
  TILE = 64,  // rows and columns of a tile
  DEPTH = 16,
  SIDE = 16,  // threads along a side of it
  EACH = TILE / SIDE,
  BLOCK = 64,  // rows that are factored at once
  PANEL = 32,  // columns of a block of threads right of them
  GROUPS = THREADS / PANEL
};

// sums[i * width + j] += sign * (sum over t < samples of z[t * stride + i] * z[t * stride + j]) for i < rows and
// i <= j < cols; nothing after *stop. A block has a tile of TILE x TILE, a thread every SIDE-th row and column of it.
static __global__ void __launch_bounds__(THREADS, 2)
    products_kernel(double *sums, int64_t width, const double *z, int64_t stride, int64_t samples, int64_t rows,
                    int64_t cols, double sign, const int32_t *stop) {
  TARN__SHARED(double, left);
  double *right = left + DEPTH * TILE;
  const int64_t top = (int64_t)blockIdx.y * TILE, side = (int64_t)blockIdx.x * TILE;
  if (side + TILE <= top || (stop && *stop)) return;
  const int x = (int)threadIdx.x % SIDE, y = (int)threadIdx.x / SIDE;
  double total[EACH][EACH] = {};
  for (int64_t t = 0; t < samples; t += DEPTH) {
    const int depth = samples - t < DEPTH ? (int)(samples - t) : DEPTH;
    for (int e = (int)threadIdx.x; e < DEPTH * TILE; e += THREADS) {
      const int64_t i = top + e % TILE, j = side + e % TILE, from = (t + e / TILE) * stride;
      left[e] = e / TILE < depth && i < cols ? z[from + i] : 0.0;
      right[e] = e / TILE < depth && j < cols ? z[from + j] : 0.0;
    }
    __syncthreads();
    for (int d = 0; d < depth; d++)
      for (int r = 0; r < EACH; r++)
        for (int c = 0; c < EACH; c++)
          total[r][c] = fma(left[d * TILE + y + r * SIDE], right[d * TILE + x + c * SIDE], total[r][c]);
    __syncthreads();
  }
  for (int r = 0; r < EACH; r++)
    for (int c = 0; c < EACH; c++) {
      const int64_t i = top + y + r * SIDE, j = side + x + c * SIDE;
      if (i < rows && j < cols && j >= i) sums[i * width + j] = fma(sign, total[r][c], sums[i * width + j]);
    }
}

static tarn_status add_products(double *sums, int64_t width, const double *z, int64_t stride, int64_t samples,
                                int64_t rows, int64_t cols, double sign, const int32_t *stop) {
  const dim3 blocks(tarn__blocks(cols, TILE), tarn__blocks(rows, TILE));
  TARN__LAUNCH(products_kernel, blocks, THREADS, 2 * DEPTH * TILE * sizeof(double), tarn__cuda_stream(NULL), sums,
               width, z, stride, samples, rows, cols, sign, stop);
  return TARN_STATUS_OK;
}

// --- samples

static __global__ void totals_kernel(const tarn__ridge ridge) {
  const int64_t j = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (j >= ridge.wide) return;
  double total = ridge.totals[j];
  for (int64_t t = 0; t < ridge.waiting_count; t++) total += ridge.waiting[t * ridge.pitch + j];
  ridge.totals[j] = total;
}

// X'Y, and the totals of the classes as the row behind the last. A thread adds all samples of one class, in their
// order: that of the first of them.
static __global__ void classes_kernel(const tarn__ridge ridge) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  const int first = (int)blockIdx.y, word = ridge.waiting_classes[first];
  if (i > ridge.inputs) return;
  for (int t = 0; t < first; t++)
    if (ridge.waiting_classes[t] == word) return;
  double *to = (i < ridge.inputs ? ridge.products + i * ridge.width : ridge.totals) + ridge.inputs + word, sum = *to;
  for (int t = first; t < ridge.waiting_count; t++)
    if (ridge.waiting_classes[t] == word) sum += i < ridge.inputs ? ridge.waiting[t * ridge.pitch + i] : 1.0;
  *to = sum;
}

static tarn_status ridge_add(const tarn__device *device, const tarn__ridge *ridge) {
  (void)device;
  const cudaStream_t stream = tarn__cuda_stream(NULL);
  if (ridge->waiting_count == 0) return TARN_STATUS_OK;
  TARN_TRY(add_products(ridge->products, ridge->width, ridge->waiting, ridge->pitch, ridge->waiting_count,
                        ridge->inputs, ridge->wide, 1.0, NULL));
  TARN__LAUNCH(totals_kernel, tarn__blocks(ridge->wide, THREADS), THREADS, 0, stream, *ridge);
  if (!ridge->classes) return TARN_STATUS_OK;
  const dim3 blocks(tarn__blocks(ridge->inputs + 1, THREADS), (unsigned)ridge->waiting_count);
  TARN__LAUNCH(classes_kernel, blocks, THREADS, 0, stream, *ridge);
  return TARN_STATUS_OK;
}

template <typename T>
static __global__ void take_kernel(double *to, int64_t pitch, const T *from, int64_t inputs) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, t = blockIdx.y;
  if (i < inputs) to[t * pitch + i] = (double)tarn__get(from[t * inputs + i]);
}

template <typename T>
static tarn_status take(const tarn__ridge *ridge, const void *rows, int64_t first, int64_t count) {
  const dim3 blocks(tarn__blocks(ridge->inputs, THREADS), (unsigned)count);
  TARN__LAUNCH(take_kernel<T>, blocks, THREADS, 0, tarn__cuda_stream(NULL),
               ridge->waiting + ridge->waiting_count * ridge->pitch, ridge->pitch,
               (const T *)rows + first * ridge->inputs, ridge->inputs);
  return TARN_STATUS_OK;
}

static tarn_status ridge_take(const tarn__device *device, const tarn__ridge *ridge, const void *rows, tarn__dtype dtype,
                              int64_t first, int64_t count) {
  (void)device;
  return TARN__BY_DTYPE(take, dtype, ridge, rows, first, count);
}

// --- Cholesky's factorisation: a block of rows at a time, first its square on the diagonal

static __global__ void __launch_bounds__(THREADS)
    diagonal_kernel(double *a, int64_t n, int size, double least, int32_t *stop) {
  TARN__SHARED(double, u);  // [BLOCK, BLOCK]
  if (*stop) return;
  for (int e = (int)threadIdx.x; e < size * BLOCK; e += THREADS)
    if (e % BLOCK < size) u[e] = a[e / BLOCK * n + e % BLOCK];
  for (int k = 0; k < size; k++) {
    __syncthreads();
    const double pivot = u[k * BLOCK + k];
    __syncthreads();
    if (!(pivot > least)) {
      if (threadIdx.x == 0) *stop = 1;
      return;
    }
    const double root = sqrt(pivot);
    if (k + (int)threadIdx.x < size) u[k * BLOCK + k + threadIdx.x] /= root;
    __syncthreads();
    const int j = (int)threadIdx.x % BLOCK;
    for (int i = k + 1 + (int)threadIdx.x / BLOCK; i <= j && j < size; i += THREADS / BLOCK)
      u[i * BLOCK + j] = fma(-u[k * BLOCK + i], u[k * BLOCK + j], u[i * BLOCK + j]);
  }
  __syncthreads();
  for (int e = (int)threadIdx.x; e < size * BLOCK; e += THREADS)
    if (e % BLOCK < size && e % BLOCK >= e / BLOCK) a[e / BLOCK * n + e % BLOCK] = u[e];
}

// The rest of the rows, right of the square U: X from U'X = A, PANEL columns a block of threads.
static __global__ void __launch_bounds__(THREADS)
    panel_kernel(double *a, int64_t n, int64_t cols, int size, const int32_t *stop) {
  TARN__SHARED(double, u);           // [BLOCK, BLOCK]
  double *rows = u + BLOCK * BLOCK;  // [BLOCK, PANEL]
  if (*stop) return;
  const int64_t first = size + (int64_t)blockIdx.x * PANEL;
  for (int e = (int)threadIdx.x; e < size * BLOCK; e += THREADS)
    if (e % BLOCK < size) u[e] = a[e / BLOCK * n + e % BLOCK];
  for (int e = (int)threadIdx.x; e < size * PANEL; e += THREADS)
    rows[e] = first + e % PANEL < cols ? a[e / PANEL * n + first + e % PANEL] : 0.0;
  const int c = (int)threadIdx.x % PANEL, group = (int)threadIdx.x / PANEL;
  for (int k = 0; k < size; k++) {
    __syncthreads();
    if (group == 0) rows[k * PANEL + c] /= u[k * BLOCK + k];
    __syncthreads();
    for (int i = k + 1 + group; i < size; i += GROUPS)
      rows[i * PANEL + c] = fma(-u[k * BLOCK + i], rows[k * PANEL + c], rows[i * PANEL + c]);
  }
  __syncthreads();
  for (int e = (int)threadIdx.x; e < size * PANEL; e += THREADS)
    if (first + e % PANEL < cols) a[e / PANEL * n + first + e % PANEL] = rows[e];
}

// Without a wait for the pivots: after a bad one the remaining launches do nothing.
static tarn_status factorise(double *a, int64_t n, double least, int32_t *stop, cudaStream_t stream) {
  for (int64_t begin = 0; begin < n; begin += BLOCK) {
    const int64_t end = begin + BLOCK < n ? begin + BLOCK : n;
    const int size = (int)(end - begin);
    double *square = a + begin * n + begin;
    TARN__LAUNCH(diagonal_kernel, 1, THREADS, BLOCK * BLOCK * sizeof(double), stream, square, n, size, least, stop);
    TARN__LAUNCH(panel_kernel, tarn__blocks(n - end, PANEL), THREADS, BLOCK * (BLOCK + PANEL) * sizeof(double), stream,
                 square, n, n - begin, size, (const int32_t *)stop);
    TARN_TRY(add_products(a + end * n + end, n, square + size, n, size, n - end, n - end, -1.0, stop));
  }
  return TARN_STATUS_OK;
}

// Returns whether it succeeded, and so waits.
static tarn_status cholesky(const tarn__device *device, bool *done, double *a, int64_t n, double least) {
  const cudaStream_t stream = tarn__cuda_stream(NULL);
  void *room;
  int32_t stopped;
  TARN_TRY(tarn__cuda_room(&room, stream, sizeof stopped));
  TARN_TRY(device->type->fill(device, NULL, room, 0, sizeof stopped));
  TARN_TRY(factorise(a, n, least, (int32_t *)room, stream));
  TARN_TRY(device->type->copy_out(device, NULL, &stopped, room, sizeof stopped));
  *done = stopped == 0;
  return TARN_STATUS_OK;
}

void tarn__cuda_ridge_entries(tarn__device_type *type) {
  type->ridge_add = ridge_add;
  type->ridge_take = ridge_take;
  type->cholesky = cholesky;
}
