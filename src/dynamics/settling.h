// The end of a trajectory, and whether two trajectories become one.
#ifndef TARN_DYNAMICS_SETTLING_H
#define TARN_DYNAMICS_SETTLING_H

#include "tarn/lab/dynamics.h"

enum { TARN__SIGNATURE = 16 };  // random projections of a state that date returns

// The states of a system in the last `slots` iterations, up to `last`: that of iteration t has n numbers at ring + (t %
// slots) * stride. Distances are relative after division by `scale`.
typedef struct tarn__tail {
  const double *ring;
  int64_t slots, stride, n, last;
  double scale, tolerance;
} tarn__tail;

// Sets settling, period, settled and residual of a sentence that did not diverge. signatures [iterations + 1,
// TARN__SIGNATURE] approximate the distances of states.
void tarn__settling_judge(tarn_dynamics_sentence *sentence, const tarn__tail *tail, const double *signatures);

// From relative distances [iterations + 1], the last `window` of which show the variation of the offset. No lag.
void tarn__synchrony_judge(tarn_dynamics_synchrony *synchrony, const double *distances, int64_t iterations,
                           int64_t window, double tolerance);

// The smallest lag at which `other` [n], the last state of another trajectory, is on this one; -1: none.
int64_t tarn__lag_of(const tarn__tail *tail, const double *other);

#endif
