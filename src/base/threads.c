#include "base/threads.h"

#include <omp.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

static int pool_size;

void tarn__threads_set(int threads) {
  pool_size = threads > 0 ? threads : omp_get_num_procs();
  omp_set_dynamic(0);
  omp_set_num_threads(pool_size);
  tarn__threads_flush_denormals();
}

int tarn__threads(void) {
  if (pool_size == 0) tarn__threads_set(0);
  return pool_size;
}

void tarn__threads_flush_denormals(void) {
#if defined(__x86_64__)
#pragma omp parallel num_threads(tarn__threads())
  _mm_setcsr(_mm_getcsr() | 0x8040u);  // flush-to-zero and denormals-are-zero
#endif
}
