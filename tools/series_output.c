#include "series_output.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "json_output.h"

int series_print_training(const cli_command *command, const tarn_esn *esn, const tarn_forecast_measures *test,
                          double ridge, bool json) {
  tarn_esn_info info;
  tarn_esn_describe(esn, &info);
  if (json) {
    json_t *object =
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:f, s:o}", "units", (json_int_t)info.units, "edges",
                  (json_int_t)info.edges, "columns", (json_int_t)info.columns, "rows", (json_int_t)info.rows, "samples",
                  (json_int_t)info.samples, "ridge", info.ridge, "nrmse", json_output_real(info.nrmse));
    if (object && test->rows) json_object_set_new(object, "test_rows", json_integer(test->rows));
    if (object && test->rows) json_object_set_new(object, "test_nrmse", json_output_real(test->nrmse));
    return json_output_print(command, stdout, object, JSON_COMPACT);
  }
  printf("reservoir    %" PRId64 " units, %" PRId64 " edges, %" PRId64 " columns\n", info.units, info.edges,
         info.columns);
  printf("regression   %" PRId64 " samples, ridge %g", info.samples, info.ridge);
  if (info.ridge != ridge) printf(" (grown from %g, with which the factorisation failed)", ridge);
  printf("\ntraining     NRMSE %.3e one step ahead, by the variance of the training rows\n", info.nrmse);
  if (test->rows && !isnan(test->nrmse))
    printf("test         NRMSE %.3e one step ahead, by the variance of its %" PRId64 " rows\n", test->nrmse,
           test->rows);
  else if (test->rows)
    printf("test         no NRMSE: a column does not vary in its %" PRId64 " rows\n", test->rows);
  return CLI_OK;
}

// The forecasts with the columns start and row before those of the series; row counts from 0 like --from.
static tarn_status write_file(const series_forecasts *f, const char *const *names) {
  int64_t columns = f->all->columns + 2, rows = 0;
  char start[] = "start", row[] = "row";
  tarn_series table = {f->all->rows, columns, malloc((size_t)columns * sizeof(char *)), NULL};
  table.values = malloc((size_t)(f->all->rows * columns) * sizeof(double));
  tarn_status status = TARN_STATUS_MEMORY;
  if (table.names && table.values) {
    table.names[0] = start;
    table.names[1] = row;
    for (int64_t c = 2; c < columns; c++) table.names[c] = (char *)(uintptr_t)names[c - 2];
    for (int64_t r = 0; r < f->all->rows; r++) {
      if (isnan(f->all->values[r * (columns - 2)])) continue;  // diverged
      double *out = table.values + rows++ * columns;
      out[0] = (double)(r / f->steps + 1);
      out[1] = (double)(f->from + r);
      for (int64_t c = 2; c < columns; c++) out[c] = f->all->values[r * (columns - 2) + c - 2];
    }
    table.rows = rows;
    status = tarn_series_write(&table, f->output);
  }
  free(table.names);
  free(table.values);
  return status;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

typedef struct summary {
  int64_t count, unbroken;  // count: forecasts with true values; unbroken: those valid to their end
  int64_t rows;             // compared
  double nrmse, valid, median, least, most;
} summary;

static bool sum_up(summary *sum, const series_forecasts *f) {
  summary s = {0};
  double *times = malloc((size_t)f->starts * sizeof *times);
  if (!times) return false;
  for (int64_t i = 0; i < f->starts; i++) {
    const tarn_forecast_measures *m = &f->measures[i];
    if (!m->rows) continue;
    s.nrmse += m->nrmse;
    s.rows += m->rows;
    s.unbroken += m->valid_to_end;
    times[s.count] = (double)m->valid_steps * f->dt;
    s.valid += times[s.count++];
  }
  if (s.count) {
    qsort(times, (size_t)s.count, sizeof *times, by_value);
    s.nrmse /= (double)s.count;
    s.valid /= (double)s.count;
    s.median = (times[(s.count - 1) / 2] + times[s.count / 2]) / 2;
    s.least = times[0];
    s.most = times[s.count - 1];
  }
  free(times);
  *sum = s;
  return true;
}

static int print_summary_json(const cli_command *command, const series_forecasts *f, const summary *s) {
  json_t *object = json_pack("{s:I, s:I, s:I, s:I}", "from", (json_int_t)f->from, "steps", (json_int_t)f->steps,
                             "starts", (json_int_t)f->starts, "diverged", (json_int_t)f->diverged);
  if (object && s->count) {
    json_object_set_new(object, "nrmse", json_output_real(s->nrmse));
    json_object_set_new(object, "threshold", json_real(f->threshold));
    json_object_set_new(object, "valid_time", json_real(s->valid));
    json_object_set_new(object, "valid_time_median", json_real(s->median));
    json_object_set_new(object, "valid_to_end", json_integer(s->unbroken));
    if (!isnan(f->lyapunov)) json_object_set_new(object, "valid_lyapunov_times", json_real(s->valid * f->lyapunov));
  }
  return json_output_print(command, stdout, object, JSON_COMPACT);
}

int series_print_forecasts(const cli_command *command, const series_forecasts *f, const char *const *names) {
  if (f->output) {
    tarn_status status = write_file(f, names);
    if (status != TARN_STATUS_OK) return cli_report(command, status);
  }
  summary s;
  if (!sum_up(&s, f)) return cli_no_memory(command);
  if (f->json) return print_summary_json(command, f, &s);
  printf("forecast     %" PRId64 " times %" PRId64 " steps from row %" PRId64 "\n", f->starts, f->steps, f->from);
  if (f->diverged) printf("diverged     %" PRId64 " of %" PRId64 "\n", f->diverged, f->starts);
  if (!s.count) return CLI_OK;
  if (isnan(s.nrmse))
    printf("NRMSE        none: a column does not vary in the rows compared\n");
  else
    printf("NRMSE        %.4g by the variance of the %" PRId64 " rows compared\n", s.nrmse, s.rows);
  printf("valid time   %.4g", s.valid);
  if (!isnan(f->lyapunov)) printf(" = %.3g Lyapunov times", s.valid * f->lyapunov);
  printf(" (normalised error up to %g)", f->threshold);
  if (s.count > 1) printf("; median %.4g, %.4g to %.4g", s.median, s.least, s.most);
  putchar('\n');
  if (s.unbroken)
    printf("             %" PRId64 " of %" PRId64 " forecasts were valid to their end\n", s.unbroken, s.count);
  return CLI_OK;
}
