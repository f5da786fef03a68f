#include "device/cpu/isa/isa.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#ifdef TARN_X86
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(TARN_ARM)
#include <sys/auxv.h>
#endif

#include "base/log.h"

static const char *const names[] = {
    [TARN__ISA_PORTABLE] = "portable", [TARN__ISA_AVX2] = "avx2",
    [TARN__ISA_AVX512] = "avx512",     [TARN__ISA_AVX512_BF16] = "avx512_bf16",
    [TARN__ISA_AMX] = "amx",           [TARN__ISA_NEON] = "neon",
    [TARN__ISA_NEON_DOT] = "neon_dot", [TARN__ISA_NEON_BF16] = "neon_bf16",
};
enum { ISA_COUNT = sizeof names / sizeof names[0] };

// Those of this kind of processor, besides portable, and what TARN_ISA may name.
#if defined(TARN_X86)
enum { FIRST = TARN__ISA_AVX2, LAST = TARN__ISA_AMX };
#define WORDS "portable, avx2, avx512, avx512_bf16, amx"
#elif defined(TARN_ARM)
enum { FIRST = TARN__ISA_NEON, LAST = TARN__ISA_NEON_BF16 };
#define WORDS "portable, neon, neon_dot, neon_bf16"
#else
enum { FIRST = ISA_COUNT, LAST = 0 };
#define WORDS "portable"
#endif

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
#ifdef TARN_WITH_NEON
    [TARN__ISA_NEON] = true,
#endif
#ifdef TARN_WITH_NEON_DOT
    [TARN__ISA_NEON_DOT] = true,
#endif
#ifdef TARN_WITH_NEON_BF16
    [TARN__ISA_NEON_BF16] = true,
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

// On x86-64 the compiler's run-time check also asks the operating system which registers it saves (XCR0). On ARM the
// system says what it found; the numbers are those of Linux's asm/hwcap.h, of which older headers lack some.
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
#elif defined(TARN_ARM)
  enum { DOT = 1 << 20, I8MM = 1 << 13, BF16 = 1 << 14 };
  if (!(getauxval(AT_HWCAP) & DOT)) return TARN__ISA_NEON;
  const unsigned long second = getauxval(AT_HWCAP2);
  return (second & I8MM) && (second & BF16) ? TARN__ISA_NEON_BF16 : TARN__ISA_NEON_DOT;
#else
  return TARN__ISA_PORTABLE;
#endif
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static tarn__isa chosen;

// The set of this name among those of this kind of processor; ISA_COUNT: none.
static int named(const char *name) {
  if (strcmp(name, names[TARN__ISA_PORTABLE]) == 0) return TARN__ISA_PORTABLE;
  for (int isa = FIRST; isa <= LAST; isa++)
    if (strcmp(name, names[isa]) == 0) return isa;
  return ISA_COUNT;
}

static void choose(void) {
  chosen = detect();
  const char *wanted = getenv("TARN_ISA");
  const bool asked = wanted != NULL && *wanted != '\0';
  const int most = asked ? named(wanted) : ISA_COUNT;
  if (most < (int)chosen) chosen = (tarn__isa)most;
  while (!compiled[chosen]) chosen--;
  if (asked && most == ISA_COUNT)
    tarn__log(TARN_LOG_WARNING, "TARN_ISA=%s is none of " WORDS "; using %s", wanted, names[chosen]);
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
