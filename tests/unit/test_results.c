// Reading and comparing runs: measures against NumPy's (tests/golden/aucc.json), refusals, files that are damaged.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <math.h>

#include "base/memory.h"
#include "results_runs.h"
#include "significance/aucc.h"
#include "tarn/lab/results.h"
#include "tarn/process.h"
#include "task/measure_entry.h"

static void near(double got, double expected) {
  if (fabs(got - expected) <= 1e-9 * fmax(1, fabs(expected))) return;
  print_error("got %.17g, expected %.17g\n", got, expected);
  fail();
}

static double real_of(const json_t *object, const char *key) { return json_number_value(json_object_get(object, key)); }

static json_t *golden(void) {
  json_t *root = json_load_file(TARN_SOURCE_DIR "/tests/golden/aucc.json", 0, NULL);
  assert_non_null(root);
  return root;
}

static void areas_agree_with_numpy(void **state) {
  (void)state;
  json_t *root = golden();
  size_t i;
  const json_t *c;
  assert_true(json_array_size(json_object_get(root, "curves")) > 20);
  json_array_foreach(json_object_get(root, "curves"), i, c) {
    tarn_results_point points[64] = {{0}};
    size_t count = json_array_size(json_object_get(c, "times"));
    for (size_t k = 0; k < count; k++) {
      points[k].seconds = json_number_value(json_array_get(json_object_get(c, "times"), k));
      points[k].value = json_number_value(json_array_get(json_object_get(c, "values"), k));
    }
    near(tarn__curve_area(points, count, real_of(c, "start"), real_of(c, "limit")), real_of(c, "area"));
  }
  json_decref(root);
}

// The runs of the golden file, in ROOT/GROUP/seed-N.
static void write_runs(const json_t *root, const char *folder) {
  size_t i;
  const json_t *run;
  json_array_foreach(json_object_get(root, "runs"), i, run) {
    char path[256];
    char log[8192];
    size_t length = 0;
    const char *group = json_string_value(json_object_get(run, "group"));
    int seed = (int)json_integer_value(json_object_get(run, "seed"));
    const json_t *steps = json_object_get(run, "steps");
    size_t last = json_array_size(steps) - 1;
    snprintf(path, sizeof path, "%s/%s/seed-%d", folder, group, seed);
    for (size_t k = 0; k <= last; k++)
      length += (size_t)snprintf(
          log + length, sizeof log - length,
          "{\"kind\":\"valid\",\"step\":%d,\"epoch\":%.9g,\"time\":%.17g,\"valid_bleu\":%.17g,\"valid_loss\":%.9g,"
          "\"valid_nll\":2}\n",
          (int)json_integer_value(json_array_get(steps, k)), (double)json_integer_value(json_array_get(steps, k)) / 100,
          json_number_value(json_array_get(json_object_get(run, "seconds"), k)),
          json_number_value(json_array_get(json_object_get(run, "bleu"), k)), 5.0 - (double)k);
    run_config(path, strcmp(group, "regular") == 0 ? RUN_REGULAR : RUN_RESERVOIR, seed, 4);
    run_file(path, "log.jsonl", log);
    run_result(path, "minutes", (int)json_integer_value(json_array_get(steps, last)),
               json_number_value(json_array_get(json_object_get(run, "seconds"), last)), "");
  }
}

static tarn_status open_one(tarn_results **results, const char *path) { return tarn_results_open(results, &path, 1); }

static void same_statistic(const tarn_results_statistic *got, const json_t *summary, const char *key) {
  const json_t *pair = json_object_get(summary, key);
  near(got->mean, json_number_value(json_array_get(pair, 0)));
  near(got->sd, json_number_value(json_array_get(pair, 1)));
  assert_int_equal(got->count, 3);
}

static void tables_agree_with_numpy(void **state) {
  (void)state;
  json_t *root = golden();
  tarn_results *results;
  tarn_results_table *table;
  write_runs(root, "golden");
  assert_int_equal(open_one(&results, "golden"), TARN_STATUS_OK);
  assert_int_equal(results->run_count, 6);
  assert_int_equal(results->group_count, 2);
  assert_string_equal(results->groups[0].name, "regular");
  assert_string_equal(results->groups[1].encoder.pattern, "L R L");
  assert_true(results->groups[1].encoder.layers[1].frozen);
  assert_int_equal(tarn_results_compare(&table, results, NULL), TARN_STATUS_OK);
  assert_string_equal(table->metric, "valid/bleu");
  near(table->budget, real_of(root, "budget"));
  for (size_t i = 0; i < 6; i++) {
    const json_t *run = json_array_get(json_object_get(root, "runs"), i);
    const tarn_results_measures *m = &table->measures[i];
    near(m->aucc, real_of(run, "aucc"));
    near(m->aucc_mean, real_of(run, "aucc_mean"));
    near(m->best, real_of(run, "best"));
    near(m->best_seconds, real_of(run, "best_seconds"));
    near(m->budget_step, real_of(run, "budget_step"));
    near(m->budget_epoch, real_of(run, "budget_step") / 100);
    near(m->epoch_seconds, results->runs[i].seconds / results->runs[i].epoch);
    assert_false(m->held || m->assumed_start);
    const tarn_results_series *loss = tarn_results_find(&results->runs[i], "loss");
    near(m->min_loss, loss->points[loss->count - 1].value);
    near(tarn_results_find(&results->runs[i], "ppl")->points[0].value, exp(2));
  }
  for (size_t g = 0; g < 2; g++) {
    const tarn_results_row *row = &table->rows[g];
    const json_t *summary = json_object_get(json_object_get(root, "summary"), results->groups[g].name);
    same_statistic(&row->aucc, summary, "aucc");
    same_statistic(&row->aucc_mean, summary, "aucc_mean");
    same_statistic(&row->best, summary, "best");
    same_statistic(&row->best_seconds, summary, "best_seconds");
    same_statistic(&row->budget_step, summary, "budget_step");
    assert_int_equal(row->regular, 0);
  }
  near(table->rows[1].time_ratio, real_of(json_object_get(root, "summary"), "ratio"));
  near(table->rows[0].time_ratio, 1);
  tarn_results_table_close(&table);
  tarn_results_close(&results);
  json_decref(root);
}

