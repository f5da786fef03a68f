// The resident loop.
#include "device/cuda/recurrence/recurrence_units.h"

enum {
  MOST_UNITS = 512,               // threads of a block
  MOST_WEIGHT_BYTES = 512 << 10,  // of the weight: L2 gives a block so much in about the time of two launches
  MOST_SHARED_BYTES = 96 << 10,   // a block may have so much on every card with bf16
  GROUP = 4                       // sequences of a block, if there are more of them than multiprocessors
};

bool tarn__loop_resident(const tarn__tensor *weight) {
  const int64_t bytes = weight->rows * weight->cols * (int64_t)tarn__dtype_size(weight->dtype);
  return weight->param->entries == 0 && weight->cols <= MOST_UNITS && bytes <= MOST_WEIGHT_BYTES;
}

int tarn__loop_group(const tarn__loop *l) { return l->sequences * l->sides > tarn__cuda_processors() ? GROUP : 1; }

int64_t tarn__loop_blocks(const tarn__loop *l) {
  return (l->sequences + tarn__loop_group(l) - 1) / tarn__loop_group(l);
}

// --- the order of the sequences

static __global__ void order_kernel(int32_t *order, tarn__loop l) {
  const int64_t number = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (number >= l.sequences) return;
  const int64_t length = tarn__length_of(l, number);
  int64_t place = 0;
  for (int64_t other = 0; other < l.sequences; other++) {
    const int64_t its = tarn__length_of(l, other);
    place += its > length || (its == length && other < number);
  }
  order[place] = (int32_t)number;
}

tarn_status tarn__loop_order(int32_t *order, const tarn__loop *l, cudaStream_t stream) {
  TARN__LAUNCH(order_kernel, tarn__blocks(l->sequences, 64), 64, 0, stream, order, *l);
  return TARN_STATUS_OK;
}

// --- the transposed weight, in tiles of 32 x 32

template <typename T>
static __global__ void transpose_kernel(T *to, const T *from, int64_t rows, int64_t cols) {
  TARN__SHARED(T, tile);  // [32, 33]
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
  const int64_t row = (int64_t)blockIdx.y * 32, col = (int64_t)blockIdx.x * 32;
  for (int i = warp; i < 32; i += (int)blockDim.x / 32)
    if (row + i < rows && col + lane < cols) tile[33 * i + lane] = from[(row + i) * cols + col + lane];
  __syncthreads();
  for (int i = warp; i < 32; i += (int)blockDim.x / 32)
    if (col + i < cols && row + lane < rows) to[(col + i) * rows + row + lane] = tile[33 * lane + i];
}

template <typename T>
static tarn_status transpose(void *to, const void *from, int64_t rows, int64_t cols, cudaStream_t stream) {
  TARN__LAUNCH(transpose_kernel<T>, dim3(tarn__blocks(cols, 32), tarn__blocks(rows, 32)), 256, 32 * 33 * sizeof(T),
               stream, (T *)to, (const T *)from, rows, cols);
  return TARN_STATUS_OK;
}

tarn_status tarn__loop_transpose(void *to, const void *from, tarn__dtype dtype, int64_t rows, int64_t cols,
                                 cudaStream_t stream) {
  return TARN__BY_DTYPE(transpose, dtype, to, from, rows, cols, stream);
}

// --- the loops

// Numbers from one sequence to the next in shared memory, which is read 16 bytes at a time.
static inline __device__ __host__ int padded(int64_t n) { return (int)((n + 3) / 4 * 4); }

// The weight, copied to shared memory if there is room.
template <typename T>
static __device__ const T *take_weight(const tarn__loop &l, const tarn__side &d, float *room, bool shared) {
  const T *weight = (const T *)d.resident;
  if (!shared) return weight;
  T *copy = reinterpret_cast<T *>(room);
  for (int i = (int)threadIdx.x; i < (int)(l.n * l.width); i += (int)blockDim.x) copy[i] = weight[i];
  return copy;
}

