// Verdicts and measures of tables, from run directories that are made by hand: minimal pairs, training losses, the time
// to best against regular models.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "base/file.h"
#include "base/memory.h"
#include "results_runs.h"
#include "tarn/lab/results.h"

#define LANGUAGE "model: { d_model: 8, embeddings: none }\nkinds:\n  L: { heads: 2 }\n  R: { heads: 2, frozen: yes }\n"
#define REGULAR_LM LANGUAGE "decoder: { layers: L*2 }\n"
#define FROZEN_LM LANGUAGE "decoder: { layers: L R }\n"
#define LOG(loss)                                                             \
  "{\"kind\":\"valid\",\"step\":0,\"epoch\":0,\"time\":0,\"valid_loss\":9}\n" \
  "{\"kind\":\"valid\",\"step\":20,\"epoch\":1,\"time\":120,\"valid_loss\":" #loss "}\n"

static void near(double got, double expected) {
  if (fabs(got - expected) <= 1e-9 * fmax(1, fabs(expected))) return;
  print_error("got %.17g, expected %.17g\n", got, expected);
  fail();
}

static tarn_status open_table(tarn_results_table **table, tarn_results **results, const char *path) {
  *table = NULL;
  tarn_status status = tarn_results_open(results, &path, 1);
  if (status == TARN_STATUS_OK) status = tarn_results_compare(table, *results, NULL);
  return status;
}

static void close_table(tarn_results_table **table, tarn_results **results) {
  tarn_results_table_close(table);
  tarn_results_close(results);
}

static void one_run(const char *path, const char *model, int seed, const char *log) {
  run_config(path, model, seed, 2);
  run_file(path, "log.jsonl", log);
  run_result(path, "minutes", 20, 120, "");
}

// --- minimal pairs
// ----------------------------------------------------------------------------------------------------------

enum { PAIRS = 200 };

// A run that gets `right[k]` of the pairs of paradigm k right, those that are first after `shift`; the second paradigm
// has half as many pairs.
static void lm_run(const char *group, const char *model, int seed, const int right[2], int shift) {
  char path[128];
  char text[1024] = "";
  char json[256];
  snprintf(path, sizeof path, "lm/%s/seed-%d", group, seed);
  one_run(path, model, seed, LOG(5));
  for (int k = 0; k < 2; k++) {
    const int pairs = PAIRS / (k + 1);
    strcat(text, k ? "second one " : "first ");
    for (int i = 0; i < pairs; i++) strcat(text, (i + pairs - shift) % pairs < right[k] ? "1" : "0");
    strcat(text, "\n");
  }
  run_file(path, "test.pairs", text);
  snprintf(json, sizeof json, "{\"blimp\": %.17g, \"pairs\": %d, \"folder\": \"pairs\"}",
           50.0 * right[0] / PAIRS + 100.0 * right[1] / PAIRS, PAIRS + PAIRS / 2);
  run_file(path, "test.json", json);
}

static void minimal_pairs_are_compared_pair_by_pair(void **state) {
  tarn_results *results;
  tarn_results_table *table;
  (void)state;
  // The same pairs right but for ten: 5 points of the first paradigm, 2.5 of the mean.
  lm_run("a", REGULAR_LM, 1, (const int[]){110, 55}, 0);
  lm_run("b", FROZEN_LM, 1, (const int[]){120, 55}, 0);
  assert_int_equal(open_table(&table, &results, "lm"), TARN_STATUS_OK);
  const tarn_results_judged *judged = &table->judged[TARN_RESULTS_JUDGED_TEST_BLIMP];
  const tarn_results_verdict *v = &judged->verdicts[1];
  assert_int_equal(v->basis, TARN_RESULTS_MODELS);
  near(v->difference, 2.5);
  // Ten of 200 pairs differ, all to one side; exactly sqrt(p (1 - p) / n) / 2 with p = 1 / 20.
  assert_true(fabs(v->error - 50 * sqrt(0.05 * 0.95 / PAIRS)) < 0.08);
  assert_int_equal(v->decision, TARN_RESULTS_BETTER);
  assert_string_equal(v->words, "better, of these two models");
  assert_int_equal(judged->leader, 2);  // of two models nothing is said about the configurations
  const double paired = v->error;
  close_table(&table, &results);
  // As many right, but other ones: the same difference is unsure.
  lm_run("b", FROZEN_LM, 1, (const int[]){120, 55}, 60);
  assert_int_equal(open_table(&table, &results, "lm"), TARN_STATUS_OK);
  v = &table->judged[TARN_RESULTS_JUDGED_TEST_BLIMP].verdicts[1];
  near(v->difference, 2.5);
  assert_true(v->error > 2 * paired);
  assert_int_equal(v->decision, TARN_RESULTS_UNDECIDED);
  close_table(&table, &results);
}