// --- decisions
// --------------------------------------------------------------------------------------------------------

#define VALID(step, time, bleu, loss)                                                           \
  "{\"kind\":\"valid\",\"step\":" #step ",\"epoch\":1,\"time\":" #time ",\"valid_bleu\":" #bleu \
  ",\"valid_loss\":" #loss "}\n"
static const char plain_log[] = VALID(10, 60, 10, 3) VALID(20, 120, 20, 2);

static void one_run(const char *path, const char *log, const char *end, double seconds) {
  run_config(path, RUN_REGULAR, 1, 2);
  run_file(path, "log.jsonl", log);
  run_result(path, end, 20, seconds, "");
}

// The only row of a comparison of one path; the message of the failure otherwise.
static tarn_status compare_one(tarn_results_measures *out, const char *path, const char *metric, double budget) {
  tarn_results *results;
  tarn_results_table *table = NULL;
  tarn_results_options options;
  tarn_results_default(&options);
  options.metric = metric;
  options.budget = budget;
  tarn_status status = open_one(&results, path);
  if (status == TARN_STATUS_OK) status = tarn_results_compare(&table, results, &options);
  if (status == TARN_STATUS_OK) *out = table->measures[0];
  tarn_results_table_close(&table);
  tarn_results_close(&results);
  return status;
}

static void starts_and_ends(void **state) {
  (void)state;
  tarn_results_measures m = {0};
  one_run("ends", plain_log, "updates", 120);
  // BLEU from 0: a triangle of 10 x 1 minute, then 15 x 1 minute; cut at T-hat; held after the end.
  assert_int_equal(compare_one(&m, "ends", "bleu", 120), TARN_STATUS_OK);
  near(m.aucc, 5 + 15);
  assert_true(m.assumed_start && !m.held);
  assert_int_equal(compare_one(&m, "ends", "bleu", 90), TARN_STATUS_OK);
  near(m.aucc, 5 + 12.5 / 2);
  near(m.best, 10);  // what came after T-hat does not count
  near(m.budget_step, 15);
  assert_int_equal(compare_one(&m, "ends", "bleu", 30), TARN_STATUS_OK);
  near(m.aucc, 2.5 * 0.5);
  assert_true(isnan(m.best) && m.best_step == -1);
  assert_int_equal(compare_one(&m, "ends", "bleu", 240), TARN_STATUS_OK);
  near(m.aucc, 5 + 15 + 40);
  assert_true(m.held);
  assert_int_equal(compare_one(&m, "ends", "loss", 120), TARN_STATUS_DATA);
  assert_non_null(strstr(tarn_error_message(), "valid.at_start"));
  one_run("from0", VALID(0, 0, 0, 4) VALID(10, 60, 1, 2), "updates", 120);
  assert_int_equal(compare_one(&m, "from0", "loss", 60), TARN_STATUS_OK);
  near(m.aucc, -3);
  near(m.best, 2);
}

// A log has nine digits of a time, a result all of them: the last validation may lie behind the end by its rounding.
static void a_run_without_budget_is_seen_to_its_end(void **state) {
  (void)state;
  tarn_results_measures m = {0};
  one_run("rounded", VALID(10, 60, 10, 3) VALID(20, 119.999999, 20, 2), "updates", 119.9999985);
  run_config("rounded", RUN_REGULAR, 1, 0);
  assert_int_equal(compare_one(&m, "rounded", "bleu", 0), TARN_STATUS_OK);
  near(m.best, 20);
  near(m.min_loss, 2);
}

static void names_the_key_that_ended_a_run(void **state) {
  (void)state;
  static const char *const ends[][2] = {{"patience", "(train.patience)"}, {"updates", "(train.max_updates)"}};
  for (size_t i = 0; i < 2; i++) {
    tarn_results *results;
    tarn_results_table *table;
    tarn_results_options options;
    tarn_results_default(&options);
    options.budget = 240;
    one_run("held", plain_log, ends[i][0], 120);
    assert_int_equal(open_one(&results, "held"), TARN_STATUS_OK);
    assert_int_equal(tarn_results_compare(&table, results, &options), TARN_STATUS_OK);
    assert_non_null(strstr(table->notes[0], ends[i][1]));
    tarn_results_table_close(&table);
    tarn_results_close(&results);
  }
}

