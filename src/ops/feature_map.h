// The op feature_map: positive features of the queries and keys of linear attention.
//
//   ELU      phi(x) = elu(x) + 1 = x + 1 where x > 0, else exp(x); as many features as a head has columns
//                                                         (Katharopoulos, Vyas, Pappas, Fleuret 2020, arXiv 2006.16236)
//   SOFTMAX  phi(x) = exp(W u - |u|^2 / 2 - s) / sqrt(m), u = x / width^(1/4), for m random features W [m, width]:
//            the mean of phi(q) . phi(k) over W is exp(q . k / sqrt(width)) exp(-s_q - s_k)
//                                                         (Choromanski et al. 2021, arXiv 2009.14794: FAVOR+)
// s only keeps numbers in the range of floats: what is a factor of all features of a query, or of all keys, is in
// numerator and denominator of linear attention alike. That of a query is the largest exponent of its own features.
// That of keys is 0, so that a key's features depend neither on other keys nor on the batch: no exponent exceeds
// |w|^2 / 2 of its row w of W (where u = w). Exponents of keys above TARN__FEATURES_MOST count as that, which takes a w
// with |w|^2 > 120 (about twice what rows of 64 columns have) and a key that points along it.
//
// x [R, *] has `heads` heads of `width` columns from query_column on, and as many from key_column on. The result [R,
// 2 heads features] has the features of the queries, head by head, and then those of the keys. projection: W [features,
// width], frozen; NULL: ELU.
// Gradient: ELU by the features; SOFTMAX dx = width^(-1/4) (g W - u sum g), g = dphi phi; none through s, which
// cancels. Tangent: ELU by the features; SOFTMAX dphi = phi (W du - u . du), du = dx / width^(1/4), none through s
// either.
//
// Nodes:
//   feature_map           in: x, projection                                out: phi
//   feature_map_backward  in: x, projection, phi, dphi, gradient so far    out: dx
//   feature_map_tangent   in: x, projection, phi, dx                       out: dphi
#ifndef TARN_OPS_FEATURE_MAP_H
#define TARN_OPS_FEATURE_MAP_H

#include "graph/graph.h"

typedef struct tarn__feature_map_spec {
  int64_t heads, width, features;
  int64_t query_column, key_column;
} tarn__feature_map_spec;

tarn__tensor *tarn__feature_map(tarn__graph *graph, tarn__tensor *x, tarn__param *projection,
                                tarn__feature_map_spec spec);

enum {
  TARN__FEATURE_MAP_X,
  TARN__FEATURE_MAP_PROJECTION,
  TARN__FEATURE_MAP_PHI,
  TARN__FEATURE_MAP_DPHI,
  TARN__FEATURE_MAP_PREVIOUS
};
enum { TARN__FEATURE_MAP_DX = TARN__FEATURE_MAP_DPHI };

// exp of it, times thousands of keys and values, is far from the largest float (exp(88)).
enum { TARN__FEATURES_MOST = 60 };

// First column of head h, 0 to 2 heads - 1, in x; heads from spec->heads on are those of keys.
static inline int64_t tarn__features_column(const tarn__feature_map_spec *spec, int64_t h) {
  return h < spec->heads ? spec->query_column + h * spec->width : spec->key_column + (h - spec->heads) * spec->width;
}

#endif
