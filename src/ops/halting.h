// Halting of adaptive computation time (Graves 2016; for every position apart, Dehghani et al. 2019): what each row of
// a step counts, from the logit z of the step's halting probability p = sigmoid(z).
//   halting           the row runs unless it has halted. S is the sum of the p of its steps so far. It halts in this
//                     step if S + p > threshold, or if the step is the last one.
//                       weight = p, and the row's remainder 1 - S in the step in which it halts; 0 behind it
//                       sum    = S + p, TARN__HALTED from the step on in which it halts
//                       runs   = 1 if it runs in this step, else 0; rests = 1 - runs
//   halting_backward  dz and dS from dweight and dsum; neither runs, rests nor the step of the halt are differentiated
//   halting_tangent   dweight and dsum from dz and dS
// So the weights of a row add up to 1. Ponder cost, in training only: the gradient of `cost` (N + R) is added to that
// of the loss, N the number of steps that a row runs, which is constant, and R its remainder. The term is not part of
// the returned and logged loss.
#ifndef TARN_OPS_HALTING_H
#define TARN_OPS_HALTING_H

#include <math.h>

#include "base/host_device.h"
#include "graph/graph.h"

typedef struct tarn__halting_spec {
  double threshold;  // above 0, below 1
  double cost;       // of a step of one row
  int64_t last;      // 1: the last step
  int64_t owner;     // any number, for tarn__halting_visit()
} tarn__halting_spec;

typedef struct tarn__halted {
  tarn__tensor *weight, *sum, *runs, *rests;  // F32 (F64 in the reference in double) [R, 1]
} tarn__halted;

// z [R, 1] of the graph's dtype; before: `sum` of the step before, NULL in the first step. Gradient: to z and before.
tarn__halted tarn__halting(tarn__graph *graph, tarn__tensor *z, tarn__tensor *before, tarn__halting_spec spec);

// After a run in training: calls `visit` for every step through which a gradient flows, with how many rows ran in it.
typedef void tarn__halting_visitor(void *user, int64_t owner, bool first, double running, int64_t rows);
tarn_status tarn__halting_visit(const tarn__graph *graph, tarn__halting_visitor *visit, void *user) TARN_CHECKED;

// Internal.
enum { TARN__HALTING_Z, TARN__HALTING_BEFORE };
enum { TARN__HALTING_WEIGHT, TARN__HALTING_SUM, TARN__HALTING_RUNS, TARN__HALTING_RESTS };
// Backward, with these two and AFTER, which is `sum`; DWEIGHT and DSUM are NULL if zero. Out: each NULL if not wanted.
enum { TARN__HALTING_AFTER = 2, TARN__HALTING_DWEIGHT, TARN__HALTING_DSUM };
enum { TARN__HALTING_DZ, TARN__HALTING_DBEFORE };
// Tangent, with the same three: tangents of z and before, each NULL if zero. Out: those of weight and sum.
enum { TARN__HALTING_TANGENT_Z = TARN__HALTING_DWEIGHT, TARN__HALTING_TANGENT_BEFORE };

// The sum of a row that has halted. Below, numbers are 0 without BEFORE.
static const double TARN__HALTED = 2.0;

static inline TARN__HOST_DEVICE double tarn__halting_probability(double z) { return 1.0 / (1.0 + exp(-z)); }

typedef struct tarn__halting_row {
  double weight, sum, runs;
} tarn__halting_row;

static inline TARN__HOST_DEVICE tarn__halting_row tarn__halting_step(const tarn__halting_spec *spec, double z,
                                                                     double before) {
  const double p = tarn__halting_probability(z);
  tarn__halting_row row = {0.0, TARN__HALTED, 0.0};
  if (before > 1.0) return row;
  const bool halts = spec->last || before + p > spec->threshold;
  row.weight = halts ? 1.0 - before : p;
  if (!halts) row.sum = before + p;
  row.runs = 1.0;
  return row;
}

typedef struct tarn__halting_change {
  double first, second;
} tarn__halting_change;

// dz and dbefore.
static inline TARN__HOST_DEVICE tarn__halting_change tarn__halting_gradient(const tarn__halting_spec *spec, double z,
                                                                            double before, double after, double dweight,
                                                                            double dsum) {
  const double p = tarn__halting_probability(z);
  tarn__halting_change d = {0.0, 0.0};
  if (before > 1.0) return d;
  if (after > 1.0) {
    d.second = -(dweight + spec->cost);
    return d;
  }
  d.first = (dweight + dsum) * p * (1.0 - p);
  d.second = dsum;
  return d;
}

// dweight and dsum.
static inline TARN__HOST_DEVICE tarn__halting_change tarn__halting_push(double z, double before, double after,
                                                                        double dz, double dbefore) {
  const double p = tarn__halting_probability(z);
  tarn__halting_change d = {0.0, 0.0};
  if (before > 1.0) return d;
  if (after > 1.0) {
    d.first = -dbefore;
    return d;
  }
  d.first = dz * p * (1.0 - p);
  d.second = d.first + dbefore;
  return d;
}

#endif
