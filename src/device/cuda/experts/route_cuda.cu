// Routing of rows to experts, and its tangent. Where the choices go is decided with integers only: a block for each
// expert counts the choices before each of its own.
#include "device/cuda/cuda_kernels.h"
#include "device/cuda/experts/route_rows.h"

static size_t shared_bytes(const tarn__route_args &a) {
  const int floats = a.d + tarn__route_products(a) + (a.noise ? a.experts : 0) + TARN__ROUTE_CHOSEN;
  return (size_t)TARN__ROUTE_ROWS * (size_t)floats * sizeof(float);
}

// p, and the choices by it; a warp.
static __device__ void choose_by_softmax(float *gates, int *chosen, float *p, const tarn__route_args &a, int64_t row,
                                         float *kept) {
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE;
  float most = -INFINITY, sum = 0.0f, total = 0.0f;
  for (int e = lane; e < a.experts; e += TARN__WARP_SIZE) most = fmaxf(most, p[e]);
  most = tarn__warp_max(most);
  for (int e = lane; e < a.experts; e += TARN__WARP_SIZE) sum += p[e] = expf(p[e] - most);
  sum = tarn__warp_sum(sum);
  for (int e = lane; e < a.experts; e += TARN__WARP_SIZE) {
    p[e] /= sum;
    if (kept) kept[row * a.experts + e] = p[e];
  }
  __syncwarp();
  tarn__choose(chosen, p, a.experts, a.choices);
  for (int j = 0; j < a.choices; j++) total += p[chosen[j]];
  if (lane < a.choices) gates[lane] = p[chosen[lane]] / (a.spec.normalise ? total : 1.0f);
}

// The same by h of noisy gating, whose quantities are in `row_kept` [3 E], the first two from `logits`.
static __device__ void choose_by_noise(float *gates, int *chosen, const float *logits, float *h,
                                       const tarn__route_args &a, int64_t row, float *kept) {
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE;
  for (int e = lane; e < a.experts; e += TARN__WARP_SIZE) {
    uint32_t words[4];
    tarn__mask_words(words, a.draws, (uint32_t)row, (uint32_t)(2 * e / TARN__EIGHT));
    const int at = 2 * e % TARN__EIGHT;
    const float n =
        (float)tarn__route_normal((uint16_t)tarn__number_of(words, at), (uint16_t)tarn__number_of(words, at + 1));
    h[e] = fmaf(n, tarn__noise_size(logits[a.experts + e]), logits[e]);
    if (!kept) continue;
    float *to = kept + row * 3 * a.experts + e;
    to[0] = logits[e];
    to[a.experts] = logits[a.experts + e];
    to[2 * a.experts] = n;
  }
  __syncwarp();
  tarn__choose(chosen, h, a.experts, a.choices);
  if (lane < a.choices) gates[lane] = tarn__noisy_gate(h, chosen, a.choices, lane);
}

// choices [k, R]: all first ones, then all second ones.
static __global__ void __launch_bounds__(TARN__ROUTE_THREADS)
    route_kernel(float *gates, int32_t *choices, float *kept, const tarn__route_args a) {
  TARN__SHARED(float, x);
  const int products = tarn__route_products(a), warp = (int)threadIdx.x / TARN__WARP_SIZE;
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE;
  float *logits = x + TARN__ROUTE_ROWS * a.d, *h = logits + TARN__ROUTE_ROWS * products;
  int *chosen = reinterpret_cast<int *>(h + (a.noise ? TARN__ROUTE_ROWS * a.experts : 0)) + warp * TARN__ROUTE_CHOSEN;
  tarn__route_logits(logits, x, a);
  const int64_t row = (int64_t)blockIdx.x * TARN__ROUTE_ROWS + warp;
  if (row >= a.rows) return;
  if (a.noise)
    choose_by_noise(gates + row * a.choices, chosen, logits + warp * products, h + warp * a.experts, a, row, kept);
  else
    choose_by_softmax(gates + row * a.choices, chosen, logits + warp * products, a, row, kept);
  if (lane < a.choices) choices[lane * a.rows + row] = chosen[lane];
}

// --- places

constexpr int PLACE_THREADS = 512, PLACE_ITEMS = 8;

