// The numbers that decide an update: sums of the loss, norms of the gradients, the clipping factor, and whether they
// are finite. They are in device memory, where the optimiser reads them, so the host need not wait for them. The host
// reads them only when it reports, and then learns which update failed.
#ifndef TARN_DEVICE_STEP_NUMBERS_H
#define TARN_DEVICE_STEP_NUMBERS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/host_device.h"

typedef enum tarn__step_failure {
  TARN__STEP_FINE,
  TARN__STEP_LOSS,          // the loss is not finite,
  TARN__STEP_NORM,          // or the norm of the model's gradients is not finite or too large,
  TARN__STEP_HELPERS_NORM,  // or that of the helpers' gradients
} tarn__step_failure;

typedef struct tarn__step_numbers {
  // Of the current update.
  double loss, watched;  // sums over its predictions so far (tarn__device_type.add_loss)
  double squares;        // sum of squares of the gradients freed so far (graph/update.h)
  double norm, helpers;  // of the gradients of the model and of its helpers
  double factor;         // by which the optimiser multiplies gradients
  // Sums over updates, which the host resets.
  double loss_sum, watched_sum, norm_sum;
  // The first failed update, from 1; 0: none. After a failure nothing is updated or added.
  int64_t failed;
  int32_t failure;  // a tarn__step_failure
  double bad;       // the norm that failed, after clipping
} tarn__step_numbers;

// The rule by which an update is decided.
typedef struct tarn__step_rule {
  int64_t update;    // number of the update, from 1
  double clip_norm;  // train.clip_norm; 0: gradients are not clipped
  bool at_once;      // the backward pass has already updated: the norm comes from `squares`, too late to clip
} tarn__step_rule;

// The optimiser squares gradients in fp32. A larger gradient would make the second moment of its weight infinite, and
// the weight would never change again.
#define TARN__LARGEST_GRADIENT 1e18

static inline TARN__HOST_DEVICE void tarn__step_add_loss(tarn__step_numbers *numbers, const double loss[2]) {
  numbers->loss += loss[0];
  numbers->watched += loss[1];
}

// The scale of the gradients: train.clip_norm, as in PyTorch's clip_grad_norm_().
static inline TARN__HOST_DEVICE double tarn__step_factor(double norm, double limit) {
  if (limit <= 0) return 1.0;
  const double factor = limit / (norm + 1e-6);
  return factor < 1.0 ? factor : 1.0;
}

static inline TARN__HOST_DEVICE bool tarn__step_usable(double norm) {
  return isfinite(norm) && norm < TARN__LARGEST_GRADIENT;
}

// Sets the factor and adds to the sums, or records that the update fails.
static inline TARN__HOST_DEVICE void tarn__step_decide(tarn__step_numbers *n, const tarn__step_rule *rule) {
  if (n->failed != 0) return;
  if (rule->at_once) n->norm = sqrt(n->squares), n->helpers = 0.0;
  n->factor = rule->at_once ? 1.0 : tarn__step_factor(n->norm, rule->clip_norm);
  // A norm that is not finite is reported itself, not its product with the factor.
  const double clipped = isfinite(n->norm) ? n->norm * n->factor : n->norm;
  const tarn__step_failure failure = !isfinite(n->loss)               ? TARN__STEP_LOSS
                                     : !tarn__step_usable(clipped)    ? TARN__STEP_NORM
                                     : !tarn__step_usable(n->helpers) ? TARN__STEP_HELPERS_NORM
                                                                      : TARN__STEP_FINE;
  if (failure != TARN__STEP_FINE) {
    n->failed = rule->update;
    n->failure = (int32_t)failure;
    n->bad = failure == TARN__STEP_NORM ? clipped : n->helpers;
    return;
  }
  n->loss_sum += n->loss;
  n->watched_sum += n->watched;
  n->norm_sum += n->norm;
}

#endif
