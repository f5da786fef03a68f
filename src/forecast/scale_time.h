// The equations of tarn/lab/forecast.h.
#ifndef TARN_FORECAST_SCALE_TIME_H
#define TARN_FORECAST_SCALE_TIME_H

#include "tarn/lab/forecast.h"

// A table of which only used rows are sent.
typedef struct tarn__scale_table {
  size_t part;  // its place in tarn_scale.parts
  int64_t rows, cols;
  double tokens;         // looked up by one rank in an update
  const double *shares;  // [rows] of the tokens of the data; NULL: unknown, each token counts as a different row
} tarn__scale_table;

typedef struct tarn__scale_memory {
  tarn__scale_table *tables;
  size_t table_count;
  double *shares[2];    // of the sides; NULL: not needed or unknown
  double *part_values;  // [count, part_count]
  size_t output;        // the output layer's place in tarn_scale.parts; 0: none
} tarn__scale_memory;

// Seconds of a call's status word, of an exchange of `bytes` and of gathering them, among `ranks`.
double tarn__scale_word(const tarn_scale *scale, int ranks);
double tarn__scale_exchange(const tarn_scale *scale, int ranks, double bytes);
double tarn__scale_gather(const tarn_scale *scale, int ranks, double bytes);

// Expected used rows of a table if so many tokens are looked up.
double tarn__scale_used_rows(const tarn__scale_table *table, double tokens);

// Fills everything for point->ranks except the memory; point->part_values belongs to the caller.
void tarn__scale_point(tarn_scale_point *point, const tarn_scale *scale);

#endif