// Many curves that end early are one note, which names the first six.
static void early_ends_are_one_note(void **state) {
  (void)state;
  tarn_results *results;
  tarn_results_table *table;
  tarn_results_options options;
  tarn_results_default(&options);
  options.budget = 240;
  for (int seed = 1; seed <= 8; seed++) {
    char path[64];
    snprintf(path, sizeof path, "early/seed-%d", seed);
    run_config(path, RUN_REGULAR, seed, 2);
    run_file(path, "log.jsonl", plain_log);
    run_result(path, seed == 2 ? "patience" : "updates", 20, 120, "");
  }
  assert_int_equal(open_one(&results, "early"), TARN_STATUS_OK);
  assert_int_equal(tarn_results_compare(&table, results, &options), TARN_STATUS_OK);
  size_t held = 0;
  for (size_t i = 0; i < table->note_count; i++) held += strstr(table->notes[i], "held") != NULL;
  assert_int_equal(held, 1);
  assert_string_equal(table->notes[0],
                      "8 curves end before 4 minutes, and their last values are held: early/seed-1 after 2 "
                      "(train.max_updates), early/seed-2 after 2 (train.patience), early/seed-3 after 2 "
                      "(train.max_updates), early/seed-4 after 2 (train.max_updates), early/seed-5 after 2 "
                      "(train.max_updates), early/seed-6 after 2 (train.max_updates) and 2 more");
  tarn_results_table_close(&table);
  tarn_results_close(&results);
}

static char kept_line[256];

static void keep_line(void *user, tarn_log_level level, const char *text) {
  (void)user;
  (void)level;
  snprintf(kept_line, sizeof kept_line, "%s", text);
}

static void says(tarn_status got, tarn_status expected, const char *part) {
  if (got == expected && strstr(tarn_error_message(), part)) return;
  print_error("status %d, expected %d with \"%s\": %s\n", (int)got, (int)expected, part, tarn_error_message());
  fail();
}

// A score goes by its name of the log as well, and a wrong name by none.
static void scores_have_two_spellings(void **state) {
  (void)state;
  tarn_results *results;
  tarn_results_measures m = {0};
  static const char *const names[] = {"valid/bleu", "valid_bleu", "bleu"};
  one_run("spelt", plain_log, "updates", 120);
  assert_int_equal(open_one(&results, "spelt"), TARN_STATUS_OK);
  for (size_t i = 0; i < 3; i++) {
    const tarn_results_series *series = tarn_results_find(&results->runs[0], names[i]);
    assert_non_null(series);
    assert_string_equal(series->name, "valid/bleu");
    assert_int_equal(tarn_results_check_name(results, names[i]), TARN_STATUS_OK);
    assert_int_equal(compare_one(&m, "spelt", names[i], 0), TARN_STATUS_OK);
    near(m.best, 20);
    assert_int_equal(tarn_measure_find(names[i])->number, TARN__METRIC_BLEU);
  }
  assert_null(tarn_results_find(&results->runs[0], "valid_ble"));
  assert_null(tarn_measure_find("train/aux_loss"));
  assert_null(tarn_measure_find("valid_ble"));
  assert_true(tarn_measure_same_name("train/grad_norm", "train_grad_norm"));
  assert_false(tarn_measure_same_name("train/grad_norm", "train/grad_norms"));
  assert_false(tarn_measure_same_name("train/grad_norm", "train/grad-norm"));
  says(tarn_results_check_name(results, "valid_blue"), TARN_STATUS_USAGE,
       "no run has a score \"valid_blue\"; did you mean \"valid/bleu\"?");
  says(compare_one(&m, "spelt", "blue", 0), TARN_STATUS_USAGE, "no run has a score \"blue\"; did you mean \"bleu\"?");
  says(tarn_results_check_name(results, "perplexity"), TARN_STATUS_USAGE,
       "no run has a score \"perplexity\"; scores are such as bleu, loss, ppl, train/loss");
  tarn_results_close(&results);
}

