// The fast kernels of recurrences: one time step of many sentences.
#ifndef TARN_DEVICE_CPU_RECURRENCE_RECURRENCE_KERNELS_H
#define TARN_DEVICE_CPU_RECURRENCE_RECURRENCE_KERNELS_H

#include "device/variant.h"
#include "ops/recurrence.h"

// The arguments of the kernels for one time step: row i of the scratch matrices belongs to row rows[i] of the bands.
typedef struct tarn__recurrence_step {
  tarn__recurrence_spec spec;
  tarn__dtype dtype;
  int64_t count;
  const int32_t *rows;
  float *state;        // [count, state_ld]: h, in and out; backward: dh from later steps, in and out
  float *cell;         // [count, hidden], LSTM: c, in and out; backward: dc from later steps
  void *operand;       // [count, operand_ld] out: h, or the gradient du [count, gates * hidden], for the next product
  const float *u;      // [count, u_ld] forward: W h + b; u_ld is 0 if all rows are equal
  const float *leaks;  // [hidden], ECHO: per unit; NULL: spec.leak
  int64_t state_ld, operand_ld, u_ld;
  tarn__recurrence_band y, gates, extra;
  tarn__recurrence_band x;           // forward
  tarn__recurrence_band dy, dx, du;  // backward; dx and du may be absent
  int64_t before;                    // backward: distance to the row of the previous step; 0 at a sentence's first step
  // Backward, for sentences with initial states of their own (NULL: zero): row i belongs to sentence sentences[i],
  // whose state is that row of start [*, start_ld], for LSTM the hidden state followed by the cell state. du of the
  // first step is written to `first`, which may be absent.
  const int32_t *sentences;
  const float *start;
  int64_t start_ld;
  tarn__recurrence_band first;
  bool accumulate;  // backward: dx += instead of dx =
  float *sums;      // backward: [gates * hidden] += du over all rows; or NULL
} tarn__recurrence_step;

typedef struct tarn__recurrence_kernels {
  // Units [first, last) of all rows; `first` is a multiple of 32.
  void (*forward)(const tarn__recurrence_step *step, int64_t first, int64_t last);
  void (*backward)(const tarn__recurrence_step *step, int64_t first, int64_t last);
} tarn__recurrence_kernels;
TARN__TABLES(tarn__recurrence_kernels);

#endif
