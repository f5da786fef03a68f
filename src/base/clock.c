#include "base/clock.h"

#include <time.h>

static double read_clock(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

double tarn__seconds(void) { return read_clock(CLOCK_MONOTONIC); }

double tarn__cpu_seconds(void) { return read_clock(CLOCK_PROCESS_CPUTIME_ID); }
