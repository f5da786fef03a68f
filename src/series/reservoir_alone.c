// The reservoir without a readout, and ridge regression for external readouts.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "device/devices.h"
#include "optim/ridge.h"
#include "series/esn.h"

// A network whose readout is never used and whose inputs are not standardized.
struct tarn_reservoir {
  tarn_esn *esn;
};

enum { COLUMNS = 65536 };  // most columns

tarn_status tarn_reservoir_open(tarn_reservoir **out, int64_t columns, const tarn_esn_options *options) {
  void *memory;
  *out = NULL;
  TARN_REQUIRE(columns >= 1 && columns <= COLUMNS, USAGE, "a reservoir for %" PRId64 " columns: 1 .. %d is expected",
               columns, COLUMNS);
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof **out));
  *out = memory;
  const tarn_status status = tarn__esn_make(&(*out)->esn, options, columns);
  if (status != TARN_STATUS_OK) tarn_reservoir_close(out);
  return status;
}

void tarn_reservoir_close(tarn_reservoir **reservoir) {
  if (!*reservoir) return;
  tarn_esn_close(&(*reservoir)->esn);
  tarn__free(*reservoir);
  *reservoir = NULL;
}

int64_t tarn_reservoir_units(const tarn_reservoir *reservoir) { return reservoir->esn->info.units; }

void tarn_reservoir_matrices(const tarn_reservoir *reservoir, double *w, double *win, double *bias) {
  const tarn_esn *esn = reservoir->esn;
  const size_t units = (size_t)esn->info.units;
  if (w) tarn__sparse_to_dense(w, &esn->w);
  if (win) memcpy(win, esn->win, units * (size_t)esn->info.columns * sizeof *win);
  if (bias) memcpy(bias, esn->bias, units * sizeof *bias);
}

static tarn_status run(const tarn_esn *esn, double *states, double *state, const double *rows, int64_t count,
                       double *work) {
  const int64_t units = esn->info.units, columns = esn->info.columns;
  for (int64_t t = 0; t < count; t++) {
    tarn__esn_step(esn, state, rows + t * columns, work);
    for (int64_t i = 0; i < units; i++)
      TARN_REQUIRE(isfinite(state[i]), NUMERIC,
                   "the state of the reservoir after row %" PRId64
                   " is not finite: the row is not, or the spectral radius is too large",
                   t);
    memcpy(states + t * units, state, (size_t)units * sizeof *state);
  }
  return TARN_STATUS_OK;
}

tarn_status tarn_reservoir_states(const tarn_reservoir *reservoir, double *states, double *state, const double *rows,
                                  int64_t count) {
  const tarn_esn *esn = reservoir->esn;
  const int64_t units = esn->info.units;
  void *work;
  TARN_TRY(tarn__alloc(&work, TARN__MEMORY_OTHER, (size_t)(2 * units + esn->info.columns), sizeof(double)));
  double *own = work;
  const tarn_status status = run(esn, states, state ? state : own, rows, count, own + units);
  tarn__free(work);
  return status;
}

tarn_status tarn_ridge_regress(double *weights, double *bias, double *used, const double *x, const double *y,
                               int64_t count, int64_t inputs, int64_t outputs, double ridge) {
  TARN_REQUIRE(count >= 1 && inputs >= 1 && outputs >= 1, USAGE,
               "a regression of %" PRId64 " samples with %" PRId64 " inputs and %" PRId64
               " outputs: each must be 1 or more",
               count, inputs, outputs);
  TARN_REQUIRE(isfinite(ridge) && ridge >= 0, USAGE, "ridge %g: a number that is not negative is expected", ridge);
  const tarn__device *device;
  TARN_TRY(tarn__device_default(&device, TARN__F32));  // sums are in double on every device
  tarn__ridge sums;
  TARN_TRY(tarn__ridge_open(&sums, device, inputs, outputs));
  tarn_status status = TARN_STATUS_OK;
  for (int64_t i = 0; status == TARN_STATUS_OK && i < count; i++)
    status = tarn__ridge_add(&sums, x + i * inputs, y + i * outputs);
  if (status == TARN_STATUS_OK) status = tarn__ridge_solve(weights, bias, used, &sums, ridge);
  tarn__ridge_close(&sums);
  TARN_TRY(status);
  for (int64_t c = 0; c < outputs; c++)  // of a column that has one number that is not finite nothing is
    TARN_REQUIRE(isfinite(bias[c]) && isfinite(weights[c]), NUMERIC, "output %" PRId64 ": not all numbers are finite",
                 c);
  return status;
}
