// Scaling laws of trainings: tarn/lab/fit.h.
#include "api.h"

#include <math.h>
#include <sys/stat.h>

#include "results_runs.h"
#include "tarn/lab/fit.h"

// A finished run of this many parameters, trained on this many tokens in two passes, with L = 20 N^-0.3 + 100 D^-0.4 +
// c.
static void run_of(const char *path, double size, double tokens, int seed, double c) {
  char text[1024];
  const double loss = (20 * pow(size, -0.3) + 100 * pow(tokens, -0.4) + c) * (1 + 0.002 * (seed % 3 - 1));
  run_config(path, RUN_REGULAR, seed, size / 1e4 + tokens / 1e9 + c / 100);
  snprintf(
      text, sizeof text,
      "{\"kind\":\"valid\",\"step\":1,\"epoch\":1,\"time\":1,\"valid_nll\":%.12g,\"valid_loss\":9,\"valid_bleu\":4}\n"
      "{\"kind\":\"train\",\"step\":2,\"epoch\":2,\"time\":2,\"nll\":3,\"source_tokens\":%.0f,\"target_tokens\":%.0f}\n"
      "{\"kind\":\"valid\",\"step\":2,\"epoch\":2,\"time\":2,\"valid_nll\":%.12g,\"valid_loss\":8,\"valid_bleu\":5}\n",
      loss + 1, tokens / 2, tokens / 2, loss);
  run_file(path, "log.jsonl", text);
  snprintf(
      text, sizeof text,
      "{\"version\": \"0.1.0\", \"status\": \"finished\", \"end\": \"updates\", \"update\": 2, \"epoch\": 2, "
      "\"seconds\": 2,"
      " \"clock\": \"wall\", \"threads\": 1, \"peak_bytes\": 1000, \"parameters\": {\"total\": %.0f, \"trained\": %.0f,"
      " \"frozen\": %.0f, \"shared_saved\": 0}, \"operations\": {\"total\": %.12g, \"token\": 1, \"best\": 1,"
      " \"moved_bytes\": 1}}\n",
      size, size / 2, size / 2, 6 * size * tokens);
  run_file(path, "result.json", text);
}

static int open_all(void **state) {
  char path[128];
  if (sandbox_open(state) != 0) return -1;
  for (int i = 0; i < 5; i++)
    for (int seed = 1; seed <= 3; seed++) {
      snprintf(path, sizeof path, "runs/a-%d/seed-%d", i, seed);
      run_of(path, 1e4 * pow(4, i), 1e6, seed, 2);
      snprintf(path, sizeof path, "runs/b-%d/seed-%d", i, seed);
      run_of(path, 1e4 * pow(4, i), 1e6, seed, 2.5);
    }
  for (int i = 0; i < 4; i++)
    for (int k = 0; k < 3; k++) {
      snprintf(path, sizeof path, "both/x-%d-%d/seed-1", i, k);
      run_of(path, 1e4 * pow(5, i), 1e5 * pow(10, k), 1, 2);
    }
  for (int i = 0; i < 3; i++) {
    snprintf(path, sizeof path, "few/a-%d/seed-1", i);
    run_of(path, 1e4 * pow(4, i), 1e6, 1, 2);
  }
  run_config("bleu/a/seed-1", RUN_REGULAR, 1, 2);
  run_file("bleu/a/seed-1", "log.jsonl", "{\"kind\":\"valid\",\"step\":1,\"epoch\":1,\"time\":1,\"valid_bleu\":4}\n");
  run_result("bleu/a/seed-1", "updates", 1, 1, "");
  return 0;
}

static tarn_results *opened(const char *path) {
  tarn_results *results;
  works(tarn_results_open(&results, &path, 1));
  return results;
}

static void near(double value, double wanted, double tolerance) {
  if (!(fabs(value - wanted) <= tolerance)) fail_msg("%g is not %g", value, wanted);
}

static void use_tarn_fit_axis_name(void) {
  assert_string_equal(tarn_fit_axis_name(TARN_FIT_PARAMETERS), "parameters");
  assert_string_equal(tarn_fit_axis_name(TARN_FIT_OPERATIONS), "operations");
  assert_string_equal(tarn_fit_axis_name(TARN_FIT_AXES), "?");
}

static void use_tarn_fit_axis_parse(void) {
  tarn_fit_axis axis;
  for (int i = 0; i < TARN_FIT_AXES; i++) {
    works(tarn_fit_axis_parse(&axis, tarn_fit_axis_name((tarn_fit_axis)i)));
    assert_int_equal(axis, i);
  }
  refuses(tarn_fit_axis_parse(&axis, "parametres"), TARN_STATUS_USAGE, "did you mean \"parameters\"?");
}

static void use_tarn_fit_default(void) {
  tarn_fit_options options;
  tarn_fit_default(&options);
  assert_int_equal(options.axes[0], TARN_FIT_PARAMETERS);
  assert_int_equal(options.axis_count, 1);
  assert_int_equal(options.resamples, 1000);
  assert_null(options.families);
}

static void refuses_fit(const char *path, const tarn_fit_options *options, tarn_status status, const char *words) {
  tarn_results *results = opened(path);
  tarn_fit *fit;
  refuses(tarn_fit_make(&fit, results, options), status, words);
  assert_null(fit);
  tarn_results_close(&results);
}

