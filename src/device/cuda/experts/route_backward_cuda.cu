// The gradients of routing: first those of the logits of every row, [rows, products], then of x and of the matrices
// from them. Sums over rows are cut into parts whose number depends only on the sizes.
#include "device/cuda/cuda_kernels.h"
#include "device/cuda/experts/route_rows.h"

// Products that a thread of the gradient of a matrix has, with eight columns; threads of its blocks.
constexpr int PRODUCTS = 8, MATRIX_THREADS = 64;

// Scratch, in this order: the sums of the losses of noisy gating, gradients of logits, parts of the gradient of the
// matrices, gates and choices of noisy gating, and how often an expert is the first choice.
typedef struct room_of {
  double *importance, *load;  // [experts] each
  float *dlogits, *parts, *gates;
  int32_t *chosen, *first;
  int64_t parts_count;
  size_t bytes;
} room_of;

static int64_t parts_of(int64_t rows, int64_t products) {
  int64_t parts = 4096 / products;
  if (parts > 256) parts = 256;
  if (parts < 8) parts = 8;
  const int64_t most = (rows + 15) / 16;
  return parts < most ? parts : most;
}

static room_of room(const tarn__node *node) {
  const tarn__tensor *x = node->in[TARN__ROUTE_X];
  const bool noisy = node->in[TARN__ROUTE_NOISE] != NULL;
  const int64_t experts = node->in[TARN__ROUTE_WEIGHT]->rows, products = noisy ? 2 * experts : experts;
  const int64_t choices = ((const tarn__route_attr *)node->attr)->spec.choices;
  room_of r = {};
  r.parts_count = parts_of(x->rows, products);
  // Without scratch, only the bytes are of use.
  const auto take = [&](int64_t count, size_t size) {
    void *at = node->scratch ? (char *)node->scratch + r.bytes : NULL;
    r.bytes += (size_t)count * size;
    return at;
  };
  r.importance = (double *)take(experts, sizeof(double));
  r.load = (double *)take(experts, sizeof(double));
  r.dlogits = (float *)take((x->rows * products + 3) / 4 * 4, sizeof(float));  // by 16 bytes
  r.parts = (float *)take(r.parts_count * products * x->cols, sizeof(float));
  r.gates = (float *)take(noisy ? x->rows * choices : 0, sizeof(float));
  r.chosen = (int32_t *)take(noisy ? x->rows * (choices + 1) : 0, sizeof(int32_t));
  r.first = (int32_t *)take(experts, sizeof(int32_t));
  return r;
}

static size_t backward_scratch(const tarn__node *node, int threads) {
  (void)threads;
  tarn__node empty = *node;
  empty.scratch = NULL;
  return room(&empty).bytes;
}

// Row of a warp, of four in a block.
static __device__ __forceinline__ int64_t warp_row() {
  return (int64_t)blockIdx.x * TARN__ROUTE_ROWS + threadIdx.x / TARN__WARP_SIZE;
}

// --- gradients of logits

static __global__ void __launch_bounds__(TARN__ROUTE_THREADS)
    count_first_kernel(int32_t *first, const float *p, int64_t rows, int experts) {
  const int64_t row = warp_row();
  if (row >= rows) return;
  const int best = tarn__next_best(p + row * experts, experts, -1);
  if (threadIdx.x % TARN__WARP_SIZE == 0) atomicAdd(first + best, 1);
}

// first NULL: no balance.
static __global__ void __launch_bounds__(TARN__ROUTE_THREADS)
    route_logits_gradient_kernel(float *dlogits, const float *p, const float *dgates, const int32_t *first,
                                 float balance, const tarn__route_args a) {
  TARN__SHARED(int, shared);
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE;
  int *chosen = shared + (int)threadIdx.x / TARN__WARP_SIZE * TARN__ROUTE_CHOSEN;
  const int64_t row = warp_row();
  if (row >= a.rows) return;
  p += row * a.experts;
  dlogits += row * a.experts;
  dgates += row * a.choices;
  tarn__choose(chosen, p, a.experts, a.choices);
  float sum = 0.0f, mean = 0.0f, dot = 0.0f;
  for (int j = 0; j < a.choices; j++) sum += p[chosen[j]];
  for (int j = 0; j < a.choices; j++) mean += dgates[j] * p[chosen[j]] / sum;
  for (int e = lane; e < a.experts; e += TARN__WARP_SIZE) {
    float g = first ? balance * (float)first[e] : 0.0f;
    for (int j = 0; j < a.choices; j++)
      if (chosen[j] == e) g += a.spec.normalise ? (dgates[j] - mean) / sum : dgates[j];
    dlogits[e] = g;
    dot += p[e] * g;
  }
  dot = tarn__warp_sum(dot);
  for (int e = lane; e < a.experts; e += TARN__WARP_SIZE) dlogits[e] = p[e] * (dlogits[e] - dot);
}

