#include "base/threads.h"

#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

static int pool_size;

static void flush_denormals(void) {
#if defined(__x86_64__)
#pragma omp parallel num_threads(pool_size)
  _mm_setcsr(_mm_getcsr() | 0x8040u);  // flush-to-zero and denormals-are-zero
#endif
}

void tarn__threads_set(int threads) {
  pool_size = threads > 0 ? threads : omp_get_num_procs();
  omp_set_dynamic(0);
  omp_set_num_threads(pool_size);
  flush_denormals();
}

int tarn__threads(void) {
  if (pool_size == 0) tarn__threads_set(0);
  return pool_size;
}

void tarn__failure_note(tarn__failure *failure, tarn_status status) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  if (status == TARN_STATUS_OK) return;
  pthread_mutex_lock(&mutex);
  if (failure->status == TARN_STATUS_OK) {
    failure->status = status;
    snprintf(failure->line, sizeof failure->line, "%s", tarn_error_message());
  }
  pthread_mutex_unlock(&mutex);
}

tarn_status tarn__failure_raise(const tarn__failure *failure) {
  return failure->status == TARN_STATUS_OK ? TARN_STATUS_OK : tarn__fail(failure->status, "%s", failure->line);
}
