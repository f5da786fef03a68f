// The nearest product keys of queries (Lample et al. 2019). Letters: R rows, H heads, n keys of each half, k nearest, w
// width of half a query.
//
//   a query of head h is (u, v), w numbers each; s_i = u . keys[h, 0, i], t_j = v . keys[h, 1, j]
//   the k pairs (i, j) of largest s_i + t_j are among those of the k largest s and the k largest t
//   ids = i n + j of these pairs, by falling sum; gates = softmax of their sums, per head
//
// Of equal numbers the first counts as larger.
#ifndef TARN_OPS_PRODUCT_KEYS_H
#define TARN_OPS_PRODUCT_KEYS_H

#include "ops/ops.h"

enum { TARN__PRODUCT_KEYS_MOST = 256 };  // k

typedef struct tarn__product_keys_spec {
  int64_t heads, nearest;
} tarn__product_keys_spec;

typedef struct tarn__nearest {
  tarn__tensor *gates;  // F32 (F64 in the reference in double) [R, H k]
  tarn__tensor *ids;    // I32 [R, H k]
} tarn__nearest;

// queries [R, 2 H w], u before v, head by head; keys [2 H n, w], in the same order, with keys->out n. Gradient: to
// queries and keys, through the gates.
tarn__nearest tarn__product_keys(tarn__graph *graph, tarn__tensor *queries, tarn__param *keys,
                                 tarn__product_keys_spec spec);

// Internal. Backward has QUERIES and KEYS too; out: gradient of the queries or NULL; dparam: keys or NULL.
enum { TARN__PRODUCT_KEYS_QUERIES, TARN__PRODUCT_KEYS_KEYS };
enum { TARN__PRODUCT_KEYS_GATES, TARN__PRODUCT_KEYS_IDS };
enum { TARN__PRODUCT_KEYS_G = 2, TARN__PRODUCT_KEYS_CHOSEN, TARN__PRODUCT_KEYS_DGATES, TARN__PRODUCT_KEYS_PREVIOUS };
// Tangent, with KEYS, G and CHOSEN, without QUERIES: for a pair ds = du . keys[h, 0, i] + dv . keys[h, 1, j]; out: the
// gates' tangent g (ds - the sum of g ds over the pairs of its head).
enum { TARN__PRODUCT_KEYS_DQUERIES = TARN__PRODUCT_KEYS_DGATES };

#endif