static void two_families(void) {
  static const tarn_fit_family families[] = {{"first", "a-*"}, {"second", "b-*"}};
  static const double sizes[] = {1e8};
  tarn_results *results = opened("runs");
  tarn_fit_options options;
  tarn_fit *fit;
  tarn_fit_default(&options);
  options.families = families, options.family_count = 2;
  options.predict = sizes, options.predict_count = 1;
  options.resamples = 200;
  works(tarn_fit_make(&fit, results, &options));
  assert_string_equal(fit->metric, "valid/nll");
  assert_int_equal(fit->law_count, 2);
  const tarn_fit_law *law = &fit->laws[0];
  const double floor = 2 + 100 * pow(1e6, -0.4);
  assert_int_equal(law->point_count, 15);
  assert_int_equal(law->size_count, 5);
  near(law->b[0].value, 0.3, 0.03);
  assert_true(law->b[0].low < 0.3 && law->b[0].high > 0.3 && law->c.low < floor && law->c.high > floor);
  near(law->predictions[0].loss.value, 20 * pow(1e8, -0.3) + floor, 0.05);
  near(law->checked.value, law->checked_loss, 0.05);
  near(law->checked_x, 1e4 * 256, 1);
  near(fit->pairs[0].offset.value, 0.5, 0.06);
  assert_true(fit->pairs[0].exponent[0].low < 0 && fit->pairs[0].exponent[0].high > 0);
  assert_true(isnan(fit->pairs[0].size.value) || fit->pairs[0].size.value > 10);
  tarn_fit_close(&fit);
  tarn_results_close(&results);
}

static void two_axes(void) {
  tarn_results *results = opened("both");
  tarn_fit_options options;
  tarn_fit *fit;
  tarn_fit_default(&options);
  options.axes[1] = TARN_FIT_TOKENS, options.axis_count = 2;
  options.resamples = 0;
  works(tarn_fit_make(&fit, results, &options));
  near(fit->laws[0].b[0].value, 0.3, 0.01);
  near(fit->laws[0].b[1].value, 0.4, 0.01);
  assert_true(isnan(fit->laws[0].c.low));
  assert_int_equal(fit->prediction_count, 3);
  tarn_fit_close(&fit);
  options.axes[1] = TARN_FIT_TEXT;  // two passes: half of the tokens
  works(tarn_fit_make(&fit, results, &options));
  near(fit->laws[0].points[0].x[1], 5e4, 1);
  tarn_fit_close(&fit);
  options.axes[0] = TARN_FIT_TEXT;
  refuses(tarn_fit_make(&fit, results, &options), TARN_STATUS_USAGE, "are text both");
  tarn_results_close(&results);
}

static void use_tarn_fit_make(void) {
  two_families();
  two_axes();
  static const tarn_fit_family none[] = {{"none", "z*"}}, twice[] = {{"a", "a-*"}, {"all", "*"}};
  tarn_fit_options options;
  tarn_fit_default(&options);
  refuses_fit("few", &options, TARN_STATUS_DATA,
              "family all has 3 finished runs of 3 different sizes in parameters, and a law needs at least 4 sizes");
  refuses_fit("bleu", &options, TARN_STATUS_DATA, "no run has a value of valid/loss");
  options.metric = "nnl";
  refuses_fit("runs", &options, TARN_STATUS_USAGE, "nll");
  options.metric = "bleu";
  refuses_fit("runs", &options, TARN_STATUS_USAGE, "of valid/bleu more is");
  options.metric = NULL;
  options.families = none, options.family_count = 1;
  refuses_fit("runs", &options, TARN_STATUS_USAGE, "family none: no configuration has a name like \"z*\"");
  options.families = twice, options.family_count = 2;
  refuses_fit("runs", &options, TARN_STATUS_USAGE, "is in two families, a (\"a-*\") and all (\"*\")");
  tarn_fit_default(&options);
  options.resamples = 7;
  refuses_fit("runs", &options, TARN_STATUS_USAGE, "the bootstrap takes 0, or 40");
  tarn_fit_default(&options);
  options.huber = 0;
  refuses_fit("runs", &options, TARN_STATUS_USAGE, "the Huber loss turns");
  tarn_fit_default(&options);
  options.axis_count = 3;
  refuses_fit("runs", &options, TARN_STATUS_USAGE, "a law has 1 or 2 axes, not 3");
  options.axis_count = 2, options.axes[1] = TARN_FIT_OPERATIONS;
  refuses_fit("runs", &options, TARN_STATUS_DATA, "family all has 30 finished runs of 5 different sizes");
}

static void use_tarn_fit_close(void) {
  tarn_fit *fit = NULL;
  tarn_fit_close(&fit);
  assert_null(fit);
}

static void use_tarn_fit_write_svg(void) {
  tarn_results *results = opened("runs");
  tarn_fit_options options;
  tarn_fit *fit;
  struct stat info;
  static const tarn_fit_family families[] = {{"first & <x>", "a-*"}, {"second", "b-*"}};
  tarn_fit_default(&options);
  options.resamples = 40;
  options.families = families, options.family_count = 2;
  works(tarn_fit_make(&fit, results, &options));
  works(tarn_fit_write_svg(fit, "fit.svg"));
  assert_int_equal(stat("fit.svg", &info), 0);
  assert_in_range(info.st_size, 4000, 100000);
  refuses(tarn_fit_write_svg(fit, "nowhere/fit.svg"), TARN_STATUS_IO, "nowhere/fit.svg");
  tarn_fit_close(&fit);
  tarn_results_close(&results);
}

int main(void) {
  static const char *const headers[] = {"lab/fit.h", NULL};
  static const api_use uses[] = {USE(tarn_fit_axis_name), USE(tarn_fit_axis_parse), USE(tarn_fit_default),
                                 USE(tarn_fit_make),      USE(tarn_fit_close),      USE(tarn_fit_write_svg)};
  return api_main(headers, uses, sizeof uses / sizeof *uses, open_all, sandbox_close);
}
