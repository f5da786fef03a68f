// What decides an update, where it is made: sums of the loss, norms of the gradients, the factor that clips them, and
// whether they are numbers at all lie in the memory of the device. The optimiser reads them there, so that the host
// need not wait for them; it reads them when it wants to say something, and learns then which update could not be made.
#ifndef TARN_DEVICE_STEP_NUMBERS_H
#define TARN_DEVICE_STEP_NUMBERS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum tarn__step_failure {
  TARN__STEP_FINE,
  TARN__STEP_LOSS,          // the loss is not a finite number,
  TARN__STEP_NORM,          // nor is the norm of the model's gradients, or it is too large,
  TARN__STEP_HELPERS_NORM,  // or that of the helpers'
} tarn__step_failure;

typedef struct tarn__step_numbers {
  // Of the update that is under way.
  double loss, watched;  // sums over its predictions so far (tarn__device_type.add_loss)
  double squares;        // of the gradients that are gone again (graph/update.h)
  double norm, helpers;  // of the gradients of the model and of its helpers
  double factor;         // what the optimiser multiplies gradients by
  // Sums over updates, which the host sets back.
  double loss_sum, watched_sum, norm_sum;
  // The first update that could not be made, from 1; 0: none. From then on nothing is updated or added.
  int64_t failed;
  int32_t failure;  // a tarn__step_failure
  double bad;       // of norms: what it is once it is clipped
} tarn__step_numbers;

// How an update is decided.
typedef struct tarn__step_rule {
  int64_t update;    // its number, from 1
  double clip_norm;  // train.clip_norm; 0: gradients are not clipped
  bool at_once;      // the backward pass has updated already: the norm is that of `squares`, and comes too late
} tarn__step_rule;

// The optimiser squares gradients in fp32. A larger one would make the second moment of its weight infinite, and the
// weight would never move again.
#define TARN__LARGEST_GRADIENT 1e18

static inline void tarn__step_add_loss(tarn__step_numbers *numbers, const double loss[2]) {
  numbers->loss += loss[0];
  numbers->watched += loss[1];
}

// Scale of the gradients: train.clip_norm as PyTorch's clip_grad_norm_() applies it.
static inline double tarn__step_factor(double norm, double limit) {
  if (limit <= 0) return 1.0;
  const double factor = limit / (norm + 1e-6);
  return factor < 1.0 ? factor : 1.0;
}

static inline bool tarn__step_usable(double norm) { return isfinite(norm) && norm < TARN__LARGEST_GRADIENT; }

// Sets the factor, and adds to the sums; or says that the update cannot be made.
static inline void tarn__step_decide(tarn__step_numbers *n, const tarn__step_rule *rule) {
  if (n->failed != 0) return;
  if (rule->at_once) n->norm = sqrt(n->squares), n->helpers = 0.0;
  n->factor = rule->at_once ? 1.0 : tarn__step_factor(n->norm, rule->clip_norm);
  // Where the norm is no finite number it is what is said, not what the factor makes of it.
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
