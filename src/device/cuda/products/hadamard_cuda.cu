// Structured orthogonal projections. A row that is transformed lies in shared memory; a pass of its Hadamard transform
// takes 2^R elements at a time into registers and transforms them by R of the steps of the butterfly.
#include "device/cuda/cuda_kernels.h"

extern "C" {
#include "ops/hadamard.h"
}

// A team of threads, at most 256, transforms a row; a block of at least 128 threads has one team or several.
enum { LEAST_THREADS = 128, MOST_TEAM = 256, STEPS = 4 };

struct hadamard_tensors {
  const void *x, *added, *sign;  // of dx: dz, none, and the y of relu; added: the bias, fp32
  void *y;
  const float *signs;
  int64_t rows, x_cols, y_cols;
  int team;
  bool relu, accumulate;
};

// One more element after 32, so that elements 8 or 16 apart are in different banks.
static __host__ __device__ __forceinline__ int place(int i) { return i + i / 32; }

// R steps of the transform of the window x[first ..] of size n, from the step of distance 2^shift on. Before them
// elements are multiplied by `before`, after them by `after` and `scale`; both are signs of all of x, or NULL.
template <int R>
static __device__ __forceinline__ void pass(float *x, int first, int n, int shift, const float *before,
                                            const float *after, float scale, int thread, int team) {
  constexpr int SIZE = 1 << R;
  for (int g = thread; g < n >> R; g += team) {
    const int base = first + (g >> shift << (shift + R)) + (g & ((1 << shift) - 1));
    float v[SIZE];
#pragma unroll
    for (int j = 0; j < SIZE; j++) {
      v[j] = x[place(base + (j << shift))];
      if (before) v[j] *= before[base + (j << shift)];
    }
#pragma unroll
    for (int step = 1; step < SIZE; step *= 2)
#pragma unroll
      for (int j = 0; j < SIZE; j++)
        if (!(j & step)) {
          const float a = v[j], b = v[j + step];
          v[j] = a + b;
          v[j + step] = a - b;
        }
#pragma unroll
    for (int j = 0; j < SIZE; j++) {
      v[j] *= after ? scale * after[base + (j << shift)] : scale;
      x[place(base + (j << shift))] = v[j];
    }
  }
}

// A round: signs then the window's transform, or transposed the other way round.
static __device__ __forceinline__ void turn(float *x, const float *signs, const tarn__hadamard_shape &shape, int round,
                                            bool transposed, int thread, int team) {
  const int first = (int)tarn__hadamard_start(&shape, round), n = (int)shape.window, all = 31 - __clz(n);
  const float scale = rsqrtf((float)n);
  // Elements outside the window have only signs.
  for (int i = thread; i < (int)shape.width - n; i += team) {
    const int at = i < first ? i : i + n;
    x[place(at)] *= signs[at];
  }
  int shift = 0;
  do {
    // As few passes as there can be, each of about as many steps.
    const int passes = (all - shift + STEPS - 1) / STEPS, steps = passes ? (all - shift + passes - 1) / passes : 0;
    const float *before = shift == 0 && !transposed ? signs : nullptr,
                *after = passes < 2 && transposed ? signs : nullptr;
    const float by = passes < 2 ? scale : 1.0f;
    if (steps == 0) pass<0>(x, first, n, shift, before, after, by, thread, team);
    if (steps == 1) pass<1>(x, first, n, shift, before, after, by, thread, team);
    if (steps == 2) pass<2>(x, first, n, shift, before, after, by, thread, team);
    if (steps == 3) pass<3>(x, first, n, shift, before, after, by, thread, team);
    if (steps == 4) pass<4>(x, first, n, shift, before, after, by, thread, team);
    __syncthreads();
    shift += steps;
  } while (shift < all);
}

// Transforms each row of x, by `count` transforms whose results are added, `step` apart; those of a block (y) begin at
// apart * y and write other elements than those of other blocks. TRANSPOSED: of dx.
template <typename T, bool TRANSPOSED>
static __global__ void hadamard_kernel(hadamard_tensors tensors, tarn__hadamard_shape shape, int64_t apart,
                                       int64_t count, int64_t step) {
  TARN__SHARED(float, shared);
  const int team = tensors.team, thread = (int)threadIdx.x % team, own = (int)threadIdx.x / team;
  const int width = (int)shape.width;
  const int64_t row = (int64_t)blockIdx.x * ((int)blockDim.x / team) + own;
  const bool there = row < tensors.rows;
  float *work = shared + own * place(width) * (count > 1 ? 2 : 1), *sum = work + place(width);
  const T *x = (const T *)tensors.x + row * tensors.x_cols;
  const T *sign = tensors.sign ? (const T *)tensors.sign + row * tensors.x_cols : nullptr;
  T *y = (T *)tensors.y + row * tensors.y_cols;
  for (int64_t c = 0; c < count; c++) {
    const int64_t transform = blockIdx.y * apart + c * step;
    const tarn__hadamard_ends ends = tarn__hadamard_ends_of(&shape, transform);
    const int64_t from = TRANSPOSED ? ends.out_at : ends.in_at, to = TRANSPOSED ? ends.in_at : ends.out_at;
    const int64_t in = TRANSPOSED ? ends.out_count : ends.in_count, out = TRANSPOSED ? ends.in_count : ends.out_count;
    for (int i = thread; i < width; i += team) {
      float value = there && i < in ? tarn__get(x[from + i]) : 0.0f;
      if (sign && there && i < in && !(tarn__get(sign[from + i]) > 0.0f)) value = 0.0f;
      work[place(i)] = value;
    }
    __syncthreads();
    const float *signs = tensors.signs + tarn__hadamard_signs_at(&shape, transform);
    for (int r = 0; r < shape.rounds; r++) {
      const int round = TRANSPOSED ? shape.rounds - 1 - r : r;
      turn(work, signs + round * width, shape, round, TRANSPOSED, thread, team);
    }
    for (int i = thread; i < out; i += team) {
      float value = (float)shape.scale * work[place(i)];
      if (c > 0) value += sum[place(i)];
      if (c + 1 < count) {
        sum[place(i)] = value;
        continue;
      }
      if (!there) continue;
      if (tensors.added) value += ((const float *)tensors.added)[to + i];
      if (tensors.relu && value < 0.0f) value = 0.0f;
      tarn__set(y + to + i, tensors.accumulate ? tarn__get(y[to + i]) + value : value);
    }
    __syncthreads();
  }
}

