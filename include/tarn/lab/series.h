// Echo state networks on series of real numbers: tables of numbers, the reservoir, its ridge regression, forecasts.
//
//   h_t = (1 - lr) h_{t-1} + lr f(W h_{t-1} + Win u_t + bias)     reservoir, h_{-1} = 0, frozen (Jaeger 2001)
//   y_t = Wout' h_t + b                                           forecast of u_{t+1}, trained in closed form
//
// Words and conventions are those of reservoirpy 0.4, whose results come out with the same matrices. All arithmetic is
// in double precision; equal options and series give equal results on one machine.
//
//   tarn_series *series;
//   status = tarn_series_read(&series, "lorenz.csv", NULL);
//   tarn_esn_options options;
//   tarn_esn_default(&options);
//   tarn_esn *esn;
//   status = tarn_esn_train(&esn, series, 8000, &options);
//   tarn_series *forecast;
//   status = tarn_esn_forecast(esn, &forecast, series, 8000, 1000, TARN_FORECAST_CLOSED);
//   tarn_forecast_measures measures;
//   status = tarn_forecast_measure(&measures, forecast, series, 8000, NULL, 0.4);
#ifndef TARN_LAB_SERIES_H
#define TARN_LAB_SERIES_H

#include <stdbool.h>
#include <stdint.h>

#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// A table of finite numbers, one row a point in time.
typedef struct tarn_series {
  int64_t rows, columns;
  char **names;    // [columns]
  double *values;  // [rows, columns], row-major
} tarn_series;

typedef enum tarn_series_header {
  TARN_SERIES_HEADER_AUTO,
  TARN_SERIES_HEADER_YES,
  TARN_SERIES_HEADER_NO
} tarn_series_header;

typedef struct tarn_series_format {
  tarn_series_header header;  // AUTO: the first line is a header if no cell of it is empty or a number (nan, inf)
  const char *columns;        // names or numbers (from 1) with commas between them; NULL: all columns
  char delimiter;             // between cells: ',', ';', '\t', '|', or ' ' (any number of blanks); 0: found out
  char decimal;               // decimal mark: '.' or ','; 0: found out
} tarn_series_format;

// Reads a table of numbers, a line a row ("-": standard input); `format` NULL: all of it is 0. Cells may be quoted (""
// is a quote there). Without a header columns are named by their numbers; a byte order mark and CR before LF are left
// out. Delimiter and decimal mark are found out by the first lines, up to 1000: whichever of commas, semicolons and
// tabs with points, or semicolons and tabs with commas, or commas around quoted numbers with commas, gives finite
// numbers in all of these columns. Where two do and the numbers differ, a header with commas decides for commas between
// columns; without one, DATA says what to give. Fails with IO, MEMORY, USAGE (a column that is not there, a name of two
// columns, another delimiter or decimal mark), or DATA: a cell of these columns that is missing or no finite decimal
// number, a line with another number of cells (line and column are named), no rows.
TARN_API tarn_status tarn_series_read(tarn_series **series, const char *path,
                                      const tarn_series_format *format) TARN_CHECKED;
// Writes a header and the rows, with as many digits as give back the same numbers. Fails with IO or MEMORY.
TARN_API tarn_status tarn_series_write(const tarn_series *series, const char *path) TARN_CHECKED;
TARN_API void tarn_series_close(tarn_series **series);

typedef enum tarn_series_system {
  TARN_SERIES_MACKEY_GLASS,  // x' = 0.2 x(t - tau) / (1 + x(t - tau)^10) - 0.1 x, x(t <= 0) = 1.2 (1977)
  TARN_SERIES_LORENZ         // x' = 10 (y - x), y' = x (28 - z) - y, z' = x y - 8/3 z, from (1, 1, 1) (1963)
} tarn_series_system;

typedef struct tarn_series_recipe {
  tarn_series_system system;
  int64_t rows;      // 1 .. 10^8
  int64_t discard;   // rows left out at the beginning, 0 .. 10^8
  double dt;         // time between rows, above 0
  int64_t substeps;  // steps of Runge and Kutta's fourth-order method in that time, 1 .. 10^6
  double tau;        // of Mackey-Glass: the delay, 2 .. 10^7 times dt / substeps
} tarn_series_recipe;

