// The op scale: one number times a tensor, plus one number.
//   y [R, C] = gain x + shift, gain and shift [1, 1]; either may be NULL, which counts as 1 or as 0, not both
// ReZero (Bachlechner et al. 2020) has the gain before a branch, Fixup (Zhang et al. 2019) both.
//   y [R, C] = softmax(shares)[of] x, shares [1, K]
// A tensor's share of a trained mean of K of them: the layers of an encoder in Transparent attention (Bapna et al.
// 2018), the branches of a Weighted Transformer (Ahmed et al. 2018).
#ifndef TARN_OPS_SCALE_H
#define TARN_OPS_SCALE_H

#include <math.h>

#include "base/host_device.h"
#include "graph/graph.h"

tarn__tensor *tarn__scale(tarn__graph *graph, tarn__tensor *x, tarn__param *gain, tarn__param *shift);

tarn__tensor *tarn__scale_share(tarn__graph *graph, tarn__tensor *x, tarn__param *shares, int64_t of);

// Internal: the attribute of tarn__scale_share(), whose GAIN and DGAIN are the shares; nodes of tarn__scale() have
// none.
typedef struct tarn__scale_share_spec {
  int64_t of;
} tarn__scale_share_spec;

// Number `of` of the softmax of `count` shares, and its gradient: grad[k] += dgain s_of ([k = of] - s_k).
static inline TARN__HOST_DEVICE double tarn__share_of(const float *shares, int64_t count, int64_t of) {
  double most = (double)shares[0], sum = 0.0;
  for (int64_t k = 1; k < count; k++) most = (double)shares[k] > most ? (double)shares[k] : most;
  for (int64_t k = 0; k < count; k++) sum += exp((double)shares[k] - most);
  return exp((double)shares[of] - most) / sum;
}
static inline TARN__HOST_DEVICE void tarn__shares_add(float *grad, const float *shares, int64_t count, int64_t of,
                                                      double dgain) {
  const double own = tarn__share_of(shares, count, of);
  for (int64_t k = 0; k < count; k++)
    grad[k] += (float)(dgain * own * ((k == of ? 1.0 : 0.0) - tarn__share_of(shares, count, k)));
}

// Forward: GAIN or SHIFT may be NULL.
enum { TARN__SCALE_X, TARN__SCALE_GAIN, TARN__SCALE_SHIFT };

// Backward, with a trained gain or shift, or any gain: DY is set; SAVED_X only if the gain is trained, SAVED_GAIN with
// a gain. DX (NULL: not wanted) shares the memory of PREVIOUS, the gradient of x so far, or NULL.
enum { TARN__SCALE_DY, TARN__SCALE_SAVED_X, TARN__SCALE_SAVED_GAIN, TARN__SCALE_PREVIOUS };
enum { TARN__SCALE_DX };
enum { TARN__SCALE_DGAIN, TARN__SCALE_DSHIFT };

#endif
