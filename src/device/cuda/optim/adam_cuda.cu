// Adam over all parameters that move, in one launch; norms and sums of their gradients; and the update of a parameter
// within a graph (graph/update.h). The arithmetic and its roundings are the processor's.
#include "device/cuda/cuda_kernels.h"
#include "device/cuda/optim/optimiser.h"

// The constants of a step in fp32, and the source of random numbers.
typedef struct floats {
  float gradient, decay_gradient, keep_weight;
  float beta1_rest, beta2, beta2_rest;
  float step_size, inverse_correction2, epsilon;
  uint32_t key[2], step;
} floats;

static floats floats_of(const tarn__adam_factors *factors) {
  const tarn__exec numbers = tarn__moment_stream(factors->seed, factors->step);
  const floats f = {(float)factors->gradient,
                    (float)factors->decay_gradient,
                    (float)factors->keep_weight,
                    (float)factors->beta1_rest,
                    (float)factors->beta2,
                    (float)factors->beta2_rest,
                    (float)factors->step_size,
                    (float)factors->inverse_correction2,
                    (float)factors->epsilon,
                    {(uint32_t)numbers.seed, (uint32_t)(numbers.seed >> 32)},
                    numbers.step};
  return f;
}

// --- moments in BF16

typedef struct halves {
  uint16_t of[TARN__QUAD];
} halves;

static __device__ __forceinline__ void load_halves(float x[TARN__QUAD], const void *from, int64_t i, int count,
                                                   bool wide) {
  const uint16_t *moments = (const uint16_t *)from + i;
  if (wide && count == TARN__QUAD) {
    const uint2 all = *reinterpret_cast<const uint2 *>(moments);
    x[0] = __uint_as_float(all.x << 16), x[1] = __uint_as_float(all.x & 0xFFFF0000u);
    x[2] = __uint_as_float(all.y << 16), x[3] = __uint_as_float(all.y & 0xFFFF0000u);
    return;
  }
  for (int k = 0; k < TARN__QUAD; k++) x[k] = k < count ? __uint_as_float((unsigned)moments[k] << 16) : 0.0f;
}

static __device__ __forceinline__ void store_halves(void *to, const halves &x, int64_t i, int count, bool wide) {
  uint16_t *out = (uint16_t *)to + i;
  if (wide && count == TARN__QUAD) {
    const uint2 all = {x.of[0] | (unsigned)x.of[1] << 16, x.of[2] | (unsigned)x.of[3] << 16};
    *reinterpret_cast<uint2 *>(out) = all;
    return;
  }
  for (int k = 0; k < TARN__QUAD; k++)
    if (k < count) out[k] = x.of[k];
}

// The four numbers of 16 bits, half of a block of Philox.
static __device__ __forceinline__ void random_quad(halves *numbers, const tarn__moved &p, int64_t i, const floats &f) {
  const int64_t at = p.before + i;
  const uint32_t counter[4] = {(uint32_t)(at / TARN__DROPOUT_BLOCK), 0, p.number, f.step};
  uint32_t words[4];
  tarn__philox(words, counter, f.key);
  const bool second = at % TARN__DROPOUT_BLOCK >= TARN__QUAD;
  const uint32_t a = second ? words[2] : words[0], b = second ? words[3] : words[1];
  numbers->of[0] = (uint16_t)a, numbers->of[1] = (uint16_t)(a >> 16);
  numbers->of[2] = (uint16_t)b, numbers->of[3] = (uint16_t)(b >> 16);
}

static __device__ __forceinline__ void load_moments(float m[TARN__QUAD], float v[TARN__QUAD], const tarn__moved &p,
                                                    int64_t i, int count) {
  if (p.moments == TARN__MOMENTS_BF16) {
    load_halves(m, p.moment1, i, count, p.wide);
    load_halves(v, p.moment2, i, count, p.wide);
  } else {
    tarn__quad_load(m, (const float *)p.moment1, i, count, p.wide);
    tarn__quad_load(v, (const float *)p.moment2, i, count, p.wide);
  }
}

static __device__ __forceinline__ void store_moments(const float m[TARN__QUAD], const float v[TARN__QUAD],
                                                     const tarn__moved &p, int64_t i, int count, const floats &f) {
  if (p.moments == TARN__MOMENTS_F32) {
    tarn__quad_store((float *)p.moment1, m, i, count, p.wide);
    tarn__quad_store((float *)p.moment2, v, i, count, p.wide);
    return;
  }
  halves numbers, first, second;
  random_quad(&numbers, p, i, f);
  for (int k = 0; k < TARN__QUAD; k++) {
    first.of[k] = tarn__moment_round(m[k], numbers.of[k]);
    second.of[k] = tarn__moment_round(v[k], tarn__moment_second(numbers.of[k]));
  }
  store_halves(p.moment1, first, i, count, p.wide);
  store_halves(p.moment2, second, i, count, p.wide);
}

