// How many of its rounds a long test does: all of them, or a sample (TARN_SAMPLE) in the short build of `./run test
// --quick`, and a sample of half that size under sanitizers, which see nothing new in the same code with other numbers.
#ifndef SAMPLE_STEP_H
#define SAMPLE_STEP_H

#include <stdlib.h>

// From one round to the next: 1, or `step` times the number in TARN_SAMPLE.
static inline int sample_step(int step) {
  const char *sample = getenv("TARN_SAMPLE");
  return sample ? step * atoi(sample) : 1;
}

#endif