static void three_seeds_lead(void **state) {
  tarn_results *results;
  tarn_results_table *table;
  (void)state;
  for (int seed = 1; seed <= 3; seed++) {
    lm_run("a", REGULAR_LM, seed, (const int[]){100 + seed, 50}, seed);
    lm_run("b", FROZEN_LM, seed, (const int[]){150 + 2 * seed, 70 - seed}, seed);
  }
  assert_int_equal(open_table(&table, &results, "lm"), TARN_STATUS_OK);
  const tarn_results_judged *judged = &table->judged[TARN_RESULTS_JUDGED_TEST_BLIMP];
  const tarn_results_verdict *v = &judged->verdicts[1];
  assert_string_equal(v->words, "better");
  assert_int_equal(v->seed_count, 3);
  near(v->by_seed[2], 50.0 * (156 - 103) / PAIRS + 100.0 * (67 - 50) / PAIRS);
  assert_int_equal(judged->leader, 1);
  assert_int_equal(judged->comparisons, 1);
  // Losses that are equal over all seeds lead nowhere, and are no difference.
  assert_int_equal(table->judged[TARN_RESULTS_JUDGED_BEST].leader, 2);
  near(table->judged[TARN_RESULTS_JUDGED_BEST].verdicts[1].p, 1);
  close_table(&table, &results);
}

static void survives_lack_of_memory(void **state) {
  tarn_results *results;
  tarn_results_table *table;
  tarn_status status = TARN_STATUS_MEMORY;
  (void)state;
  for (uint64_t n = 1; status == TARN_STATUS_MEMORY; n++) {
    tarn__memory_fail_after(n);
    status = open_table(&table, &results, "lm");
    tarn__memory_fail_after(0);
    if (status != TARN_STATUS_OK) assert_null(table);
    close_table(&table, &results);
  }
  assert_int_equal(status, TARN_STATUS_OK);
}

// So few resamples say nothing of 5 %; without any there is no verdict, and the words say why.
static void resamples_are_checked(void **state) {
  static const struct {
    int64_t resamples;
    bool taken;
  } cases[] = {{-1, false}, {1, false}, {39, false}, {40, true}, {0, true}, {1000001, false}};
  const char *path = "lm";
  tarn_results *results;
  tarn_results_table *table;
  tarn_results_options options;
  (void)state;
  tarn_results_default(&options);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(tarn_results_open(&results, &path, 1), TARN_STATUS_OK);
    options.resamples = cases[i].resamples;
    const tarn_status status = tarn_results_compare(&table, results, &options);
    assert_int_equal(status, cases[i].taken ? TARN_STATUS_OK : TARN_STATUS_USAGE);
    if (!cases[i].taken) assert_non_null(strstr(tarn_error_message(), "takes 0, or 40 to 1000000, resamples"));
    if (cases[i].taken)
      assert_string_equal(table->judged[TARN_RESULTS_JUDGED_TEST_BLIMP].verdicts[1].words,
                          cases[i].resamples ? "better" : "no verdict (no resamples)");
    close_table(&table, &results);
  }
}

static void answers_are_checked(void **state) {
  static const struct {
    const char *text, *message;
  } cases[] = {
      {"first 01\nsecond\n", "test.pairs:2: it must be the name of a paradigm"},
      {"first 01\nsecond 012\n", "test.pairs:2: it must be the name of a paradigm"},
      {"first 01", "cut short"},
      {"", "cut short"},
      {"first 01\nsecond 0011\n", "do not belong together"},
      {"other 1\n", "do not belong together"},
  };
  tarn_results *results;
  tarn_results_table *table;
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    run_file("lm/b/seed-2", "test.pairs", cases[i].text);
    assert_int_equal(open_table(&table, &results, "lm"), TARN_STATUS_DATA);
    if (!strstr(tarn_error_message(), cases[i].message)) fail_msg("%s", tarn_error_message());
    close_table(&table, &results);
  }
  // Of the right accuracy, but of other paradigms.
  run_file("lm/b/seed-2", "test.pairs", "other 1111\n");
  run_file("lm/b/seed-2", "test.json", "{\"blimp\": 100, \"pairs\": 300, \"folder\": \"pairs\"}");
  assert_int_equal(open_table(&table, &results, "lm"), TARN_STATUS_DATA);
  assert_non_null(strstr(tarn_error_message(), "its paradigms are not those of lm/a/seed-1"));
  close_table(&table, &results);
  // Answers of one run are gone: the difference is that of the means of all runs, and nothing is decided.
  assert_int_equal(remove("lm/b/seed-2/test.pairs"), 0);
  assert_int_equal(open_table(&table, &results, "lm"), TARN_STATUS_OK);
  const tarn_results_verdict *v = &table->judged[TARN_RESULTS_JUDGED_TEST_BLIMP].verdicts[1];
  assert_int_equal(v->basis, TARN_RESULTS_NO_ITEMS);
  assert_string_equal(v->words, "no verdict (outputs missing)");
  assert_int_equal(v->runs, 3);
  assert_int_equal(v->seed_count, 3);
  near(v->difference, table->rows[1].test_blimp.mean - table->rows[0].test_blimp.mean);
  assert_true(isnan(v->low) && isnan(v->p));
  assert_int_equal(table->judged[TARN_RESULTS_JUDGED_TEST_BLIMP].comparisons, 0);
  bool noted = false;
  for (size_t i = 0; i < table->note_count; i++) noted |= strstr(table->notes[i], "test.pairs is not there") != NULL;
  assert_true(noted);
  close_table(&table, &results);
  for (int seed = 1; seed <= 3; seed++) {
    char path[64];
    snprintf(path, sizeof path, "lm/b/seed-%d/test.pairs", seed);
    remove(path);
  }
  assert_int_equal(open_table(&table, &results, "lm"), TARN_STATUS_OK);
  v = &table->judged[TARN_RESULTS_JUDGED_TEST_BLIMP].verdicts[1];
  assert_int_equal(v->basis, TARN_RESULTS_NO_ITEMS);
  near(v->difference, table->rows[1].test_blimp.mean - table->rows[0].test_blimp.mean);
  assert_true(isnan(v->low) && isnan(v->p));
  close_table(&table, &results);
}