static void refuses_what_cannot_be_compared(void **state) {
  (void)state;
  tarn_results_measures m = {0};
  static const struct {
    const char *more, *word;
  } cases[] = {{", \"valid_hash\": \"bb\"", "validation data"}, {"", "validation data"}};
  for (size_t i = 0; i < 2; i++) {
    one_run("pair/a", plain_log, "updates", 120);
    one_run("pair/b", plain_log, "updates", 120);
    run_config("pair/b", RUN_RESERVOIR, 1, 2);
    run_result("pair/a", "updates", 20, 120, ", \"valid_hash\": \"aa\"");
    run_result("pair/b", "updates", 20, 120, cases[i].more);
    says(compare_one(&m, "pair", "bleu", 0), TARN_STATUS_DATA, cases[i].word);
    assert_non_null(strstr(tarn_error_message(), "pair/a and pair/b"));
  }
  run_result("pair/b", "updates", 20, 120, ", \"valid_hash\": \"aa\", \"clock\": \"cpu\"");
  says(compare_one(&m, "pair", "bleu", 0), TARN_STATUS_DATA, "\"clock\"");  // a key twice
  run_file(
      "pair/b", "result.json",
      "{\"version\":\"0.1.0\",\"status\":\"finished\",\"end\":\"updates\",\"clock\":\"cpu\",\"valid_hash\":\"aa\"}");
  says(compare_one(&m, "pair", "bleu", 0), TARN_STATUS_DATA, "clocks differ");
  run_result("pair/b", "updates", 20, 120, ", \"valid_hash\": \"aa\"");
  run_config("pair/b", RUN_RESERVOIR, 1, 3);
  says(compare_one(&m, "pair", "bleu", 0), TARN_STATUS_DATA, "train.max_minutes 2 and 3");
  assert_int_equal(compare_one(&m, "pair", "bleu", 100), TARN_STATUS_OK);
  run_result("pair/a", "minutes", 20, 120, ", \"valid_hash\": \"aa\"");
  says(compare_one(&m, "pair", "bleu", 180), TARN_STATUS_DATA, "ended by train.max_minutes");
  says(compare_one(&m, "pair", "blue", 100), TARN_STATUS_USAGE, "did you mean \"bleu\"");
  run_file("pair/b", "log.jsonl", "{\"kind\":\"train\",\"step\":20,\"epoch\":1,\"time\":3,\"loss\":3}\n");
  says(compare_one(&m, "pair", NULL, 100), TARN_STATUS_DATA, "pair/b has no validation");
  run_file("pair/b", "log.jsonl", "{\"kind\":\"train\",\"step\":5,\"epoch\":1,\"time\":3,\"loss\":3}\n");
  says(compare_one(&m, "pair", NULL, 100), TARN_STATUS_DATA,
       "pair/b/log.jsonl is damaged, and no validation is left in it: it ends at byte 54, at update 5 of 20");
  says(compare_one(&m, "pair", "bleu", 100), TARN_STATUS_DATA,
       "pair/b/log.jsonl is damaged, and no valid/bleu is left");
  run_file("pair/b", "log.jsonl", "");
  says(compare_one(&m, "pair", NULL, 100), TARN_STATUS_DATA, "it ends at byte 0, at update 0 of 20");
  run_file("pair/a", "result.json", "{\"version\":\"0.2.0\",\"status\":\"finished\",\"end\":\"updates\"}");
  says(compare_one(&m, "pair", "bleu", 100), TARN_STATUS_DATA, "written by tarn 0.2.0");
}

// What is not known of two sets does not make them one.
static void refuses_other_sets(void **state) {
  (void)state;
  tarn_results_measures m = {0};
#define SCORED(step, time)                                                              \
  "{\"kind\":\"scored\",\"set\":\"t\",\"step\":" #step ",\"epoch\":0.1,\"time\":" #time \
  ",\"loss\":3,\"nll\":3,"                                                              \
  "\"bleu\":10}\n"
  static const char log[] = SCORED(0, 0) SCORED(10, 60);
#undef SCORED
  static const struct {
    const char *sets, *metric, *words;
  } cases[] = {{"{\"t\": 5}", "t/loss", "\"t\" of \"sets\" must be an object with a \"hash\""},
               {"{\"t\": {}}", "t/loss", "\"t\" of \"sets\" must be an object with a \"hash\""},
               {"{\"t\": {\"hash\": \"aa\"}}", "t/loss", NULL},
               {"{\"t\": {\"hash\": \"aa\"}}", "t/bleu", "what they scored as t differs"},
               {"{\"t\": {\"hash\": \"aa\", \"bleu_hash\": \"bb\"}}", "t/bleu", NULL}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char more[128];
    snprintf(more, sizeof more, ", \"sets\": %s", cases[i].sets);
    one_run("two/a", log, "updates", 120);
    one_run("two/b", log, "updates", 120);
    run_config("two/b", RUN_RESERVOIR, 1, 2);
    run_result("two/a", "updates", 20, 120, more);
    run_result("two/b", "updates", 20, 120, more);
    const tarn_status status = compare_one(&m, "two", cases[i].metric, 120);
    if (cases[i].words) says(status, TARN_STATUS_DATA, cases[i].words);
    if (!cases[i].words && status != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  }
}

// Test scores of one table are of one test; a copy of a file, and a folder by another name, are the same.
static void refuses_other_tests(void **state) {
  (void)state;
  static const struct {
    const char *a, *b, *word;
  } cases[] = {
#define TEST(source, reference, sentences, beam, tok)                                                      \
  "{\"bleu\": 3, \"source\": \"" source "\", \"reference\": \"" reference "\", \"sentences\": " #sentences \
  ", \"beam\": " #beam ", \"signature\": \"case:lc|tok:" tok "|smooth:exp\"}"
      {TEST("tests/s", "tests/one", 2, 5, "13a"), TEST("tests/s", "tests/copy", 2, 5, "13a"), NULL},
      {TEST("tests/s", "tests/one", 2, 5, "13a"), TEST("tests/s", "tests/two", 2, 5, "13a"), "references"},
      {TEST("tests/s", "gone", 2, 5, "13a"), TEST("tests/s", "gone too", 2, 5, "13a"), "references"},
      {TEST("tests/s", "tests/one", 2, 5, "13a"), TEST("tests/s", "tests/one", 3, 5, "13a"), "references"},
      {TEST("tests/s", "tests/one", 2, 5, "13a"), TEST("tests/t", "tests/one", 2, 5, "13a"),
       "other sources (tests/s and tests/t)"},
      {TEST("tests/s", "tests/one", 2, 5, "13a"), TEST("tests/s", "tests/one", 2, 1, "13a"), "beams (5 and 1)"},
      {TEST("tests/s", "tests/one", 2, 5, "13a"), TEST("tests/s", "tests/one", 2, 5, "none"), "signatures"},
      {TEST("tests/s", "tests/one", 2, 5, "13a"), "{\"status\": \"failed\", \"message\": \"no data\"}", NULL},
#undef TEST
#define PAIRS(folder, pairs) "{\"blimp\": 60, \"folder\": \"" folder "\", \"pairs\": " #pairs "}"
      {PAIRS("tests", 9), PAIRS("./tests", 9), NULL},
      {PAIRS("tests", 9), PAIRS("tested", 9), "minimal pairs"},
      {PAIRS("tests", 9), PAIRS("tests", 8), "minimal pairs"},
      {PAIRS("tests", 9), PAIRS("tests\", \"precision\": \"fp32", 9), NULL},
      {PAIRS("tests\", \"precision\": \"bf16", 9), PAIRS("tests", 9), "bf16 and fp32"},
#undef PAIRS
  };
  run_file("tests", "one", "a\nb\n");
  run_file("tests", "copy", "a\nb\n");
  run_file("tests", "two", "a\nc\n");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tarn_results_measures m = {0};
    one_run("tested/a", plain_log, "updates", 120);
    one_run("tested/b", plain_log, "updates", 120);
    run_config("tested/b", RUN_RESERVOIR, 1, 2);
    run_file("tested/a", "test.json", cases[i].a);
    run_file("tested/b", "test.json", cases[i].b);
    tarn_status status = compare_one(&m, "tested", NULL, 0);
    if (!cases[i].word)
      assert_int_equal(status, TARN_STATUS_OK);
    else
      says(status, TARN_STATUS_DATA, cases[i].word);
    assert_true(!cases[i].word || strstr(tarn_error_message(), "tested/a and tested/b"));
  }
}

