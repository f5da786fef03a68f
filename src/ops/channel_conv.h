// Shared by the files of the op channel_conv: attributes, indices of inputs and outputs.
#ifndef TARN_OPS_CHANNEL_CONV_H
#define TARN_OPS_CHANNEL_CONV_H

#include "ops/ops.h"

typedef struct tarn__channel_conv_attr {
  tarn__taps taps;
  int64_t column;  // of the first channel in x; 0 for whole sentences, whose x has no other columns
} tarn__channel_conv_attr;

// Forward: whole sentences have OFFSETS; single rows have ROWS and RANGES instead.
enum { TARN__CC_X, TARN__CC_KERNEL, TARN__CC_OFFSETS, TARN__CC_ROWS, TARN__CC_RANGES };

// Backward, with OFFSETS: X is set if the gradient of the kernel is wanted, which is dparam[0]. PREVIOUS is the
// gradient of x so far, whose memory the output shares, or NULL.
enum { TARN__CC_DY = TARN__CC_ROWS, TARN__CC_PREVIOUS };

#endif
