// The equations of tarn/lab/forecast.h.
#ifndef TARN_FORECAST_SCALE_TIME_H
#define TARN_FORECAST_SCALE_TIME_H

#include "tarn/lab/forecast.h"

// A table of which only rows in use travel.
typedef struct tarn__scale_table {
  size_t part;  // its place in tarn_scale.parts
  int64_t rows, cols;
  double tokens;         // that one rank looks up in an update
  const double *shares;  // [rows] of the tokens of the data; NULL: not known, each token counts as another row
} tarn__scale_table;

typedef struct tarn__scale_memory {
  tarn__scale_table *tables;
  size_t table_count;
  double *shares[2];    // of the sides; NULL: not needed or not known
  double *part_values;  // [count, part_count]
  size_t output;        // the output layer's place in tarn_scale.parts; 0: there is none
} tarn__scale_memory;

// Seconds of the status word that a call begins with, of an exchange of `bytes` and of gathering them, among `ranks`.
double tarn__scale_word(const tarn_scale *scale, int ranks);
double tarn__scale_exchange(const tarn_scale *scale, int ranks, double bytes);
double tarn__scale_gather(const tarn_scale *scale, int ranks, double bytes);

// Rows of a table that are expected to be in use where so many tokens are looked up.
double tarn__scale_used_rows(const tarn__scale_table *table, double tokens);

// Fills everything of point->ranks but the memory; point->part_values is the caller's.
void tarn__scale_point(tarn_scale_point *point, const tarn_scale *scale);

#endif
