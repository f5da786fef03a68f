// Biases of attention by head and distance, from buckets of distances (T5: Raffel et al. 2020).
#ifndef TARN_OPS_BIAS_TABLE_H
#define TARN_OPS_BIAS_TABLE_H

#include "graph/graph.h"

typedef struct tarn__bias_table_spec {
  int64_t buckets;       // two ways: even and at least 4; else at least 2
  int64_t max_distance;  // from here on, all distances are in the last bucket; more than buckets / 2, two ways / 4
  int64_t two_ways;      // 0 or 1; 1: keys after the query have the second half of the buckets; 0: they have bucket 0
} tarn__bias_table_spec;

// y [H, 2 max_distance + 1], F32 (F64 in double): y[h][max_distance + n] = table[bucket(n)][h], n = -max_distance ..
// max_distance the distance from query to key; table [buckets, H].
// Gradient: dtable[b][h] += sum of dy[h][max_distance + n] over the n in bucket b, in order.
tarn__tensor *tarn__bias_table(tarn__graph *graph, tarn__param *table, tarn__bias_table_spec spec);

// The bucket of each distance n, in of[max_distance + n]. In each direction the first half of the buckets hold one
// distance each, and the limits of the others grow by equal factors up to max_distance.
void tarn__bias_buckets(const tarn__bias_table_spec *spec, int32_t *of);

// Forward: in TABLE. Backward: in DY; dparam[0] is the table. Attribute: the spec. Scratch: int32_t [2 max_distance +
// 1].
enum { TARN__BIAS_TABLE_TABLE };
enum { TARN__BIAS_TABLE_DY };
static inline size_t tarn__bias_table_scratch(const tarn__bias_table_spec *spec) {
  return (size_t)(2 * spec->max_distance + 1) * sizeof(int32_t);
}

#endif
