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
//   route_tangent        dp = p (dl - the sum of p dl), dl = dx' weight^T; of a choice dgate = dp, normalised
//                        (dp - gate times the sum of the row's k such dp) over the sum of their p
// Tangents are gathered block by block: where x has k times as many rows as there are places of, so has y, and the rows
// of block i of x go to block i of y.
//
// Capacity, in training only: an expert takes at most ceil(capacity k R / E) choices; a choice beyond that adds nothing
// to its row, whose residual passes by. It depends on the batch, so there is none outside training, where the bits of a
// row depend only on the row.
//
// Balance, in training only: the gradient of `balance` share E sum_e f_e P_e is added to that of the loss, where f_e is
// the share of the R rows whose first choice is e, P_e the mean of p[., e] over them, and only P is differentiated
// (Fedus et al. 2021, equations 4 to 6). `share`: this batch's share of the predictions of a whole update. So the
// batches of an update add up to a mean of their balance terms, weighted like their losses. The term is not part of the
// returned and logged loss.
//
// Noisy gating, in training only (Shazeer et al. 2017, equations 3 to 11), with a second matrix, noise [E, d]:
//   h_e = c_e + n_e s_e,  c = x weight^T,  s = softplus(x noise^T) + TARN__ROUTE_LEAST_NOISE,  n standard normal
// instead of logits: a row's choices are its k largest h, and its gates G their softmax. The gradients of these losses,
// times share, are added to the loss's gradient:
//   importance CV(I)^2,  I_e the sum of the rows' G_e,  CV^2 the variance over the square of the mean
//   load CV(L)^2,        L_e the sum of the rows' P_e,  P_e = Phi((c_e - t_e) / s_e), the probability that another n_e
//                        would leave e among the choices: t_e is the k-th largest of the other h
// Both are fully differentiated, including t. Outside training h is c, which is `route` with normalise 1.
#ifndef TARN_OPS_ROUTE_H
#define TARN_OPS_ROUTE_H

#include <math.h>

#include "base/fixed.h"
#include "base/host_device.h"
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
  double importance, load;  // of noisy gating
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

// With noisy gating: noise is also [E, d], spec.choices is less than E, and spec.normalise is 1, without spec.noise and
// balance.
tarn__routed tarn__route_noisy(tarn__graph *graph, tarn__tensor *x, tarn__param *weight, tarn__param *noise,
                               tarn__route_spec spec);

// y [routed.rows, d] of x [R, d]; rows from offsets[E] on are unused.
tarn__tensor *tarn__gather_rows(tarn__graph *graph, tarn__tensor *x, const tarn__routed *routed);

// After a run in training: calls `visit` for every route of the graph through which a gradient flows, with its router
// and the offsets [experts + 1] of its experts' rows.
typedef void tarn__route_visitor(void *user, const tarn__param *router, const int32_t *offsets, int64_t experts);
tarn_status tarn__route_visit(const tarn__graph *graph, tarn__route_visitor *visit, void *user) TARN_CHECKED;

// Internal.
typedef struct tarn__route_attr {
  tarn__route_spec spec;
  int64_t room;    // choices that an expert takes; INT64_MAX: all
  uint32_t site;   // of the noise
  uint32_t noisy;  // 1: it is drawn
} tarn__route_attr;

// PROBABILITIES: F32 (F64) [R, E], NULL if no gradient is wanted; with noisy gating [R, 3 E]: c, x noise^T and n of
// each row.
enum { TARN__ROUTE_X, TARN__ROUTE_WEIGHT };
// The noise matrix of noisy gating, for all nodes; NULL: other gating.
enum { TARN__ROUTE_NOISE = 5 };
enum { TARN__ROUTE_GATES, TARN__ROUTE_PLACES, TARN__ROUTE_OFFSETS, TARN__ROUTE_PROBABILITIES };
// Backward, with X and WEIGHT. Out: dx or NULL; dparam: weight or NULL, and noise or NULL.
enum { TARN__ROUTE_P = 2, TARN__ROUTE_DGATES, TARN__ROUTE_PREVIOUS };
// Tangent, with X, WEIGHT and P. Out: the tangent of the gates.
enum { TARN__ROUTE_DX = TARN__ROUTE_DGATES };

enum { TARN__GATHER_X, TARN__GATHER_PLACES, TARN__GATHER_OFFSETS };
// Rows of y to which a block of rows of x is gathered.
static inline int64_t tarn__gather_block(const tarn__node *node) {
  const int64_t rows = node->in[TARN__GATHER_PLACES]->rows;
  return rows > 0 ? node->out[0]->rows / (node->in[TARN__GATHER_X]->rows / rows) : 0;
}
enum { TARN__GATHER_DY = TARN__GATHER_X, TARN__GATHER_PREVIOUS = TARN__GATHER_OFFSETS };

// The factor on an element of x, from a 16-bit random number.
static inline TARN__HOST_DEVICE double tarn__route_jitter(double noise, uint16_t number) {
  return 1.0 + noise * (((double)number + 0.5) / 32768.0 - 1.0);
}

// Keeps P differentiable if softplus is 0 in floats.
static const double TARN__ROUTE_LEAST_NOISE = 1e-6;

static inline TARN__HOST_DEVICE double tarn__route_softplus(double a) {
  return (a > 0.0 ? a : 0.0) + log1p(exp(-fabs(a))) + TARN__ROUTE_LEAST_NOISE;
}

static inline TARN__HOST_DEVICE double tarn__route_sigmoid(double a) { return 1.0 / (1.0 + exp(-a)); }

// A standard normal number from two numbers of 16 bits (Box and Muller 1958).
static inline TARN__HOST_DEVICE double tarn__route_normal(uint16_t a, uint16_t b) {
  return sqrt(-2.0 * tarn__fixed_log(((double)a + 0.5) / 65536.0)) * tarn__fixed_cos_turn(((double)b + 0.5) / 65536.0);
}

// Phi, and its derivative.
static inline TARN__HOST_DEVICE double tarn__route_below(double z) { return 0.5 * erfc(-0.7071067811865476 * z); }
static inline TARN__HOST_DEVICE double tarn__route_density(double z) { return 0.3989422804014327 * exp(-0.5 * z * z); }

// The derivatives of weight CV^2 of n sums by each of them, in place.
static inline void tarn__route_variation(double *sums, int64_t n, double weight) {
  double mean = 0.0, variance = 0.0;
  for (int64_t e = 0; e < n; e++) mean += sums[e] / (double)n;
  for (int64_t e = 0; e < n; e++) variance += (sums[e] - mean) * (sums[e] - mean) / (double)n;
  for (int64_t e = 0; e < n; e++)
    sums[e] = mean > 0.0 ? 2.0 * weight / ((double)n * mean * mean) * (sums[e] - mean - variance / mean) : 0.0;
}

#endif
