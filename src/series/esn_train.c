// Teacher forcing and the regression of the readout.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/work.h"
#include "device/devices.h"
#include "optim/ridge.h"
#include "series/esn.h"
#include "series/measure.h"

static tarn_status standardize(tarn_esn *esn, const tarn_series *series, int64_t rows) {
  TARN_TRY(tarn__column_moments(esn->mean, esn->scale, series, rows));
  for (int64_t c = 0; c < series->columns; c++) esn->scale[c] = sqrt(esn->scale[c]);
  return TARN_STATUS_OK;
}

// Runs the state through rows 0 .. rows - 2 and adds samples to `sums` or, without `sums`, sums errors: the two halves
// of the training.
static tarn_status pass(const tarn_esn *esn, tarn__ridge *sums, double *squares, const tarn_series *series,
                        double *room, tarn__work *work) {
  int64_t n = esn->info.units, d = esn->info.columns;
  double *state = room, *step = state + n, *row = step + n + d;
  const double half = (double)esn->info.rows, before = sums ? 0.0 : half;
  memset(state, 0, (size_t)n * sizeof *state);
  for (int64_t t = 0; t + 1 < esn->info.rows; t++) {
    tarn__esn_step(esn, state, series->values + t * d, step);
    tarn__work_at(work, before + (double)t, (before + (double)t) / (2.0 * half));
    if (t < esn->warmup) continue;
    const double *next = series->values + (t + 1) * d;
    if (!sums) tarn__esn_read(esn, row, state);
    for (int64_t c = 0; c < d; c++) {
      if (sums)
        row[c] = (next[c] - esn->mean[c]) / esn->scale[c];
      else
        squares[c] += (row[c] - next[c]) * (row[c] - next[c]);
    }
    if (sums) TARN_TRY(tarn__ridge_add(sums, state, row));
  }
  for (int64_t i = 0; i < n; i++)
    TARN_REQUIRE(isfinite(state[i]), NUMERIC,
                 "the states of the reservoir grow without bounds; lower its spectral radius");
  return TARN_STATUS_OK;
}

static tarn_status fit(tarn_esn *esn, const tarn_series *series, double penalty, double *room, tarn__work *work) {
  int64_t d = esn->info.columns;
  double *squares = room + 2 * esn->info.units + 2 * d, *mean = squares + d, *variance = mean + d;
  TARN_TRY(tarn__column_moments(mean, variance, series, esn->info.rows));
  const tarn__device *device;
  TARN_TRY(tarn__device_default(&device, TARN__F32));  // sums are in double on every device
  tarn__ridge sums;
  TARN_TRY(tarn__ridge_open(&sums, device, esn->info.units, d));
  tarn_status status = pass(esn, &sums, NULL, series, room, work);
  if (status == TARN_STATUS_OK) status = tarn__ridge_solve(esn->wout, esn->readout, &esn->info.ridge, &sums, penalty);
  tarn__ridge_close(&sums);
  TARN_TRY(status);
  memset(squares, 0, (size_t)d * sizeof *squares);
  TARN_TRY(pass(esn, NULL, squares, series, room, work));
  double sum = 0;
  for (int64_t c = 0; c < d; c++) sum += squares[c] / variance[c];
  esn->info.nrmse = sqrt(sum / (double)(esn->info.samples * d));
  TARN_REQUIRE(isfinite(esn->info.nrmse), NUMERIC, "the error of the readout is not finite");
  return TARN_STATUS_OK;
}

static tarn_status train(tarn_esn *esn, const tarn_series *series, int64_t rows, const tarn_esn_options *options) {
  esn->info.rows = rows;
  esn->info.samples = rows - 1 - options->warmup;
  TARN_TRY(tarn__esn_name(esn, (const char *const *)series->names));
  if (options->standardize) TARN_TRY(standardize(esn, series, rows));
  void *room;
  tarn__work work;
  TARN_TRY(
      tarn__alloc(&room, TARN__MEMORY_OTHER, (size_t)(2 * esn->info.units + 5 * esn->info.columns), sizeof(double)));
  tarn__work_begin(&work, "fitting the readout", "rows");
  tarn_status status = fit(esn, series, options->ridge, room, &work);
  tarn__work_end(&work);
  tarn__free(room);
  return status;
}

tarn_status tarn_esn_train(tarn_esn **esn, const tarn_series *series, int64_t rows, const tarn_esn_options *options) {
  *esn = NULL;
  TARN_REQUIRE(rows >= 1 && rows <= series->rows, USAGE, "training on %" PRId64 " rows of a series that has %" PRId64,
               rows, series->rows);
  TARN_REQUIRE(options->warmup < 0 || rows - 2 >= options->warmup, DATA,
               "%" PRId64 " training rows leave no sample behind a warmup of %" PRId64, rows, options->warmup);
  TARN_TRY(tarn__esn_make(esn, options, series->columns));
  tarn_status status = train(*esn, series, rows, options);
  if (status != TARN_STATUS_OK) tarn_esn_close(esn);
  return status;
}
