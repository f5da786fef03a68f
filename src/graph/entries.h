// Frozen sparse matrices that are stored as their entries: row by row (CSR), in memory that these entries take, however
// many rows and columns there are. Everybody else sees a parameter [rows, cols]: its first values, their hash and its
// line in a checkpoint are those of the dense matrix.
#ifndef TARN_GRAPH_ENTRIES_H
#define TARN_GRAPH_ENTRIES_H

#include "graph/param.h"

// In a parameter's `value`, each part aligned to 64 bytes. Row i has the entries starts[i] .. starts[i + 1] - 1, by
// growing column; none is zero. starts[rows] <= room of the places behind are used.
typedef struct tarn__entries {
  int32_t *starts;   // [rows + 1]
  int32_t *columns;  // [room]
  void *values;      // [room], F32, of BF16 rounded to it, as products read them; F64 in the double reference
} tarn__entries;

// The parts in memory of the parameter's value; all NULL where there is none, as in a plan. The parameter has
// `entries`.
tarn__entries tarn__entries_at(const tarn__param *param, const void *value);

// Bytes of a parameter's value, however it is stored.
size_t tarn__param_value_bytes(const tarn__param *param);

// How many entries a reservoir of n units has, exactly, or of topology random is expected to have.
double tarn__reservoir_entries(int64_t n, const tarn__reservoir *reservoir);
// The numbers its graph is made by: ring, how many each unit hears; small_world, half of how many each unit knows;
// scale_free, how many a new unit knows.
int64_t tarn__reservoir_degree(int64_t n, const tarn__reservoir *reservoir);
// Room that so many expected entries need where each is there or not by a chance of its own: eight standard deviations
// more.
int64_t tarn__entries_room(double expected);
// Room for the entries of a reservoir: exactly those that there are, where that is known.
int64_t tarn__reservoir_room(int64_t n, const tarn__reservoir *reservoir);

#endif
