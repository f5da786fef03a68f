// Series of numbers: reading and its refusals, the example systems, ridge regression, echo state networks.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/threads.h"
#include "device/devices.h"
#include "init/spectral_radius.h"
#include "optim/ridge.h"
#include "sandbox.h"
#include "series/esn.h"
#include "series/table.h"
#include "store/safetensors.h"

static void must(tarn_status status) {
  if (status != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
}

static void refused(tarn_status status, tarn_status expected, const char *text) {
  if (status != expected) fail_msg("status %d, expected %d (%s)", (int)status, (int)expected, text);
  if (!strstr(tarn_error_message(), text)) fail_msg("\"%s\" does not say \"%s\"", tarn_error_message(), text);
}

// --- tables
// -----------------------------------------------------------------------------------------------------------

static tarn_status read_text(tarn_series **series, const char *text, tarn_series_header header, const char *columns) {
  sandbox_write("t.csv", text, strlen(text));
  tarn_series_format format = {.header = header, .columns = columns};
  return tarn_series_read(series, "t.csv", &format);
}

static void expect_table(const char *text, const char *columns, int64_t rows, int64_t width, const char *first,
                         double last) {
  tarn_series *s;
  must(read_text(&s, text, TARN_SERIES_HEADER_AUTO, columns));
  assert_int_equal(s->rows, rows);
  assert_int_equal(s->columns, width);
  assert_string_equal(s->names[0], first);
  assert_true(s->values[rows * width - 1] == last);
  tarn_series_close(&s);
  assert_null(s);
}

static void reads_tables(void **state) {
  (void)state;
  expect_table("a,b\n1,2\n3,4\n", NULL, 2, 2, "a", 4);
  expect_table("1,-2\n3,4", NULL, 2, 2, "1", 4);
  expect_table(" \"x y\" , b \r\n -1e-3 ,\"2\"\r\n\r\n", NULL, 1, 2, "x y", 2);
  expect_table("a,b,c\n1,no,3\n4,,6\n", "c,a", 2, 2, "c", 4);
  expect_table("a,b,c\n1,2,3\n", "2", 1, 1, "b", 2);
  expect_table("x,y,x\n1,2,3\n", "y", 1, 1, "y", 2);
  expect_table("x,y,x\n1,2,3\n", "3", 1, 1, "x", 3);
  expect_table("2,1\n5,6\n", "2,2", 2, 2, "2", 6);
  expect_table("1,2,3\n", "3", 1, 1, "3", 3);  // its number in the file, not among the chosen
  expect_table(
      "\xEF\xBB\xBF"
      "1,2.5\n3,4\n",
      NULL, 2, 2, "1", 4);
  expect_table(
      "\xEF\xBB\xBF"
      "a,b\n3,4\n",
      "a", 1, 1, "a", 3);
}

static void refuses_tables(void **state) {
  (void)state;
  tarn_series *s;
  const tarn_series_header automatic = TARN_SERIES_HEADER_AUTO;
  refused(read_text(&s, "a,b\n1,2\n3,\n", automatic, NULL), TARN_STATUS_DATA,
          "t.csv:3: column 2 b: the number is missing");
  refused(read_text(&s, "a,b\n1,x2\n", automatic, NULL), TARN_STATUS_DATA,
          "t.csv:2: column 2 b: \"x2\" is no finite number");
  refused(read_text(&s, "1,2\n\n3,4\n", automatic, NULL), TARN_STATUS_DATA, "t.csv:2: 1 columns, expected 2");
  refused(read_text(&s, "1,2\n3,4,5\n", automatic, NULL), TARN_STATUS_DATA, "t.csv:2: 3 columns, expected 2");
  refused(read_text(&s, "1,NaN\n", automatic, NULL), TARN_STATUS_DATA,
          "t.csv:1: column 2: \"NaN\" is no finite number");
  refused(read_text(&s, "1,inf\n", automatic, NULL), TARN_STATUS_DATA, "\"inf\" is no finite number");
  refused(read_text(&s, "nan,nan\n1,2\n", automatic, NULL), TARN_STATUS_DATA,
          "t.csv:1: column 1: \"nan\" is no finite number");
  refused(read_text(&s, "a,b\n1,0x10\n", automatic, NULL), TARN_STATUS_DATA,
          "t.csv:2: column 2 b: \"0x10\" is hexadecimal, expected a decimal number");
  refused(read_text(&s, "1,-0X1p3\n", automatic, NULL), TARN_STATUS_DATA, "t.csv:1: column 2: \"-0X1p3\" is hexa");
  refused(read_text(&s, "x,y,x\n1,2,3\n", automatic, "y,x"), TARN_STATUS_USAGE,
          "t.csv: columns 1 and 3 are both named \"x\"; give the number of one");
  refused(read_text(&s, "a,1\n", automatic, NULL), TARN_STATUS_DATA, "t.csv:1: column 1: \"a\" is no finite number");
  refused(read_text(&s, "a,b\n", automatic, NULL), TARN_STATUS_DATA, "no rows behind the header");
  refused(read_text(&s, " \n", automatic, NULL), TARN_STATUS_DATA, "no rows");
  refused(read_text(&s, "", automatic, NULL), TARN_STATUS_DATA, "no rows");
  refused(read_text(&s, "a,b\n1,2\n", TARN_SERIES_HEADER_NO, NULL), TARN_STATUS_DATA, "\"a\" is no finite number");
  refused(read_text(&s, "a,b\n1,2\n", automatic, "a,d"), TARN_STATUS_USAGE, "there is no column \"d\"");
  refused(read_text(&s, "1,2\n", automatic, "3"), TARN_STATUS_USAGE, "there is no column \"3\"");
  refused(tarn_series_read(&s, "absent.csv", NULL), TARN_STATUS_IO, "absent.csv");
  assert_null(s);
  sandbox_write("zero.csv", "1\n2\0003\n", 6);
  refused(tarn_series_read(&s, "zero.csv", NULL), TARN_STATUS_DATA, "zero.csv:2: a zero byte");
}

// What divides columns and what the decimal mark is follows from the numbers, or is said.
static void finds_out_how_a_table_is_written(void **state) {
  (void)state;
  expect_table("a;b\n1;2.5\n3;4.5\n", NULL, 2, 2, "a", 4.5);
  expect_table("a;b\r\n1,5;2\r\n-3,25e1;4,5\r\n", NULL, 2, 2, "a", 4.5);
  expect_table("\xEF\xBB\xBF\"a;b\";\"c\"\n\"1,5\";2\n", NULL, 1, 2, "a;b", 2);
  expect_table("a\tb\n1\t2\n", NULL, 1, 2, "a", 2);
  expect_table("a\tb\n1,5\t2,5\n", NULL, 1, 2, "a", 2.5);
  expect_table("1,5\t2\n", NULL, 1, 2, "1", 2);
  expect_table("x\n1,5\n2,25\n", NULL, 2, 1, "x", 2.25);
  expect_table("x\n1\n2,25\n", NULL, 2, 1, "x", 2.25);
  expect_table("\"x, in mm\"\n1,5\n", NULL, 1, 1, "x, in mm", 1.5);
  expect_table("\"1,5\",\"2,5\"\n", NULL, 1, 2, "1", 2.5);
  expect_table("a,b\n1,2\n3,4\n", NULL, 2, 2, "a", 4);  // the header says that commas divide
  expect_table("1,2,3\n", NULL, 1, 3, "1", 3);
  expect_table("day;temp, C\n1;2,5\n", NULL, 1, 2, "day", 2.5);
  expect_table("day;x\n03.02.2020;2,5\n04.02.2020;2\n", "x", 2, 1, "x", 2);
  expect_table("day,x\n03/02/2020 10:00;00,2.5\n", "x", 1, 1, "x", 2.5);
  expect_table("1;2\n", NULL, 1, 2, "1", 2);
  expect_table("1\n2\n", NULL, 2, 1, "1", 2);
  expect_table("1,2\n", "2", 1, 1, "2", 2);  // so there are two columns
  // A line behind those that decide: what they did not show is refused.
  enum { LINES = 1001 };
  char lines[16 + 4 * LINES + 8] = "x;y\n", *end = lines + strlen(lines);
  for (int i = 0; i < LINES; i++) end += sprintf(end, "1;2\n");
  strcpy(end, "1;2,5\n");
  tarn_series *s;
  refused(read_text(&s, lines, TARN_SERIES_HEADER_AUTO, NULL), TARN_STATUS_DATA,
          "t.csv:1003: column 2 y: \"2,5\" is no finite number; --delimiter and --decimal say how");
}

static void expect_form(const char *text, char delimiter, char decimal, int64_t width, double last) {
  const tarn_series_format format = {.delimiter = delimiter, .decimal = decimal};
  tarn_series *s;
  sandbox_write("t.csv", text, strlen(text));
  must(tarn_series_read(&s, "t.csv", &format));
  assert_int_equal(s->columns, width);
  assert_true(s->values[s->rows * width - 1] == last);
  tarn_series_close(&s);
}

static void takes_a_form_and_refuses_what_is_ambiguous(void **state) {
  (void)state;
  const tarn_series_header automatic = TARN_SERIES_HEADER_AUTO;
  tarn_series *s;
  expect_form("1,5\n2,5\n", ',', 0, 2, 5);
  expect_form("1,5\n2,5\n", 0, '.', 2, 5);
  expect_form("1,5\n2,5\n", 0, ',', 1, 2.5);
  expect_form("1,5\n2,5\n", ';', 0, 1, 2.5);
  expect_form("1|2,5\n", '|', 0, 2, 2.5);
  expect_form(" 1  2.5\t \n3\t 4 \r\n", ' ', 0, 2, 4);
  expect_form("\"a b\" c\n1 \"2\" \n", ' ', 0, 2, 2);
  expect_form("1;2\n", ';', ',', 2, 2);
  expect_form("\"1,5\",2\n", ',', ',', 2, 2);
  expect_form("x;y\n1,234;2,5\n", 0, 0, 2, 2.5);
  expect_form("x\ty\n0,234\t12,345\n", 0, 0, 2, 12.345);
  expect_form("x\ty\n1,234\t12,345\n", 0, ',', 2, 12.345);
  refused(read_text(&s, "x\ty\n1,234\t12,345\n", automatic, NULL), TARN_STATUS_DATA,
          "t.csv: all commas in its numbers have three digits behind them: they may be marks of thousands");
  refused(read_text(&s, "1,5\r\n2,5\r\n", automatic, NULL), TARN_STATUS_DATA,
          "t.csv:1: \"1,5\" may be 2 columns with commas between them, or one column with decimal commas; say which "
          "with --delimiter or --decimal");
  refused(read_text(&s, "a;5,2\n", automatic, "2"), TARN_STATUS_DATA, "t.csv:1: \"a;5,2\" may be ");
  // With a decimal comma, a point is a mark of thousands, which numbers must not have here.
  refused(read_text(&s, "x;y\n1.234,5;2\n", automatic, NULL), TARN_STATUS_DATA,
          "t.csv:2: column 1 x: \"1.234,5\" is no finite number; --delimiter and --decimal say how");
  refused(read_text(&s, "x;y\n1,5;2\n2.5;2\n", automatic, NULL), TARN_STATUS_DATA, "\"2.5\" is no finite number");
  refused(read_text(&s, "x;y\n1;2\n3;z\n", automatic, NULL), TARN_STATUS_DATA,
          "t.csv:3: column 2 y: \"z\" is no finite number");
  refused(read_text(&s, "x y\n1 2\n", automatic, NULL), TARN_STATUS_DATA,
          "\"1 2\" is no finite number; --delimiter and --decimal say how the table is written");
  // Lines that were cut do not make a column of what were two.
  refused(read_text(&s, "a,b\n1,2\n3,4\n5\n", automatic, NULL), TARN_STATUS_DATA, "t.csv:4: 1 columns, expected 2");
  refused(read_text(&s, "a,b\n1,2\n3,\n", automatic, NULL), TARN_STATUS_DATA, "column 2 b: the number is missing");
  refused(read_text(&s, "a;b\n1;2\n3\n", automatic, NULL), TARN_STATUS_DATA, "t.csv:3: 1 columns, expected 2");
  refused(read_text(&s, "a;b\n1;\"2\"x\n", automatic, NULL), TARN_STATUS_DATA, "t.csv:2: column 2: a cell that begins");
  for (int i = 0; i < 2; i++) {
    const tarn_series_format wrong = {.delimiter = i ? ':' : 0, .decimal = i ? 0 : ';'};
    refused(tarn_series_read(&s, "t.csv", &wrong), TARN_STATUS_USAGE, i ? "not by \":\"" : "not \";\"");
  }
}

static void writes_what_it_reads(void **state) {
  (void)state;
  tarn_series_recipe recipe;
  tarn_series *a, *b;
  tarn_series_recipe_default(&recipe, TARN_SERIES_LORENZ);
  recipe.rows = 50;
  must(tarn_series_generate(&a, &recipe));
  must(tarn_series_write(a, "l.csv"));
  must(tarn_series_read(&b, "l.csv", NULL));
  assert_int_equal(b->rows, 50);
  assert_string_equal(b->names[2], "z");
  assert_memory_equal(a->values, b->values, 150 * sizeof(double));
  tarn_series_close(&a);
  tarn_series_close(&b);
}

// --- systems
// ----------------------------------------------------------------------------------------------------------

// Halving the step divides the error by about 16, which a wrong method or wrong delay would not do.
static void integrates_to_fourth_order(void **state) {
  (void)state;
  for (int system = 0; system < 2; system++) {
    tarn_series *s[3];
    for (int i = 0; i < 3; i++) {
      tarn_series_recipe recipe;
      tarn_series_recipe_default(&recipe, (tarn_series_system)system);
      recipe.rows = 60;
      recipe.discard = 0;
      recipe.substeps <<= i;
      must(tarn_series_generate(&s[i], &recipe));
    }
    double errors[2] = {0};
    for (int64_t k = 0; k < s[0]->rows * s[0]->columns; k++)
      for (int i = 0; i < 2; i++) errors[i] = fmax(errors[i], fabs(s[i]->values[k] - s[i + 1]->values[k]));
    double ratio = errors[0] / errors[1];
    if (!(ratio > 10 && ratio < 26)) fail_msg("system %d: the error falls %g times", system, ratio);
    for (int i = 0; i < 3; i++) tarn_series_close(&s[i]);
  }
}

static void refuses_recipes(void **state) {
  (void)state;
  tarn_series_recipe recipe;
  tarn_series *s;
  tarn_series_recipe_default(&recipe, TARN_SERIES_MACKEY_GLASS);
  recipe.tau = 17.03;
  refused(tarn_series_generate(&s, &recipe), TARN_STATUS_USAGE, "tau");
  tarn_series_recipe_default(&recipe, TARN_SERIES_LORENZ);
  recipe.dt = 1;
  refused(tarn_series_generate(&s, &recipe), TARN_STATUS_NUMERIC, "more steps");
  recipe.rows = 0;
  refused(tarn_series_generate(&s, &recipe), TARN_STATUS_USAGE, "rows");
}

// --- ridge regression
// -------------------------------------------------------------------------------------------------

enum { INPUTS = 7, OUTPUTS = 2, SAMPLES = 150 };

static void sample(tarn__random *random, double *x, double *y) {
  for (int i = 0; i < INPUTS; i++) x[i] = tarn__random_normal(random) + i;
  for (int o = 0; o < OUTPUTS; o++) y[o] = 3 * x[o] - x[o + 2] + 5 * o + tarn__random_normal(random);
}

// The derivative of |y - x W - b|^2 + penalty |W|^2 is zero at the solution.
static void ridge_is_the_minimum(void **state) {
  (void)state;
  const double penalties[] = {0, 0.5, 100};
  for (int p = 0; p < 3; p++) {
    double w[INPUTS * OUTPUTS], b[OUTPUTS], used, x[INPUTS], y[OUTPUTS], slope[INPUTS * OUTPUTS],
        slope_b[OUTPUTS] = {0};
    tarn__ridge ridge;
    tarn__random random;
    must(tarn__ridge_open(&ridge, &tarn__device_cpu, INPUTS, OUTPUTS));
    tarn__random_init(&random, 4, 0);
    for (int t = 0; t < SAMPLES; t++) {
      sample(&random, x, y);
      must(tarn__ridge_add(&ridge, x, y));
    }
    must(tarn__ridge_solve(w, b, &used, &ridge, penalties[p]));
    assert_true(used == penalties[p]);
    tarn__random_init(&random, 4, 0);
    for (int i = 0; i < INPUTS * OUTPUTS; i++) slope[i] = penalties[p] * w[i];
    for (int t = 0; t < SAMPLES; t++) {
      sample(&random, x, y);
      for (int o = 0; o < OUTPUTS; o++) {
        double error = b[o] - y[o];
        for (int i = 0; i < INPUTS; i++) error += x[i] * w[i * OUTPUTS + o];
        slope_b[o] += error;
        for (int i = 0; i < INPUTS; i++) slope[i * OUTPUTS + o] += error * x[i];
      }
    }
    for (int i = 0; i < INPUTS * OUTPUTS; i++) assert_true(fabs(slope[i]) < 1e-9);
    for (int o = 0; o < OUTPUTS; o++) assert_true(fabs(slope_b[o]) < 1e-9);
    tarn__ridge_close(&ridge);
  }
}

static void parts_merge(void **state) {
  (void)state;
  double w[3][INPUTS * OUTPUTS], b[3][OUTPUTS], used, x[INPUTS], y[OUTPUTS];
  tarn__ridge sums[3];  // all, and two parts
  tarn__random random;
  tarn__random_init(&random, 5, 0);
  for (int i = 0; i < 3; i++) must(tarn__ridge_open(&sums[i], &tarn__device_cpu, INPUTS, OUTPUTS));
  for (int t = 0; t < SAMPLES; t++) {
    sample(&random, x, y);
    must(tarn__ridge_add(&sums[0], x, y));
    must(tarn__ridge_add(&sums[t < 70 ? 1 : 2], x, y));
  }
  must(tarn__ridge_merge(&sums[1], &sums[2]));
  for (int i = 0; i < 3; i++) must(tarn__ridge_solve(w[i], b[i], &used, &sums[i], 0.1));
  assert_int_equal(sums[1].count, SAMPLES);
  for (int i = 0; i < INPUTS * OUTPUTS; i++) assert_true(fabs(w[0][i] - w[1][i]) < 1e-12);
  for (int o = 0; o < OUTPUTS; o++) assert_true(fabs(b[0][o] - b[1][o]) < 1e-10);
  assert_true(fabs(w[0][0] - w[2][0]) > 1e-6);  // a part alone is something else
  for (int i = 0; i < 3; i++) tarn__ridge_close(&sums[i]);
}

static void ridge_grows(void **state) {
  (void)state;
  double w[3], b[1], used;
  tarn__ridge ridge;
  must(tarn__ridge_open(&ridge, &tarn__device_cpu, 3, 1));
  refused(tarn__ridge_solve(w, b, &used, &ridge, 1), TARN_STATUS_DATA, "at least one sample");
  for (int t = 0; t < 100; t++) {  // the second column is twice the first
    double x[3] = {sin(t), 2 * sin(t), cos(0.7 * t)}, y[1] = {5 * sin(t) + 1};
    must(tarn__ridge_add(&ridge, x, y));
  }
  must(tarn__ridge_solve(w, b, &used, &ridge, 0));
  assert_true(used > 0 && used < 1e-9);
  assert_true(fabs(w[0] + 2 * w[1] - 5) < 1e-6 && fabs(b[0] - 1) < 1e-6);
  double bad[3] = {NAN, 0, 0}, y[1] = {0};
  must(tarn__ridge_add(&ridge, bad, y));
  refused(tarn__ridge_solve(w, b, &used, &ridge, 1), TARN_STATUS_NUMERIC, "not finite");
  tarn__ridge_close(&ridge);
}

// --- networks
// ---------------------------------------------------------------------------------------------------------

static tarn_series *mackey_glass(int64_t rows) {
  tarn_series_recipe recipe;
  tarn_series *s;
  tarn_series_recipe_default(&recipe, TARN_SERIES_MACKEY_GLASS);
  recipe.rows = rows;
  must(tarn_series_generate(&s, &recipe));
  return s;
}

static tarn_esn_options small(void) {
  tarn_esn_options options;
  tarn_esn_default(&options);
  options.units = 150;
  options.lr = 0.7;
  options.warmup = 50;
  return options;
}

static void learns_mackey_glass(void **state) {
  (void)state;
  tarn_series *s = mackey_glass(1300), *forecast;
  tarn_esn_options options = small();
  tarn_esn *esn;
  tarn_esn_info info;
  tarn_forecast_measures m;
  must(tarn_esn_train(&esn, s, 1000, &options));
  tarn_esn_describe(esn, &info);
  assert_int_equal(info.samples, 949);
  assert_true(info.nrmse < 5e-3);
  double radius;
  must(tarn__spectral_radius(&radius, &esn->w));
  assert_true(fabs(radius - 0.9) < 2e-6);
  must(tarn_esn_forecast(esn, &forecast, s, 1000, 300, TARN_FORECAST_ONE_STEP));
  must(tarn_forecast_measure(&m, forecast, s, 1000, NULL, 0.4));
  assert_true(m.rows == 300 && m.nrmse < 5e-3 && m.valid_to_end && m.valid_steps == 300);
  tarn_series_close(&forecast);
  must(tarn_esn_forecast(esn, &forecast, s, 1000, 100, TARN_FORECAST_CLOSED));
  must(tarn_forecast_measure(&m, forecast, s, 1000, NULL, 0.4));
  assert_true(m.valid_steps >= 30);
  tarn_series_close(&forecast);
  tarn_esn_close(&esn);
  tarn_series_close(&s);
}

// Equal seeds give equal bits for any number of threads; a saved network goes on as the one in memory.
static void is_deterministic_and_saved_whole(void **state) {
  (void)state;
  tarn_series *s = mackey_glass(700), *forecasts[3];
  tarn_esn_options options = small();
  for (int i = 0; i < 3; i++) {
    tarn_esn *esn;
    tarn__threads_set(i ? 2 : 1);
    options.seed = i == 2 ? 2 : 1;
    must(tarn_esn_train(&esn, s, 600, &options));
    if (i == 1) {
      must(tarn_esn_save(esn, "esn.safetensors"));
      tarn_esn_close(&esn);
      must(tarn_esn_open(&esn, "esn.safetensors"));
      assert_int_equal(esn->info.rows, 600);
      assert_string_equal(tarn_esn_names(esn)[0], "x");
    }
    must(tarn_esn_forecast(esn, &forecasts[i], s, 600, 100, TARN_FORECAST_CLOSED));
    tarn_esn_close(&esn);
  }
  assert_memory_equal(forecasts[0]->values, forecasts[1]->values, 100 * sizeof(double));
  assert_memory_not_equal(forecasts[0]->values, forecasts[2]->values, 100 * sizeof(double));
  for (int i = 0; i < 3; i++) tarn_series_close(&forecasts[i]);
  tarn_series_close(&s);
}

// The states of the reservoir alone, and the regression of the next rows on them, are what a training makes of the same
// options, to the bit; states that come in pieces are those of the whole.
static void a_reservoir_alone_is_the_one_of_a_training(void **state) {
  (void)state;
  enum { ROWS = 300, WARMUP = 20 };
  tarn_series *s = mackey_glass(ROWS), *forecast;
  tarn_esn_options options = small();
  tarn_esn *esn;
  tarn_reservoir *reservoir;
  options.standardize = false;
  options.warmup = WARMUP;
  must(tarn_esn_train(&esn, s, ROWS, &options));
  must(tarn_reservoir_open(&reservoir, 1, &options));
  const int64_t n = tarn_reservoir_units(reservoir);
  assert_int_equal(n, options.units);
  const size_t cells = (size_t)n * ROWS;
  double *states = calloc(2 * cells + (size_t)(n * n) + 4 * (size_t)n, sizeof *states);
  double *pieces = states + cells, *w = pieces + cells, *win = w + n * n, *bias = win + n, *weights = bias + n;
  double *last = weights + n, intercept, used;
  must(tarn_reservoir_states(reservoir, states, NULL, s->values, ROWS));
  must(tarn_reservoir_states(reservoir, pieces, last, s->values, 7));
  must(tarn_reservoir_states(reservoir, pieces + 7 * n, last, s->values + 7, ROWS - 7));
  assert_memory_equal(pieces, states, cells * sizeof *states);
  assert_memory_equal(last, states + (ROWS - 1) * n, (size_t)n * sizeof *states);
  must(tarn_ridge_regress(weights, &intercept, &used, states + WARMUP * n, s->values + WARMUP + 1, ROWS - 1 - WARMUP, n,
                          1, options.ridge));
  assert_memory_equal(weights, esn->wout, (size_t)n * sizeof *weights);
  assert_true(intercept == esn->readout[0] && used == esn->info.ridge);
  must(tarn_esn_forecast(esn, &forecast, s, ROWS, 1, TARN_FORECAST_ONE_STEP));
  double sum = intercept;
  for (int64_t i = 0; i < n; i++) sum += last[i] * weights[i];
  assert_true(sum == forecast->values[0]);
  tarn_reservoir_matrices(reservoir, w, win, bias);
  assert_memory_equal(win, esn->win, (size_t)n * sizeof *win);
  assert_memory_equal(bias, esn->bias, (size_t)n * sizeof *bias);
  int64_t edges = 0;
  for (int64_t i = 0; i < n * n; i++) edges += w[i] != 0;
  assert_int_equal(edges, esn->info.edges);
  s->values[3] = NAN;
  refused(tarn_reservoir_states(reservoir, states, NULL, s->values, 10), TARN_STATUS_NUMERIC, "after row 3");
  refused(tarn_ridge_regress(weights, &intercept, &used, states, s->values, 10, n, 1, 0), TARN_STATUS_NUMERIC, "");
  refused(tarn_ridge_regress(weights, &intercept, &used, states, s->values, 0, n, 1, 1), TARN_STATUS_USAGE,
          "0 samples");
  refused(tarn_ridge_regress(weights, &intercept, &used, states, s->values, 10, n, 1, -1), TARN_STATUS_USAGE, "ridge");
  tarn_reservoir_close(&reservoir);
  refused(tarn_reservoir_open(&reservoir, 0, &options), TARN_STATUS_USAGE, "0 columns");
  options.units = 0;
  refused(tarn_reservoir_open(&reservoir, 1, &options), TARN_STATUS_USAGE, "units");
  assert_null(reservoir);
  free(states);
  tarn_series_close(&forecast);
  tarn_esn_close(&esn);
  tarn_series_close(&s);
}

// With a spectral radius of 0 the state forgets all but its leak, whatever the graph would have been: with a leak rate
// of 1 it is a function of the row alone.
static void no_recurrence_is_a_function_of_the_row(void **state) {
  (void)state;
  enum { UNITS = 9 };
  double w[UNITS * UNITS], win[UNITS], bias[UNITS], states[3 * UNITS];
  const double rows[] = {0.5, -1, 0.5};
  tarn_esn_options o = small();
  tarn_reservoir *reservoir;
  o.units = UNITS, o.lr = 1, o.sr = 0, o.rc_connectivity = 1e-9;
  must(tarn_reservoir_open(&reservoir, 1, &o));
  tarn_reservoir_matrices(reservoir, w, win, bias);
  must(tarn_reservoir_states(reservoir, states, NULL, rows, 3));
  tarn_reservoir_close(&reservoir);
  for (int i = 0; i < UNITS * UNITS; i++) assert_true(w[i] == 0 && !signbit(w[i]));
  for (int i = 0; i < 3 * UNITS; i++)
    assert_true(states[i] == tanh(bias[i % UNITS] + win[i % UNITS] * rows[i / UNITS]));
  tarn_series *s = mackey_glass(400), *forecasts[2];
  tarn_esn *esn, *again;
  tarn_esn_info info;
  must(tarn_esn_train(&esn, s, 300, &o));
  tarn_esn_describe(esn, &info);
  assert_true(info.edges == 0 && isfinite(info.nrmse));
  must(tarn_esn_save(esn, "still.safetensors"));
  must(tarn_esn_open(&again, "still.safetensors"));
  must(tarn_esn_forecast(esn, &forecasts[0], s, 300, 20, TARN_FORECAST_CLOSED));
  must(tarn_esn_forecast(again, &forecasts[1], s, 300, 20, TARN_FORECAST_CLOSED));
  assert_memory_equal(forecasts[0]->values, forecasts[1]->values, 20 * sizeof(double));
  for (int i = 0; i < 2; i++) tarn_series_close(&forecasts[i]);
  tarn_esn_close(&esn);
  tarn_esn_close(&again);
  tarn_series_close(&s);
}

static void refuse_options(const tarn_series *s, const tarn_esn_options *options, tarn_status status,
                           const char *text) {
  tarn_esn *esn;
  refused(tarn_esn_train(&esn, s, s->rows, options), status, text);
  assert_null(esn);
}

static void refuses_networks(void **state) {
  (void)state;
  tarn_series *s = mackey_glass(300), *forecast;
  tarn_esn_options o;
#define REFUSE(field, value, status, text) \
  o = small();                             \
  o.field = value;                         \
  refuse_options(s, &o, TARN_STATUS_##status, text)
  REFUSE(sr, -1, USAGE, "sr -1");
  REFUSE(sr, NAN, USAGE, "sr nan");
  REFUSE(rc_connectivity, 0, USAGE, "rc_connectivity 0");
  REFUSE(rc_connectivity, 1.5, USAGE, "rc_connectivity 1.5");
  REFUSE(rc_connectivity, 1e-9, DATA, "without edges");
  REFUSE(rc_connectivity, 3e-4, DATA, "nilpotent");
  REFUSE(input_connectivity, 0, USAGE, "input_connectivity 0");
  REFUSE(lr, 0, USAGE, "lr 0");
  REFUSE(units, 0, USAGE, "units 0");
  REFUSE(ridge, -1, USAGE, "ridge -1");
  REFUSE(input_scaling, INFINITY, USAGE, "input_scaling inf");
  REFUSE(warmup, 299, DATA, "leave no sample");
  REFUSE(matrices, "absent.safetensors", IO, "absent.safetensors");
  tarn_esn *esn;
  o = small();
  refused(tarn_esn_train(&esn, s, 301, &o), TARN_STATUS_USAGE, "that has 300");
  must(tarn_esn_train(&esn, s, 300, &o));
  refused(tarn_esn_forecast(esn, &forecast, s, 301, 5, TARN_FORECAST_CLOSED), TARN_STATUS_USAGE, "301");
  refused(tarn_esn_forecast(esn, &forecast, s, 290, 12, TARN_FORECAST_ONE_STEP), TARN_STATUS_DATA, "301 rows");
  must(tarn_esn_forecast(esn, &forecast, s, 290, 11, TARN_FORECAST_ONE_STEP));  // the last one is beyond the series
  tarn_series_close(&forecast);
  s->columns = 2;
  s->rows = 150;
  refused(tarn_esn_forecast(esn, &forecast, s, 1, 1, TARN_FORECAST_CLOSED), TARN_STATUS_DATA, "1 columns");
  s->columns = 1;
  // A sum of tenths is rounded, and so is the mean.
  for (int raw = 0; raw < 2; raw++) {
    for (int i = 0; i < 150; i++) s->values[i] = 0.1;
    o.standardize = !raw;
    refuse_options(s, &o, TARN_STATUS_DATA, "column x is constant");
    for (int i = 0; i < 150; i++) s->values[i] = i % 2 ? 1e200 : -1e200;
    refuse_options(s, &o, TARN_STATUS_DATA, "column x: its numbers are too large");
  }
  tarn_esn_close(&esn);
  tarn_series_close(&s);
}

// Errors of 1 in two columns whose compared rows have standard deviations of 1 and 2, behind rows that vary much more.
static void errors_are_divided_by_the_variance_of_the_rows_compared(void **state) {
  (void)state;
  tarn_series *s, *forecast;
  tarn_forecast_measures m;
  must(read_text(&s, "100,-300\n-100,300\n1,2\n3,6\n1,2\n3,6\n", TARN_SERIES_HEADER_AUTO, NULL));
  must(read_text(&forecast, "2.0,3\n4,7\n", TARN_SERIES_HEADER_AUTO, NULL));
  must(tarn_forecast_measure(&m, forecast, s, 2, NULL, 0.4));
  assert_int_equal(m.rows, 2);
  assert_true(fabs(m.nrmse - sqrt((1 + 0.25) / 2)) < 1e-12);
  assert_int_equal(m.valid_steps, 2);      // by the variance of all rows, compared with which these errors are small
  const tarn_series_range all = {2, 100};  // the rows behind the end do not count
  must(tarn_forecast_measure(&m, forecast, s, 4, &all, 0.4));
  assert_true(fabs(m.nrmse - sqrt((1 + 0.25) / 2)) < 1e-12);
  const tarn_series_range whole = {0, 6};
  must(tarn_forecast_measure(&m, forecast, s, 4, &whole, 0.4));
  assert_true(m.nrmse < 0.02);
  // One row has no variance, so there is no NRMSE.
  forecast->rows = 1;
  must(tarn_forecast_measure(&m, forecast, s, 2, NULL, 0.4));
  assert_true(isnan(m.nrmse));
  const tarn_series_range outside = {6, 1};
  refused(tarn_forecast_measure(&m, forecast, s, 2, &outside, 0.4), TARN_STATUS_USAGE, "are not in the series");
  tarn_series_close(&forecast);
  tarn_series_close(&s);
}

// A network knows its columns by their names.
static void refuses_other_columns(void **state) {
  (void)state;
  tarn_series_recipe recipe;
  tarn_series *s, *forecast;
  tarn_esn_options o = small();
  tarn_esn *esn;
  tarn_forecast_measures m;
  tarn_series_recipe_default(&recipe, TARN_SERIES_LORENZ);
  recipe.rows = 300;
  must(tarn_series_generate(&s, &recipe));
  must(tarn_esn_train(&esn, s, 200, &o));
  must(tarn_esn_forecast(esn, &forecast, s, 200, 5, TARN_FORECAST_CLOSED));
  must(tarn_forecast_measure(&m, forecast, s, 200, NULL, 0.4));
  char *y = s->names[1];
  s->names[1] = s->names[2];
  s->names[2] = y;
  tarn_series *other;
  refused(tarn_esn_forecast(esn, &other, s, 200, 5, TARN_FORECAST_CLOSED), TARN_STATUS_DATA,
          "the network was trained on column y in place 2, where the series has z");
  assert_null(other);
  refused(tarn_forecast_measure(&m, forecast, s, 200, NULL, 0.4), TARN_STATUS_DATA,
          "the forecast has column y in place 2");
  tarn_series_close(&forecast);
  tarn_esn_close(&esn);
  tarn_series_close(&s);
  // Without a header names are numbers, the same in every file.
  must(read_text(&s, "1.0,2\n3,5\n7,8\n2,2\n1,5\n", TARN_SERIES_HEADER_AUTO, NULL));
  o.warmup = 0;
  must(tarn_esn_train(&esn, s, 5, &o));
  tarn_series_close(&s);
  must(read_text(&s, "4.0,2\n3,1\n", TARN_SERIES_HEADER_AUTO, NULL));
  must(tarn_esn_forecast(esn, &forecast, s, 2, 3, TARN_FORECAST_CLOSED));
  tarn_series_close(&forecast);
  tarn_esn_close(&esn);
  // A measure takes a constant column of the truth for one, rounded mean or not.
  must(read_text(&forecast, "0.1\n0.2\n0.1\n", TARN_SERIES_HEADER_AUTO, NULL));
  tarn_series_close(&s);
  must(read_text(&s, "0.1\n0.1\n0.1\n", TARN_SERIES_HEADER_AUTO, NULL));
  refused(tarn_forecast_measure(&m, forecast, s, 0, NULL, 0.4), TARN_STATUS_DATA, "column 1 is constant");
  // An error over an infinite variance would be none.
  tarn_series_close(&s);
  must(read_text(&s, "0.1\n0.2\n1e200\n", TARN_SERIES_HEADER_AUTO, NULL));
  refused(tarn_forecast_measure(&m, forecast, s, 0, NULL, 0.4), TARN_STATUS_DATA,
          "column 1: its numbers are too large");
  tarn_series_close(&forecast);
  tarn_series_close(&s);
}

static void write_matrices(double w01, double w10, double win0, int64_t columns) {
  const double w[] = {0, w01, w10, 0}, win[] = {win0, 1, 1, 1};
  const tarn__stored tensors[] = {{"W", "F64", 2, {2, 2}, w, sizeof w, NULL, NULL},
                                  {"Win", "F64", 2, {2, columns}, win, (size_t)columns * 2 * sizeof *win, NULL, NULL}};
  must(tarn__safetensors_write("m.safetensors", tensors, 2, NULL, 0));
}

static void refuses_matrices_and_files(void **state) {
  (void)state;
  tarn_series *s = mackey_glass(300);
  tarn_esn_options o = small();
  tarn_esn *esn;
  o.matrices = "m.safetensors";
  write_matrices(0.5, 0.5, 1, 1);
  must(tarn_esn_train(&esn, s, 300, &o));
  assert_true(esn->info.units == 2 && esn->info.edges == 2);
  tarn_esn_close(&esn);
  refused(tarn_esn_open(&esn, "m.safetensors"), TARN_STATUS_DATA, "no file of an echo state network");
  write_matrices(0.5, 0.5, 1, 2);
  refuse_options(s, &o, TARN_STATUS_DATA, "Win must have the shape [2, 1]");
  write_matrices(0, 0, 1, 1);  // no recurrent connections
  must(tarn_esn_train(&esn, s, 300, &o));
  assert_true(esn->info.units == 2 && esn->info.edges == 0);
  tarn_esn_close(&esn);
  write_matrices(0.5, 0.5, NAN, 1);
  refuse_options(s, &o, TARN_STATUS_DATA, "not finite");
  o.activation = TARN_ESN_RELU;
  o.standardize = false;
  write_matrices(1e9, 1e9, 1, 1);
  refuse_options(s, &o, TARN_STATUS_NUMERIC, "grow without bounds");
  tarn_series_close(&s);
}

static void memory_fails_cleanly(void **state) {
  (void)state;
  tarn_series *s = mackey_glass(120), *read_back = NULL, *forecast = NULL;
  tarn_esn_options o = small();
  must(tarn_series_write(s, "m.csv"));
  o.units = 12;
  o.rc_connectivity = 0.5;
  for (uint64_t n = 1;; n++) {
    tarn_esn *esn = NULL;
    tarn__memory_fail_after(n);
    tarn_status status = tarn_series_read(&read_back, "m.csv", NULL);
    if (status == TARN_STATUS_OK) status = tarn_esn_train(&esn, read_back, 120, &o);
    if (status == TARN_STATUS_OK) status = tarn_esn_save(esn, "e.safetensors");
    tarn_esn_close(&esn);
    if (status == TARN_STATUS_OK) status = tarn_esn_open(&esn, "e.safetensors");
    if (status == TARN_STATUS_OK) status = tarn_esn_forecast(esn, &forecast, s, 100, 20, TARN_FORECAST_CLOSED);
    tarn__memory_fail_after(0);
    tarn_series_close(&read_back);
    tarn_series_close(&forecast);
    tarn_esn_close(&esn);
    if (status == TARN_STATUS_OK) break;
    assert_int_equal(status, TARN_STATUS_MEMORY);
  }
  tarn_series_close(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_tables),
      cmocka_unit_test(refuses_tables),
      cmocka_unit_test(finds_out_how_a_table_is_written),
      cmocka_unit_test(takes_a_form_and_refuses_what_is_ambiguous),
      cmocka_unit_test(writes_what_it_reads),
      cmocka_unit_test(integrates_to_fourth_order),
      cmocka_unit_test(refuses_recipes),
      cmocka_unit_test(ridge_is_the_minimum),
      cmocka_unit_test(parts_merge),
      cmocka_unit_test(ridge_grows),
      cmocka_unit_test(learns_mackey_glass),
      cmocka_unit_test(is_deterministic_and_saved_whole),
      cmocka_unit_test(a_reservoir_alone_is_the_one_of_a_training),
      cmocka_unit_test(no_recurrence_is_a_function_of_the_row),
      cmocka_unit_test(refuses_networks),
      cmocka_unit_test(errors_are_divided_by_the_variance_of_the_rows_compared),
      cmocka_unit_test(refuses_other_columns),
      cmocka_unit_test(refuses_matrices_and_files),
      cmocka_unit_test(memory_fails_cleanly),
  };
  return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