static __global__ void __launch_bounds__(PLACE_THREADS)
    count_choices_kernel(int32_t *counts, const int32_t *choices, int64_t items) {
  TARN__SHARED(double, shared);
  double count = 0.0;
  for (int64_t i = threadIdx.x; i < items; i += PLACE_THREADS) count += choices[i] == (int32_t)blockIdx.x;
  count = tarn__block_sum(count, shared);
  if (threadIdx.x == 0) counts[blockIdx.x] = (int32_t)count;
}

// The sum of x over the threads before this one, and in *all over all threads; an int for each warp in shared memory.
static __device__ int threads_before(int x, int *all, int *shared) {
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE, warp = (int)threadIdx.x / TARN__WARP_SIZE;
  int sum = x, before = 0;
  for (int by = 1; by < TARN__WARP_SIZE; by *= 2) {
    const int other = __shfl_up_sync(TARN__WARP, sum, by);
    if (lane >= by) sum += other;
  }
  if (lane == TARN__WARP_SIZE - 1) shared[warp] = sum;
  __syncthreads();
  *all = 0;
  for (int w = 0; w < PLACE_THREADS / TARN__WARP_SIZE; w++) {
    if (w == warp) before = *all;
    *all += shared[w];
  }
  __syncthreads();
  return before + sum - x;
}

// Places of the choices of an expert; offsets [experts + 1].
static __global__ void __launch_bounds__(PLACE_THREADS)
    place_choices_kernel(int32_t *places, int32_t *offsets, const int32_t *counts, const int32_t *choices, int64_t rows,
                         int count_of_choices, int64_t room) {
  TARN__SHARED(double, shared);
  const int32_t expert = (int32_t)blockIdx.x, most = room < INT32_MAX ? (int32_t)room : INT32_MAX;
  const int64_t items = rows * count_of_choices;
  double before = 0.0;
  for (int e = (int)threadIdx.x; e < expert; e += PLACE_THREADS) before += counts[e] < most ? counts[e] : most;
  const int32_t first = (int32_t)tarn__block_sum(before, shared);
  if (threadIdx.x == 0) {
    if (expert == 0) offsets[0] = 0;
    offsets[expert + 1] = first + (counts[expert] < most ? counts[expert] : most);
  }
  int32_t taken = 0;
  for (int64_t tile = 0; tile < items; tile += PLACE_THREADS * PLACE_ITEMS) {
    const int64_t from = tile + (int64_t)threadIdx.x * PLACE_ITEMS;
    int own = 0, all;
    for (int64_t i = from; i < from + PLACE_ITEMS && i < items; i++) own += choices[i] == expert;
    int32_t rank = taken + threads_before(own, &all, reinterpret_cast<int *>(shared));
    for (int64_t i = from; i < from + PLACE_ITEMS && i < items; i++) {
      if (choices[i] != expert) continue;
      const int64_t j = i / rows;
      places[(i - j * rows) * count_of_choices + j] = rank < most ? first + rank : -1;
      rank++;
    }
    taken += all;
  }
}

static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *x = node->in[TARN__ROUTE_X], *kept = node->out[TARN__ROUTE_PROBABILITIES];
  const tarn__route_args a = tarn__route_args_of(exec, node, x);
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  int32_t *counts = (int32_t *)node->scratch, *choices = counts + a.experts;
  const size_t warps = PLACE_THREADS / TARN__WARP_SIZE * sizeof(double);
  TARN__LAUNCH(route_kernel, tarn__blocks(a.rows, TARN__ROUTE_ROWS), TARN__ROUTE_THREADS, shared_bytes(a), stream,
               (float *)node->out[TARN__ROUTE_GATES]->data, choices, kept ? (float *)kept->data : (float *)NULL, a);
  TARN__LAUNCH(count_choices_kernel, (unsigned)a.experts, PLACE_THREADS, warps, stream, counts, choices,
               a.rows * a.choices);
  TARN__LAUNCH(place_choices_kernel, (unsigned)a.experts, PLACE_THREADS, warps, stream,
               (int32_t *)node->out[TARN__ROUTE_PLACES]->data, (int32_t *)node->out[TARN__ROUTE_OFFSETS]->data, counts,
               choices, a.rows, a.choices, ((const tarn__route_attr *)node->attr)->room);
  return TARN_STATUS_OK;
}

static size_t forward_scratch(const tarn__node *node, int threads) {
  (void)threads;
  const int64_t choices = ((const tarn__route_attr *)node->attr)->spec.choices;
  return (size_t)(node->in[TARN__ROUTE_WEIGHT]->rows + node->in[TARN__ROUTE_X]->rows * choices) * sizeof(int32_t);
}

