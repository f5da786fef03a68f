// Shared by the files of the op depthwise_conv: attributes, indices of inputs and outputs.
//
// A tap of row r is a row that its kernel reads. Tap k of row r is row r + k - before; taps outside of the sentence do
// not exist, but the softmax still covers the whole width (fairseq's renorm_padding is off).
#ifndef TARN_OPS_DEPTHWISE_CONV_H
#define TARN_OPS_DEPTHWISE_CONV_H

#include "ops/dropout.h"
#include "ops/ops.h"

typedef struct tarn__conv_attr {
  tarn__conv_spec spec;
  tarn__dropout dropout;  // of row r, column h * width + k
} tarn__conv_attr;

// Forward: LOGITS is [1, H K], the same for all rows, or [R, H K]. Whole sentences have OFFSETS; single rows have ROWS
// and RANGES instead, never both.
enum { TARN__CONV_X, TARN__CONV_LOGITS, TARN__CONV_OFFSETS, TARN__CONV_ROWS, TARN__CONV_RANGES };

// Backward, with OFFSETS: X is set if a gradient of the logits is wanted. DLOGITS is for logits that are a tensor; a
// parameter of logits is dparam[0]. PREVIOUS is the gradient of x so far, whose memory DX shares, or NULL.
enum { TARN__CONV_DY = TARN__CONV_ROWS, TARN__CONV_PREVIOUS, TARN__CONV_PREVIOUS_LOGITS };
enum { TARN__CONV_DX, TARN__CONV_DLOGITS };

// Tangent, with X, LOGITS and OFFSETS of the forward pass: for row r, with p the softmax of its logits l, w the same
// under the mask of dropout, and e = dl - sum of p dl
//   dy[r] = sum over k of w[k] dx[r + k - before] + w[k] e[k] x[r + k - before]
// A tangent is NULL if zero.
enum { TARN__CONV_TANGENT_X = TARN__CONV_ROWS, TARN__CONV_TANGENT_LOGITS };

#endif
