// The thread pool, which is OpenMP's.
#ifndef TARN_BASE_THREADS_H
#define TARN_BASE_THREADS_H

#include "base/status.h"

// Sets the number of threads for everything that follows; 0 means one per core that this process may use, by
// its affinity and by the CPU quota of its control group (a container's --cpus), rounded down. Denormal
// numbers are flushed to zero on all threads (x86-64 and 64-bit ARM): they are irrelevant, and cost hundreds of cycles
// on the former.
//
// OpenMP ends the program if it cannot start a thread (limits on processes or memory: ulimit -u, -v). So it is first
// tested whether the threads can be started, plus one for callers that start one outside of the pool; if not, as many
// as possible are used, with a warning.
// Returns their number. The setting is process-wide, so code that shares it with others (several trainings on separate
// threads) keeps the returned value; each computing thread has its own pool.
int tarn__threads_set(int threads);
int tarn__threads(void);

// How many of `count` threads with stacks of OpenMP's size this process can start now, to run at the same time.
int tarn__threads_startable(int count);

// A failure on any thread of the pool, to be raised on the caller's, because messages are kept per thread. Start it as
// {0}; note every status immediately on the thread that got it (the first failure stays); raise it after the parallel
// region.
typedef struct tarn__failure {
  tarn_status status;
  char line[1024];
} tarn__failure;
void tarn__failure_note(tarn__failure *failure, tarn_status status);
tarn_status tarn__failure_raise(const tarn__failure *failure) TARN_CHECKED;

#endif
