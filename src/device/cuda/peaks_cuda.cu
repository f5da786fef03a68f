// The peak rates of a card, as its products and copies reach them.
#include "device/cuda/cuda_device.h"
#include "device/cuda/product.h"

#if !defined(TARN_CUDA_HOST)

enum { SIDE = 4096, WARM = 3, RUNS = 10 };
static const size_t PIECE = (size_t)128 << 20;  // more than caches hold

// Random signs and mantissas, of bf16 and of fp32: equal numbers would need less power, and cards are bound by it.
static __global__ void random_kernel(unsigned *to, size_t n) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned counter = (unsigned)i * 2654435761u, bits = (counter ^ counter >> 15) * 2246822519u;
  if (i < n) to[i] = ((bits ^ bits >> 13) & 0x807F807Fu) | 0x3F003F00u;
}

// Two thirds of its traffic are reads.
static __global__ void triad_kernel(float4 *c, const float4 *a, const float4 *b, size_t n) {
  const size_t step = (size_t)gridDim.x * blockDim.x;
  for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
    const float4 x = a[i], y = b[i];
    c[i] = make_float4(x.x + 3.0f * y.x, x.y + 3.0f * y.y, x.z + 3.0f * y.z, x.w + 3.0f * y.w);
  }
}

typedef struct measurement {
  char *a, *b, *c;
  cudaStream_t stream;
  cudaEvent_t begin, end;
} measurement;

static tarn_status product(const measurement *m, tarn__dtype dtype) {
  tarn__product p = {};
  p.m = p.n = p.k = p.lda = p.ldb = p.ldc = SIDE;
  p.a = m->a;
  p.b = m->b;
  p.c = m->c;
  p.transpose_b = true;
  p.dtype = p.out = dtype;
  p.alpha = 1.0f;
  p.batch = 1;
  return tarn__cuda_product(&p, m->stream);
}

static tarn_status triad(const measurement *m, tarn__dtype) {
  TARN__LAUNCH(triad_kernel, (unsigned)tarn__cuda_processors() * 16, 512, 0, m->stream, (float4 *)m->c,
               (const float4 *)m->a, (const float4 *)m->b, PIECE / sizeof(float4));
  return TARN_STATUS_OK;
}

// *rate: runs per second.
static tarn_status measure(double *rate, const measurement *m, tarn_status (*work)(const measurement *, tarn__dtype),
                           tarn__dtype dtype) {
  float milliseconds = 0.0f;
  for (int i = 0; i < WARM; i++) TARN_TRY(work(m, dtype));
  TARN__CUDA(cudaEventRecord(m->begin, m->stream), "measuring");
  for (int i = 0; i < RUNS; i++) TARN_TRY(work(m, dtype));
  TARN__CUDA(cudaEventRecord(m->end, m->stream), "measuring");
  TARN__CUDA(cudaEventSynchronize(m->end), "measuring");
  TARN__CUDA(cudaEventElapsedTime(&milliseconds, m->begin, m->end), "measuring");
  *rate = milliseconds > 0.0f ? 1e3 * (double)RUNS / (double)milliseconds : 0.0;
  return TARN_STATUS_OK;
}

static tarn_status measure_all(tarn__device_peaks *peaks, measurement *m) {
  const double flops = 2.0 * (double)SIDE * (double)SIDE * (double)SIDE;
  double rate = 0.0;
  TARN__CUDA(cudaMalloc((void **)&m->a, 3 * PIECE), "allocating memory to measure with");
  TARN__CUDA(cudaEventCreate(&m->begin), "measuring");
  TARN__CUDA(cudaEventCreate(&m->end), "measuring");
  TARN__LAUNCH(random_kernel, tarn__blocks(3 * PIECE / 4, 256), 256, 0, m->stream, (unsigned *)m->a, 3 * PIECE / 4);
  m->b = m->a + PIECE;
  m->c = m->b + PIECE;
  TARN_TRY(measure(&rate, m, product, TARN__BF16));
  peaks->flops[TARN__BF16] = flops * rate;
  TARN_TRY(measure(&rate, m, product, TARN__F32));
  peaks->flops[TARN__F32] = flops * rate;
  TARN_TRY(measure(&rate, m, triad, TARN__F32));
  peaks->bytes = 3.0 * (double)PIECE * rate;
  return TARN_STATUS_OK;
}

static tarn_status peaks(const tarn__device *device, tarn__device_peaks *peaks, int threads) {
  (void)device, (void)threads;
  measurement m = {};
  *peaks = {};
  m.stream = tarn__cuda_stream(NULL);
  const tarn_status status = measure_all(peaks, &m);
  if (m.begin) cudaEventDestroy(m.begin);
  if (m.end) cudaEventDestroy(m.end);
  cudaFree(m.a);
  return status;
}

#else

// What the host computes says nothing about a card.
static tarn_status peaks(const tarn__device *device, tarn__device_peaks *peaks, int threads) {
  (void)device, (void)threads;
  *peaks = {};
  return TARN_STATUS_OK;
}

#endif

void tarn__cuda_peaks_entries(tarn__device_type *type) { type->peaks = peaks; }