// Mackey-Glass: 5000 rows, dt 1 in 10 steps, tau 17; Lorenz: 10000 rows, dt 0.02 in 4 steps; 1000 rows discarded.
TARN_API void tarn_series_recipe_default(tarn_series_recipe *recipe, tarn_series_system system);
// Columns x, or x, y and z. Delayed values at half steps are interpolated by a cubic. Fails with USAGE, NUMERIC (the
// steps are too large) or MEMORY.
TARN_API tarn_status tarn_series_generate(tarn_series **series, const tarn_series_recipe *recipe) TARN_CHECKED;

typedef enum tarn_esn_activation { TARN_ESN_TANH, TARN_ESN_RELU } tarn_esn_activation;

typedef struct tarn_esn_options {
  int64_t units;                   // 1 .. 16384; default 500
  double sr;                       // spectral radius of W, at least 0; default 0.9; 0: W is 0, units hear inputs alone
  double lr;                       // leak rate, above 0, at most 1; default 1
  double input_scaling;            // Win is uniform in +-input_scaling; above 0; default 1
  double bias_scaling;             // bias is uniform in +-bias_scaling, at least 0; default 0.5
  double input_connectivity;       // share of entries of Win that are not zero, above 0, at most 1; default 1
  double rc_connectivity;          // the same of W, whose entries are normally distributed; default 0.1
  tarn_esn_activation activation;  // default TANH
  double ridge;                    // of the regression, not divided by the number of samples; at least 0; default 1e-6
  uint64_t seed;                   // default 1
  int64_t warmup;                  // first states that are not regressed on, 0 .. rows - 2; default 100
  bool standardize;                // columns get mean 0 and variance 1 over the training rows; default true
  const char *matrices;  // a safetensors file with F64 tensors W [units, units], Win [units, columns] and, if not zero,
                         // bias [units], which stand in place of units, sr, the scalings and connectivities; NULL: none
} tarn_esn_options;

TARN_API void tarn_esn_default(tarn_esn_options *options);

typedef struct tarn_esn tarn_esn;

// What a network is and how its regression went.
typedef struct tarn_esn_info {
  int64_t units, columns, edges;  // edges: entries of W
  int64_t rows;                   // of the series that it was trained on
  int64_t samples;                // states in the regression: rows - 1 - warmup
  double ridge;                   // that was used: grown tenfold as long as Cholesky's factorisation failed
  double nrmse;                   // one step ahead over the training samples, by the variance over the training rows
} tarn_esn_info;

// Trains on the first `rows` rows: u_t is read, u_{t+1} is the target. Fails with USAGE (options), DATA (series too
// short or a column of it constant, a reservoir that was drawn without edges or nilpotent for an sr above 0, matrices
// that do not fit), NUMERIC, IO or MEMORY.
TARN_API tarn_status tarn_esn_train(tarn_esn **esn, const tarn_series *series, int64_t rows,
                                    const tarn_esn_options *options) TARN_CHECKED;
// Saves to and opens one safetensors file: W, Win, bias, Wout [units, columns], Wout_bias, mean, scale (all F64), the
// rest as metadata. Both fail with IO or MEMORY, and open with DATA for another file or a damaged one.
TARN_API tarn_status tarn_esn_save(const tarn_esn *esn, const char *path) TARN_CHECKED;
TARN_API tarn_status tarn_esn_open(tarn_esn **esn, const char *path) TARN_CHECKED;
TARN_API void tarn_esn_close(tarn_esn **esn);
TARN_API void tarn_esn_describe(const tarn_esn *esn, tarn_esn_info *info);
// The names of the columns that it was trained on, [columns]; valid until close.
TARN_API const char *const *tarn_esn_names(const tarn_esn *esn);

typedef enum tarn_forecast_mode {
  TARN_FORECAST_CLOSED,   // generative: each forecast is the next input
  TARN_FORECAST_ONE_STEP  // the true row is the next input, so the series must have rows up to the last but one
} tarn_forecast_mode;