// --- the step

static __device__ __forceinline__ void store_value(const float w[TARN__QUAD], const tarn__moved &p, int64_t i,
                                                   int count) {
  if (!p.value) return;
  if (!p.is_bf16) {
    tarn__quad_store((float *)p.value, w, i, count, p.wide);
    return;
  }
  halves rounded;
  for (int k = 0; k < TARN__QUAD; k++) {
    tarn__bf16 stored;
    tarn__set(&stored, w[k]);
    memcpy(&rounded.of[k], &stored, sizeof stored);
  }
  store_halves(p.value, rounded, i, count, p.wide);
}

// The new weights, and the moments in fp32.
static __device__ __forceinline__ void move_quad(float w[TARN__QUAD], float m[TARN__QUAD], float v[TARN__QUAD],
                                                 const float grad[TARN__QUAD], const tarn__moved &p, int64_t i,
                                                 int count, float gradient, const floats &f) {
  tarn__quad_load(w, p.master, i, count, p.wide);
  for (int k = 0; k < TARN__QUAD; k++) {
    const float g = fmaf(grad[k], gradient, w[k] * f.decay_gradient);
    m[k] = fmaf(g - m[k], f.beta1_rest, m[k]);
    v[k] = fmaf(v[k], f.beta2, g * g * f.beta2_rest);
    const float change = f.step_size * (m[k] / fmaf(sqrtf(v[k]), f.inverse_correction2, f.epsilon));
    w[k] = fmaf(w[k], f.keep_weight, -change);
  }
  tarn__quad_store(p.master, w, i, count, p.wide);
  store_value(w, p, i, count);
}

static __device__ __forceinline__ void step_quad(const float grad[TARN__QUAD], const tarn__moved &p, int64_t i,
                                                 int count, float gradient, const floats &f) {
  float w[TARN__QUAD], m[TARN__QUAD], v[TARN__QUAD];
  load_moments(m, v, p, i, count);
  move_quad(w, m, v, grad, p, i, count, gradient, f);
  store_moments(m, v, p, i, count, f);
}

// --- moments in F8: a warp has a block, of which each lane has eight neighbours, all of one block of Philox

enum { HALVES = TARN__MOMENT_BLOCK / TARN__WARP_SIZE / TARN__QUAD, WARPS = TARN__CHUNK_THREADS / TARN__WARP_SIZE };
static_assert(HALVES * TARN__QUAD == TARN__DROPOUT_BLOCK, "a lane has one block of random numbers");
static_assert(TARN__CHUNK % TARN__MOMENT_BLOCK == 0, "blocks are not divided between chunks");

static __device__ __forceinline__ uint32_t warp_largest(uint32_t x) {
  for (int lane = TARN__WARP_SIZE / 2; lane > 0; lane /= 2) {
    const uint32_t other = __shfl_xor_sync(TARN__WARP, x, lane);
    x = other > x ? other : x;
  }
  return x;
}

