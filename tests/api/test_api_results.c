// Results of trainings, their comparison, report and records, and advice from these: tarn/lab/results.h,
// tarn/lab/record.h, tarn/lab/advice.h.
#include "api.h"

#include <math.h>
#include <sys/stat.h>

#include "results_runs.h"
#include "tarn/lab/advice.h"
#include "tarn/lab/record.h"
#include "tarn/lab/results.h"

#define VALID(step, time, bleu) \
  "{\"kind\":\"valid\",\"step\":" #step ",\"epoch\":1,\"time\":" #time ",\"valid_bleu\":" #bleu ",\"valid_loss\":3}\n"

static void one_run(const char *path, const char *model, int seed, const char *log) {
  run_config(path, model, seed, 2);
  run_file(path, "log.jsonl", log);
  run_result(path, "minutes", 20, 120, "");
}

static int open_all(void **state) {
  if (sandbox_open(state) != 0) return -1;
  one_run("runs/regular/seed-1", RUN_REGULAR, 1, VALID(0, 0, 0) VALID(10, 60, 10) VALID(20, 120, 20));
  one_run("runs/regular/seed-2", RUN_REGULAR, 2, VALID(0, 0, 0) VALID(10, 60, 12) VALID(20, 120, 21));
  one_run("runs/frozen/seed-1", RUN_RESERVOIR, 1, VALID(0, 0, 0) VALID(10, 60, 8) VALID(20, 120, 19));
  run_config("begun", RUN_REGULAR, 3, 2);
  run_file("begun", "log.jsonl", VALID(0, 0, 0));
  one_run("broken", RUN_REGULAR, 4, "{\"kind\": 5}\nthis is no log\n" VALID(20, 120, 19));
  return mkdir("nothing", 0777);
}

static tarn_results *opened(const char *path) {
  tarn_results *results;
  works(tarn_results_open(&results, &path, 1));
  return results;
}

static tarn_results_table *compared(const tarn_results *results) {
  tarn_results_table *table;
  works(tarn_results_compare(&table, results, NULL));
  return table;
}

static size_t group_of(const tarn_results *results, const char *name) {
  for (size_t g = 0; g < results->group_count; g++)
    if (strcmp(results->groups[g].name, name) == 0) return g;
  fail_msg("there is no group %s", name);
  return 0;
}

static void use_tarn_results_state_name(void) {
  assert_string_equal(tarn_results_state_name(TARN_RESULTS_FINISHED), "finished");
  assert_string_equal(tarn_results_state_name(TARN_RESULTS_PENDING), "pending");
  assert_string_equal(tarn_results_state_name(TARN_RESULTS_STATES), "?");
}

static void refuses_path(const char *path, tarn_status status, const char *words) {
  tarn_results *results;
  refuses(tarn_results_open(&results, &path, 1), status, words);
  assert_null(results);
}

static void use_tarn_results_open(void) {
  tarn_results *results = opened("runs");
  assert_int_equal(results->run_count, 3);
  assert_int_equal(results->group_count, 2);
  assert_int_equal(results->groups[group_of(results, "regular")].finished, 2);
  assert_int_equal(results->baseline, results->group_count);
  tarn_results_close(&results);
  refuses(tarn_results_open(&results, NULL, 0), TARN_STATUS_USAGE, "there is no run directory to read");
  assert_null(results);
  refuses_path("missing", TARN_STATUS_IO, "missing");
  refuses_path("nothing", TARN_STATUS_USAGE, "nothing");
  refuses_path("begun/log.jsonl", TARN_STATUS_IO, "begun/log.jsonl: this is text");
  refuses_path("broken", TARN_STATUS_DATA, "broken/log.jsonl");
  const char *const twice[] = {"runs/frozen", "runs/frozen/seed-1"};
  refuses(tarn_results_open(&results, twice, 2), TARN_STATUS_USAGE, "given twice");
  one_run("later", RUN_REGULAR, 1, VALID(20, 120, 19));
  run_file("later", "result.json", "{\"version\":\"99.0.0\",\"status\":\"finished\",\"end\":\"updates\"}");
  refuses_path("later", TARN_STATUS_DATA, "99.0.0");
  run_file("later", "result.json", "{\"version\":");
  refuses_path("later", TARN_STATUS_DATA, "later/result.json");
  run_result("later", "minutes", 20, 120, "");
  run_file("later", "config.yaml", "model: { d_mode: 5 }\n");
  refuses_path("later", TARN_STATUS_USAGE, "later/config.yaml:1: unknown key \"d_mode\"");
}

static void use_tarn_results_close(void) {
  tarn_results *results = opened("runs");
  tarn_results_close(&results);
  assert_null(results);
  tarn_results_close(&results);
}

