// Inside of the processors of logits (ops/ops.h: tarn__adjust_rows()).
//   adjust_rows   in: logits [N, V], edits   out: scores [N, V]
#ifndef TARN_OPS_ADJUST_H
#define TARN_OPS_ADJUST_H

#include <math.h>
#include <string.h>

#include "base/host_device.h"
#include "graph/graph.h"

enum { TARN__ADJUST_LOGITS, TARN__ADJUST_EDITS };

// The edit at `words` (ops/ops.h: TARN__EDIT_WORDS).
static inline TARN__HOST_DEVICE double tarn__adjusted(double logit, const int32_t *words) {
  float scale, less;
  memcpy(&scale, words + 1, sizeof scale);
  memcpy(&less, words + 2, sizeof less);
  if (scale != 1.0f) logit = logit < 0.0 ? logit * (double)scale : logit / (double)scale;
  return logit - (double)less;
}

#endif