// --- tangents: x is that of x

static __device__ void tangent_by_softmax(float *dgates, const float *dlogits, const float *p, const int *chosen,
                                          const tarn__route_args &a) {
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE;
  float mean = 0.0f, sum = 0.0f, moved = 0.0f;
  for (int e = lane; e < a.experts; e += TARN__WARP_SIZE) mean += p[e] * dlogits[e];
  mean = tarn__warp_sum(mean);
  for (int j = 0; j < a.choices; j++) {
    sum += p[chosen[j]];
    moved += p[chosen[j]] * (dlogits[chosen[j]] - mean);
  }
  if (lane >= a.choices) return;
  const float own = p[chosen[lane]], move = own * (dlogits[chosen[lane]] - mean);
  dgates[lane] = a.spec.normalise ? (move - own / sum * moved) / sum : move;
}

static __device__ void tangent_by_noise(float *dgates, const float *dlogits, const float *kept, const float *h,
                                        const int *chosen, const tarn__route_args &a) {
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE;
  float move = 0.0f, gate = 0.0f;
  if (lane < a.choices) {
    const int e = chosen[lane];
    const float bend = (float)tarn__route_sigmoid((double)kept[a.experts + e]);
    move = dlogits[e] + dlogits[a.experts + e] * kept[2 * a.experts + e] * bend;
    gate = tarn__noisy_gate(h, chosen, a.choices, lane);
  }
  const float mean = tarn__warp_sum(gate * move);
  if (lane < a.choices) dgates[lane] = gate * (move - mean);
}

static __global__ void __launch_bounds__(TARN__ROUTE_THREADS)
    route_tangent_kernel(float *dgates, const float *kept, const tarn__route_args a) {
  TARN__SHARED(float, x);
  const int products = tarn__route_products(a), warp = (int)threadIdx.x / TARN__WARP_SIZE;
  float *logits = x + TARN__ROUTE_ROWS * a.d, *h = logits + TARN__ROUTE_ROWS * products;
  int *chosen = reinterpret_cast<int *>(h + (a.noise ? TARN__ROUTE_ROWS * a.experts : 0)) + warp * TARN__ROUTE_CHOSEN;
  tarn__route_logits(logits, x, a);
  const int64_t row = (int64_t)blockIdx.x * TARN__ROUTE_ROWS + warp;
  if (row >= a.rows) return;
  dgates += row * a.choices;
  logits += warp * products;
  h += warp * a.experts;
  kept += row % a.period * a.experts * (a.noise ? 3 : 1);
  if (!a.noise) {
    tarn__choose(chosen, kept, a.experts, a.choices);
    tangent_by_softmax(dgates, logits, kept, chosen, a);
    return;
  }
  for (int e = (int)threadIdx.x % TARN__WARP_SIZE; e < a.experts; e += TARN__WARP_SIZE)
    h[e] = tarn__noisy_logit(kept, a.experts, e);
  __syncwarp();
  tarn__choose(chosen, h, a.experts, a.choices);
  tangent_by_noise(dgates, logits, kept, h, chosen, a);
}

static tarn_status tangent(const tarn__exec *exec, const tarn__node *node) {
  const tarn__route_args a = tarn__route_args_of(exec, node, node->in[TARN__ROUTE_DX]);
  TARN__LAUNCH(route_tangent_kernel, tarn__blocks(a.rows, TARN__ROUTE_ROWS), TARN__ROUTE_THREADS, shared_bytes(a),
               tarn__cuda_stream(exec->stream), (float *)node->out[0]->data,
               (const float *)node->in[TARN__ROUTE_P]->data, a);
  return TARN_STATUS_OK;
}

const char *tarn__cuda_route_lacks(const tarn__node *node) {
  if (node->op->id != TARN__OP_ROUTE && node->op->id != TARN__OP_ROUTE_TANGENT) return NULL;
  const tarn__tensor *weight = node->in[TARN__ROUTE_WEIGHT];
  tarn__route_args a = {};
  a.experts = (int)weight->rows;
  a.noise = node->in[TARN__ROUTE_NOISE];  // whether there is one
  return tarn__cuda_at_most("experts for rows", "columns", weight->cols, [&](int64_t width) {
    a.d = (int)width;
    return shared_bytes(a);
  });
}

void tarn__cuda_route_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_ROUTE] = {forward, forward_scratch};
  kernels[TARN__OP_ROUTE_TANGENT].run = tangent;
}
