// A range divided into nearly equal pieces.
#ifndef TARN_DEVICE_CPU_GEMM_GEMM_CUT_H
#define TARN_DEVICE_CPU_GEMM_GEMM_CUT_H

#include <stdint.h>

// `total` divided into `pieces` pieces with nearly equal numbers of units; at least one unit, so that no code divides
// by zero for an empty range.
typedef struct tarn__cut {
  int64_t total, unit, units, pieces;
} tarn__cut;

static inline tarn__cut tarn__cut_into(int64_t total, int64_t unit, int64_t pieces) {
  int64_t units = (total + unit - 1) / unit;
  if (pieces > units) pieces = units;
  return (tarn__cut){total, unit, units, pieces > 1 ? pieces : 1};
}

static inline int64_t tarn__cut_start(const tarn__cut *s, int64_t piece) {
  int64_t start = s->units * piece / s->pieces * s->unit;
  return start < s->total ? start : s->total;
}

static inline int64_t tarn__cut_size(const tarn__cut *s, int64_t piece) {
  return tarn__cut_start(s, piece + 1) - tarn__cut_start(s, piece);
}

// Pieces are nearly equal: the largest has at most one unit more than the mean.
static inline int64_t tarn__cut_largest(const tarn__cut *s) { return (s->units + s->pieces - 1) / s->pieces * s->unit; }

#endif