static void use_tarn_results_find(void) {
  tarn_results *results = opened("runs");
  const tarn_results_series *series = tarn_results_find(&results->runs[0], "bleu");
  assert_string_equal(series->name, "valid/bleu");
  assert_int_equal(series->count, 3);
  assert_false(series->less);
  assert_ptr_equal(tarn_results_find(&results->runs[0], "valid_bleu"), series);
  assert_null(tarn_results_find(&results->runs[0], "blue"));
  assert_null(tarn_results_find(&results->runs[0], ""));
  char longest[1000];
  memset(longest, 'x', sizeof longest - 1);
  longest[sizeof longest - 1] = '\0';
  assert_null(tarn_results_find(&results->runs[0], longest));
  tarn_results_close(&results);
}

static void use_tarn_results_check_name(void) {
  tarn_results *results = opened("runs");
  works(tarn_results_check_name(results, "loss"));
  refuses(tarn_results_check_name(results, "blue"), TARN_STATUS_USAGE, "did you mean \"bleu\"?");
  refuses(tarn_results_check_name(results, ""), TARN_STATUS_USAGE, "no run has a score \"\"");
  tarn_results_close(&results);
}

static void use_tarn_results_default(void) {
  tarn_results_options options;
  tarn_results_default(&options);
  assert_true(!options.metric && !options.baseline && options.budget == 0);
  assert_int_equal(options.resamples, 1000);
  assert_int_equal(options.seed, 12345);
}

static void use_tarn_results_p(void) {
  char p[TARN_RESULTS_P_TEXT];
  tarn_results_p(p, 0.0359);
  assert_string_equal(p, "0.036");
  tarn_results_p(p, 0.0000001);
  assert_string_equal(p, "< 0.001");
  tarn_results_p(p, NAN);
  assert_string_equal(p, "");
}

static void refuses_compare(const char *path, const tarn_results_options *options, tarn_status status,
                            const char *words) {
  tarn_results *results = opened(path);
  tarn_results_table *table;
  refuses(tarn_results_compare(&table, results, options), status, words);
  assert_null(table);
  tarn_results_close(&results);
}

static void use_tarn_results_compare(void) {
  tarn_results *results = opened("runs");
  tarn_results_table *table = compared(results);
  assert_string_equal(table->metric, "valid/bleu");
  assert_true(table->budget == 120 && table->row_count == 2);
  assert_true(table->rows[group_of(results, "regular")].best.mean == 20.5);
  tarn_results_table_close(&table);
  tarn_results_close(&results);
  refuses_compare("begun", NULL, TARN_STATUS_USAGE, "no finished run to compare");
  for (int i = 0; i < 6; i++) {
    static const char *const words[] = {"did you mean \"bleu\"?", "did you mean \"regular\"?", "not 39", "not 1000001",
                                        "must not be negative",   "must not be negative"};
    tarn_results_options options;
    tarn_results_default(&options);
    if (i == 0) options.metric = "blue";
    if (i == 1) options.baseline = "regula";
    if (i == 2) options.resamples = 39;
    if (i == 3) options.resamples = 1000001;
    if (i == 4) options.budget = -1;
    if (i == 5) options.budget = NAN;
    refuses_compare("runs", &options, TARN_STATUS_USAGE, words[i]);
  }
  one_run("pair/a", RUN_REGULAR, 1, VALID(0, 0, 0) VALID(20, 120, 20));
  one_run("pair/b", RUN_RESERVOIR, 1, VALID(0, 0, 0) VALID(20, 120, 20));
  run_result("pair/a", "minutes", 20, 120, ", \"valid_hash\": \"aa\"");
  refuses_compare("pair", NULL, TARN_STATUS_DATA, "pair/a and pair/b");
}

static void use_tarn_results_table_close(void) {
  tarn_results *results = opened("runs");
  tarn_results_table *table = compared(results);
  tarn_results_table_close(&table);
  assert_null(table);
  tarn_results_table_close(&table);
  tarn_results_close(&results);
}

