// Shared by the files of the op residual_norm: attributes, indices of inputs and outputs.
#ifndef TARN_OPS_RESIDUAL_NORM_H
#define TARN_OPS_RESIDUAL_NORM_H

#include "ops/dropout.h"
#include "ops/ops.h"

typedef struct tarn__residual_norm_attr {
  tarn__dropout dropout;
  tarn__norm_form form;
  double epsilon;
  double skip;  // factor on x; 1: none
} tarn__residual_norm_attr;

// Forward: sum, y and stats may be NULL (not wanted), and BIAS is NULL with RMS and SCALE. stats is [R, 2] = mean and
// 1 / sqrt(variance + epsilon), with RMS and SCALE [R, 1] = 1 / sqrt(mean square + epsilon).
enum { TARN__RN_X, TARN__RN_BRANCH, TARN__RN_GAIN, TARN__RN_BIAS };
enum { TARN__RN_SUM, TARN__RN_Y, TARN__RN_STATS };

// Backward of the norm and the sum: DY, SAVED (the sum), SAVED_STATS and SAVED_GAIN are set; DSUM (gradient of the sum
// from its other readers) and PREVIOUS (gradient of x so far, whose memory DX shares) may be NULL, as may either
// output. Without a norm: DBRANCH = mask * DSUM is the only output and DSUM the only input.
enum { TARN__RN_DY, TARN__RN_DSUM, TARN__RN_SAVED, TARN__RN_SAVED_STATS, TARN__RN_SAVED_GAIN, TARN__RN_PREVIOUS };
enum { TARN__RN_DX, TARN__RN_DBRANCH };
enum { TARN__RN_DGAIN, TARN__RN_DBIAS };

// Tangent: t = skip dx + mask dbranch, either of which may be NULL, is the tangent of the sum (SUM, NULL without a
// branch or if unwanted), and
//   LAYER       dy = gain * rstd * (t - mean(t) - n mean(n t)), n = (saved - mean) * rstd
//   RMS, SCALE  dy = gain * rstd * (t - n mean(n t)), n = saved * rstd
// that of y (Y, NULL without a norm). SAVED is the sum, without a branch x; STATS and GAIN are NULL without a norm.
enum {
  TARN__RN_TANGENT_X,
  TARN__RN_TANGENT_BRANCH,
  TARN__RN_TANGENT_SAVED,
  TARN__RN_TANGENT_STATS,
  TARN__RN_TANGENT_GAIN
};
enum { TARN__RN_TANGENT_SUM, TARN__RN_TANGENT_Y };

#endif