static void failed_runs_are_in_no_mean(void **state) {
  (void)state;
  tarn_results *results;
  tarn_results_table *table;
  one_run("mixed/m/seed-1", plain_log, "updates", 120);
  one_run("mixed/m/seed-2", plain_log, "updates", 120);
  run_config("mixed/m/seed-2", RUN_REGULAR, 2, 2);
  run_file("mixed/m/seed-2", "result.json",
           "{\"version\":\"0.1.0\",\"status\":\"failed\",\"message\":\"the loss is not a finite number\"}");
  run_config("mixed/m/seed-3", RUN_REGULAR, 3, 2);
  run_file("mixed/m/seed-3", "log.jsonl", VALID(10, 60, 99, 3));
  assert_int_equal(open_one(&results, "mixed"), TARN_STATUS_OK);
  assert_int_equal(results->group_count, 1);
  assert_int_equal(results->groups[0].failed, 1);
  assert_int_equal(tarn_results_compare(&table, results, NULL), TARN_STATUS_OK);
  assert_int_equal(table->rows[0].aucc.count, 1);
  assert_true(isnan(table->rows[0].aucc.sd));
  near(table->rows[0].best.mean, 20);
  assert_true(isnan(table->measures[1].aucc));
  bool told = false;
  for (size_t i = 0; i < table->note_count; i++) told = told || strstr(table->notes[i], "the loss is not a finite");
  assert_true(told);
  tarn_results_table_close(&table);
  tarn_results_close(&results);
  tarn_results_measures m = {0};
  run_file("mixed/m/seed-1", "result.json", "{\"version\":\"0.1.0\",\"status\":\"failed\"}");
  says(compare_one(&m, "mixed", NULL, 0), TARN_STATUS_USAGE, "no finished run to compare: 2 failed, 1 unfinished");
}

static void sweeps_list_their_runs(void **state) {
  (void)state;
  tarn_results *results;
  tarn_results_table *table;
  one_run("sweep/a b/seed-1", plain_log, "updates", 120);
  one_run("sweep/c/seed-1", plain_log, "updates", 120);
  run_file("sweep/c/seed-2", "result.json", "{\"version\":\"0.1.0\",\"status\":\"failed\",\"message\":\"no data\"}");
  run_config("sweep/c/seed-1", RUN_RESERVOIR, 1, 2);
  run_file("sweep", "sweep.json",
           "{\"name\":\"s\",\"baseline\":\"c\",\"budget_seconds\":90,\"seeds\":[1,2],\"variants\":["
           "{\"name\":\"a b\",\"set\":{\"encoder.layers\":\"L*2\"},\"equalized\":{\"kinds.L.ffn\":40}},"
           "{\"name\":\"c\",\"set\":{}}]}");
  assert_int_equal(open_one(&results, "sweep"), TARN_STATUS_OK);
  assert_string_equal(results->sweep, "s");
  assert_string_equal(results->groups[0].changes, "encoder.layers=L*2");
  assert_string_equal(results->groups[0].equalized, "kinds.L.ffn=40");
  assert_null(results->groups[1].equalized);
  assert_int_equal(results->runs[1].state, TARN_RESULTS_PENDING);
  assert_int_equal(results->runs[3].state, TARN_RESULTS_FAILED);
  assert_int_equal(tarn_results_compare(&table, results, NULL), TARN_STATUS_OK);
  near(table->budget, 90);
  assert_true(table->rows[1].baseline);
  tarn_results_table_close(&table);
  tarn_results_close(&results);
}