// --- measures
// -----------------------------------------------------------------------------------------------------------

#define TRAIN(step, epoch, time, loss) \
  "{\"kind\":\"train\",\"step\":" #step ",\"epoch\":" #epoch ",\"time\":" #time ",\"loss\":" #loss "}\n"
#define VALID(step, epoch, time, bleu) \
  "{\"kind\":\"valid\",\"step\":" #step ",\"epoch\":" #epoch ",\"time\":" #time ",\"valid_bleu\":" #bleu "}\n"

static void training_losses_are_measured(void **state) {
  tarn_results *results;
  tarn_results_table *table;
  (void)state;
  // 2.5 epochs: of the line that ends at 1.75, half lies in the last epoch (from 1.5).
  one_run("losses/a", RUN_REGULAR, 1,
          VALID(0, 0, 0, 0) TRAIN(10, 0.5, 24, 6) TRAIN(20, 1.25, 60, 2) TRAIN(30, 1.75, 84, 4) TRAIN(40, 2.5, 120, 3)
              VALID(40, 2.5, 120, 20));
  // Less than one epoch: the mean of all of it.
  one_run("losses/b", RUN_RESERVOIR, 1,
          VALID(0, 0, 0, 0) TRAIN(10, 0.2, 60, 6) TRAIN(20, 0.6, 120, 5) VALID(20, 0.6, 120, 10));
  // Lines of fewer updates than the others, where a training ended, and after it where it went on, are of too few.
  one_run("losses/c", RUN_RESERVOIR, 2,
          VALID(0, 0, 0, 0) TRAIN(10, 0.2, 30, 8) TRAIN(12, 0.2, 36, 3) TRAIN(20, 0.4, 60, 1) TRAIN(30, 0.6, 90, 5)
              TRAIN(31, 0.6, 93, 2) VALID(31, 0.6, 120, 10));
  assert_int_equal(open_table(&table, &results, "losses"), TARN_STATUS_OK);
  near(table->measures[0].min_train_loss, 2);
  near(table->measures[0].min_train_loss_seconds, 60);
  assert_int_equal(table->measures[0].min_train_loss_step, 20);
  near(table->measures[2].min_train_loss, 5);
  near(table->measures[2].min_train_loss_seconds, 90);
  assert_int_equal(table->measures[2].min_train_loss_step, 30);
  near(table->measures[0].epoch_train_loss, 0.25 * 4 + 0.75 * 3);
  near(table->measures[1].epoch_train_loss, (0.2 * 6 + 0.4 * 5) / 0.6);
  near(table->rows[0].epoch_train_loss.mean, 3.25);
  close_table(&table, &results);
  // Up to an earlier T-hat only what was trained until then counts.
  tarn_results_options options;
  const char *path = "losses";
  tarn_results_default(&options);
  options.budget = 100;
  assert_int_equal(tarn_results_open(&results, &path, 1), TARN_STATUS_OK);
  assert_int_equal(tarn_results_compare(&table, results, &options), TARN_STATUS_OK);
  near(table->measures[0].epoch_train_loss, 0.5 * 2 + 0.5 * 4);
  near(table->measures[1].min_train_loss, 6);
  assert_true(isnan(table->measures[1].min_train_loss_seconds));  // of one line
  close_table(&table, &results);
}

