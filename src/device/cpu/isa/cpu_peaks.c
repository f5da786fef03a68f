// The peaks of the processor, measured in short bursts, of which the best counts: interference by other processes does
// not reduce the machine's limit.
#include "base/clock.h"
#include "device/cpu/isa/isa.h"
#include "device/cpu/isa/peak_kernels.h"

// Minimum number of bursts, and 60 ms: threads may start on one processor and be moved apart only then.
enum { BURSTS = 6 };

static double products(tarn__peak_loop loop, int64_t rounds, double flops, int threads) {
  double best = 0.0;
  float keep = 0.0f;
  const double begin = tarn__seconds();
  for (int burst = 0; burst < BURSTS || tarn__seconds() - begin < 0.06; burst++) {
    const double start = tarn__seconds();
#pragma omp parallel num_threads(threads) reduction(+ : keep)
    keep += loop(rounds);
    const double rate = (double)threads * (double)rounds * flops / (tarn__seconds() - start);
    if (rate > best) best = rate;
  }
  volatile float sink = keep;
  (void)sink;
  return best;
}

// a = b + s c over three arrays: two numbers are read and one is written.
static float add_scaled(float *part, int64_t count) {
  const int64_t third = count / 3;
  float *a = part, *b = a + third, *c = b + third;
#pragma omp simd
  for (int64_t i = 0; i < third; i++) a[i] = b[i] + 0.5f * c[i];
  return 0;
}

// A sum: all numbers are read. Faster than the above where a cache line is read before it is written.
static float sum(float *part, int64_t count) {
  float total = 0;
#pragma omp simd reduction(+ : total)
  for (int64_t i = 0; i < count; i++) total += part[i];
  return total;
}

// Bytes a second of a loop over `bytes` bytes in all, of which every thread goes through its own part `rounds` times.
static double traffic(float (*loop)(float *, int64_t), float *room, int64_t bytes, int64_t rounds, int threads) {
  const int64_t count = bytes / (int64_t)sizeof(float) / threads;
  double best = 0.0;
  float keep = 0.0f;
  for (int burst = 0; burst < BURSTS; burst++) {
    const double start = tarn__seconds();
#pragma omp parallel for num_threads(threads) schedule(static, 1) reduction(+ : keep)
    for (int thread = 0; thread < threads; thread++)
      for (int64_t round = 0; round < rounds; round++) {
        keep += loop(room + count * thread, count);
        __asm__ volatile("" ::: "memory");  // every round counts
      }
    const double rate = (double)sizeof(float) * (double)(count * threads * rounds) / (tarn__seconds() - start);
    if (rate > best) best = rate;
  }
  volatile float sink = keep;
  (void)sink;
  return best;
}

static double fastest(float *room, int64_t bytes, int64_t rounds, int threads) {
  const double writing = traffic(add_scaled, room, bytes, rounds, threads);
  const double reading = traffic(sum, room, bytes, rounds, threads);
  return reading > writing ? reading : writing;
}

// Traffic of working sets that fit into caches, and of one larger than those of most machines.
static tarn_status memory(tarn__device_peaks *peaks, int threads) {
  const int64_t largest = (int64_t)3 << 26;
  void *room;
  TARN_TRY(tarn__alloc(&room, TARN__MEMORY_OTHER, (size_t)largest, 1));
  float *numbers = room;
  // Pages that were never written all map to the same one, which fits in a cache.
#pragma omp parallel for simd num_threads(threads) schedule(static)
  for (int64_t i = 0; i < largest / (int64_t)sizeof(float); i++) numbers[i] = 1.0f;
  for (int set = 0; set < TARN__PEAK_SETS; set++)
    peaks->cached[set] = fastest(numbers, (int64_t)1 << (18 + 2 * set), (int64_t)1 << (7 - set), threads);
  peaks->bytes = fastest(numbers, largest, 1, threads);
  tarn__free(room);
  return TARN_STATUS_OK;
}

tarn_status tarn__cpu_peaks(tarn__device_peaks *peaks, int threads) {
  const tarn__peak_kernels *kernels = TARN__TABLE_NOW(tarn__peak_kernels);
  const int64_t rounds = 100000;
  peaks->flops[TARN__F32] = products(kernels->f32, rounds, kernels->f32_flops, threads);
  peaks->flops[TARN__BF16] = products(kernels->bf16, rounds, kernels->bf16_flops, threads);
#ifdef TARN_WITH_AMX
  if (tarn__isa_now() == TARN__ISA_AMX)
    peaks->flops[TARN__BF16] = products(tarn__peak_amx, rounds / 8, TARN__PEAK_AMX_FLOPS, threads);
#endif
  return memory(peaks, threads);
}