static void names_are_unique(void **state) {
  (void)state;
  static const char sweep[] = "{\"name\":\"s\",\"baseline\":\"c\",\"seeds\":[1],\"variants\":[{\"name\":\"c\"}]}";
  const char *paths[] = {"x/m1", "m1", "x/s", "s"};
  tarn_results *results;
  one_run("x/m1", plain_log, "updates", 120);
  one_run("m1", plain_log, "updates", 120);
  run_config("m1", RUN_RESERVOIR, 1, 2);
  one_run("x/s/c/seed-1", plain_log, "updates", 120);
  one_run("s/c/seed-1", plain_log, "updates", 120);
  run_file("x/s", "sweep.json", sweep);
  run_file("s", "sweep.json", sweep);
  assert_int_equal(tarn_results_open(&results, paths, 4), TARN_STATUS_OK);
  assert_int_equal(results->group_count, 4);
  assert_string_equal(results->groups[0].name, "m1");
  assert_string_equal(results->groups[1].name, "m1 (2)");  // its path is taken as well
  assert_string_equal(results->groups[2].name, "s/c");
  assert_string_equal(results->groups[3].name, "s (2)/c");
  tarn_results_close(&results);
  const char *turned[] = {"m1", "x/m1", "s", "x/s"};
  assert_int_equal(tarn_results_open(&results, turned, 4), TARN_STATUS_OK);
  assert_string_equal(results->groups[1].name, "x/m1");
  assert_string_equal(results->groups[3].name, "x/s/c");
  tarn_results_close(&results);
}

// --- damaged files
// ----------------------------------------------------------------------------------------------------

