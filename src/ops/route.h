// Routing of rows to experts (Shazeer et al. 2017, Lepikhin et al. 2020, Fedus et al. 2021), and the ops around the
// grouped products of ops/grouped.h. Letters: R rows, d their width, E experts, k choices of a row.
//
//   route                p [R, E] = softmax(x' weight^T), in fp32 whatever x is (fp64 in the reference in double);
//                        x' is x, in training times 1 + noise u with u uniform in (-1, 1), drawn for every element. A
//                        row's choices are its k most probable experts, of equal ones the first, by falling
//                        probability. gate = p of the choice (normalise 0), or that over the sum of the row's k such
//                        p (1).
//   gather_rows          rows by expert: those of expert e are offsets[e] .. offsets[e + 1] - 1 of M, all first choices
//                        in the order of rows, then all second ones. A choice goes to row places[r, j], or, where its
//                        expert has no room left, nowhere: places[r, j] is -1.
//   gather_rows_backward dx[r] (+)= the sum over j of dy[places[r, j]]
//
// Capacity, in training only: an expert takes at most ceil(capacity k R / E) choices; a choice beyond that adds
// nothing to its row, whose residual passes by. It depends on the batch, which is why there is none outside training:
// there the bits of a row depend on nothing but the row.
//
// Balance, in training only: the gradient of `balance` share E sum_e f_e P_e is added to that of the loss, where f_e is
// the share of the R rows whose first choice is e, P_e the mean of p[., e] over them, and only P is differentiated
// (Fedus et al. 2021, equations 4 to 6). `share`: what part of the predictions of a whole update this batch has. So the
// batches of an update add up to a mean of their balance terms, weighted as their losses are. The term is no part of
// the loss that is returned and logged.
#ifndef TARN_OPS_ROUTE_H
#define TARN_OPS_ROUTE_H

#include "ops/dropout.h"
#include "ops/ops.h"

enum { TARN__ROUTE_MOST_CHOICES = 16, TARN__ROUTE_MOST_EXPERTS = 4096 };

typedef struct tarn__route_spec {
  int64_t choices;    // k: 1 to TARN__ROUTE_MOST_CHOICES, at most E
  int64_t normalise;  // 0 or 1
  double capacity;    // above 0; INFINITY: no limit
  double balance;     // 0: none
  double noise;       // 0: none; below 1
  double share;
} tarn__route_spec;

typedef struct tarn__routed {
  tarn__tensor *gates;    // F32 (F64 in the reference in double) [R, k]
  tarn__tensor *places;   // I32 [R, k]
  tarn__tensor *offsets;  // I32 [1, E + 1]
  int64_t rows;           // M, the most that offsets[E] can be
} tarn__routed;

// weight is [E, d]. Gradient: to x and weight, through the gates of the choices that have a place, and of the balance
// term.
tarn__routed tarn__route(tarn__graph *graph, tarn__tensor *x, tarn__param *weight, tarn__route_spec spec);

// y [routed.rows, d] of x [R, d]; rows from offsets[E] on hold nothing.
tarn__tensor *tarn__gather_rows(tarn__graph *graph, tarn__tensor *x, const tarn__routed *routed);

// After a run in training: to how many experts no row was given, of all routes in the graph through which a gradient
// flows. *routes: whether there are any.
tarn_status tarn__route_unused(const tarn__graph *graph, int64_t *unused, bool *routes) TARN_CHECKED;

// Inside.
typedef struct tarn__route_attr {
  tarn__route_spec spec;
  int64_t room;    // choices that an expert takes; INT64_MAX: all
  uint32_t site;   // of the noise
  uint32_t noisy;  // 1: it is drawn
} tarn__route_attr;

// PROBABILITIES: F32 (F64) [R, E], NULL where no gradient is wanted.
enum { TARN__ROUTE_X, TARN__ROUTE_WEIGHT };
enum { TARN__ROUTE_GATES, TARN__ROUTE_PLACES, TARN__ROUTE_OFFSETS, TARN__ROUTE_PROBABILITIES };
// Backward, with X and WEIGHT. Out: dx or NULL; dparam: weight or NULL.
enum { TARN__ROUTE_P = 2, TARN__ROUTE_DGATES, TARN__ROUTE_PREVIOUS };

enum { TARN__GATHER_X, TARN__GATHER_PLACES, TARN__GATHER_OFFSETS };
enum { TARN__GATHER_DY = TARN__GATHER_X, TARN__GATHER_PREVIOUS = TARN__GATHER_OFFSETS };

// What an element of x is multiplied by, from a random number of 16 bits.
static inline double tarn__route_jitter(double noise, uint16_t number) {
  return 1.0 + noise * (((double)number + 0.5) / 32768.0 - 1.0);
}

#endif