// Elements from i on, of which there may be none. Returns `sum` and the squares of the gradients.
static __device__ __forceinline__ double step_eight(const tarn__moved &p, int64_t i, float gradient, const floats &f,
                                                    double sum) {
  tarn__moment_block *block1 = (tarn__moment_block *)p.moment1 + i / TARN__MOMENT_BLOCK;
  tarn__moment_block *block2 = (tarn__moment_block *)p.moment2 + i / TARN__MOMENT_BLOCK;
  const int in = (int)(i % TARN__MOMENT_BLOCK);
  float m[HALVES][TARN__QUAD], v[HALVES][TARN__QUAD];
  const float old1 = block1->unit, old2 = block2->unit;
  uint32_t largest1 = 0, largest2 = 0;
  for (int h = 0; h < HALVES; h++) {
    const int64_t at = i + h * TARN__QUAD;
    const int count = tarn__quad_count(at, p.size);
    for (int k = 0; k < TARN__QUAD; k++) {
      const bool there = k < count;
      m[h][k] = there ? tarn__moment_value1(block1->codes[in + h * TARN__QUAD + k], old1) : 0.0f;
      v[h][k] = there ? tarn__moment_value2(block2->codes[in + h * TARN__QUAD + k], old2) : 0.0f;
    }
    if (count <= 0) continue;
    float w[TARN__QUAD], grad[TARN__QUAD];
    tarn__quad_gradient(grad, p, at, count);
    sum = tarn__quad_squares(grad, sum);
    move_quad(w, m[h], v[h], grad, p, at, count, gradient, f);
    for (int k = 0; k < TARN__QUAD && k < count; k++) {
      const uint32_t bits1 = tarn__moment_bits(m[h][k]) & 0x7FFFFFFFu;
      const uint32_t bits2 = tarn__moment_bits(v[h][k]) & 0x7FFFFFFFu;
      largest1 = bits1 > largest1 ? bits1 : largest1;
      largest2 = bits2 > largest2 ? bits2 : largest2;
    }
  }
  // All lanes have read the old scales before one writes the new ones.
  const float unit1 = tarn__moment_unit_of(warp_largest(largest1), TARN__MOMENT_SPAN1);
  const float unit2 = tarn__moment_unit_of(warp_largest(largest2), TARN__MOMENT_SPAN2);
  if (in == 0) block1->unit = unit1, block2->unit = unit2;
  for (int h = 0; h < HALVES; h++) {
    halves numbers;
    random_quad(&numbers, p, i + h * TARN__QUAD, f);
    for (int k = 0; k < TARN__QUAD && i + h * TARN__QUAD + k < p.size; k++) {
      block1->codes[in + h * TARN__QUAD + k] = tarn__moment_code1(m[h][k], unit1, numbers.of[k]);
      block2->codes[in + h * TARN__QUAD + k] = tarn__moment_code2(v[h][k], unit2, numbers.of[k]);
    }
  }
  return sum;
}

// A chunk from element `begin` to `end`.
static __device__ __forceinline__ double step_blocks(const tarn__moved &p, int64_t begin, int64_t end, float gradient,
                                                     const floats &f, double sum) {
  const int warp = (int)threadIdx.x / TARN__WARP_SIZE, lane = (int)threadIdx.x % TARN__WARP_SIZE;
  for (int64_t i = begin + warp * TARN__MOMENT_BLOCK; i < end; i += WARPS * TARN__MOMENT_BLOCK)
    sum = step_eight(p, i + lane * TARN__DROPOUT_BLOCK, gradient, f, sum);
  return sum;
}

// The first element of a chunk that this thread takes, and the end of the chunk.
static __device__ __forceinline__ int64_t chunk_begin(const tarn__moved &p, int64_t chunk, int64_t *end) {
  const int64_t begin = (chunk - p.first_chunk) * TARN__CHUNK;
  *end = begin + TARN__CHUNK < p.size ? begin + TARN__CHUNK : p.size;
  return begin + (int64_t)threadIdx.x * TARN__QUAD;
}

// Returns the squares of this thread's gradients.
static __device__ __forceinline__ double step_chunk(const tarn__moved &p, int64_t chunk, float gradient,
                                                    const floats &f) {
  int64_t end;
  double sum = 0.0;
  int64_t i = chunk_begin(p, chunk, &end);
  if (p.moments == TARN__MOMENTS_F8)
    return step_blocks(p, i - (int64_t)threadIdx.x * TARN__QUAD, end, gradient, f, sum);
  for (; i < end; i += TARN__CHUNK_THREADS * TARN__QUAD) {
    const int count = tarn__quad_count(i, p.size);
    float grad[TARN__QUAD];
    tarn__quad_gradient(grad, p, i, count);
    sum = tarn__quad_squares(grad, sum);
    step_quad(grad, p, i, count, gradient, f);
  }
  return sum;
}

static __global__ void __launch_bounds__(TARN__CHUNK_THREADS)
    adam_kernel(const tarn__moved_table table, const floats f, const tarn__step_numbers *numbers, int clips) {
  if (numbers && numbers->failed != 0) return;
  const tarn__moved p = *tarn__moved_at(table, blockIdx.x);
  const float gradient = clips ? (float)numbers->factor : f.gradient;
  step_chunk(p, blockIdx.x, gradient, f);
}

static tarn_status adam_step(const tarn__device *device, const tarn__param_table *table,
                             const tarn__adam_factors *factors, const tarn__step_numbers *numbers, int threads) {
  (void)device, (void)threads;
  tarn__moved_table moved;
  TARN_TRY(tarn__cuda_table_of(&moved, table));
  TARN__LAUNCH(adam_kernel, (unsigned)moved.chunks, TARN__CHUNK_THREADS, 0, tarn__cuda_stream(NULL), moved,
               floats_of(factors), numbers, (int)factors->clips);
  return TARN_STATUS_OK;
}

// --- norms and sums of gradients