// Reads the rows before `from` (at least one) and forecasts the `steps` (at least one) rows `from`, `from` + 1, ...
// into *forecast, which the caller closes with tarn_series_close(). Rows are counted from 0. Where a forecast diverges,
// the first row that is not finite and all behind it are NAN. Fails with USAGE (from, steps), DATA (other columns or
// other names of them, too few rows) or MEMORY.
TARN_API tarn_status tarn_esn_forecast(const tarn_esn *esn, tarn_series **forecast, const tarn_series *series,
                                       int64_t from, int64_t steps, tarn_forecast_mode mode) TARN_CHECKED;

// The reservoir alone, for readouts with targets other than the next row: its matrices, and its states on a series.
typedef struct tarn_reservoir tarn_reservoir;

// Draws a reservoir for rows of `columns` numbers, 1 .. 65536, as tarn_esn_train() does: the same options give the same
// matrices; ridge, warmup and standardize have no influence. Fails like tarn_esn_train().
TARN_API tarn_status tarn_reservoir_open(tarn_reservoir **reservoir, int64_t columns,
                                         const tarn_esn_options *options) TARN_CHECKED;
TARN_API void tarn_reservoir_close(tarn_reservoir **reservoir);
// Number of its units; with options.matrices, that of the file.
TARN_API int64_t tarn_reservoir_units(const tarn_reservoir *reservoir);
// Copies the matrices: w [units, units], win [units, columns], bias [units]; those that are NULL are left out.
TARN_API void tarn_reservoir_matrices(const tarn_reservoir *reservoir, double *w, double *win, double *bias);
// Reads `count` rows [count, columns] one after another and writes the state after each into states [count, units].
// `state` [units] is the state before the first row, and is set to that after the last; NULL: it begins with zeros.
// Fails with NUMERIC if a state is not finite, or MEMORY.
TARN_API tarn_status tarn_reservoir_states(const tarn_reservoir *reservoir, double *states, double *state,
                                           const double *rows, int64_t count) TARN_CHECKED;

// Ridge regression in closed form: fits y = x weights + bias to `count` samples x [count, inputs] and y [count,
// outputs]; weights are [inputs, outputs], and bias [outputs] is not penalised. `ridge`, at least 0, is not divided by
// the number of samples; it grows at least tenfold each time that the Cholesky factorisation fails, and *used is
// its final value. Fails with USAGE (sizes below 1, ridge), NUMERIC (numbers that are not finite) or MEMORY.
TARN_API tarn_status tarn_ridge_regress(double *weights, double *bias, double *used, const double *x, const double *y,
                                        int64_t count, int64_t inputs, int64_t outputs, double ridge) TARN_CHECKED;

// How far a forecast is from what came, over the rows that are in both.
typedef struct tarn_forecast_measures {
  int64_t rows;  // compared
  double nrmse;  // root of the mean over rows and columns of the squared error / the variance of the column over
                 // the true rows of the range; infinite for a forecast that diverged, NAN where a column does not
                 // vary in the range
  int64_t valid_steps;  // rows before the normalised error first exceeds the threshold; `rows` if it never does
  bool valid_to_end;    // it never does
} tarn_forecast_measures;

// Rows of a series.
typedef struct tarn_series_range {
  int64_t from, rows;  // those behind the end of the series do not count
} tarn_series_range;

// Compares a forecast with the rows of the series from row `from` on. The variance of the NRMSE is that of the true
// rows of `range`; NULL: of the rows compared, as in Lukosevicius ("A practical guide to applying echo state networks",
// 2012) and as reservoirpy's nrmse takes it (whose norm="var" divides by the variance and not by its root). A range is
// for several forecasts that are judged together. The normalised error of a row, which decides the valid time, is the
// root of the mean over columns of the squared error / the variance of the column over the whole series: over a few
// rows it would depend on where they lie. A valid time in Lyapunov times is valid_steps * dt * the largest Lyapunov
// exponent; the threshold, above 0, is usually 0.4. Fails with DATA (no common row, other columns or other names of
// them, a column of the series that is constant), USAGE (the threshold, a range outside the series) or MEMORY.
TARN_API tarn_status tarn_forecast_measure(tarn_forecast_measures *measures, const tarn_series *forecast,
                                           const tarn_series *series, int64_t from, const tarn_series_range *range,
                                           double threshold) TARN_CHECKED;

#ifdef __cplusplus
}
#endif
#endif