static tarn_status logits_gradient(const tarn__node *node, const tarn__route_args &a, const room_of &r,
                                   cudaStream_t stream) {
  const float *p = (const float *)node->in[TARN__ROUTE_P]->data;
  const double rows = (double)a.rows;
  const float balance = (float)(a.spec.balance * a.spec.share * (double)a.experts / (rows * rows));
  const bool balanced = a.spec.balance > 0.0 && a.rows > 0;
  if (balanced) {
    TARN__CUDA(cudaMemsetAsync(r.first, 0, (size_t)a.experts * sizeof(int32_t), stream), "clearing");
    TARN__LAUNCH(count_first_kernel, tarn__blocks(a.rows, TARN__ROUTE_ROWS), TARN__ROUTE_THREADS, 0, stream, r.first, p,
                 a.rows, a.experts);
  }
  TARN__LAUNCH(route_logits_gradient_kernel, tarn__blocks(a.rows, TARN__ROUTE_ROWS), TARN__ROUTE_THREADS,
               TARN__ROUTE_ROWS * TARN__ROUTE_CHOSEN * sizeof(int), stream, r.dlogits, p,
               (const float *)node->in[TARN__ROUTE_DGATES]->data, balanced ? r.first : (int32_t *)NULL, balance, a);
  return TARN_STATUS_OK;
}

// --- noisy gating

// The choices of a row with the best rival [k + 1], and its gates [k].
static __global__ void __launch_bounds__(TARN__ROUTE_THREADS)
    noisy_choices_kernel(int32_t *chosen_of, float *gates, const float *kept, const tarn__route_args a) {
  TARN__SHARED(float, shared);
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE, warp = (int)threadIdx.x / TARN__WARP_SIZE;
  float *h = shared + warp * a.experts;
  int *chosen = reinterpret_cast<int *>(shared + TARN__ROUTE_ROWS * a.experts) + warp * TARN__ROUTE_CHOSEN;
  const int64_t row = warp_row();
  if (row >= a.rows) return;
  for (int e = lane; e < a.experts; e += TARN__WARP_SIZE)
    h[e] = tarn__noisy_logit(kept + row * 3 * a.experts, a.experts, e);
  __syncwarp();
  tarn__choose(chosen, h, a.experts, a.choices + 1);
  if (lane <= a.choices) chosen_of[row * (a.choices + 1) + lane] = chosen[lane];
  if (lane < a.choices) gates[row * a.choices + lane] = tarn__noisy_gate(h, chosen, a.choices, lane);
}

// (c - h of the rival) / s of an expert in a row; *choice: which choice it is, or -1. The rival is the k-th largest h
// of the others.
static __device__ float margin_of(const float *kept, const int32_t *chosen, int experts, int choices, int e, float s,
                                  int *choice) {
  *choice = -1;
  for (int j = 0; j < choices; j++)
    if (chosen[j] == e) *choice = j;
  const int rival = chosen[*choice >= 0 ? choices : choices - 1];
  return (kept[e] - tarn__noisy_logit(kept, experts, rival)) / s;
}

// The importance and the load of each expert, one for each block.
static __global__ void noisy_sums_kernel(double *importance, double *load, const float *kept, const int32_t *chosen,
                                         const float *gates, const tarn__route_args a) {
  TARN__SHARED(double, shared);
  const int e = (int)blockIdx.x;
  double by_gates = 0.0, by_chance = 0.0;
  for (int64_t row = threadIdx.x; row < a.rows; row += blockDim.x) {
    const float *own = kept + row * 3 * a.experts;
    int choice;
    const float z = margin_of(own, chosen + row * (a.choices + 1), a.experts, a.choices, e,
                              tarn__noise_size(own[a.experts + e]), &choice);
    if (choice >= 0) by_gates += (double)gates[row * a.choices + choice];
    by_chance += tarn__route_below((double)z);
  }
  by_gates = tarn__block_sum(by_gates, shared);
  by_chance = tarn__block_sum(by_chance, shared);
  if (threadIdx.x != 0) return;
  importance[e] = by_gates;
  load[e] = by_chance;
}

