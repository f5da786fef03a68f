// The one pool of threads, which is that of OpenMP.
#ifndef TARN_BASE_THREADS_H
#define TARN_BASE_THREADS_H

#include "base/status.h"

// Sets the number of threads for everything that follows; 0 means one a core that this process may use. Denormal
// numbers are flushed to zero on all of them (x86): they cost hundreds of cycles and carry nothing.
//
// OpenMP ends the program where it cannot start a thread (limits on processes or memory: ulimit -u, -v). So it is tried
// first whether they can be had, and one more for those who start one beside the pool; where they cannot, there are as
// many as there can be, and a warning says how many.
// Returns how many there are. The number is the process's, so whoever shares it with others (several trainings on
// threads of their own) keeps what is returned; each thread that computes has a pool of its own.
int tarn__threads_set(int threads);
int tarn__threads(void);

// How many of `count` threads with stacks of OpenMP's size this process can start now, to run at the same time.
int tarn__threads_startable(int count);

// A failure on any thread of the pool, to be raised on the caller's, because messages are kept per thread. Start it as
// {0}; note every status right after it came, on the thread that got it (the first failure stays); raise it behind the
// parallel region.
typedef struct tarn__failure {
  tarn_status status;
  char line[1024];
} tarn__failure;
void tarn__failure_note(tarn__failure *failure, tarn_status status);
tarn_status tarn__failure_raise(const tarn__failure *failure) TARN_CHECKED;

#endif
