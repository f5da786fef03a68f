// Sums of the gradients of scores by distance, for one head of one sequence: the basis of the gradient of a table of
// biases.
//
// Scores come in registers, whose lanes are neighbouring queries of one key, or neighbouring keys of one query: they
// have LANES neighbouring distances n .. n + LANES - 1, and the register of the next key has the same except for one.
// If all were added to one row, each addition would read most of what the previous one wrote, and wait for it. So there
// are LANES rows, and registers with n mod LANES = r are added to row r, where they never partially overlap.
#ifndef TARN_DEVICE_CPU_ATTENTION_ATTENTION_SUMS_CPU_H
#define TARN_DEVICE_CPU_ATTENTION_ATTENTION_SUMS_CPU_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "device/cpu/isa/vec_cpu.h"

typedef struct tarn__attention_sums {
  float *rows;           // [LANES][slots][LANES]; slot q of row r has the distances from (low + q) LANES + r on
  int64_t reach;         // distances from -reach to reach are distinguished
  int64_t low, slots;    // low: of the first slot
  tarn__vec below, far;  // registers entirely below -reach or above reach
} tarn__attention_sums;

static inline int64_t tarn__attention_slots(int64_t reach) { return 2 * (reach / TARN__VEC_LANES) + 3; }

// Floats of scratch: the rows, and one more for their total.
static inline int64_t tarn__attention_sums_floats(int64_t reach) {
  return ((int64_t)TARN__VEC_LANES * TARN__VEC_LANES + TARN__VEC_LANES) * (tarn__attention_slots(reach) + 1);
}

static inline void tarn__attention_sums_begin(tarn__attention_sums *sums, float *memory, int64_t reach) {
  const int64_t slots = tarn__attention_slots(reach);
  *sums = (tarn__attention_sums){.rows = memory, .reach = reach, .low = -(reach / TARN__VEC_LANES + 2), .slots = slots};
  memset(memory, 0, (size_t)(slots * TARN__VEC_LANES * TARN__VEC_LANES) * sizeof *memory);
}

// Adds a register whose first lane has the distance n.
TARN__VEC_INLINE void tarn__attention_sums_add(tarn__attention_sums *sums, int64_t n, tarn__vec x) {
  if (n > sums->reach) {
    sums->far += x;
  } else if (n + TARN__VEC_LANES - 1 < -sums->reach) {
    sums->below += x;
  } else {
    const int64_t up = n - sums->low * TARN__VEC_LANES;  // not negative
    float *at = sums->rows + (up % TARN__VEC_LANES * sums->slots + up / TARN__VEC_LANES) * TARN__VEC_LANES;
    tarn__vec_store(at, tarn__vec_load(at) + x);
  }
}

// out[reach + c] = factor * the sum for distance sign * c, c = -reach .. reach; larger distances count as reach.
static inline void tarn__attention_sums_end(const tarn__attention_sums *sums, float *out, float factor, int sign) {
  const int64_t lanes = TARN__VEC_LANES, slots = sums->slots, floats = (slots + 1) * lanes;
  float *total = sums->rows + slots * lanes * lanes;
  memset(total, 0, (size_t)floats * sizeof *total);
  for (int64_t r = 0; r < lanes; r++)
    for (int64_t q = 0; q < slots; q++) {
      float *at = total + q * lanes + r;
      tarn__vec_store(at, tarn__vec_load(at) + tarn__vec_load(sums->rows + (r * slots + q) * lanes));
    }
  const int64_t reach = sums->reach, zero = -sums->low * lanes;  // the index of distance 0
  float below = 0.0f, far = 0.0f;
  for (int64_t l = 0; l < lanes; l++) below += sums->below[l], far += sums->far[l];
  for (int64_t n = 0; n < zero - reach; n++) below += total[n];
  for (int64_t n = zero + reach + 1; n < floats; n++) far += total[n];
  total[zero - reach] += below;
  total[zero + reach] += far;
  for (int64_t c = -reach; c <= reach; c++) out[reach + c] = factor * total[zero + sign * c];
}

#endif