static void times_stand_against_regular_models(void **state) {
  tarn_results *results;
  tarn_results_table *table;
  (void)state;
  one_run("deep/r2", RUN_REGULAR, 1, VALID(0, 0, 0, 0) VALID(10, 1, 60, 5));
  one_run("deep/r3", RUN_MODEL "encoder: { layers: L*3 }\ndecoder: { layers: L }\n", 1,
          VALID(0, 0, 0, 0) VALID(20, 1, 120, 5));
  one_run("deep/frozen", RUN_RESERVOIR, 1, VALID(0, 0, 0, 0) VALID(10, 1, 90, 6) VALID(20, 2, 120, 5));
  one_run("deep/shared", RUN_MODEL "encoder: { layers: (L1)*3 }\ndecoder: { layers: L }\n", 1,
          VALID(0, 0, 0, 0) VALID(10, 1, 60, 6));
  assert_int_equal(open_table(&table, &results, "deep"), TARN_STATUS_OK);
  for (size_t g = 0; g < results->group_count; g++) {
    const tarn_results_row *row = &table->rows[g];
    const char *name = results->groups[g].name;
    const bool frozen = strcmp(name, "frozen") == 0;
    if (!frozen && strcmp(name, "shared") != 0) continue;
    assert_string_equal(results->groups[row->regular_deep].name, "r3");
    near(row->time_ratio_deep, frozen ? 0.75 : 0.5);
    if (!frozen) continue;
    assert_string_equal(results->groups[row->regular].name, "r2");
    near(row->time_ratio, 1.5);
  }
  close_table(&table, &results);
}

