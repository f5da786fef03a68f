#include "base/threads.h"

#include <limits.h>
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "base/control_groups.h"
#include "base/log.h"
#include "base/memory.h"

static atomic_int pool_size;
static _Thread_local int pooled = 1;  // threads in the OpenMP pool of the calling one, itself included

#if defined(__aarch64__)
// Sets bit FZ of the control register of floating-point numbers, for what is read and what is written.
static void flush_thread(void) {
  uint64_t control;
  __asm__ volatile("mrs %0, fpcr" : "=r"(control));
  __asm__ volatile("msr fpcr, %0" : : "r"(control | UINT64_C(1) << 24));
}
#endif

static void flush_denormals(int threads) {
#if defined(__x86_64__)
  enum { FLUSH = 0x8040 };  // flush-to-zero and denormals-are-zero
  // GCC's OpenMP leaves the register of each thread alone. LLVM's gives all threads of a region the caller's value at
  // its beginning (KMP_INHERIT_FP_CONTROL), and reverts changes made within.
  _mm_setcsr(_mm_getcsr() | FLUSH);
#pragma omp parallel num_threads(threads)
  _mm_setcsr(_mm_getcsr() | FLUSH);
#elif defined(__aarch64__)
  flush_thread();
#pragma omp parallel num_threads(threads)
  flush_thread();
#else
  (void)threads;
#endif
}

// Of OMP_STACKSIZE or GOMP_STACKSIZE: a number of kilobytes, or followed by B, K, M or G; 0: the system's default.
static size_t stack_bytes(void) {
  static const char units[] = "BKMG";
  const char *text = getenv("OMP_STACKSIZE");
  char *end;
  if (!text) text = getenv("GOMP_STACKSIZE");
  if (!text) return 0;
  const unsigned long long number = strtoull(text, &end, 10);
  end += strspn(end, " \t");
  const char letter = *end >= 'a' && *end <= 'z' ? (char)(*end - 'a' + 'A') : *end;
  const char *unit = letter ? strchr(units, letter) : units + 1;
  const int shift = unit ? 10 * (int)(unit - units) : 0;
  return unit && number <= (SIZE_MAX >> shift) ? (size_t)number << shift : 0;
}

static void *wait_for(void *lock) {
  pthread_mutex_lock(lock);
  pthread_mutex_unlock(lock);
  return NULL;
}

int tarn__threads_startable(int count) {
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_attr_t attributes;
  void *memory;
  int started = 0;
  if (count <= 0 || tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)count, sizeof(pthread_t)) != TARN_STATUS_OK)
    return 0;
  pthread_t *threads = memory;
  if (pthread_attr_init(&attributes) == 0) {
    const size_t bytes = stack_bytes();
    if (bytes > 0) (void)pthread_attr_setstacksize(&attributes, bytes);  // OpenMP refuses one that is too small
    pthread_mutex_lock(&lock);
    while (started < count && pthread_create(&threads[started], &attributes, wait_for, &lock) == 0) started++;
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
    pthread_attr_destroy(&attributes);
  }
  pthread_mutex_destroy(&lock);
  tarn__free(threads);
  return started;
}

// How many of the startable threads are used: one stays free, for example for a loader of batches, and if the limit on
// the address space prevents more, most of these addresses are left for the work.
static int share_of(int startable) {
  enum { WORK = 4 };
  struct rlimit addresses;
  const bool limited = getrlimit(RLIMIT_AS, &addresses) == 0 && addresses.rlim_cur != RLIM_INFINITY;
  return startable <= 1 ? 0 : limited ? startable / WORK : startable - 1;
}

// As many of the threads as possible. An existing pool needs only the missing ones.
static int threads_to_be_had(int threads) {
  if (threads <= pooled) return threads;
  const int lacking = threads - pooled, started = tarn__threads_startable(lacking + 1);
  if (started > lacking) return threads;
  const int had = pooled + share_of(started);
  tarn__log(TARN_LOG_WARNING,
            "%d of %d threads are used, more cannot be started (limits on processes or memory: ulimit -u, ulimit -v); "
            "last bits of a training can differ from those of %d threads",
            had, threads, threads);
  return had;
}

// Processors that this process may use: of its affinity mask and, in a container, of its quota, beyond which the kernel
// halts all threads for the rest of each period.
static int processors(void) {
  const int all = omp_get_num_procs(), quota = tarn__groups_processors(&tarn__group_files_now);
  return quota > 0 && quota < all ? quota : all;
}

int tarn__threads_set(int threads) {
  const int had = threads_to_be_had(threads > 0 ? threads : processors());
  atomic_store(&pool_size, had);
  pooled = had;
  omp_set_dynamic(0);
  omp_set_num_threads(had);
  flush_denormals(had);
  return had;
}

int tarn__threads(void) {
  const int size = atomic_load(&pool_size);
  return size > 0 ? size : tarn__threads_set(0);
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
