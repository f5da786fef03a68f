// Measures the peak rates of the machine: products of fp32, bf16 and int8 numbers in registers, or the memory
// bandwidth.
//   bench_peak fp32|bf16|int8|memory THREADS
// Prints {"unit", "instruction", "threads", "per_second"}: operations (a multiply-add counts two) or bytes per second.
// Compiled for the machine it is built on. The best of several short bursts counts, because time taken by other
// processes is not the machine's limit.
#include <omp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef __x86_64__
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

enum { BURSTS = 9, CHAINS = 12 };

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// A unit is one instruction of multiply-adds. Its loop runs `count` rounds of CHAINS independent instructions, as many
// as a latency of 6 cycles at two per cycle needs, and returns a value that depends on all of them.
typedef struct unit {
  const char *name, *instruction;
  float (*loop)(int64_t count);
  double operations;  // of one instruction
} unit;

// The chains are separate variables, because compilers keep an array in memory.
#define EACH(act) act(0) act(1) act(2) act(3) act(4) act(5) act(6) act(7) act(8) act(9) act(10) act(11)
#define DECLARE(i) vector s##i = START(i);
#define STEP(i)      \
  s##i = NEXT(s##i); \
  __asm__ volatile("" : "+v"(s##i));
#define ADD(i) total += TOTAL(s##i);
#define BODY(count)                       \
  EACH(DECLARE)                           \
  for (int64_t n = 0; n < (count); n++) { \
    EACH(STEP)                            \
  }                                       \
  float total = 0;                        \
  EACH(ADD)                               \
  return total;

#ifdef __AVX512F__
static float loop_fp32(int64_t count) {
  typedef __m512 vector;
  const vector a = _mm512_set1_ps(0.999f);
  const vector b = _mm512_set1_ps(1e-3f);
#define START(i) _mm512_set1_ps((float)(i))
#define NEXT(s) _mm512_fmadd_ps(s, a, b)
#define TOTAL(s) _mm512_reduce_add_ps(s)
  BODY(count)
#undef NEXT
}
static const unit fp32 = {"fp32", "vfmadd 512 bit", loop_fp32, 32};
#elif defined(__AVX2__) && defined(__FMA__)
static float loop_fp32(int64_t count) {
  typedef __m256 vector;
  const vector a = _mm256_set1_ps(0.999f);
  const vector b = _mm256_set1_ps(1e-3f);
#define START(i) _mm256_set1_ps((float)(i))
#define NEXT(s) _mm256_fmadd_ps(s, a, b)
#define TOTAL(s) _mm256_cvtss_f32(s)
  BODY(count)
#undef START
#undef NEXT
#undef TOTAL
}
static const unit fp32 = {"fp32", "vfmadd 256 bit", loop_fp32, 16};
#else
static float loop_fp32(int64_t count) {
  float sums[64];
  float total = 0;
  for (int i = 0; i < 64; i++) sums[i] = (float)i;
  for (int64_t n = 0; n < count; n++)
    for (int i = 0; i < 64; i++) sums[i] = sums[i] * 0.999f + 1e-3f;
  for (int i = 0; i < 64; i++) total += sums[i];
  return total;
}
static const unit fp32 = {"fp32", "plain C", loop_fp32, 128.0 / CHAINS};
#endif

#ifdef __AVX512BF16__
static float loop_bf16(int64_t count) {
  typedef __m512 vector;
  const __m512bh a = _mm512_cvtne2ps_pbh(_mm512_set1_ps(1e-3f), _mm512_set1_ps(1e-3f));
#define NEXT(s) _mm512_dpbf16_ps(s, a, a)
  BODY(count)
#undef NEXT
#undef START
#undef TOTAL
}
static const unit bf16 = {"bf16", "vdpbf16ps 512 bit", loop_bf16, 64};
#endif

#ifdef __AVX512VNNI__
static float loop_int8(int64_t count) {
  typedef __m512i vector;
  const vector a = _mm512_set1_epi8(1);
#undef START
#undef TOTAL
#define START(i) _mm512_set1_epi32(i)
#define NEXT(s) _mm512_dpbusd_epi32(s, a, a)
#define TOTAL(s) (float)_mm512_reduce_add_epi32(s)
  BODY(count)
}
static const unit int8 = {"int8", "vpdpbusd 512 bit", loop_int8, 128};
#endif

#if defined(__AMX_BF16__) && defined(__linux__)
#define HAS_TILES 1
// Four tiles of sums, as many chains as a latency of 52 cycles needs at 16 cycles per instruction.
static float loop_tiles(int64_t count) {
  struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
  } config = {.palette = 1};
  float sums[256];
  uint16_t ones[512];
  for (int i = 0; i < 512; i++) ones[i] = 0x3F80;
  for (int i = 0; i < 8; i++) {
    config.row_bytes[i] = 64;
    config.rows[i] = 16;
  }
  // For gcc, the following code reads eight bytes of the configuration and nothing of `ones`.
  __asm__ volatile("" ::"r"(&config), "r"(ones) : "memory");
  _tile_loadconfig(&config);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_loadd(4, ones, 64);
  _tile_loadd(5, ones, 64);
  for (int64_t n = 0; n < count * (CHAINS / 4); n++) {
    _tile_dpbf16ps(0, 4, 5);
    _tile_dpbf16ps(1, 4, 5);
    _tile_dpbf16ps(2, 4, 5);
    _tile_dpbf16ps(3, 4, 5);
  }
  _tile_stored(0, sums, 64);
  _tile_release();
  return sums[0];
}
static const unit tiles = {"bf16", "tdpbf16ps", loop_tiles, 16.0 * 16 * 32 * 2};

// The system grants tile registers on request.
static bool may_use_tiles(void) {
  enum { REQUEST = 0x1023, TILE_DATA = 18 };
  return syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
}
#endif

// Replaces a unit that the machine lacks by the one that its kernels fall back on.
static const unit *find_unit(const char *name) {
  if (strcmp(name, "fp32") == 0) return &fp32;
#ifdef HAS_TILES
  if (strcmp(name, "bf16") == 0 && may_use_tiles()) return &tiles;
#endif
#ifdef __AVX512BF16__
  if (strcmp(name, "bf16") == 0) return &bf16;
#endif
#ifdef __AVX512VNNI__
  if (strcmp(name, "int8") == 0) return &int8;
#endif
  return strcmp(name, "bf16") == 0 || strcmp(name, "int8") == 0 ? &fp32 : NULL;
}

static double measure_unit(const unit *u, int threads) {
  const int64_t count = 4000000;
  double best = 0;
  float keep = 0;
  for (int burst = 0; burst < BURSTS; burst++) {
    double start = seconds();
#pragma omp parallel num_threads(threads) reduction(+ : keep)
    keep += u->loop(count);
    double rate = (double)threads * (double)count * CHAINS * u->operations / (seconds() - start);
    if (rate > best) best = rate;
  }
  volatile float sink = keep;
  (void)sink;
  return best;
}

// a = b + s c over arrays larger than any cache; a cache line is read before it is written, so each element moves 16
// bytes.
static bool measure_memory(int threads, double *rate) {
  const int64_t count = (int64_t)1 << 24;
  const double bytes = 16.0 * (double)count;
  float *a = malloc((size_t)count * 3 * sizeof *a);
  if (!a) return false;
  float *b = a + count;
  float *c = b + count;
  *rate = 0;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t i = 0; i < count; i++) a[i] = b[i] = c[i] = (float)(i & 255);
  for (int burst = 0; burst < BURSTS; burst++) {
    double start = seconds();
#pragma omp parallel for simd num_threads(threads) schedule(static)
    for (int64_t i = 0; i < count; i++) a[i] = b[i] + 0.5f * c[i];
    double now = bytes / (seconds() - start);
    if (now > *rate) *rate = now;
  }
  volatile float sink = a[count / 2];
  (void)sink;
  free(a);
  return true;
}

int main(int argc, char **argv) {
  const char *name = argc == 3 ? argv[1] : "";
  int threads = argc == 3 ? atoi(argv[2]) : 0;
  bool memory = strcmp(name, "memory") == 0;
  const unit *u = find_unit(name);
  if ((!memory && !u) || threads < 1 || threads > 1024) {
    fprintf(stderr, "usage: bench_peak fp32|bf16|int8|memory THREADS (1 to 1024)\n");
    return 2;
  }
  double rate = 0;
  if (memory && !measure_memory(threads, &rate)) {
    fprintf(stderr, "bench_peak: out of memory\n");
    return 1;
  }
  if (!memory) rate = measure_unit(u, threads);
  printf("{\"unit\": \"%s\", \"instruction\": \"%s\", \"threads\": %d, \"per_second\": %.6g}\n", name,
         memory ? "a = b + s c" : u->instruction, threads, rate);
  return 0;
}