static void use_tarn_results_band(void) {
  tarn_results *results = opened("runs");
  const size_t regular = group_of(results, "regular");
  tarn_results_band_point points[5];
  size_t count;
  works(tarn_results_band(points, &count, 5, results, regular, "bleu", TARN_RESULTS_SECONDS, 0));
  assert_int_equal(count, 5);
  assert_true(points[2].x == 60 && points[2].mean == 11 && points[2].count == 2 && points[4].high == 21);
  works(tarn_results_band(points, &count, 5, results, regular, "bleu", TARN_RESULTS_STEPS, 40));
  assert_int_equal(count, 3);  // none reaches 30
  works(tarn_results_band(points, &count, 5, results, regular, "nothing", TARN_RESULTS_STEPS, 0));
  assert_int_equal(count, 0);
  refuses(tarn_results_band(points, &count, 5, results, 2, "bleu", TARN_RESULTS_STEPS, 0), TARN_STATUS_USAGE,
          "a band needs one of the groups");
  assert_int_equal(count, 0);
  refuses(tarn_results_band(points, &count, 1, results, 0, "bleu", TARN_RESULTS_STEPS, 0), TARN_STATUS_USAGE,
          "2 points or more");
  refuses(tarn_results_band(points, &count, 5, results, 0, "bleu", TARN_RESULTS_STEPS, -1), TARN_STATUS_USAGE,
          "a limit from 0 on");
  refuses(tarn_results_band(points, &count, 5, results, 0, "bleu", TARN_RESULTS_STEPS, NAN), TARN_STATUS_USAGE,
          "a limit from 0 on");
  refuses(tarn_results_band(points, &count, 5, results, 0, "bleu", (tarn_results_axis)2, 0), TARN_STATUS_USAGE,
          "an unknown axis");
  tarn_results_close(&results);
}

static void use_tarn_report_default(void) {
  tarn_report_options options;
  tarn_report_default(&options);
  assert_true(!options.output && !options.title);
}

static bool is_there(const char *path) {
  struct stat info;
  return stat(path, &info) == 0;
}

static void refuses_folders(tarn_status (*write)(const tarn_results *, const tarn_results_table *,
                                                 const tarn_report_options *),
                            const tarn_results *results, const tarn_results_table *table) {
  tarn_report_options options;
  tarn_report_default(&options);
  refuses(write(results, table, &options), TARN_STATUS_USAGE, "the folder of the report is missing");
  options.output = "";
  refuses(write(results, table, &options), TARN_STATUS_USAGE, "the folder of the report is missing");
  options.output = "begun/log.jsonl";
  refuses(write(results, table, &options), TARN_STATUS_IO, "begun/log.jsonl");
}

static void use_tarn_report_write(void) {
  tarn_results *results = opened("runs");
  tarn_results_table *table = compared(results);
  tarn_report_options options;
  tarn_report_default(&options);
  options.output = "report/of/runs", options.title = "All <runs>";
  works(tarn_report_write(results, table, &options));
  assert_true(is_there("report/of/runs/report.html") && is_there("report/of/runs/runs.csv"));
  refuses_folders(tarn_report_write, results, table);
  tarn_results_table_close(&table);
  tarn_results_close(&results);
}

static void use_tarn_report_write_pdf(void) {
  tarn_results *results = opened("runs");
  tarn_results_table *table = compared(results);
  tarn_report_options options;
  tarn_report_default(&options);
  options.output = "pictures";
  const tarn_status status = tarn_report_write_pdf(results, table, &options);
  if (status == TARN_STATUS_UNSUPPORTED) {
    refuses(status, TARN_STATUS_UNSUPPORTED, "figures cannot be written as PDF");
    assert_false(is_there("pictures"));
  } else {
    works(status);
    assert_true(is_there("pictures/figures"));
    refuses_folders(tarn_report_write_pdf, results, table);
  }
  tarn_results_table_close(&table);
  tarn_results_close(&results);
}

static void use_tarn_record(void) {
  tarn_record_summary summary;
  refuses(tarn_record(&summary, "runs/regular", "kept"), TARN_STATUS_USAGE, "it is no sweep");
  run_file("runs", "sweep.json",
           "{\"version\": \"0.1.0\", \"name\": \"two\", \"baseline\": \"regular\", \"budget_seconds\": null, "
           "\"seeds\": [1, 2],"
           " \"variants\": [{\"name\": \"regular\"}, {\"name\": \"frozen\"}], \"test\": null}");
  works(tarn_record(&summary, "runs", "kept"));
  assert_true(summary.added == 3 && summary.missing == 1 && summary.kept == 0 && summary.differing == 0);
  works(tarn_record(NULL, "runs", "kept"));
  works(tarn_record(&summary, "runs", "kept"));
  assert_true(summary.added == 0 && summary.kept == 3);
  tarn_results *results = opened("kept");
  assert_int_equal(results->run_count, 4);
  tarn_results_close(&results);
  refuses(tarn_record(&summary, "runs", "runs"), TARN_STATUS_USAGE, "its own record");
  refuses(tarn_record(&summary, "runs", "begun/log.jsonl"), TARN_STATUS_IO, "begun/log.jsonl");
  refuses(tarn_record(&summary, "missing", "kept"), TARN_STATUS_USAGE, "missing: it is no sweep");
}

