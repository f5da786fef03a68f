// Conversion of parameters stored as their entries (graph/entries.h) to and from other representations.
#ifndef TARN_INIT_ENTRIES_INIT_H
#define TARN_INIT_ENTRIES_INIT_H

#include "base/hash.h"
#include "base/sparse.h"
#include "graph/entries.h"

// The entries of a square matrix, rounded to float and to the parameter's type. Fails with INTERNAL if the parameter
// has too little space, and with failures of the device's memory.
tarn_status tarn__entries_set(tarn__param *param, const tarn__sparse *matrix) TARN_CHECKED;

// Adds values number first .. first + count - 1 of the dense matrix to the entries, if not zero in the parameter's
// type. All values must come in order. Fails with DATA if there is too little space.
tarn_status tarn__entries_append(tarn__param *param, size_t first, const float *values, size_t count) TARN_CHECKED;

// The dense matrix [rows, cols].
tarn_status tarn__entries_get(const tarn__param *param, float *values) TARN_CHECKED;

// The hash of the floats of the dense matrix, which is generated row by row.
tarn_status tarn__entries_hash(char text[TARN__HASH_TEXT], const tarn__sparse *matrix) TARN_CHECKED;

#endif
