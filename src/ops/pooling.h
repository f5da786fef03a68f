// Shared by the files of the op pooling: indices of inputs and outputs. The attribute is tarn__pooling_spec.
#ifndef TARN_OPS_POOLING_H
#define TARN_OPS_POOLING_H

#include "base/host_device.h"
#include "ops/ops.h"

// Forward: whole sentences have OFFSETS; single rows have ROWS and RANGES instead.
enum { TARN__POOLING_X, TARN__POOLING_OFFSETS, TARN__POOLING_ROWS, TARN__POOLING_RANGES };

// Backward, with OFFSETS: PREVIOUS is the gradient of x so far, whose memory the output shares, or NULL.
enum { TARN__POOLING_DY = TARN__POOLING_X, TARN__POOLING_PREVIOUS = TARN__POOLING_ROWS };

// The rows [first, last) of a sentence [begin, end) that its row r sees.
typedef struct tarn__pooling_window {
  int64_t first, last;
} tarn__pooling_window;
static inline TARN__HOST_DEVICE tarn__pooling_window tarn__pooling_window_of(int64_t r, int64_t begin, int64_t end,
                                                                             const tarn__pooling_spec *spec) {
  const int64_t first = r - spec->before, last = first + spec->width;
  const tarn__pooling_window window = {first > begin ? first : begin, last < end ? last : end};
  return window;
}

// The largest number of rows that a row of the node sees.
static inline int64_t tarn__pooling_most(const tarn__node *node) {
  const int64_t width = ((const tarn__pooling_spec *)node->attr)->width;
  const int64_t rows =
      node->in[TARN__POOLING_OFFSETS] ? node->in[TARN__POOLING_X]->rows : node->in[TARN__POOLING_ROWS]->cols;
  return width < rows ? width : rows;
}

#endif
