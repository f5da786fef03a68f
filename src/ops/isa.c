#include "ops/isa.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

static const char *const names[] = {"portable", "avx2", "avx512", "avx512_bf16"};
enum { ISA_COUNT = sizeof names / sizeof names[0] };

// The compiler's run-time check also asks the operating system which registers it saves (XCR0).
static tarn__isa detect(void) {
#ifdef TARN_X86
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi2"))
    return TARN__ISA_PORTABLE;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl"))
    return TARN__ISA_AVX2;
  return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vnni") ? TARN__ISA_AVX512_BF16
                                                                                      : TARN__ISA_AVX512;
#else
  return TARN__ISA_PORTABLE;
#endif
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static tarn__isa chosen;

static void choose(void) {
  chosen = detect();
  const char *wanted = getenv("TARN_ISA");
  if (wanted == NULL || *wanted == '\0') return;
  for (int i = 0; i < ISA_COUNT; i++) {
    if (strcmp(wanted, names[i]) != 0) continue;
    if ((tarn__isa)i < chosen) chosen = (tarn__isa)i;
    return;
  }
  tarn__log(TARN_LOG_WARNING, "TARN_ISA=%s is none of portable, avx2, avx512, avx512_bf16; using %s", wanted,
            names[chosen]);
}

tarn__isa tarn__isa_now(void) {
  pthread_once(&once, choose);
  return chosen;
}

const char *tarn__isa_name(void) { return names[tarn__isa_now()]; }
