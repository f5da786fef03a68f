// Lookups in tables of words and positions. The frequencies of sinusoids are computed once for a block of rows, in
// double, because positions may be large; the sines themselves are short polynomials.
#include "device/cuda/cuda_kernels.h"
#include "device/cuda/rows/by_number.h"

extern "C" {
#include "ops/embedding.h"
}

// Rows of a block, and the most frequencies that are kept in shared memory.
constexpr int ROWS = 16, THREADS = 256;
constexpr int64_t FREQUENCIES = 4096;

typedef struct embedding_of {
  const int32_t *ids, *positions;
  const void *table, *learned;  // table NULL: zeros
  bool table_bf16, learned_bf16;
  const signed char *rounded;  // the table as INT8, with the scales of its rows; else NULL
  const float *scales;
  int64_t rows, cols;
  float scale;
  double steps;
  uint32_t shift, shift_site;
  int64_t first;
  tarn__mask mask;
  bool whole;
} embedding_of;

// tarn__embedding_turns(): the angle of dimension i of position 1, in turns.
static __device__ double turns_of(int64_t i, double steps) {
  return exp(-(double)i * 9.210340371976182736 / steps) / 6.283185307179586476925;
}

// tarn__embedding_shift(): the shift of the sentence whose first row is `first`.
static __device__ int64_t shift_of(const embedding_of &a, int64_t first) {
  if (a.shift == 0) return 0;
  const uint32_t counter[4] = {0, (uint32_t)first, a.shift_site, a.mask.step};
  uint32_t words[4];
  tarn__philox(words, counter, a.mask.key);
  return (int64_t)((uint64_t)words[0] * ((uint64_t)a.shift + 1) >> 32);
}

// sin(2 pi x) for x in [-1/4, 1/4]: its Taylor series in z = x^2, exact to 1e-9.
static __device__ __forceinline__ float sine(float x) {
  const float z = x * x;
  float p = 3.8199526f;
  p = fmaf(p, z, -15.094643f);
  p = fmaf(p, z, 42.058693f);
  p = fmaf(p, z, -76.705860f);
  p = fmaf(p, z, 81.605249f);
  p = fmaf(p, z, -41.341702f);
  p = fmaf(p, z, 6.2831853f);
  return p * x;
}

// The sinusoid of a column, of which the first half are sines: sin(pi - a) = sin(a), cos(a) = sin(pi / 2 - |a|).
static __device__ __forceinline__ float sinusoid(double position, const double *turns, int64_t column, int64_t half,
                                                 double steps) {
  if (column >= 2 * half) return 0.0f;  // the last column of an odd width
  const int64_t i = column < half ? column : column - half;
  const double angle = position * (i < FREQUENCIES ? turns[i] : turns_of(i, steps));
  const float x = (float)(angle - rint(angle)), size = fabsf(x);
  if (column >= half) return sine(0.25f - size);
  const float folded = size > 0.25f ? 0.5f - size : size;
  return sine(x < 0.0f ? -folded : folded);
}

template <typename T>
static __global__ void __launch_bounds__(THREADS) embedding_kernel(T *y, const embedding_of a) {
  TARN__SHARED(double, turns);
  const int64_t half = a.cols / 2, kept = half < FREQUENCIES ? half : FREQUENCIES, eights = tarn__eights_of(a.cols);
  const bool sinusoids = a.positions && !a.learned;
  for (int64_t i = threadIdx.x; sinusoids && i < kept; i += THREADS) turns[i] = turns_of(i, a.steps);
  __syncthreads();
  const int64_t first = (int64_t)blockIdx.x * ROWS, rows = a.rows - first < ROWS ? a.rows - first : ROWS;
  for (int64_t i = threadIdx.x; i < rows * eights; i += THREADS) {
    const int64_t row = first + i / eights, column = i % eights * TARN__EIGHT;
    const int left = a.cols - column < TARN__EIGHT ? (int)(a.cols - column) : TARN__EIGHT;
    const int64_t place = a.positions ? a.positions[row] : 0;
    float v[TARN__EIGHT] = {0};
    if (a.rounded) {
      const int64_t id = a.ids[row];
      for (int k = 0; k < TARN__EIGHT; k++)
        if (k < left) v[k] = a.scales[id] * (float)a.rounded[id * a.cols + column + k];
    } else if (a.table) {
      tarn__read8_of(v, a.table, a.table_bf16, a.ids[row] * a.cols + column, left, a.whole);
    }
    for (int k = 0; k < TARN__EIGHT; k++) v[k] *= a.scale;
    if (a.learned) {
      float at[TARN__EIGHT];
      tarn__read8_of(at, a.learned, a.learned_bf16, place * a.cols + column, left, a.whole);
      for (int k = 0; k < TARN__EIGHT; k++) v[k] += at[k];
    } else if (sinusoids) {
      const double position = (double)(place + a.first + shift_of(a, row - place));
      for (int k = 0; k < TARN__EIGHT; k++) v[k] += sinusoid(position, turns, column + k, half, a.steps);
    }
    tarn__drop8(v, a.mask, row, column);
    tarn__write8(y + row * a.cols + column, v, left, a.whole);
  }
}