// Three seeds of two models, of which the second has the smaller losses and the label smoothing `smoothing`.
static void open_losses(tarn_results_table **table, tarn_results **results, const char *folder, double smoothing) {
  for (int i = 0; i < 6; i++) {
    char path[64];
    char text[1024];
    const int seed = i % 3 + 1;
    const double loss = (i < 3 ? 5 : 2) + 0.1 * seed;
    snprintf(path, sizeof path, "%s/%s/seed-%d", folder, i < 3 ? "a" : "b", seed);
    snprintf(text, sizeof text,
             VALID(0, 0, 0, 0) "{\"kind\":\"train\",\"step\":20,\"epoch\":1,\"time\":120,\"loss\":%g}\n"
                               "{\"kind\":\"valid\",\"step\":20,\"epoch\":1,\"time\":120,\"valid_bleu\":%g,"
                               "\"valid_loss\":%g}\n",
             loss, 10 - loss, loss);
    one_run(path, i < 3 ? RUN_REGULAR : RUN_RESERVOIR, seed, text);
    snprintf(text, sizeof text, "%strain: { seed: %d, max_minutes: 2, max_updates: 0, label_smoothing: %g }\n",
             i < 3 ? RUN_REGULAR : RUN_RESERVOIR, seed, i < 3 ? 0.1 : smoothing);
    run_file(path, "config.yaml", text);
  }
  if (open_table(table, results, folder) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
}

// A run with this exponent at its end; NAN: all perturbations vanish there, after an exponent of 5.
static void dynamics_run(const char *group, int seed, double exponent) {
  char path[64], log[1024], end[128] = "\"vanished\":1";
  snprintf(path, sizeof path, "ex/%s/seed-%d", group, seed);
  if (!isnan(exponent)) snprintf(end, sizeof end, "\"exponent\":%g,\"vanished\":0.5", exponent);
  snprintf(log, sizeof log,
           "{\"kind\":\"valid\",\"step\":0,\"epoch\":0,\"time\":0,\"valid_loss\":9}\n"
           "{\"kind\":\"dynamics\",\"step\":10,\"epoch\":0.5,\"time\":60,\"exponent\":5,\"vanished\":0}\n"
           "{\"kind\":\"valid\",\"step\":20,\"epoch\":1,\"time\":120,\"valid_loss\":5}\n"
           "{\"kind\":\"dynamics\",\"step\":20,\"epoch\":1,\"time\":120,%s}\n",
           end);
  one_run(path, REGULAR_LM, seed, log);
}

static bool has_note(const tarn_results_table *table, const char *part) {
  for (size_t i = 0; i < table->note_count; i++)
    if (strstr(table->notes[i], part)) return true;
  return false;
}

static void file_has(const char *path, const char *part) {
  char *text;
  size_t size;
  assert_int_equal(tarn__file_read(path, &text, &size), TARN_STATUS_OK);
  if (!strstr(text, part)) fail_msg("%s has no %s", path, part);
  tarn__free(text);
}

// No exponent is better than another, and one of before the end is not that of the end.
static void exponents_have_no_better(void **state) {
  tarn_results *results;
  tarn_results_table *table;
  tarn_report_options report;
  (void)state;
  for (int seed = 1; seed <= 3; seed++) {
    dynamics_run("a", seed, 0.01 * seed);
    dynamics_run("b", seed, 1 + 0.01 * seed);
    dynamics_run("c", seed, seed == 2 ? NAN : -1 - 0.01 * seed);
  }
  run_file(
      "ex", "sweep.json",
      "{\"version\": \"0.1.0\", \"name\": \"ex\", \"baseline\": \"a\", \"budget_seconds\": 120.0, \"clock\": "
      "\"wall\", \"variants\": [{\"name\": \"a\", \"set\": {}, \"equalized\": null}, {\"name\": \"b\", \"set\": {}, "
      "\"equalized\": null}, {\"name\": \"c\", \"set\": {}, \"equalized\": null}], \"seeds\": [1, 2, 3], \"parallel\": "
      "1, \"threads\": 2, \"test\": null, \"sequential\": {\"first\": 3, \"max_seeds\": 3, \"looks\": [3], "
      "\"measure\": "
      "\"exponent\", \"alpha\": 0.05, \"spending\": \"pocock\", \"equivalence\": 0.0, \"futility\": 0.0}}");
  if (open_table(&table, &results, "ex") != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  const tarn_results_judged *judged = &table->judged[TARN_RESULTS_JUDGED_EXPONENT];
  assert_true(judged->neutral && !table->judged[TARN_RESULTS_JUDGED_BEST].neutral);
  assert_int_equal(judged->leader, 3);
  assert_string_equal(judged->verdicts[1].words, "larger");
  assert_int_equal(judged->verdicts[1].decision, TARN_RESULTS_BETTER);
  near(judged->verdicts[1].difference, 1);
  near(table->rows[2].exponent.mean, -1.02);  // of seeds 1 and 3
  assert_int_equal(table->rows[2].exponent.count, 2);
  assert_int_equal(table->sequential_measure, TARN_RESULTS_JUDGED_EXPONENT);
  assert_int_equal(table->sequential[1].decision, TARN_SEQUENTIAL_BETTER);
  assert_true(judged->planned && !table->judged[TARN_RESULTS_JUDGED_BEST].planned);
  near(judged->verdicts[1].p, table->sequential[1].p);
  near(judged->verdicts[1].low, table->sequential[1].low);
  assert_int_equal(judged->verdicts[1].comparisons, 2);
  assert_true(has_note(table, "exponent is judged by the sweep's sequential design"));
  assert_true(has_note(table, "1 run has no last exponent, as no sentence has a finite one at the end: ex/c/seed-2"));
  assert_true(has_note(table, "8 runs have sentences at the end whose perturbations vanish"));
  tarn_report_default(&report);
  report.output = "ex-report";
  assert_int_equal(tarn_report_write(results, table, &report), TARN_STATUS_OK);
  file_has("ex-report/report.html", "larger");
  file_has("ex-report/runs.csv", ",exponent,");
  tarn_results_table_close(&table);
  // A comparison up to one minute.
  tarn_results_options options;
  tarn_results_default(&options);
  options.budget = 60;
  assert_int_equal(tarn_results_compare(&table, results, &options), TARN_STATUS_OK);
  near(table->rows[2].exponent.mean, 5);
  close_table(&table, &results);
}

// The notes say that losses of other label smoothing are not to be compared; then nothing is decided of them.
static void other_losses_have_no_verdict(void **state) {
  static const int losses[] = {TARN_RESULTS_JUDGED_MIN_LOSS, TARN_RESULTS_JUDGED_MIN_TRAIN_LOSS,
                               TARN_RESULTS_JUDGED_EPOCH_TRAIN_LOSS};
  tarn_results *results;
  tarn_results_table *table;
  (void)state;
  for (int other = 0; other < 2; other++) {
    open_losses(&table, &results, other ? "unlike" : "alike", other ? 0.3 : 0.1);
    const size_t row = 1 - table->baseline;
    assert_int_equal(table->row_count, 2);
    assert_true(table->judged[TARN_RESULTS_JUDGED_BEST].leader < 2);
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
      const tarn_results_judged *judged = &table->judged[losses[i]];
      assert_int_equal(judged->verdicts[row].basis, other ? TARN_RESULTS_OTHER_LOSSES : TARN_RESULTS_CONFIGURATIONS);
      assert_int_equal(judged->comparisons, !other);
      assert_int_equal(judged->leader < 2, !other);
      if (other) assert_string_equal(judged->verdicts[row].words, "no verdict (other losses)");
    }
    close_table(&table, &results);
  }
}

static const char *energy_of = "rapl";  // what measured it, of the runs that timed_run() makes

// A run of 20 updates, half as good after half of the time.
static void timed_run(const char *folder, const char *group, int seed, const char *processor, double seconds,
                      double bleu) {
  char path[64], text[1024];
  const char *model = strcmp(group, "a") == 0   ? RUN_REGULAR
                      : strcmp(group, "b") == 0 ? RUN_RESERVOIR
                                                : RUN_MODEL "encoder: { layers: R L L }\ndecoder: { layers: L }\n";
  snprintf(path, sizeof path, "%s/%s/seed-%d", folder, group, seed);
  snprintf(text, sizeof text, "%strain: { seed: %d, max_updates: 20 }\n", model, seed);
  run_file(path, "config.yaml", text);
  snprintf(text, sizeof text,
           VALID(0, 0, 0, 0) "{\"kind\":\"valid\",\"step\":10,\"epoch\":1,\"time\":%.9g,\"valid_bleu\":%.9g}\n"
                             "{\"kind\":\"valid\",\"step\":20,\"epoch\":2,\"time\":%.9g,\"valid_bleu\":%.9g}\n",
           seconds / 2, bleu / 2, seconds, bleu);
  run_file(path, "log.jsonl", text);
  snprintf(text, sizeof text,
           ", \"processor\": %s%s%s, \"energy\": {\"source\": \"%s\", \"joules\": %.9g, \"epoch_joules\": %.9g, "
           "\"best_joules\": %.9g, \"co2_grams\": null}",
           processor ? "\"" : "", processor ? processor : "null", processor ? "\"" : "", energy_of, seconds,
           seconds / 2, seconds);
  run_result(path, "updates", 20, seconds, text);
}

// The same where nothing measured the energy.
static void unmeasured_run(const char *folder, const char *group, int seed, const char *processor, double seconds) {
  char path[64], text[256];
  timed_run(folder, group, seed, processor, seconds, 20 + 0.1 * seed);
  snprintf(path, sizeof path, "%s/%s/seed-%d", folder, group, seed);
  snprintf(text, sizeof text,
           ", \"processor\": \"%s\", \"energy\": {\"source\": null, \"joules\": null, \"epoch_joules\": null, "
           "\"best_joules\": null, \"co2_grams\": null}",
           processor);
  run_result(path, "updates", 20, seconds, text);
}

// Whether the measures of a run stand in no mean of a time.
static bool is_elsewhere(const tarn_results *results, const tarn_results_table *table, const char *path) {
  for (size_t i = 0; i < results->run_count; i++)
    if (strcmp(results->runs[i].path, path) == 0) return table->measures[i].elsewhere;
  fail_msg("there is no run %s", path);
  return false;
}

// Three runs of a and b on "fast", and of a two more on "slow", with all that depends on time.
static void two_processors(const char *folder) {
  for (int seed = 1; seed <= 3; seed++) {
    timed_run(folder, "a", seed, "fast", 100 + seed, 20 + 0.1 * seed);
    timed_run(folder, "b", seed, "fast", 60 + seed, 20 + 0.1 * seed);
  }
  for (int seed = 4; seed <= 5; seed++) timed_run(folder, "a", seed, "slow", 400 + seed, 20 + 0.1 * seed);
}

// Times, energies, areas and memory of several processors are those of one: in means, verdicts, ratios and curves.
static void times_are_of_one_processor(void **state) {
  tarn_report_options report;
  tarn_results *results;
  tarn_results_table *table;
  (void)state;
  two_processors("cpus");
  timed_run("cpus", "b", 4, "slow", 404, 20);
  if (open_table(&table, &results, "cpus") != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  near(table->budget, 103);
  assert_string_equal(table->processor, "fast (2 threads)");
  assert_true(has_note(table, "several processors (fast (2 threads): 6, slow (2 threads): 3), so times, energies"));
  assert_true(has_note(table, "1.717 minutes, the time of the longest on that processor"));
  assert_true(has_note(table, "4 curves end before 1.717 minutes, and their last values are held: cpus/a/seed-1"));
  assert_true(is_elsewhere(results, table, "cpus/a/seed-4") && !is_elsewhere(results, table, "cpus/a/seed-3"));
  const tarn_results_row *rows = table->rows;
  near(rows[0].best_seconds.mean, 102);
  near(rows[1].best_seconds.mean, 62);
  near(rows[1].time_ratio, 62 / 102.);
  near(rows[1].joules.mean, 62);
  assert_true(rows[0].peak_bytes.count == 3 && rows[0].aucc.count == 3 && rows[0].budget_step.count == 3);
  const tarn_results_verdict *v = &table->judged[TARN_RESULTS_JUDGED_BEST_SECONDS].verdicts[1];
  assert_string_equal(v->words, "better");
  assert_true(v->runs == 3 && v->other_runs == 3 && v->seed_count == 3);
  near(v->difference, -40);
  near(v->by_seed[2], -40);
  assert_int_equal(table->judged[TARN_RESULTS_JUDGED_BEST_SECONDS].leader, 1);
  v = &table->judged[TARN_RESULTS_JUDGED_EPOCH_JOULES].verdicts[1];
  assert_true(v->runs == 3 && v->other_runs == 3);
  near(v->difference, -20);
  // By triangles and what is held: 20.3 at 63 s of 103.
  for (size_t i = 0; i < results->run_count; i++) {
    if (strcmp(results->runs[i].path, "cpus/b/seed-3") == 0)
      near(table->measures[i].aucc_mean, 20.3 * (63. / 2 + 40) / 103);
    if (strcmp(results->runs[i].path, "cpus/b/seed-4") != 0) continue;
    assert_true(isnan(table->measures[i].aucc_mean) && isnan(table->measures[i].budget_step));
    near(table->measures[i].best_seconds, 404);
    near(table->measures[i].best, 20);
  }
  // Of five runs of a three stand on the axis of time.
  tarn_results_band_point points[4];
  size_t count;
  assert_int_equal(tarn_results_band(points, &count, 4, results, 0, "valid/bleu", TARN_RESULTS_SECONDS, 101),
                   TARN_STATUS_OK);
  assert_true(count == 4 && points[3].count == 3);
  assert_int_equal(tarn_results_band(points, &count, 4, results, 0, "valid/bleu", TARN_RESULTS_STEPS, 20),
                   TARN_STATUS_OK);
  assert_true(count == 4 && points[3].count == 5);
  tarn_report_default(&report);
  report.output = "cpus-report";
  assert_int_equal(tarn_report_write(results, table, &report), TARN_STATUS_OK);
  file_has("cpus-report/report.html", "They are of the runs on fast (2 threads) alone.");
  file_has("cpus-report/report.html", "finished on slow");
  file_has("cpus-report/runs.csv", ",slow,,2,yes,");
  // Scores are of all runs.
  assert_int_equal(table->judged[TARN_RESULTS_JUDGED_BEST].verdicts[1].other_runs, 5);
  assert_int_equal(rows[0].best.count, 5);
  tarn_results_table_close(&table);
  // A time that is given is that of all runs.
  tarn_results_options options;
  tarn_results_default(&options);
  options.budget = 50;
  assert_int_equal(tarn_results_compare(&table, results, &options), TARN_STATUS_OK);
  near(table->budget, 50);
  assert_true(has_note(table, "a faster processor trains further in the same minutes"));
  for (size_t i = 0; i < results->run_count; i++)
    assert_true(results->runs[i].state != TARN_RESULTS_FINISHED || !isnan(table->measures[i].aucc_mean));
  close_table(&table, &results);
}

// Times of a run that shared its processor with other work stand out among those of the same configuration.
static void slow_updates_are_told(void **state) {
  tarn_results *results;
  tarn_results_table *table;
  (void)state;
  two_processors("busy");
  if (open_table(&table, &results, "busy") != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  assert_false(has_note(table, "on a busy machine"));
  close_table(&table, &results);
  timed_run("busy", "b", 3, "fast", 100, 20);
  if (open_table(&table, &results, "busy") != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  assert_true(has_note(table, "updates of 1 run took up to 1.6 times as long as in the fastest run"));
  assert_true(has_note(table, "not to be trusted: busy/b/seed-3"));
  close_table(&table, &results);
}

// Without three runs of both sides on the processor there is no verdict, and no row leads one that has none there.
static void few_runs_there_get_no_verdict(void **state) {
  tarn_results *results;
  tarn_results_table *table;
  (void)state;
  two_processors("few");
  timed_run("few", "b", 3, "slow", 404, 20);
  if (open_table(&table, &results, "few") != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  const tarn_results_judged *judged = &table->judged[TARN_RESULTS_JUDGED_BEST_SECONDS];
  const tarn_results_verdict *v = &judged->verdicts[1];
  assert_string_equal(v->words, "no verdict (other processors)");
  assert_true(v->runs == 2 && v->other_runs == 3 && isnan(v->p) && v->seed_count == 2);
  near(v->difference, 61.5 - 102);
  assert_true(v->low < v->difference && v->difference < v->high);
  near(table->rows[1].time_ratio, 61.5 / 102);
  assert_int_equal(judged->comparisons, 0);
  close_table(&table, &results);
  // A third configuration that ran elsewhere alone.
  two_processors("none");
  for (int seed = 1; seed <= 3; seed++) timed_run("none", "c", seed, "slow", 10 + seed, 20 + 0.1 * seed);
  if (open_table(&table, &results, "none") != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  assert_string_equal(table->processor, "fast (2 threads)");
  judged = &table->judged[TARN_RESULTS_JUDGED_BEST_SECONDS];
  assert_string_equal(judged->verdicts[1].words, "better");
  assert_int_equal(judged->leader, 3);
  assert_string_equal(judged->verdicts[2].words, "no verdict (other processors)");
  assert_true(isnan(judged->verdicts[2].difference) && judged->verdicts[2].runs == 0);
  assert_true(isnan(table->rows[2].time_ratio) && table->rows[2].best_seconds.count == 0);
  assert_int_equal(table->rows[2].best.count, 3);
  close_table(&table, &results);
}

// Energies of two sources are not compared, but those of another processor are in no comparison anyway. A measure that
// nobody has on either lacks a score, not a processor.
static void energies_elsewhere_do_not_count(void **state) {
  tarn_results *results;
  tarn_results_table *table;
  (void)state;
  energy_of = "core_watts";
  two_processors("sources");
  energy_of = "rapl";
  for (int seed = 4; seed <= 5; seed++) timed_run("sources", "a", seed, "slow", 400 + seed, 20 + 0.1 * seed);
  if (open_table(&table, &results, "sources") != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  assert_false(has_note(table, "energy comes from different sources"));
  assert_string_equal(table->judged[TARN_RESULTS_JUDGED_EPOCH_JOULES].verdicts[1].words, "better");
  close_table(&table, &results);
  for (int seed = 1; seed <= 3; seed++) {
    unmeasured_run("unmeasured", "a", seed, "fast", 100 + seed);
    unmeasured_run("unmeasured", "b", seed, "slow", 60 + seed);
  }
  unmeasured_run("unmeasured", "a", 4, "fast", 104);
  if (open_table(&table, &results, "unmeasured") != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  assert_string_equal(table->judged[TARN_RESULTS_JUDGED_EPOCH_JOULES].verdicts[1].words, "no verdict (no score)");
  assert_string_equal(table->judged[TARN_RESULTS_JUDGED_BEST_SECONDS].verdicts[1].words,
                      "no verdict (other processors)");
  assert_string_equal(table->judged[TARN_RESULTS_JUDGED_AUCC].verdicts[1].words, "no verdict (other processors)");
  close_table(&table, &results);
}

// The processor with most configurations that have three runs beside three of the baseline, then with most that have
// any, then most runs; one that is not recorded never; other threads are another.
static void most_configurations_choose(void **state) {
  tarn_results *results;
  tarn_results_table *table;
  (void)state;
  for (int seed = 1; seed <= 5; seed++) timed_run("choice", "a", seed, "one", 100, 20);
  timed_run("choice", "b", 1, "two", 50, 20);
  timed_run("choice", "c", 1, "two", 50, 20);
  if (open_table(&table, &results, "choice") != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  assert_string_equal(table->processor, "two (2 threads)");
  close_table(&table, &results);
  timed_run("choice", "b", 2, "one", 100, 20);
  if (open_table(&table, &results, "choice") != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  assert_string_equal(table->processor, "one (2 threads)");
  close_table(&table, &results);
  for (int seed = 11; seed <= 13; seed++)
    for (int group = 0; group < 2; group++) timed_run("choice", group ? "b" : "a", seed, "three", 100, 20);
  if (open_table(&table, &results, "choice") != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  assert_string_equal(table->processor, "three (2 threads)");
  close_table(&table, &results);
  for (int seed = 1; seed <= 5; seed++) timed_run("unknown", seed % 2 ? "a" : "b", seed, NULL, 100, 20);
  timed_run("unknown", "a", 6, "known", 100, 20);
  if (open_table(&table, &results, "unknown") != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  assert_string_equal(table->processor, "known (2 threads)");
  assert_true(has_note(table, "unknown (2 threads): 5"));
  close_table(&table, &results);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(minimal_pairs_are_compared_pair_by_pair),
      cmocka_unit_test(three_seeds_lead),
      cmocka_unit_test(survives_lack_of_memory),
      cmocka_unit_test(resamples_are_checked),
      cmocka_unit_test(answers_are_checked),
      cmocka_unit_test(exponents_have_no_better),
      cmocka_unit_test(times_are_of_one_processor),
      cmocka_unit_test(slow_updates_are_told),
      cmocka_unit_test(few_runs_there_get_no_verdict),
      cmocka_unit_test(energies_elsewhere_do_not_count),
      cmocka_unit_test(most_configurations_choose),
      cmocka_unit_test(training_losses_are_measured),
      cmocka_unit_test(times_stand_against_regular_models),
      cmocka_unit_test(other_losses_have_no_verdict),
  };
  return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
