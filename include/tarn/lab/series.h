// Echo state networks on series of real numbers: number tables, reservoirs, ridge regression, forecasts.
//
//   h_t = (1 - lr) h_{t-1} + lr f(W h_{t-1} + Win u_t + bias)     reservoir, h_{-1} = 0, frozen (Jaeger 2001)
//   y_t = Wout' h_t + b                                           forecast of u_{t+1}, trained in closed form
//
// Terms and conventions are those of reservoirpy 0.4; with the same matrices the results agree. All arithmetic is in
// double precision; equal options and series give equal results on one machine.
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

// A table of finite numbers, one row per time step.
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
  const char *columns;        // names or numbers (from 1), separated by commas; NULL: all columns
  char delimiter;             // between cells: ',', ';', '\t', '|', or ' ' (any number of spaces); 0: detected
  char decimal;               // decimal mark: '.' or ','; 0: detected
} tarn_series_format;

// Reads a table of numbers, one row per line ("-": standard input); `format` NULL: all fields 0. Cells may be quoted
// ("" is a quote inside). Without a header, columns are named by their numbers. A byte order mark and CR before LF are
// skipped. Delimiter and decimal mark are detected from the first lines, up to 1000: the combination that gives finite
// numbers in all selected columns, among commas, semicolons and tabs with points, semicolons and tabs with commas, and
// commas around quoted numbers with commas. If two do and the numbers differ, a header with commas decides for commas
// between columns; without one, DATA names the options to set. Fails with IO, MEMORY, USAGE (an unknown column, an
// ambiguous name, another delimiter or decimal mark), or DATA: a cell of the selected columns that is missing or not a
// finite decimal number, a line with another number of cells (the message gives line and column), no rows.
TARN_API tarn_status tarn_series_read(tarn_series **series, const char *path,
                                      const tarn_series_format *format) TARN_CHECKED;
// Writes a header and the rows, with enough digits to restore the same numbers. Fails with IO or MEMORY.
TARN_API tarn_status tarn_series_write(const tarn_series *series, const char *path) TARN_CHECKED;
TARN_API void tarn_series_close(tarn_series **series);

typedef enum tarn_series_system {
  TARN_SERIES_MACKEY_GLASS,  // x' = 0.2 x(t - tau) / (1 + x(t - tau)^10) - 0.1 x, x(t <= 0) = 1.2 (1977)
  TARN_SERIES_LORENZ         // x' = 10 (y - x), y' = x (28 - z) - y, z' = x y - 8/3 z, from (1, 1, 1) (1963)
} tarn_series_system;

typedef struct tarn_series_recipe {
  tarn_series_system system;
  int64_t rows;      // 1 .. 10^8
  int64_t discard;   // rows dropped at the start, 0 .. 10^8
  double dt;         // time between rows, above 0
  int64_t substeps;  // fourth-order Runge-Kutta steps in that time, 1 .. 10^6
  double tau;        // Mackey-Glass: the delay, 2 .. 10^7 times dt / substeps
} tarn_series_recipe;

// Mackey-Glass: 5000 rows, dt 1 in 10 steps, tau 17; Lorenz: 10000 rows, dt 0.02 in 4 steps; 1000 rows discarded.
TARN_API void tarn_series_recipe_default(tarn_series_recipe *recipe, tarn_series_system system);
// Columns x, or x, y and z. Delayed values at half steps use cubic interpolation. Fails with USAGE, NUMERIC (the steps
// are too large) or MEMORY.
TARN_API tarn_status tarn_series_generate(tarn_series **series, const tarn_series_recipe *recipe) TARN_CHECKED;

typedef enum tarn_esn_activation { TARN_ESN_TANH, TARN_ESN_RELU } tarn_esn_activation;

typedef struct tarn_esn_options {
  int64_t units;                   // 1 .. 16384; default 500
  double sr;                       // spectral radius of W, at least 0; default 0.9; 0: W is 0, units receive inputs
                                   // only
  double lr;                       // leak rate, above 0, at most 1; default 1
  double input_scaling;            // Win is uniform in +-input_scaling; above 0; default 1
  double bias_scaling;             // bias is uniform in +-bias_scaling, at least 0; default 0.5
  double input_connectivity;       // share of nonzero entries of Win, above 0, at most 1; default 1
  double rc_connectivity;          // the same for W, whose entries are normally distributed; default 0.1
  tarn_esn_activation activation;  // default TANH
  double ridge;                    // not divided by the number of samples; at least 0; default 1e-6
  uint64_t seed;                   // default 1
  int64_t warmup;                  // initial states excluded from the regression, 0 .. rows - 2; default 100
  bool standardize;                // scale columns to mean 0 and variance 1 over the training rows; default true
  const char *matrices;  // a safetensors file with F64 tensors W [units, units], Win [units, columns] and optionally
                         // bias [units] (default zero), which replace units, sr, the scalings and connectivities; NULL:
                         // none
} tarn_esn_options;

TARN_API void tarn_esn_default(tarn_esn_options *options);

typedef struct tarn_esn tarn_esn;

// A description of a network and of its regression.
typedef struct tarn_esn_info {
  int64_t units, columns, edges;  // edges: nonzero entries of W
  int64_t rows;                   // of the training series
  int64_t samples;                // states in the regression: rows - 1 - warmup
  double ridge;                   // as used: increased tenfold while the Cholesky factorisation fails
  double nrmse;                   // one step ahead on the training samples, by the variance over the training rows
} tarn_esn_info;

