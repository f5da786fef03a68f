// Frozen sparse matrices in CSR format: memory depends on the number of entries, not on rows and columns. All other
// code sees a parameter [rows, cols]; initial values, their hash and the line in a checkpoint are those of the dense
// matrix.
#ifndef TARN_GRAPH_ENTRIES_H
#define TARN_GRAPH_ENTRIES_H

#include "graph/param.h"

// The layout of a parameter's `value`, each array aligned to 64 bytes. Row i has the entries starts[i] .. starts[i + 1]
// - 1, by increasing column; none is zero. starts[rows] <= room, the capacity.
typedef struct tarn__entries {
  int32_t *starts;   // [rows + 1]
  int32_t *columns;  // [room]
  void *values;      // [room], F32, in BF16 models rounded to BF16, as products read them; F64 in the double reference
} tarn__entries;

static inline size_t tarn__entries_aligned(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

// The arrays within `value`; all NULL if `value` is NULL, as in a plan. The parameter must have `entries`.
static inline tarn__entries tarn__entries_at(const tarn__param *param, const void *value) {
  tarn__entries entries = {NULL, NULL, NULL};
  if (!value) return entries;
  char *at = (char *)(uintptr_t)value;
  entries.starts = (int32_t *)(void *)at;
  at += tarn__entries_aligned((size_t)(param->rows + 1) * sizeof(int32_t));
  entries.columns = (int32_t *)(void *)at;
  entries.values = at + tarn__entries_aligned((size_t)param->entries * sizeof(int32_t));
  return entries;
}

// Bytes of a parameter's value, dense or sparse.
size_t tarn__param_value_bytes(const tarn__param *param);

// The number of entries of a reservoir of n units; for topology random the expected number.
double tarn__reservoir_entries(int64_t n, const tarn__reservoir *reservoir);
// The degree of a reservoir's graph: ring, inputs per unit; small_world, half the neighbours of a unit; scale_free, the
// edges of a new unit.
int64_t tarn__reservoir_degree(int64_t n, const tarn__reservoir *reservoir);
// Capacity for an expected number of independent random entries: eight standard deviations more.
int64_t tarn__entries_room(double expected);
// Capacity for the entries of a reservoir: exact if their number is fixed.
int64_t tarn__reservoir_room(int64_t n, const tarn__reservoir *reservoir);

#endif