// sums[g][k] += sum over m < count of x[g ld + m] weight[m step + k stride]: x in shared memory, the weight's columns
// side by side in the threads of a warp. In order of m.
template <typename T, int GATES, int S>
static __device__ __forceinline__ void add_products(float (*sums)[GATES], const T *weight, int step, int stride,
                                                    const float *x, int ld, int count) {
  int m = 0;
#pragma unroll 2
  for (; m + 4 <= count; m += 4) {
    float4 four[S];
#pragma unroll
    for (int g = 0; g < S; g++) four[g] = *reinterpret_cast<const float4 *>(x + g * ld + m);
#pragma unroll
    for (int k = 0; k < GATES; k++) {
      const T *w = weight + m * step + k * stride;
      const float a = tarn__get(w[0]), b = tarn__get(w[step]), c = tarn__get(w[2 * step]), e = tarn__get(w[3 * step]);
#pragma unroll
      for (int g = 0; g < S; g++) {
        sums[g][k] += four[g].x * a;
        sums[g][k] += four[g].y * b;
        sums[g][k] += four[g].z * c;
        sums[g][k] += four[g].w * e;
      }
    }
  }
  for (; m < count; m++)
#pragma unroll
    for (int k = 0; k < GATES; k++) {
      const float a = tarn__get(weight[m * step + k * stride]);
#pragma unroll
      for (int g = 0; g < S; g++) sums[g][k] += x[g * ld + m] * a;
    }
}

// Forward and tangents. blockIdx.y: the side. Thread j has unit j.
template <typename T, tarn__cell CELL, int S, bool TANGENT>
static __global__ void __launch_bounds__(MOST_UNITS) loop_kernel(tarn__loop l, bool shared_weight) {
  constexpr int GATES = tarn__gates_of<CELL>;
  TARN__SHARED(float, states);  // [2, S, ld], and the weight
  const tarn__side &d = l.side[blockIdx.y];
  const int n = (int)l.n, ld = padded(n), j = (int)threadIdx.x;
  const T *weight = take_weight<T>(l, d, states + 2 * S * ld, shared_weight);
  int64_t number[S], length[S], longest = 0;
  float h[S], c[S];
#pragma unroll
  for (int g = 0; g < S; g++) {
    const int64_t place = (int64_t)blockIdx.x * S + g;
    number[g] = place < l.sequences ? l.order[place] : 0;
    length[g] = place < l.sequences ? tarn__length_of(l, number[g]) : 0;
    if (length[g] > longest) longest = length[g];
    const float *begin =
        l.begin.data ? l.begin.data + tarn__place_of(l, d, number[g], 0).begin * l.begin.ld : (const float *)nullptr;
    h[g] = begin && j < n ? begin[j] : 0.0f;
    c[g] = begin && j < n && CELL == TARN__CELL_LSTM ? begin[n + j] : 0.0f;
    if (j < ld) states[g * ld + j] = states[(S + g) * ld + j] = h[g];
  }
  __syncthreads();
  for (int64_t t = 0; t < longest; t++) {
    const float *old = states + t % 2 * S * ld;
    float *now = states + (t + 1) % 2 * S * ld;
    if (j < n) {
      float u[S][GATES] = {};
      if (t > 0 || l.begin.data) add_products<T, GATES, S>(u, weight + j, (int)l.width, n, old, ld, n);
#pragma unroll
      for (int g = 0; g < S; g++) {
        if (t < length[g]) {
          const tarn__at at = tarn__place_of(l, d, number[g], t);
          if constexpr (TANGENT)
            h[g] = tarn__tangent_unit<T, CELL>(l, d, at, j, u[g], h[g], &c[g]);
          else
            h[g] = tarn__forward_unit<T, CELL>(l, d, at, j, u[g], h[g], &c[g]);
        }
        now[g * ld + j] = h[g];
      }
    }
    __syncthreads();
  }
  if (!l.end.data || j >= n) return;
#pragma unroll
  for (int g = 0; g < S; g++) {
    if ((int64_t)blockIdx.x * S + g >= l.sequences) continue;
    float *end = l.end.data + tarn__place_of(l, d, number[g], 0).end * l.end.ld;
    end[j] = h[g];
    if (CELL == TARN__CELL_LSTM) end[n + j] = c[g];
  }
}