static void logs_are_checked(void **state) {
  (void)state;
  static const struct {
    const char *log, *part;
  } cases[] = {
      {VALID(10, 60, 10, 3) "{\"kind\":\"valid\",\"step\":2\n" VALID(20, 70, 1, 1), "log.jsonl:2: it is damaged"},
      {VALID(10, 60, 10, 3) VALID(5, 70, 1, 1), "log.jsonl:2: steps must not fall: step 5 after 10"},
      {VALID(10, 60, NaN, 3), "log.jsonl:1: it is damaged"},
      {VALID(10, 60, 1e999, 3), "log.jsonl:1: it is damaged"},
      {VALID(99999999999999999999, 60, 1, 3), "log.jsonl:1: it is damaged"},
      {VALID(10, 60, 10, 3) "{\"kind\":\"valid\",\"step\":20#\n", "log.jsonl:2: it is damaged at byte "},
      {"[1]\n", "log.jsonl:1: a record needs"},
      {"{\"step\":1,\"time\":1}\n", "needs a \"kind\""},
      {"{\"kind\":\"freeze\",\"step\":1,\"time\":1}\n", "needs a list"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tarn_results *results;
    one_run("damaged", cases[i].log, "updates", 120);
    says(open_one(&results, "damaged"), TARN_STATUS_DATA, cases[i].part);
    assert_null(results);
  }
  tarn_results *results;
  one_run("damaged", VALID(10, 60, 10, 3), "updates", 120);
  FILE *log = fopen("damaged/log.jsonl", "ab");  // as file systems leave it after a power cut
  assert_non_null(log);
  fwrite("{\"kind\":\0\0\0", 1, 11, log);
  fclose(log);
  char line[64];
  snprintf(line, sizeof line, "log.jsonl:2: it is damaged at byte %zu: a zero byte", strlen(VALID(10, 60, 10, 3)) + 8);
  says(open_one(&results, "damaged"), TARN_STATUS_DATA, line);
  tarn_results_measures m = {0};
  one_run("damaged", VALID(10, 60, 10, 3) "{\"kind\":\"val", "updates", 120);
  assert_int_equal(compare_one(&m, "damaged", NULL, 0), TARN_STATUS_OK);
  near(m.best, 10);
  one_run("damaged", VALID(10, 60, 1e308, 3) VALID(20, 1e308, 1e308, 3), "updates", 120);
  says(compare_one(&m, "damaged", "bleu", 1e300), TARN_STATUS_NUMERIC, "not a finite number");
}

static void results_are_checked(void **state) {
  (void)state;
  static const struct {
    const char *result, *part;
  } cases[] = {
      {"{", "result.json:1: it is damaged"},
      {"[]", "must hold one JSON object"},
      {"{}", "\"version\" must be"},
      {"{\"version\":\"0.1.0\"}", "\"status\" must be"},
      {"{\"version\":\"0.1.0\",\"status\":\"finished\"}", "\"end\" of a finished run is missing"},
      {"{\"version\":\"0.1.0\",\"status\":\"finished\",\"end\":3}", "\"end\" must be a text"},
      {"{\"version\":\"0.1.0\",\"status\":\"finished\",\"end\":\"minutes\",\"update\":-1}", "\"update\" must be"},
      {"{\"version\":\"0.1.0\",\"status\":\"finished\",\"end\":\"minutes\",\"epoch\":-1}", "must not be negative"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tarn_results *results;
    one_run("damaged", plain_log, "updates", 120);
    run_file("damaged", "result.json", cases[i].result);
    says(open_one(&results, "damaged"), TARN_STATUS_DATA, cases[i].part);
  }
  tarn_results *results;
  const char *twice[] = {"golden", "golden/regular/seed-1"};
  says(tarn_results_open(&results, twice, 2), TARN_STATUS_USAGE, "given twice");
  run_file("empty", "x", "");
  says(open_one(&results, "empty"), TARN_STATUS_USAGE, "there is no run in it");
  says(open_one(&results, "nowhere"), TARN_STATUS_IO, "nowhere");
  says(tarn_results_open(&results, NULL, 0), TARN_STATUS_USAGE, "no run directory");
}

static void bands_are_means(void **state) {
  (void)state;
  tarn_results *results;
  tarn_results_band_point points[5];
  size_t count;
  one_run("band/m/seed-1", VALID(0, 0, 0, 4) VALID(10, 60, 10, 3), "updates", 60);
  one_run("band/m/seed-2", VALID(0, 0, 2, 4) VALID(20, 120, 22, 3), "updates", 120);
  run_config("band/m/seed-2", RUN_REGULAR, 2, 2);
  assert_int_equal(open_one(&results, "band"), TARN_STATUS_OK);
  assert_int_equal(tarn_results_band(points, &count, 5, results, 0, "bleu", TARN_RESULTS_SECONDS, 0), TARN_STATUS_OK);
  assert_int_equal(count, 5);
  near(points[1].x, 30);
  near(points[1].mean, 6);
  near(points[1].sd, sqrt(2));
  near(points[1].low, 5);
  near(points[1].high, 7);
  assert_int_equal(points[3].count, 1);
  near(points[4].mean, 22);
  assert_int_equal(tarn_results_band(points, &count, 3, results, 0, "bleu", TARN_RESULTS_STEPS, 40), TARN_STATUS_OK);
  assert_int_equal(count, 2);
  near(points[1].mean, 22);
  assert_int_equal(tarn_results_band(points, &count, 3, results, 0, "none", TARN_RESULTS_STEPS, 40), TARN_STATUS_OK);
  assert_int_equal(count, 0);
  says(tarn_results_band(points, &count, 1, results, 0, "bleu", TARN_RESULTS_STEPS, 40), TARN_STATUS_USAGE, "band");
  tarn_results_close(&results);
}

static bool has_note(const tarn_results_table *table, const char *note) {
  for (size_t i = 0; i < table->note_count; i++)
    if (strcmp(table->notes[i], note) == 0) return true;
  return false;
}

// Energy and operations of runs; older runs have none, and other sources are another measure.
static void costs_are_read(void **state) {
  (void)state;
  tarn_results *results;
  tarn_results_table *table;
#define COSTS(source, joules)                                                                           \
  ", \"best_update\": 20, \"energy\": {\"source\": \"" source "\", \"joules\": " joules                 \
  ", \"epoch_joules\": 50, \"best_joules\": 40, \"co2_grams\": null}, \"operations\": {\"total\": 2e9," \
  " \"token\": 1e6, \"best\": 1e9, \"moved_bytes\": 3e9}"
  one_run("costs/a/seed-1", VALID(0, 0, 2, 4) VALID(20, 120, 22, 3), "updates", 120);
  one_run("costs/b/seed-1", VALID(0, 0, 2, 4) VALID(20, 120, 22, 3), "updates", 120);
  run_config("costs/b/seed-1", RUN_RESERVOIR, 1, 2);
  run_result("costs/a/seed-1", "updates", 20, 120, COSTS("rapl", "90"));
  assert_int_equal(open_one(&results, "costs"), TARN_STATUS_OK);
  assert_int_equal(tarn_results_compare(&table, results, NULL), TARN_STATUS_OK);
  near(table->rows[0].joules.mean, 90);
  near(table->rows[0].best_joules.mean, 40);
  near(table->rows[0].best_operations.mean, 1e9);
  assert_int_equal(table->rows[0].co2_grams.count, 0);
  assert_int_equal(table->rows[1].joules.count, 0);
  assert_true(has_note(table, "energy is that of the whole machine as rapl measured it"));
  tarn_results_table_close(&table);
  tarn_results_close(&results);

  run_result("costs/b/seed-1", "updates", 20, 120, COSTS("estimate", "70"));
  assert_int_equal(open_one(&results, "costs"), TARN_STATUS_OK);
  assert_int_equal(tarn_results_compare(&table, results, NULL), TARN_STATUS_OK);
  assert_int_equal(table->judged[TARN_RESULTS_JUDGED_EPOCH_JOULES].verdicts[1].basis, TARN_RESULTS_OTHER_SOURCES);
  assert_true(has_note(table, "energy comes from different sources, which no verdict compares: rapl, estimate"));
  tarn_results_table_close(&table);
  // Parts of a training may be measured and others not.
  run_result("costs/a/seed-1", "updates", 20, 120, COSTS("rapl+estimate", "90"));
  run_result("costs/b/seed-1", "updates", 20, 120, COSTS("rapl+estimate", "70"));
  tarn_results_close(&results);
  assert_int_equal(open_one(&results, "costs"), TARN_STATUS_OK);
  assert_int_equal(tarn_results_compare(&table, results, NULL), TARN_STATUS_OK);
  assert_true(
      has_note(table,
               "energy was measured on the whole machine in some parts of a training and estimated in the others "
               "(rapl+estimate): processor seconds times train.core_watts"));
  tarn_results_table_close(&table);
  // Another score has its best elsewhere.
  tarn_results_options options;
  tarn_results_default(&options);
  options.budget = 60;
  assert_int_equal(tarn_results_compare(&table, results, &options), TARN_STATUS_OK);
  assert_int_equal(table->rows[0].best_joules.count, 0);
  tarn_results_table_close(&table);
  tarn_results_close(&results);

  run_result("costs/b/seed-1", "updates", 20, 120, COSTS("rapl", "-1"));
  tarn_log_set(keep_line, NULL);
  assert_int_equal(open_one(&results, "costs"), TARN_STATUS_OK);
  tarn_log_set(NULL, NULL);
  assert_string_equal(kept_line,
                      "costs/b/seed-1/result.json: \"joules\" is negative, so it is not known: the clock of the "
                      "machine went back");
  tarn_results_close(&results);
}

// A clock that went back makes no run unreadable: what it says is not known, and the rest is.
static void clocks_that_went_back(void **state) {
  (void)state;
  tarn_results *results;
  one_run("back", VALID(10, -5, 10, 3) VALID(20, 60, 11, 2) VALID(30, 50, 12, 1), "updates", -70);
  kept_line[0] = '\0';
  tarn_log_set(keep_line, NULL);
  assert_int_equal(open_one(&results, "back"), TARN_STATUS_OK);
  tarn_log_set(NULL, NULL);
  assert_string_equal(kept_line,
                      "back/log.jsonl:1: the clock of the machine went back (time -5 after 0), so times are not known "
                      "until it is past that again");
  const tarn_results_run *run = &results->runs[0];
  const tarn_results_series *bleu = tarn_results_find(run, "valid/bleu");
  assert_int_equal(bleu->count, 3);
  assert_true(bleu->points[0].seconds == 0 && bleu->points[1].seconds == 60 && bleu->points[2].seconds == 60);
  assert_true(bleu->points[2].value == 12 && run->seconds == 60);
  tarn_results_close(&results);
}

// Who states fewer watts does not win by it.
static void estimates_of_other_watts_are_not_compared(void **state) {
  (void)state;
  tarn_results *results;
  tarn_results_table *table;
  const char *const runs[] = {"watts/a/seed-1", "watts/b/seed-1"};
  for (int same = 1; same >= 0; same--) {
    for (int i = 0; i < 2; i++) {
      char text[2048];
      one_run(runs[i], VALID(0, 0, 2, 4) VALID(20, 120, 22, 3), "updates", 120);
      snprintf(text, sizeof text, "%strain: { seed: 1, max_minutes: 2, max_updates: 0, core_watts: %s }\n",
               i == 0 ? RUN_REGULAR : RUN_RESERVOIR, i == 0 || same ? "5" : "2.5");
      run_file(runs[i], "config.yaml", text);
      run_result(runs[i], "updates", 20, 120, COSTS("estimate", "90"));
    }
    assert_int_equal(open_one(&results, "watts"), TARN_STATUS_OK);
    assert_int_equal(tarn_results_compare(&table, results, NULL), TARN_STATUS_OK);
    const int basis = (int)table->judged[TARN_RESULTS_JUDGED_EPOCH_JOULES].verdicts[1].basis;
    assert_true((basis == TARN_RESULTS_OTHER_SOURCES) == !same);
    assert_true(has_note(table, same ? "energy is an estimate: processor seconds times train.core_watts"
                                     : "energy comes from different sources, which no verdict compares: estimate "
                                       "(train.core_watts 5), estimate (train.core_watts 2.5)"));
    tarn_results_table_close(&table);
    tarn_results_close(&results);
  }
}

// Every allocation may fail, and nothing is lost.
static void survives_lack_of_memory(void **state) {
  (void)state;
  tarn_status status = TARN_STATUS_MEMORY;
  size_t before = tarn__memory_now(TARN__MEMORY_OTHER);
  for (uint64_t n = 1; status != TARN_STATUS_OK; n++) {
    tarn_results_measures m = {0};
    tarn__memory_fail_after(n);
    status = compare_one(&m, "golden/regular/seed-1", NULL, 0);
    if (status == TARN_STATUS_OK) break;
    assert_int_equal(status, TARN_STATUS_MEMORY);
    assert_int_equal(tarn__memory_now(TARN__MEMORY_OTHER), before);
    assert_true(n < 100000);
  }
  tarn__memory_fail_after(0);
  assert_int_equal(tarn__memory_now(TARN__MEMORY_OTHER), before);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(areas_agree_with_numpy),
      cmocka_unit_test(tables_agree_with_numpy),
      cmocka_unit_test(starts_and_ends),
      cmocka_unit_test(names_are_unique),
      cmocka_unit_test(a_run_without_budget_is_seen_to_its_end),
      cmocka_unit_test(names_the_key_that_ended_a_run),
      cmocka_unit_test(early_ends_are_one_note),
      cmocka_unit_test(scores_have_two_spellings),
      cmocka_unit_test(refuses_what_cannot_be_compared),
      cmocka_unit_test(refuses_other_sets),
      cmocka_unit_test(refuses_other_tests),
      cmocka_unit_test(failed_runs_are_in_no_mean),
      cmocka_unit_test(sweeps_list_their_runs),
      cmocka_unit_test(logs_are_checked),
      cmocka_unit_test(results_are_checked),
      cmocka_unit_test(bands_are_means),
      cmocka_unit_test(clocks_that_went_back),
      cmocka_unit_test(costs_are_read),
      cmocka_unit_test(estimates_of_other_watts_are_not_compared),
      cmocka_unit_test(survives_lack_of_memory),
  };
  return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