template <typename T>
static tarn_status launch(const embedding_of &a, const tarn__tensor *y, cudaStream_t stream) {
  const int64_t half = a.cols / 2, kept = half < FREQUENCIES ? half : FREQUENCIES;
  TARN__LAUNCH(embedding_kernel<T>, tarn__blocks(a.rows, ROWS), THREADS, (size_t)kept * sizeof(double), stream,
               (T *)y->data, a);
  return TARN_STATUS_OK;
}

static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *y = node->out[0], *table = node->in[TARN__EMBEDDING_TABLE];
  const tarn__tensor *positions = node->in[TARN__EMBEDDING_POSITIONS], *learned = node->in[TARN__EMBEDDING_LEARNED];
  const tarn__embedding_attr *attr = (const tarn__embedding_attr *)node->attr;
  embedding_of a = {};
  a.ids = (const int32_t *)node->in[TARN__EMBEDDING_IDS]->data;
  a.positions = positions ? (const int32_t *)positions->data : NULL;
  if (table->rows > 0 && table->param->decoding.rounded) {
    a.rounded = table->param->decoding.rounded;
    a.scales = table->param->decoding.scales;
  } else if (table->rows > 0) {
    a.table = table->data;
  }
  a.learned = learned ? learned->data : NULL;
  a.table_bf16 = table->dtype == TARN__BF16;
  a.learned_bf16 = learned && learned->dtype == TARN__BF16;
  a.rows = y->rows;
  a.cols = y->cols;
  a.scale = (float)attr->scale;
  a.steps = attr->steps;
  a.shift = attr->shift;
  a.first = attr->first;
  a.shift_site = attr->shift_site;
  a.mask = tarn__mask_of(attr->dropout, exec);
  a.whole = tarn__whole_eights(2, y->cols, a.table, a.learned, y->data);
  return TARN__BY_DTYPE(launch, y->dtype, a, y, tarn__cuda_stream(exec->stream));
}

template <typename T>
struct dropped_row {
  const T *dy;
  int64_t cols;
  float scale;
  tarn__mask mask;
  bool whole;
  __device__ void operator()(float v[TARN__EIGHT], int64_t item, int64_t column, int left) const {
    tarn__read8(v, dy + item * cols + column, left, whole);
    tarn__drop8(v, mask, item, column);
    for (int i = 0; i < TARN__EIGHT; i++) v[i] *= scale;
  }
};

template <typename T>
static tarn_status backward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *dy = node->in[TARN__EMBEDDING_BACKWARD_DY];
  const tarn__embedding_attr *attr = (const tarn__embedding_attr *)node->attr;
  const dropped_row<T> row = {(const T *)dy->data, dy->cols, (float)attr->scale, tarn__mask_of(attr->dropout, exec),
                              tarn__whole_eights(2, dy->cols, dy->data)};
  return tarn__table_gradient(node->dparam[0], row, (const int32_t *)node->in[TARN__EMBEDDING_BACKWARD_IDS]->data,
                              dy->rows, node->scratch, tarn__cuda_stream(exec->stream));
}

static tarn_status backward_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(backward, node->in[TARN__EMBEDDING_BACKWARD_DY]->dtype, exec, node);
}

static size_t backward_scratch(const tarn__node *node, int threads) {
  (void)threads;
  const tarn__tensor *dy = node->in[TARN__EMBEDDING_BACKWARD_DY];
  return tarn__by_number_bytes(dy->rows, dy->cols);
}

void tarn__cuda_embedding_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_EMBEDDING].run = forward;
  kernels[TARN__OP_EMBEDDING_BACKWARD] = {backward_node, backward_scratch};
}
