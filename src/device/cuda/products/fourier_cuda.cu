// The op fourier: one product over all rows along features, with a table of cosines and sines, and one launch along
// tokens that computes its cosines and sines itself, for the columns and rows that determine the others.
#include "device/cuda/cuda_kernels.h"
#include "device/cuda/product.h"

extern "C" {
#include "ops/fourier.h"
}

// A block of 256 threads has a tile [32, 64] of the cosines and sines of a sentence and takes 16 tokens at a time.
enum { THREADS = 256, LINES = 32, COLUMNS = 64, STEP = 16, EACH = 4 };

// Pieces of the scratch in bytes: the table [d, d], then the features [rows, d] in fp32.
static size_t table_bytes(const tarn__tensor *x) {
  return ((size_t)(x->cols * x->cols) * tarn__dtype_size(x->dtype) + 255) / 256 * 256;
}

// cos and sin of 2 pi a b / n, from the exact remainder.
static __device__ __forceinline__ void wave(float *cosine, float *sine, int64_t a, int64_t b, int64_t n) {
  const bool narrow = n < 1 << 16 && a < 1 << 16 && b < 1 << 16;  // the usual case, in which division is fast
  const float rest = narrow ? (float)((unsigned)a * (unsigned)b % (unsigned)n) : (float)(a * b % n);
  sincospif(2.0f * (rest / (float)n), sine, cosine);
}

// The columns of frequencies 0 to d / 2 hold cosines, those after them sines of the frequencies from 1 on.
template <typename T>
static __global__ void fourier_table_kernel(T *table, int64_t d) {
  const int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x, cosines = tarn__fourier_cosines(d);
  if (at >= d * d) return;
  const int64_t k = at / d, column = at % d;
  float cosine, sine;
  wave(&cosine, &sine, k, column < cosines ? column : column - cosines + 1, d);
  tarn__set(table + at, column < cosines ? cosine : sine);
}

// Stores what the sums p of cosines and q of sines at (i, j) say of up to four elements of a sentence.
template <typename T>
static __device__ __forceinline__ void store(T *y, float p, float q, int64_t i, int64_t j, int64_t n, int64_t d,
                                             bool accumulate) {
  const auto put = [&](int64_t row, int64_t column, float value) {
    T *to = y + row * d + column;
    tarn__set(to, accumulate ? tarn__get(*to) + value : value);
  };
  const bool rows = i > 0 && 2 * i != n, columns = j > 0 && 2 * j != d;
  put(i, j, p - q);
  if (rows) put(n - i, j, p + q);
  if (columns) put(i, d - j, p + q);
  if (rows && columns) put(n - i, d - j, p - q);
}

template <typename T>
static __global__ void fourier_kernel(T *y, const float *features, const int32_t *offsets, int64_t tiles, int64_t d,
                                      bool accumulate) {
  TARN__SHARED(float, cosine);
  float *sine = cosine + STEP * LINES, *u = sine + STEP * LINES, *v = u + STEP * COLUMNS;
  const int t = (int)threadIdx.x, lane = t % TARN__WARP_SIZE, line = t / TARN__WARP_SIZE * EACH;
  const int64_t s = blockIdx.x / tiles, first = blockIdx.x % tiles * LINES, column = (int64_t)blockIdx.y * COLUMNS;
  const int64_t n = offsets[s + 1] - offsets[s], cosines = tarn__fourier_cosines(d), sines = tarn__fourier_sines(d);
  const float *from = features + offsets[s] * d;
  if (n == 0 || first >= tarn__fourier_cosines(n)) return;
  float p[EACH][2] = {}, q[EACH][2] = {};
  for (int64_t start = 0; start < n; start += STEP) {
    for (int at = t; at < STEP * LINES; at += THREADS)
      wave(cosine + at, sine + at, first + at % LINES, start + at / LINES, n);
    for (int at = t; at < STEP * COLUMNS; at += THREADS) {
      const int64_t k = start + at / COLUMNS, j = column + at % COLUMNS;
      u[at] = k < n && j < cosines ? from[k * d + j] : 0.0f;
      v[at] = k < n && j > 0 && j <= sines ? from[k * d + cosines + j - 1] : 0.0f;
    }
    __syncthreads();
#pragma unroll 4
    for (int k = 0; k < STEP; k++)
#pragma unroll
      for (int i = 0; i < EACH; i++)
#pragma unroll
        for (int j = 0; j < 2; j++) {
          p[i][j] = fmaf(cosine[k * LINES + line + i], u[k * COLUMNS + lane + j * TARN__WARP_SIZE], p[i][j]);
          q[i][j] = fmaf(sine[k * LINES + line + i], v[k * COLUMNS + lane + j * TARN__WARP_SIZE], q[i][j]);
        }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < EACH; i++)
#pragma unroll
    for (int j = 0; j < 2; j++) {
      const int64_t row = first + line + i, at = column + lane + j * TARN__WARP_SIZE;
      if (row < tarn__fourier_cosines(n) && at < cosines)
        store(y + offsets[s] * d, p[i][j], q[i][j], row, at, n, d, accumulate);
    }
}

// [x C_d, x S_d] in fp32.
static tarn_status along_features(const tarn__node *node, const void *table, float *features, cudaStream_t stream) {
  const tarn__tensor *x = node->in[TARN__FOURIER_X];
  tarn__product product = {};
  product.m = x->rows;
  product.n = product.k = product.lda = product.ldb = product.ldc = x->cols;
  product.a = x->data;
  product.b = table;
  product.c = features;
  product.dtype = x->dtype;
  product.out = TARN__F32;
  product.fp32 = node->fp32;
  product.alpha = 1.0f;
  product.batch = 1;
  return tarn__cuda_product(&product, stream);
}

template <typename T>
static tarn_status fourier(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *x = node->in[TARN__FOURIER_X], *offsets = node->in[TARN__FOURIER_OFFSETS];
  const int64_t d = x->cols, longest = ((const tarn__fourier_attr *)node->attr)->longest;
  const int64_t tiles = (tarn__fourier_cosines(longest) + LINES - 1) / LINES;
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  T *table = (T *)node->scratch;
  float *features = (float *)((char *)node->scratch + table_bytes(x));
  if (x->rows == 0) return TARN_STATUS_OK;
  TARN__LAUNCH(fourier_table_kernel<T>, tarn__blocks(d * d, THREADS), THREADS, 0, stream, table, d);
  TARN_TRY(along_features(node, table, features, stream));
  const dim3 blocks((unsigned)((offsets->cols - 1) * tiles), tarn__blocks(tarn__fourier_cosines(d), COLUMNS));
  TARN__LAUNCH(fourier_kernel<T>, blocks, THREADS, 2 * STEP * (LINES + COLUMNS) * sizeof(float), stream,
               (T *)node->out[0]->data, (const float *)features, (const int32_t *)offsets->data, tiles, d,
               node->in[TARN__FOURIER_PREVIOUS] != NULL);
  return TARN_STATUS_OK;
}

static tarn_status fourier_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(fourier, node->out[0]->dtype, exec, node);
}

static size_t fourier_scratch(const tarn__node *node, int threads) {
  (void)threads;
  const tarn__tensor *x = node->in[TARN__FOURIER_X];
  return table_bytes(x) + (size_t)(x->rows * x->cols) * sizeof(float);
}

void tarn__cuda_fourier_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_FOURIER] = {fourier_node, fourier_scratch};
}
