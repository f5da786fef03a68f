// The echo state network behind tarn/lab/series.h: its matrices, its step, its readout.
#ifndef TARN_SERIES_ESN_H
#define TARN_SERIES_ESN_H

#include "base/sparse.h"
#include "base/status.h"
#include "tarn/lab/series.h"

enum { TARN__ESN_UNITS = 16384 };  // most units

struct tarn_esn {
  tarn_esn_info info;  // units and columns are those of the matrices
  tarn_esn_activation activation;
  double lr;
  int64_t warmup;
  uint64_t seed;
  tarn__sparse w;                       // [units, units]
  double *win, *bias, *wout, *readout;  // [units, columns], [units], [units, columns], [columns]
  double *mean, *scale;                 // [columns]; the network sees (u - mean) / scale
  char **names;                         // [columns]
};

// A network of zeros without W and names, with all other arrays.
tarn_status tarn__esn_new(tarn_esn **esn, int64_t units, int64_t columns) TARN_CHECKED;
// Copies of the names of all columns.
tarn_status tarn__esn_name(tarn_esn *esn, const char *const *names) TARN_CHECKED;

// A network with random matrices, or those of options->matrices, for a series with `columns` columns.
tarn_status tarn__esn_make(tarn_esn **esn, const tarn_esn_options *options, int64_t columns) TARN_CHECKED;

// The next state from a row of the series. `work` has space for units + columns numbers.
void tarn__esn_step(const tarn_esn *esn, double *state, const double *row, double *work);
// The forecast, in units of the series.
void tarn__esn_read(const tarn_esn *esn, double *row, const double *state);

#endif
