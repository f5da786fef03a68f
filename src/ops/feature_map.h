// The op feature_map: positive features of the queries and keys of linear attention.
//
//   ELU      phi(x) = elu(x) + 1 = x + 1 where x > 0, else exp(x); as many features as a head has columns
//                                                         (Katharopoulos, Vyas, Pappas, Fleuret 2020, arXiv 2006.16236)
//   SOFTMAX  e(k) = W u - |u|^2 / 2, u = k / width^(1/4), for m random features W [m, width]: the logarithms of the
//            features, because the features themselves leave the range of floats where |k|^2 / (2 sqrt(width)) exceeds
//            a hundred. The mean of exp(e(q)) . exp(e(k)) over W is exp(q . k / sqrt(width))
//                                                         (Choromanski et al. 2021, arXiv 2009.14794: FAVOR+)
// A common factor of all features of a query, or of all keys, cancels in linear attention. So there is no 1 / sqrt(m),
// and e(q) = W u: its square would only cost digits. linear_attention takes the exponentials, minus their maxima.
//
// x [R, *] has `heads` heads of `width` columns from query_column on, and as many from key_column on. The result [R,
// 2 heads features] has the features of the queries, head by head, and then those of the keys: ELU in the type of x,
// SOFTMAX, whose exponents need all digits, in F32 (F64 in double). projection: W [features, width], frozen; NULL: ELU.
// Gradient: ELU by the features; SOFTMAX dx = width^(-1/4) (de W - u sum de), of queries without u. Tangent: ELU by the
// features; SOFTMAX de = W du - u . du, du = dx / width^(1/4), of queries without u.
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

// First column of head h, 0 to 2 heads - 1, in x; heads from spec->heads on are those of keys.
static inline int64_t tarn__features_column(const tarn__feature_map_spec *spec, int64_t h) {
  return h < spec->heads ? spec->query_column + h * spec->width : spec->key_column + (h - spec->heads) * spec->width;
}

#endif