// Backward: thread j has the gates of unit j, and then the gradient of its state.
template <typename T, tarn__cell CELL, int S>
static __global__ void __launch_bounds__(MOST_UNITS) back_kernel(tarn__loop l, bool shared_weight) {
  constexpr int GATES = tarn__gates_of<CELL>;
  TARN__SHARED(float, grads);  // [2, S, ld], and the weight
  const tarn__side &d = l.side[blockIdx.y];
  const int n = (int)l.n, width = (int)l.width, ld = padded(width), j = (int)threadIdx.x;
  const T *weight = take_weight<T>(l, d, grads + 2 * S * ld, shared_weight);
  int64_t number[S], length[S], longest = 0;
  float dh[S][1] = {}, dc[S] = {}, sums[GATES] = {};
#pragma unroll
  for (int g = 0; g < S; g++) {
    const int64_t place = (int64_t)blockIdx.x * S + g;
    number[g] = place < l.sequences ? l.order[place] : 0;
    length[g] = place < l.sequences ? tarn__length_of(l, number[g]) : 0;
    if (length[g] > longest) longest = length[g];
  }
  __syncthreads();
  for (int64_t t = longest - 1; t >= 0; t--) {
    float *now = grads + t % 2 * S * ld;
    if (j < n) {
#pragma unroll
      for (int g = 0; g < S; g++) {
        float du[GATES] = {};
        if (t < length[g])
          tarn__backward_unit<T, CELL>(l, d, tarn__place_of(l, d, number[g], t), j, du, &dh[g][0], &dc[g]);
#pragma unroll
        for (int k = 0; k < GATES; k++) {
          sums[k] += du[k];
          now[g * ld + k * n + j] = du[k];
        }
      }
    }
    __syncthreads();
    if (t > 0 && j < n) add_products<T, 1, S>(dh, weight + j, n, 0, now, ld, width);
  }
  if (!d.bias_sums || j >= n) return;
#pragma unroll
  for (int k = 0; k < GATES; k++) d.bias_sums[(int64_t)blockIdx.x * width + k * n + j] = sums[k];
}

// Tangents are computed in fp32 only.
template <typename T, tarn__cell CELL, int S>
static tarn_status run_group(const tarn__loop *l, tarn__pass pass, cudaStream_t stream) {
  const size_t room = (size_t)(2 * S * padded(pass == TARN__PASS_BACKWARD ? l->width : l->n)) * sizeof(float);
  const size_t weight = (size_t)(l->n * l->width) * sizeof(T);
  const bool shared_weight = room + weight <= MOST_SHARED_BYTES;
  const size_t bytes = room + (shared_weight ? weight : 0);
  const unsigned threads = ((unsigned)l->n + 31u) / 32u * 32u;
  const dim3 blocks((unsigned)tarn__loop_blocks(l), (unsigned)l->sides);
  if (pass == TARN__PASS_BACKWARD)
    TARN__LAUNCH((back_kernel<T, CELL, S>), blocks, threads, bytes, stream, *l, shared_weight);
  else if (pass == TARN__PASS_TANGENT)
    TARN__LAUNCH((loop_kernel<float, CELL, S, true>), blocks, threads, bytes, stream, *l, shared_weight);
  else
    TARN__LAUNCH((loop_kernel<T, CELL, S, false>), blocks, threads, bytes, stream, *l, shared_weight);
  return TARN_STATUS_OK;
}

template <typename T, tarn__cell CELL>
static tarn_status run(const tarn__loop *l, tarn__pass pass, cudaStream_t stream) {
  return tarn__loop_group(l) == 1 ? run_group<T, CELL, 1>(l, pass, stream) : run_group<T, CELL, GROUP>(l, pass, stream);
}

tarn_status tarn__loop_run(const tarn__loop *l, tarn__pass pass, tarn__dtype dtype, cudaStream_t stream) {
  return TARN__BY_KIND(run, dtype, l->cell, l, pass, stream);
}
