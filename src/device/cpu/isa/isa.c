#include "device/cpu/isa/isa.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#ifdef TARN_X86
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "base/log.h"

static const char *const names[] = {"portable", "avx2", "avx512", "avx512_bf16", "amx"};
enum { ISA_COUNT = sizeof names / sizeof names[0] };

// Whether kernels were compiled for an instruction set: test builds omit some (TARN_KERNELS of CMake).
static const bool compiled[ISA_COUNT] = {
    [TARN__ISA_PORTABLE] = true,
#ifdef TARN_WITH_AVX2
    [TARN__ISA_AVX2] = true,
#endif
#ifdef TARN_WITH_AVX512
    [TARN__ISA_AVX512] = true,
#endif
#ifdef TARN_WITH_AVX512_BF16
    [TARN__ISA_AVX512_BF16] = true,
#endif
#ifdef TARN_WITH_AMX
    [TARN__ISA_AMX] = true,
#endif
};

#ifdef TARN_X86
// Tile registers are large, so Linux saves them only for processes that request it (from 5.16 on); the request fails on
// other systems.
static bool may_use_tiles(void) {
  enum { REQUEST = 0x1023, TILE_DATA = 18, TILE = 1 << 24, BF16 = 1 << 22 };
  unsigned a, b, c, d = 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d & TILE) || !(d & BF16)) return false;
#if defined(__linux__)
  return syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
#else
  return false;
#endif
}
#endif

// The compiler's run-time check also asks the operating system which registers it saves (XCR0).
static tarn__isa detect(void) {
#ifdef TARN_X86
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi2"))
    return TARN__ISA_PORTABLE;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl"))
    return TARN__ISA_AVX2;
  if (!__builtin_cpu_supports("avx512bf16") || !__builtin_cpu_supports("avx512vnni")) return TARN__ISA_AVX512;
  return may_use_tiles() ? TARN__ISA_AMX : TARN__ISA_AVX512_BF16;
#else
  return TARN__ISA_PORTABLE;
#endif
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static tarn__isa chosen;

static void choose(void) {
  chosen = detect();
  const char *wanted = getenv("TARN_ISA");
  int named = ISA_COUNT;
  if (wanted != NULL && *wanted != '\0') {
    named = 0;
    while (named < ISA_COUNT && strcmp(wanted, names[named]) != 0) named++;
    if (named < (int)chosen) chosen = (tarn__isa)named;
  }
  while (!compiled[chosen]) chosen--;
  if (wanted != NULL && *wanted != '\0' && named == ISA_COUNT)
    tarn__log(TARN_LOG_WARNING, "TARN_ISA=%s is none of portable, avx2, avx512, avx512_bf16, amx; using %s", wanted,
              names[chosen]);
}

tarn__isa tarn__isa_now(void) {
  pthread_once(&once, choose);
  return chosen;
}

bool tarn__isa_int8_tiles(void) {
#ifdef TARN_X86
  enum { INT8 = 1 << 25 };
  unsigned a, b, c, d = 0;
  return tarn__isa_now() == TARN__ISA_AMX && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & INT8);
#else
  return false;
#endif
}

const char *tarn__isa_name(void) { return names[tarn__isa_now()]; }
