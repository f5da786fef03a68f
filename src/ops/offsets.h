// Integer inputs of ops: offsets of packed sentences, I32 [1, n + 1], and row numbers, I32 [1, n].
#ifndef TARN_OPS_OFFSETS_H
#define TARN_OPS_OFFSETS_H

#include "graph/graph.h"

// Fails with INTERNAL, in the name of `op`, unless the offsets cover `rows` rows of `what` in order.
tarn_status tarn__offsets_check(const tarn__tensor *offsets, int64_t rows, const char *op,
                                const char *what) TARN_CHECKED;

// Single rows of incremental decoding name the rows that they see: row i sees list[ranges[2 i]] .. list[ranges[2 i + 1]
// - 1], at least one. Fails with INTERNAL, in the name of `op`, unless those of `count` rows are in `list` and among
// `rows`.
tarn_status tarn__ranges_check(const tarn__tensor *list, const tarn__tensor *ranges, int64_t count, int64_t rows,
                               const char *op) TARN_CHECKED;

// Fails with INTERNAL, in the name of `op`, unless all numbers, each a `what`, are 0 to rows - 1. Those that a node
// computes are on the device: they are not read, and must be in range by the rule of its op.
tarn_status tarn__numbers_check(const tarn__tensor *numbers, int64_t rows, const char *op,
                                const char *what) TARN_CHECKED;

// The total number of rows seen by all rows, if each sees `width` rows from `before` before itself on, within its
// sentence: exact if the offsets are known, else (offsets NULL, or without values) a bound.
double tarn__offsets_taps(const tarn__tensor *offsets, int64_t rows, int64_t width, int64_t before);

// The total number of rows in the ranges [2 n] of n single rows; `bound` per row if not known yet.
double tarn__ranges_rows(const tarn__tensor *ranges, int64_t bound);

// The sentence of row `row` (0 <= row < rows).
static inline int64_t tarn__offsets_find(const tarn__tensor *offsets, int64_t row) {
  const int32_t *offset = (const int32_t *)offsets->data;
  int64_t low = 0, high = offsets->cols - 1;  // offset[low] <= row < offset[high]
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    if (offset[middle] <= row)
      low = middle;
    else
      high = middle;
  }
  return low;
}

#endif
