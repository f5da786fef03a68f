#include "device/cpu/isa/isa.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef TARN_X86
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(TARN_ARM)
#include <sys/auxv.h>
#include <sys/prctl.h>
#endif

#include "base/log.h"

static const char *const names[] = {
    [TARN__ISA_PORTABLE] = "portable", [TARN__ISA_AVX2] = "avx2",
    [TARN__ISA_AVX512] = "avx512",     [TARN__ISA_AVX512_BF16] = "avx512_bf16",
    [TARN__ISA_AMX] = "amx",           [TARN__ISA_NEON] = "neon",
    [TARN__ISA_NEON_DOT] = "neon_dot", [TARN__ISA_NEON_BF16] = "neon_bf16",
    [TARN__ISA_SVE_256] = "sve_256",   [TARN__ISA_SVE_512] = "sve_512",
};
enum { ISA_COUNT = sizeof names / sizeof names[0] };

// Those of this kind of processor, besides portable, and what TARN_ISA may name.
#if defined(TARN_X86)
enum { FIRST = TARN__ISA_AVX2, LAST = TARN__ISA_AMX };
#define WORDS "portable, avx2, avx512, avx512_bf16, amx"
#elif defined(TARN_ARM)
enum { FIRST = TARN__ISA_NEON, LAST = TARN__ISA_SVE_512 };
#define WORDS "portable, neon, neon_dot, neon_bf16, sve_256, sve_512"
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
#ifdef TARN_WITH_SVE_256
    [TARN__ISA_SVE_256] = true,
#endif
#ifdef TARN_WITH_SVE_512
    [TARN__ISA_SVE_512] = true,
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

#ifdef TARN_ARM
// The bits of SVE's registers, which the system sets for this thread and those that it begins; 0: there are none.
static int sve_bits(void) {
  enum { SVE = 1 << 22, GET_LENGTH = 51, BYTES = 0xFFFF };
  if (!(getauxval(AT_HWCAP) & SVE)) return 0;
  const int answer = prctl(GET_LENGTH);
  return answer < 0 ? 0 : 8 * (answer & BYTES);
}
#endif

// The sets that this machine runs, bit by bit. On x86-64 the compiler's run-time check also asks the operating system
// which registers it saves (XCR0). On ARM the system says what it found; the numbers are those of Linux's asm/hwcap.h
// and linux/prctl.h, of which older headers lack some.
static unsigned detect(void) {
#ifdef TARN_X86
  unsigned sets = 0;
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi2")) return sets;
  sets |= 1u << TARN__ISA_AVX2;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl"))
    return sets;
  sets |= 1u << TARN__ISA_AVX512;
  if (!__builtin_cpu_supports("avx512bf16") || !__builtin_cpu_supports("avx512vnni")) return sets;
  sets |= 1u << TARN__ISA_AVX512_BF16;
  return may_use_tiles() ? sets | 1u << TARN__ISA_AMX : sets;
#elif defined(TARN_ARM)
  enum { DOT = 1 << 20, I8MM = 1 << 13, BF16 = 1 << 14, SVE_I8MM = 1 << 9, SVE_BF16 = 1 << 12 };
  const unsigned long second = getauxval(AT_HWCAP2);
  unsigned sets = 1u << TARN__ISA_NEON;
  if (getauxval(AT_HWCAP) & DOT) {
    sets |= 1u << TARN__ISA_NEON_DOT;
    if ((second & I8MM) && (second & BF16)) sets |= 1u << TARN__ISA_NEON_BF16;
  }
  if ((sets >> TARN__ISA_NEON_BF16 & 1) && (second & SVE_I8MM) && (second & SVE_BF16) && sve_bits() == 256)
    sets |= 1u << TARN__ISA_SVE_256;
  return sve_bits() == 512 ? sets | 1u << TARN__ISA_SVE_512 : sets;
#else
  return 0;
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

// Kernels of SVE have run under an emulator only, and no figure says that they are faster: TARN_ISA must name them.
static bool only_by_name(int isa) { return isa == TARN__ISA_SVE_256 || isa == TARN__ISA_SVE_512; }

#ifdef TARN_ARM
// Why a set of SVE that was asked for is not used.
static void warn_of_sve(const char *wanted, int isa) {
  const int needed = isa == TARN__ISA_SVE_256 ? 256 : 512, bits = sve_bits();
  char here[64] = "this processor lacks BF16 or I8MM";
  if (!compiled[isa])
    snprintf(here, sizeof here, "this build has no kernels of SVE");
  else if (bits == 0)
    snprintf(here, sizeof here, "this processor has no SVE");
  else if (bits != needed)
    snprintf(here, sizeof here, "here they have %d", bits);
  tarn__log(TARN_LOG_WARNING, "TARN_ISA=%s needs registers of SVE of %d bits, and %s; using %s", wanted, needed, here,
            names[chosen]);
}
#endif

static void choose(void) {
  const char *wanted = getenv("TARN_ISA");
  const bool asked = wanted != NULL && *wanted != '\0';
  const int most = asked ? named(wanted) : ISA_COUNT;
  const unsigned sets = detect();
  chosen = TARN__ISA_PORTABLE;
  for (int isa = FIRST; isa <= LAST && isa <= most; isa++)
    if (compiled[isa] && (sets >> isa & 1) && (!only_by_name(isa) || isa == most)) chosen = (tarn__isa)isa;
  if (asked && most == ISA_COUNT)
    tarn__log(TARN_LOG_WARNING, "TARN_ISA=%s is none of " WORDS "; using %s", wanted, names[chosen]);
#ifdef TARN_ARM
  if (only_by_name(most) && (int)chosen != most) warn_of_sve(wanted, most);
#endif
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
