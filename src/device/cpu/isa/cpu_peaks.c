// The peaks of the processor, measured in short bursts, of which the best counts: interference by other processes does
// not reduce the machine's limit.
#include <omp.h>

#include "base/clock.h"
#include "device/cpu/isa/isa.h"
#include "device/cpu/isa/peak_kernels.h"

// The least of a measurement: threads may start on one processor, and be moved apart only later.
enum { BURSTS = 6 };
static const double SECONDS = 0.06, SAMPLE_SECONDS = 0.004;

// One burst of the calling thread, and its rate. *keep is a sum of results, so that they are computed.
typedef double burst(const void *what, float *keep);

// Of threads that take turns on the processors, each seems to have one of its own in its best bursts.
static double share_of(double total, int threads) {
  const int processors = omp_get_num_procs();
  return threads > processors ? total * processors / threads : total;
}

// The sum of the threads' best rates. Each thread has its own best burst, while the others are at work too: beside
// another program two threads hardly ever run undisturbed at the same time.
static double best_of_each(burst *run, const void *what, int threads) {
  double total = 0.0;
  float keep = 0.0f;
#pragma omp parallel num_threads(threads) reduction(+ : total, keep)
  {
    double best = 0.0;
    const double begin = tarn__seconds();
    for (int number = 0; number < BURSTS || tarn__seconds() - begin < SECONDS; number++) {
      const double rate = run(what, &keep);
      if (rate > best) best = rate;
    }
    total += best;
  }
  volatile float sink = keep;
  (void)sink;
  return share_of(total, threads);
}

typedef struct products {
  tarn__peak_loop loop;
  int64_t rounds;
  double flops;  // of a round
} products;

static double multiply(const void *what, float *keep) {
  const products *p = what;
  const double start = tarn__seconds();
  *keep += p->loop(p->rounds);
  return (double)p->rounds * p->flops / (tarn__seconds() - start);
}

double tarn__cpu_flops_now(int threads) {
  const tarn__peak_kernels *kernels = TARN__TABLE_NOW(tarn__peak_kernels);
  enum { ROUNDS = 20000 };  // some hundredths of a millisecond
  // One beginning for all: what a thread waits for a processor is among the interruptions.
  const double begin = tarn__seconds();
  double total = 0.0;
  float keep = 0.0f;
#pragma omp parallel num_threads(threads) reduction(+ : total, keep)
  {
    double seconds, flops = 0.0;
    do {
      keep += kernels->f32(ROUNDS);
      flops += ROUNDS * kernels->f32_flops;
      seconds = tarn__seconds() - begin;
    } while (seconds < SAMPLE_SECONDS);
    total += flops / seconds;
  }
  volatile float sink = keep;
  (void)sink;
  return total;
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

// Each thread goes through its own part `rounds` times.
typedef struct traffic {
  float (*loop)(float *, int64_t);
  float *room;
  int64_t count, rounds;  // numbers of a part
} traffic;

// Bytes a second.
static double move(const void *what, float *keep) {
  const traffic *t = what;
  const double start = tarn__seconds();
  for (int64_t round = 0; round < t->rounds; round++) {
    *keep += t->loop(t->room + t->count * omp_get_thread_num(), t->count);
    __asm__ volatile("" ::: "memory");  // every round counts
  }
  return (double)sizeof(float) * (double)(t->count * t->rounds) / (tarn__seconds() - start);
}

// The best burst of all threads together: of memory one alone may have more than its part.
static double best_together(const traffic *t, int threads) {
  const double bytes = (double)sizeof(float) * (double)(t->count * t->rounds * threads);
  double best = 0.0;
  float keep = 0.0f;
  for (int number = 0; number < BURSTS; number++) {
    const double start = tarn__seconds();
#pragma omp parallel num_threads(threads) reduction(+ : keep)
    move(t, &keep);
    const double rate = bytes / (tarn__seconds() - start);
    if (rate > best) best = rate;
  }
  volatile float sink = keep;
  (void)sink;
  return best;
}

static double fastest(bool together, float *room, int64_t bytes, int64_t rounds, int threads) {
  const int64_t count = bytes / (int64_t)sizeof(float) / threads;
  const traffic ways[] = {{add_scaled, room, count, rounds}, {sum, room, count, rounds}};
  double best = 0.0;
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    const double rate = together ? best_together(&ways[i], threads) : best_of_each(move, &ways[i], threads);
    if (rate > best) best = rate;
  }
  return best;
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
    peaks->cached[set] = fastest(false, numbers, (int64_t)1 << (18 + 2 * set), (int64_t)1 << (7 - set), threads);
  peaks->bytes = fastest(true, numbers, largest, 1, threads);
  tarn__free(room);
  return TARN_STATUS_OK;
}

tarn_status tarn__cpu_peaks(tarn__device_peaks *peaks, int threads) {
  const tarn__peak_kernels *kernels = TARN__TABLE_NOW(tarn__peak_kernels);
  const int64_t rounds = 100000;
  peaks->flops[TARN__F32] = best_of_each(multiply, &(products){kernels->f32, rounds, kernels->f32_flops}, threads);
  peaks->flops[TARN__BF16] = best_of_each(multiply, &(products){kernels->bf16, rounds, kernels->bf16_flops}, threads);
#ifdef TARN_WITH_AMX
  if (tarn__isa_now() == TARN__ISA_AMX)
    peaks->flops[TARN__BF16] =
        best_of_each(multiply, &(products){tarn__peak_amx, rounds / 8, TARN__PEAK_AMX_FLOPS}, threads);
#endif
  return memory(peaks, threads);
}