static void use_tarn_advice_decision_name(void) {
  assert_string_equal(tarn_advice_decision_name(TARN_ADVICE_UNDECIDED), "undecided");
  assert_string_equal(tarn_advice_decision_name(TARN_ADVICE_EQUIVALENT), "equivalent");
  assert_null(tarn_advice_decision_name(TARN_ADVICE_DECISIONS));
  assert_null(tarn_advice_decision_name((tarn_advice_decision)-1));
}

static void use_tarn_advice_default(void) {
  tarn_advice_options options;
  tarn_advice_default(&options);
  assert_true(!options.config && !options.overrides && !options.folders && options.folder_count == 0);
  assert_true(options.plan.source_vocab == 0 && options.plan.threads == 0);
}

// Advice on a run of the record itself.
static tarn_advice_options about(const char *const *folders, size_t count) {
  tarn_advice_options options;
  one_run("kept-runs/regular/seed-1", RUN_REGULAR, 1, VALID(0, 0, 0) VALID(20, 120, 20));
  one_run("kept-runs/frozen/seed-1", RUN_RESERVOIR, 1, VALID(0, 0, 0) VALID(20, 120, 19));
  run_file("kept-runs", "sweep.json",
           "{\"version\": \"0.1.0\", \"name\": \"two\", \"baseline\": \"regular\", \"budget_seconds\": null, "
           "\"seeds\": [1], \"variants\": [{\"name\": \"regular\"}, {\"name\": \"frozen\"}], \"test\": null}");
  tarn_advice_default(&options);
  options.config = "kept-runs/regular/seed-1";
  options.folders = folders;
  options.folder_count = count;
  options.plan.source_vocab = 20;
  return options;
}

static void use_tarn_advice_make(void) {
  const char *const folders[] = {"kept-runs", "nothing", "missing"};
  tarn_advice_options options = about(folders, 1);
  tarn_advice *advice;
  works(tarn_advice_make(&advice, &options));
  assert_int_equal(advice->used, 1);
  assert_int_equal(advice->records[0].form_count, 1);
  const tarn_advice_form *form = &advice->records[0].forms[0];
  assert_string_equal(form->what, "1 of 3 encoder layers frozen: L R L");
  assert_int_equal(form->decision, TARN_ADVICE_UNDECIDED);  // of one seed nothing is said
  assert_string_equal(form->obstacle, "it changes more than what is frozen or left out");
  tarn_advice_close(&advice);
  options.folder_count = 2;
  works(tarn_advice_make(&advice, &options));
  assert_true(advice->record_count == 2 && advice->used == 1 && advice->records[1].left_out);
  tarn_advice_close(&advice);
  options.folders = &folders[1], options.folder_count = 1;
  refuses(tarn_advice_make(&advice, &options), TARN_STATUS_USAGE, "nothing says nothing about a model");
  assert_null(advice);
  options.folders = &folders[2], options.folder_count = 1;
  refuses(tarn_advice_make(&advice, &options), TARN_STATUS_IO, "missing");
  options.folder_count = 0;
  refuses(tarn_advice_make(&advice, &options), TARN_STATUS_USAGE, "there is no folder of records");
  options.config = NULL;
  refuses(tarn_advice_make(&advice, &options), TARN_STATUS_USAGE, "no configuration to advise on");
  options.config = "missing.yaml";
  refuses(tarn_advice_make(&advice, &options), TARN_STATUS_IO, "missing.yaml");
  options = about(folders, 1);
  options.plan.threads = -1;
  refuses(tarn_advice_make(&advice, &options), TARN_STATUS_USAGE, "threads");
  assert_null(advice);
}

static void use_tarn_advice_close(void) {
  const char *const folders[] = {"kept-runs"};
  const tarn_advice_options options = about(folders, 1);
  tarn_advice *advice;
  works(tarn_advice_make(&advice, &options));
  tarn_advice_close(&advice);
  assert_null(advice);
  tarn_advice_close(&advice);
}

int main(void) {
  static const char *const headers[] = {"lab/results.h", "lab/record.h", "lab/advice.h", NULL};
  static const api_use uses[] = {USE(tarn_results_state_name),
                                 USE(tarn_results_open),
                                 USE(tarn_results_close),
                                 USE(tarn_results_find),
                                 USE(tarn_results_check_name),
                                 USE(tarn_results_default),
                                 USE(tarn_results_p),
                                 USE(tarn_results_compare),
                                 USE(tarn_results_table_close),
                                 USE(tarn_results_band),
                                 USE(tarn_report_default),
                                 USE(tarn_report_write),
                                 USE(tarn_report_write_pdf),
                                 USE(tarn_record),
                                 USE(tarn_advice_decision_name),
                                 USE(tarn_advice_default),
                                 USE(tarn_advice_make),
                                 USE(tarn_advice_close)};
  return api_main(headers, uses, sizeof uses / sizeof *uses, open_all, sandbox_close);
}