static __global__ void __launch_bounds__(TARN__CHUNK_THREADS) squares_kernel(const tarn__moved_table table) {
  TARN__SHARED(double, shared);
  const tarn__moved p = *tarn__moved_at(table, blockIdx.x);
  int64_t end;
  double sum = 0.0;
  for (int64_t i = chunk_begin(p, blockIdx.x, &end); i < end; i += TARN__CHUNK_THREADS * TARN__QUAD) {
    float grad[TARN__QUAD];
    tarn__quad_gradient(grad, p, i, tarn__quad_count(i, p.size));
    sum = tarn__quad_squares(grad, sum);
  }
  sum = tarn__block_sum(sum, shared);
  if (threadIdx.x == 0) table.partial[blockIdx.x] = sum;
}

static tarn_status grad_norm(const tarn__device *device, double *norm, const tarn__param_table *table, int threads) {
  (void)device, (void)threads;
  const cudaStream_t stream = tarn__cuda_stream(NULL);
  tarn__moved_table moved;
  TARN_TRY(tarn__cuda_table_of(&moved, table));
  TARN__LAUNCH(squares_kernel, (unsigned)moved.chunks, TARN__CHUNK_THREADS, TARN__WARP_SIZE * sizeof(double), stream,
               moved);
  return tarn__cuda_total(norm, moved.partial, moved.chunks, TARN__TOTAL_ROOT, stream);
}

static __global__ void __launch_bounds__(TARN__CHUNK_THREADS) grad_sum_kernel(const tarn__moved_table table) {
  const tarn__moved p = *tarn__moved_at(table, blockIdx.x);
  if (!p.grad_sum) return;
  int64_t end;
  for (int64_t i = chunk_begin(p, blockIdx.x, &end); i < end; i += TARN__CHUNK_THREADS * TARN__QUAD) {
    const int count = tarn__quad_count(i, p.size);
    float grad[TARN__QUAD], sum[TARN__QUAD];
    tarn__quad_gradient(grad, p, i, count);
    tarn__quad_load(sum, p.grad_sum, i, count, p.wide);
    for (int k = 0; k < TARN__QUAD; k++) sum[k] += grad[k];
    tarn__quad_store(p.grad_sum, sum, i, count, p.wide);
  }
}

static tarn_status grad_sum_add(const tarn__device *device, const tarn__param_table *table, int threads) {
  (void)device, (void)threads;
  tarn__moved_table moved;
  TARN_TRY(tarn__cuda_table_of(&moved, table));
  TARN__LAUNCH(grad_sum_kernel, (unsigned)moved.chunks, TARN__CHUNK_THREADS, 0, tarn__cuda_stream(NULL), moved);
  return TARN_STATUS_OK;
}

// --- within a graph

// The gradient, which was computed just before, is read once: each chunk is squared and applied. A parameter of one
// chunk adds to *squares itself.
static __global__ void __launch_bounds__(TARN__CHUNK_THREADS)
    update_kernel(const tarn__moved p, const floats f, double *partial, double *squares) {
  TARN__SHARED(double, shared);
  const double sum = tarn__block_sum(step_chunk(p, blockIdx.x, f.gradient, f), shared);
  if (threadIdx.x != 0) return;
  if (gridDim.x == 1)
    *squares += sum;
  else
    partial[blockIdx.x] = sum;
}

static size_t update_scratch(const tarn__node *node, int threads) {
  (void)threads;
  const tarn__param *param = node->dparam[0];
  return (size_t)tarn__cuda_chunks(param->rows * param->cols) * sizeof(double);
}

static tarn_status update(const tarn__exec *exec, const tarn__node *node) {
  TARN_REQUIRE(exec->update && exec->squares, INTERNAL, "a graph with updates runs without what they need");
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  tarn__moved moved;
  tarn__cuda_moved_set(&moved, node->dparam[0]);
  const int64_t chunks = tarn__cuda_chunks(moved.size);
  double *partial = (double *)node->scratch;
  TARN__LAUNCH(update_kernel, (unsigned)chunks, TARN__CHUNK_THREADS, TARN__WARP_SIZE * sizeof(double), stream, moved,
               floats_of(exec->update), partial, exec->squares);
  if (chunks <= 1) return TARN_STATUS_OK;
  return tarn__cuda_total(exec->squares, partial, chunks, TARN__TOTAL_ADDED, stream);
}

void tarn__cuda_update_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_UPDATE].run = update;
  kernels[TARN__OP_UPDATE].scratch = update_scratch;
}

void tarn__cuda_adam_entries(tarn__device_type *type) {
  type->grad_norm = grad_norm;
  type->adam_step = adam_step;
  type->grad_sum_add = grad_sum_add;
}