// Of what `transposed` makes of `rows` rows: parts of a result that are not summed are blocks of the grid.
template <typename T, bool TRANSPOSED>
static tarn_status launch(hadamard_tensors tensors, const tarn__hadamard_shape &shape, cudaStream_t stream) {
  const bool side_by_side = shape.in > shape.out;
  const int64_t all = shape.blocks * shape.parts;
  // Side by side, transforms of one block read different elements and write the same; else it is the other way round.
  int64_t grid = side_by_side ? shape.blocks : all, apart = side_by_side ? shape.parts : 1, step = 1;
  if (TRANSPOSED) {
    grid = side_by_side ? shape.parts : 1;
    apart = 1;
    step = side_by_side ? shape.parts : 1;
  }
  const int64_t count = all / grid;
  tensors.team = 1;
  while (tensors.team < MOST_TEAM && tensors.team * 8 < shape.window) tensors.team *= 2;
  const size_t bytes = (size_t)place((int)shape.width) * (count > 1 ? 2 : 1) * sizeof(float);
  const int threads = tensors.team > LEAST_THREADS ? tensors.team : (int)LEAST_THREADS;
  const dim3 blocks(tarn__blocks(tensors.rows, threads / tensors.team), (unsigned)grid);
  TARN__LAUNCH((hadamard_kernel<T, TRANSPOSED>), blocks, (unsigned)threads, bytes * (size_t)(threads / tensors.team),
               stream, tensors, shape, apart, count, step);
  return TARN_STATUS_OK;
}

template <typename T>
static tarn_status hadamard(const tarn__exec *exec, const tarn__node *node) {
  const tarn__hadamard_attr *attr = (const tarn__hadamard_attr *)node->attr;
  const tarn__tensor *x = node->in[0], *bias = node->in[2], *y = node->out[0];
  hadamard_tensors tensors = {};
  tensors.x = x->data;
  tensors.added = bias ? bias->data : nullptr;
  tensors.y = y->data;
  tensors.signs = (const float *)node->in[1]->data;
  tensors.rows = x->rows;
  tensors.x_cols = x->cols;
  tensors.y_cols = y->cols;
  tensors.relu = attr->relu != 0;
  return launch<T, false>(tensors, attr->shape, tarn__cuda_stream(exec->stream));
}

static tarn_status hadamard_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(hadamard, node->out[0]->dtype, exec, node);
}

template <typename T>
static tarn_status dx(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *dy = node->in[0], *y = node->in[2], *out = node->out[0];
  hadamard_tensors tensors = {};
  tensors.x = dy->data;
  tensors.sign = y ? y->data : nullptr;
  tensors.y = out->data;
  tensors.signs = (const float *)node->in[1]->data;
  tensors.rows = dy->rows;
  tensors.x_cols = dy->cols;
  tensors.y_cols = out->cols;
  tensors.accumulate = node->in[3] != NULL;
  return launch<T, true>(tensors, ((const tarn__hadamard_attr *)node->attr)->shape, tarn__cuda_stream(exec->stream));
}

static tarn_status dx_node(const tarn__exec *exec, const tarn__node *node) {
  return TARN__BY_DTYPE(dx, node->out[0]->dtype, exec, node);
}

// A row and a sum of rows.
static size_t row_bytes(int64_t width) { return (size_t)place((int)width) * 2 * sizeof(float); }

const char *tarn__cuda_hadamard_lacks(const tarn__node *node) {
  if (node->op->id != TARN__OP_HADAMARD && node->op->id != TARN__OP_HADAMARD_DX) return NULL;
  const tarn__hadamard_shape *shape = &((const tarn__hadamard_attr *)node->attr)->shape;
  return tarn__cuda_at_most("Hadamard transforms", "elements", shape->width, row_bytes);
}

void tarn__cuda_hadamard_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_HADAMARD].run = hadamard_node;
  kernels[TARN__OP_HADAMARD_DX].run = dx_node;
}
