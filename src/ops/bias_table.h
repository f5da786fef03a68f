// Biases of attention by head and distance, from buckets of distances (T5: Raffel et al. 2020).
#ifndef TARN_OPS_BIAS_TABLE_H
#define TARN_OPS_BIAS_TABLE_H

#include "base/fixed.h"
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

// The bucket of distance n, at most max_distance either way. In each direction the first half of the buckets hold one
// distance each, and the limits of the others grow by equal factors up to max_distance.
static inline TARN__HOST_DEVICE int64_t tarn__bias_bucket(const tarn__bias_table_spec *spec, int64_t n) {
  const int64_t half = spec->two_ways ? spec->buckets / 2 : spec->buckets;
  const int64_t distance = n < 0 ? -n : n, exact = half / 2;
  // T5 computes the logarithm in fp32 and rounds to zero; the limits between buckets are whole powers for the usual
  // numbers, and rounding must not move them below.
  const double rounding = 1e-9;
  if (n > 0 && !spec->two_ways) return 0;
  int64_t bucket = distance;
  if (distance >= exact) {
    const double steps = tarn__fixed_log((double)distance / (double)exact) /
                         tarn__fixed_log((double)spec->max_distance / (double)exact) * (double)(half - exact);
    bucket = exact + (int64_t)(steps + rounding);
    if (bucket >= half) bucket = half - 1;
  }
  return n > 0 ? half + bucket : bucket;
}

// The bucket of each distance n, in of[max_distance + n].
void tarn__bias_buckets(const tarn__bias_table_spec *spec, int32_t *of);

// Forward: in TABLE. Backward: in DY; dparam[0] is the table. Attribute: the spec. Scratch: int32_t [2 max_distance +
// 1].
enum { TARN__BIAS_TABLE_TABLE };
enum { TARN__BIAS_TABLE_DY };
static inline size_t tarn__bias_table_scratch(const tarn__bias_table_spec *spec) {
  return (size_t)(2 * spec->max_distance + 1) * sizeof(int32_t);
}

#endif