// Trains on the first `rows` rows: u_t is the input, u_{t+1} the target. Fails with USAGE (options), DATA (a series
// that is too short or has a constant column, a random reservoir without edges or nilpotent for an sr above 0, matrices
// that do not fit), NUMERIC, IO or MEMORY.
TARN_API tarn_status tarn_esn_train(tarn_esn **esn, const tarn_series *series, int64_t rows,
                                    const tarn_esn_options *options) TARN_CHECKED;
// Saves to and opens one safetensors file: W, Win, bias, Wout [units, columns], Wout_bias, mean, scale (all F64), the
// rest as metadata. Both fail with IO or MEMORY; open fails with DATA for another or a damaged file.
TARN_API tarn_status tarn_esn_save(const tarn_esn *esn, const char *path) TARN_CHECKED;
TARN_API tarn_status tarn_esn_open(tarn_esn **esn, const char *path) TARN_CHECKED;
TARN_API void tarn_esn_close(tarn_esn **esn);
TARN_API void tarn_esn_describe(const tarn_esn *esn, tarn_esn_info *info);
// The column names of the training series, [columns]; valid until close.
TARN_API const char *const *tarn_esn_names(const tarn_esn *esn);

typedef enum tarn_forecast_mode {
  TARN_FORECAST_CLOSED,   // generative: each forecast is the next input
  TARN_FORECAST_ONE_STEP  // the true row is the next input, so the series must have all rows but the last
} tarn_forecast_mode;

// Reads the rows before `from` (at least one) and forecasts the `steps` (at least one) rows `from`, `from` + 1, ...
// into *forecast, which the caller closes with tarn_series_close(). Rows are counted from 0. If a forecast diverges,
// the first row that is not finite and all later ones are NAN. Fails with USAGE (from, steps), DATA (other columns or
// column names, too few rows) or MEMORY.
TARN_API tarn_status tarn_esn_forecast(const tarn_esn *esn, tarn_series **forecast, const tarn_series *series,
                                       int64_t from, int64_t steps, tarn_forecast_mode mode) TARN_CHECKED;

// The reservoir alone, for readouts with other targets than the next row: its matrices, and its states on a series.
typedef struct tarn_reservoir tarn_reservoir;

// Draws a reservoir for rows of `columns` numbers, 1 .. 65536, like tarn_esn_train(): the same options give the same
// matrices; ridge, warmup and standardize have no effect. Fails like tarn_esn_train().
TARN_API tarn_status tarn_reservoir_open(tarn_reservoir **reservoir, int64_t columns,
                                         const tarn_esn_options *options) TARN_CHECKED;
TARN_API void tarn_reservoir_close(tarn_reservoir **reservoir);
// Number of units; with options.matrices, that of the file.
TARN_API int64_t tarn_reservoir_units(const tarn_reservoir *reservoir);
// Copies the matrices: w [units, units], win [units, columns], bias [units]; NULL ones are skipped.
TARN_API void tarn_reservoir_matrices(const tarn_reservoir *reservoir, double *w, double *win, double *bias);
// Reads `count` rows [count, columns] in turn and writes the state after each into states [count, units]. `state`
// [units] is the initial state, and is set to the last one; NULL: zeros. Fails with NUMERIC if a state is not finite,
// or MEMORY.
TARN_API tarn_status tarn_reservoir_states(const tarn_reservoir *reservoir, double *states, double *state,
                                           const double *rows, int64_t count) TARN_CHECKED;

// Ridge regression in closed form: fits y = x weights + bias to `count` samples x [count, inputs] and y [count,
// outputs]; weights are [inputs, outputs]; bias [outputs] is not penalised. `ridge`, at least 0, is not divided by the
// number of samples. It increases at least tenfold each time the Cholesky factorisation fails; *used is its final
// value. Fails with USAGE (sizes below 1, ridge), NUMERIC (numbers that are not finite) or MEMORY.
TARN_API tarn_status tarn_ridge_regress(double *weights, double *bias, double *used, const double *x, const double *y,
                                        int64_t count, int64_t inputs, int64_t outputs, double ridge) TARN_CHECKED;

// The error of a forecast, over the rows in both series.
typedef struct tarn_forecast_measures {
  int64_t rows;  // compared
  double nrmse;  // root of the mean over rows and columns of the squared error / the variance of the column over the
                 // true rows of the range; infinite for a forecast that diverged, NAN if a column is constant in the
                 // range
  int64_t valid_steps;  // rows before the normalised error first exceeds the threshold; `rows` if never
  bool valid_to_end;    // the threshold is never exceeded
} tarn_forecast_measures;

// A range of rows of a series.
typedef struct tarn_series_range {
  int64_t from, rows;  // rows past the end of the series do not count
} tarn_series_range;

// Compares a forecast with the rows of the series from row `from`. The variance of the NRMSE is that of the true rows
// of `range`; NULL: of the rows compared, as in Lukosevicius ("A practical guide to applying echo state networks",
// 2012) and in reservoirpy's nrmse (whose norm="var" divides by the variance and not by its root). A range serves
// several forecasts that are judged together. The normalised error of a row, which decides the valid time, is the root
// of the mean over columns of the squared error / the variance of the column over the whole series; over a few rows it
// would depend on their position. A valid time in Lyapunov times is valid_steps * dt * the largest Lyapunov exponent;
// the threshold, above 0, is usually 0.4. Fails with DATA (no common row, other columns or column names, a constant
// column of the series), USAGE (the threshold, a range outside the series) or MEMORY.
TARN_API tarn_status tarn_forecast_measure(tarn_forecast_measures *measures, const tarn_series *forecast,
                                           const tarn_series *series, int64_t from, const tarn_series_range *range,
                                           double threshold) TARN_CHECKED;

#ifdef __cplusplus
}
#endif
#endif