// The derivatives of weight CV^2 of n sums (tarn__route_variation), by one block, in place.
static __global__ void variation_kernel(double *sums, int n, double weight) {
  TARN__SHARED(double, shared);
  double mean = 0.0, variance = 0.0;
  for (int e = (int)threadIdx.x; e < n; e += (int)blockDim.x) mean += sums[e] / (double)n;
  mean = tarn__block_sum(mean, shared);
  for (int e = (int)threadIdx.x; e < n; e += (int)blockDim.x)
    variance += (sums[e] - mean) * (sums[e] - mean) / (double)n;
  variance = tarn__block_sum(variance, shared);
  for (int e = (int)threadIdx.x; e < n; e += (int)blockDim.x)
    sums[e] = mean > 0.0 ? 2.0 * weight / ((double)n * mean * mean) * (sums[e] - mean - variance / mean) : 0.0;
}

// dlogits [2 E] of a row: of c, then of a.
static __global__ void __launch_bounds__(TARN__ROUTE_THREADS)
    noisy_gradient_kernel(float *dlogits, const float *kept, const float *dgates, const int32_t *chosen,
                          const float *gates, const double *importance, const double *load, const tarn__route_args a) {
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE, k = a.choices;
  const int64_t row = warp_row();
  if (row >= a.rows) return;
  kept += row * 3 * a.experts;
  dlogits += row * 2 * a.experts;
  dgates += row * k;
  chosen += row * (k + 1);
  gates += row * k;
  float mean = 0.0f, of_chosen = 0.0f, of_others = 0.0f;
  for (int j = 0; j < k; j++) mean += gates[j] * (dgates[j] + (float)importance[chosen[j]]);
  // The gradient of every P by c goes off the rival's h.
  for (int e = lane; e < a.experts; e += TARN__WARP_SIZE) {
    int choice;
    const float s = tarn__noise_size(kept[a.experts + e]), z = margin_of(kept, chosen, a.experts, k, e, s, &choice);
    const float own = (float)(load[e] * tarn__route_density((double)z)) / s;
    dlogits[e] = own;
    (choice >= 0 ? of_chosen : of_others) += own;
  }
  of_chosen = tarn__warp_sum(of_chosen);
  of_others = tarn__warp_sum(of_others);
  for (int e = lane; e < a.experts; e += TARN__WARP_SIZE) {
    int choice;
    const float s = tarn__noise_size(kept[a.experts + e]), z = margin_of(kept, chosen, a.experts, k, e, s, &choice);
    const float own = dlogits[e];
    float dh = choice < 0 ? 0.0f : gates[choice] * (dgates[choice] + (float)importance[e] - mean);
    if (e == chosen[k]) dh -= of_chosen;
    if (e == chosen[k - 1]) dh -= of_others;
    dlogits[a.experts + e] =
        (dh * kept[2 * a.experts + e] - own * z) * (float)tarn__route_sigmoid((double)kept[a.experts + e]);
    dlogits[e] = dh + own;
  }
}

static tarn_status noisy_gradient(const tarn__node *node, const tarn__route_args &a, const room_of &r,
                                  cudaStream_t stream) {
  const float *kept = (const float *)node->in[TARN__ROUTE_P]->data;
  const unsigned blocks = tarn__blocks(a.rows, TARN__ROUTE_ROWS);
  const size_t shared = TARN__ROUTE_ROWS * ((size_t)a.experts + TARN__ROUTE_CHOSEN) * sizeof(float);
  const size_t sums = TARN__WARP_SIZE * sizeof(double);
  TARN__LAUNCH(noisy_choices_kernel, blocks, TARN__ROUTE_THREADS, shared, stream, r.chosen, r.gates, kept, a);
  TARN__LAUNCH(noisy_sums_kernel, (unsigned)a.experts, 256, sums, stream, r.importance, r.load, kept, r.chosen, r.gates,
               a);
  TARN__LAUNCH(variation_kernel, 1, 256, sums, stream, r.importance, a.experts, a.spec.importance * a.spec.share);
  TARN__LAUNCH(variation_kernel, 1, 256, sums, stream, r.load, a.experts, a.spec.load * a.spec.share);
  TARN__LAUNCH(noisy_gradient_kernel, blocks, TARN__ROUTE_THREADS, 0, stream, r.dlogits, kept,
               (const float *)node->in[TARN__ROUTE_DGATES]->data, r.chosen, r.gates, r.importance, r.load, a);
  return TARN_STATUS_OK;
}

// --- gradients of x and of the matrices

template <typename T>
struct x_gradient {
  T *dx;
  const float *dlogits;
  tarn__route_args a;
  bool add;
  __device__ void operator()(int64_t row, int64_t column, int left) const {
    const int products = tarn__route_products(a);
    float sum[TARN__EIGHT] = {0}, before[TARN__EIGHT] = {0};
    for (int p = 0; p < products; p++) {
      float w[TARN__EIGHT];
      const float g = dlogits[row * products + p];
      const int64_t at = (int64_t)(p < a.experts ? p : p - a.experts) * a.d + column;
      tarn__read8_of(w, p < a.experts ? a.weight : a.noise, a.weight_bf16, at, left, a.whole);
      for (int i = 0; i < TARN__EIGHT; i++) sum[i] += g * w[i];
    }
    tarn__jitter8(sum, a, row, (int)column);
    if (add) tarn__read8(before, dx + row * a.d + column, left, a.whole);
    for (int i = 0; i < TARN__EIGHT; i++) sum[i] += before[i];
    tarn__write8(dx + row * a.d + column, sum, left, a.whole);
  }
};

template <typename T>
static tarn_status launch_x(const tarn__tensor *dx, const float *dlogits, tarn__route_args a, bool add,
                            cudaStream_t stream) {
  a.whole = a.whole && tarn__whole_eights(2, a.d, dx->data);
  return tarn__each8(x_gradient<T>{(T *)dx->data, dlogits, a, add}, a.rows, a.d, stream);
}

// parts [part, products, d]: columns by x, products by y, rows by z.
static __global__ void __launch_bounds__(MATRIX_THREADS)
    route_matrix_kernel(float *parts, const float *dlogits, const tarn__route_args a) {
  const int products = tarn__route_products(a), first = (int)blockIdx.y * PRODUCTS;
  const int column = ((int)blockIdx.x * MATRIX_THREADS + (int)threadIdx.x) * TARN__EIGHT, left = a.d - column;
  const int64_t begin = a.rows * blockIdx.z / gridDim.z, end = a.rows * (blockIdx.z + 1) / gridDim.z;
  if (left <= 0) return;
  float sums[PRODUCTS][TARN__EIGHT] = {};
  for (int64_t row = begin; row < end; row++) {
    float v[TARN__EIGHT];
    tarn__read8_of(v, a.x, a.x_bf16, row * a.d + column, left, a.whole);
    tarn__jitter8(v, a, row, column);
#pragma unroll
    for (int p = 0; p < PRODUCTS; p++) {
      const float g = first + p < products ? dlogits[row * products + first + p] : 0.0f;
      for (int i = 0; i < TARN__EIGHT; i++) sums[p][i] += g * v[i];
    }
  }
#pragma unroll
  for (int p = 0; p < PRODUCTS; p++)
    if (first + p < products)
      tarn__write8(parts + ((int64_t)blockIdx.z * products + first + p) * a.d + column, sums[p], left, a.whole);
}

static tarn_status backward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__route_args a = tarn__route_args_of(exec, node, node->in[TARN__ROUTE_X]);
  const tarn__tensor *dx = node->out[0];
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  const room_of r = room(node);
  int add_weight = 0, add_noise = 0;
  float *dweight = tarn__gradient_of(node->dparam[0], &add_weight);
  float *dnoise = tarn__gradient_of(node->dparam[1], &add_noise);
  TARN_TRY(a.noise ? noisy_gradient(node, a, r, stream) : logits_gradient(node, a, r, stream));
  if (dx)
    TARN_TRY(TARN__BY_DTYPE(launch_x, dx->dtype, dx, r.dlogits, a, node->in[TARN__ROUTE_PREVIOUS] != NULL, stream));
  if (!dweight && !dnoise) return TARN_STATUS_OK;
  const int products = tarn__route_products(a);
  const dim3 blocks(tarn__blocks(tarn__eights_of(a.d), MATRIX_THREADS), tarn__blocks(products, PRODUCTS),
                    (unsigned)r.parts_count);
  tarn__route_args of_parts = a;
  of_parts.whole = a.whole && tarn__whole_eights(2, a.d, r.parts);
  TARN__LAUNCH(route_matrix_kernel, blocks, MATRIX_THREADS, 0, stream, r.parts, r.dlogits, of_parts);
  return tarn__sum_parts(dweight, add_weight, dnoise, add_noise, r.parts, r.parts_count, (int64_t)a.experts * a.d,
                         (int64_t)products * a.d, stream);
}

void tarn__cuda_route_backward_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_ROUTE_BACKWARD] = {backward, backward_scratch};
}
