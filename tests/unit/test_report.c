// What a report says of runs that are made by hand: sentences, tables and figures that depend on how far runs are.
// tests/cli/report.sh looks at reports of trainings.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
#include "results_runs.h"
#include "tarn/lab/results.h"

#define VALID(step, time, bleu) \
  "{\"kind\":\"valid\",\"step\":" #step ",\"epoch\":1,\"time\":" #time ",\"valid_bleu\":" #bleu ",\"valid_loss\":3}\n"
#define COSINE(step, time) \
  "{\"kind\":\"backskip\",\"step\":" #step ",\"time\":" #time ",\"cosine\":{\"encoder 2 R\":0.5}}\n"
#define RUN_DROPPED RUN_MODEL "encoder: { layers: L R L, layerdrop: 0.1 }\ndecoder: { layers: L }\n"

static void one_run(const char *path, const char *model, int seed, const char *log, double seconds) {
  run_config(path, model, seed, 2);
  run_file(path, "log.jsonl", log);
  run_result(path, "minutes", 20, seconds, "");
}

static void write_report(const char *runs) {
  tarn_results *results;
  tarn_results_table *table;
  tarn_report_options options;
  tarn_report_default(&options);
  options.output = "report";
  assert_int_equal(tarn_results_open(&results, &runs, 1), TARN_STATUS_OK);
  assert_int_equal(tarn_results_compare(&table, results, NULL), TARN_STATUS_OK);
  assert_int_equal(tarn_report_write(results, table, &options), TARN_STATUS_OK);
  tarn_results_table_close(&table);
  tarn_results_close(&results);
}

static void has(const char *file, const char *part) {
  char path[256];
  char *text;
  size_t size;
  snprintf(path, sizeof path, "report/%s", file);
  assert_int_equal(tarn__file_read(path, &text, &size), TARN_STATUS_OK);
  if (!strstr(text, part)) {
    print_error("no \"%s\" in %s:\n%s\n", part, path, text);
    fail();
  }
  tarn__free(text);
}

// A configuration whose first seed has not begun is shown by its second one.
static void first_seeds_may_not_have_begun(void **state) {
  (void)state;
  one_run("sweep/regular/seed-1", RUN_REGULAR, 1, VALID(0, 0, 0) VALID(10, 60, 10) VALID(20, 120, 20), 120);
  one_run("sweep/half/seed-2", RUN_DROPPED, 2,
          VALID(0, 0, 0) COSINE(5, 30) VALID(10, 60, 30) COSINE(15, 90) VALID(20, 120, 25), 120);
  run_file("sweep", "sweep.json",
           "{\"name\":\"s\",\"baseline\":\"regular\",\"budget_seconds\":120,\"seeds\":[1,2],"
           "\"variants\":[{\"name\":\"regular\"},{\"name\":\"half\"}]}");
  write_report("sweep");
  has("report.md",
      "Of models with frozen layers half (encoder 2 of 3 frozen, LayerDrop 0.1) has the least time to its best "
      "validation BLEU compared with that of its regular model, which has as many updatable layers: 0.50 times that of "
      "regular "
      "(no verdict)");
  has("results.csv", "\nhalf,\"encoder 2 of 3 frozen, LayerDrop 0.1\",L R L,L,no,2,1,0,valid/bleu,120,,30,20,10,");
  has("figures/backskip-half.svg", "encoder 2 R");
}

static tarn_results_table *compared(tarn_results **results, const char *path) {
  tarn_results_table *table;
  assert_int_equal(tarn_results_open(results, &path, 1), TARN_STATUS_OK);
  assert_int_equal(tarn_results_compare(&table, *results, NULL), TARN_STATUS_OK);
  return table;
}

// Each point says what is frozen: a layer whose norms and biases learn is a reservoir all the same.
static void frozen_matrices_are_told(void **state) {
  (void)state;
#define MATRICES "kinds:\n  L: { heads: 2 }\n  R: { heads: 2, frozen: matrices }\n  S: { heads: 2, frozen: yes }\n"
  one_run("matrices/all", MATRICES "encoder: { layers: L R*2 }\ndecoder: { layers: L }\n", 1, VALID(20, 120, 4), 120);
  one_run("matrices/some", MATRICES "encoder: { layers: L R S }\ndecoder: { layers: L }\n", 1, VALID(20, 120, 4), 120);
  write_report("matrices");
  has("results.csv", "\nall,encoder 2 3 of 3 frozen but for norms and biases,");
  has("results.csv", "\nsome,\"encoder 2 3 of 3 frozen, 1 of them but for norms and biases\",");
}

static void nothing_saves_time_against_nothing(void **state) {
  (void)state;
  one_run("still/regular", RUN_REGULAR, 1, VALID(0, 0, 5), 120);
  one_run("still/frozen", RUN_RESERVOIR, 1, VALID(0, 0, 0) VALID(20, 120, 4), 120);
  tarn_results *results;
  tarn_results_table *table = compared(&results, "still");
  for (size_t g = 0; g < 2; g++) assert_true(table->rows[g].time_ratio != table->rows[g].time_ratio);  // NAN
  tarn_results_table_close(&table);
  tarn_results_close(&results);
  one_run("still/regular", RUN_REGULAR, 1, VALID(0, 0, 0) VALID(10, 60, 5) VALID(20, 120, 4), 120);
  write_report("still");
  has("report.md",
      "frozen (encoder 2 of 3 frozen) has the least time to its best validation BLEU compared with that of its regular "
      "model, "
      "which has as many updatable layers: 2.00 times that of regular (no verdict)");
}

// A model that training only makes worse has its best score after training, not before.
static void the_untrained_model_is_never_the_best(void **state) {
  (void)state;
  one_run("worse/regular", RUN_REGULAR, 1, VALID(0, 0, 0) VALID(10, 60, 5) VALID(20, 120, 6), 120);
  one_run("worse/frozen", RUN_RESERVOIR, 1, VALID(0, 0, 9) VALID(10, 60, 2) VALID(20, 120, 3), 120);
  tarn_results *results;
  tarn_results_table *table = compared(&results, "worse");
  for (size_t g = 0; g < 2; g++) {
    assert_true(table->rows[g].best.mean == (results->groups[g].encoder.frozen ? 3 : 6));
    assert_int_equal(table->rows[g].best_seconds.count, results->groups[g].encoder.frozen ? 0 : 1);
  }
  tarn_results_table_close(&table);
  tarn_results_close(&results);
}

// A run that is never better than at its first validation has no time to best, however early that was.
static void runs_that_never_learn_have_no_time_to_best(void **state) {
  (void)state;
  one_run("never/regular/seed-1", RUN_REGULAR, 1, VALID(0, 0, 0) VALID(10, 60, 5) VALID(20, 120, 4), 120);
  one_run("never/regular/seed-2", RUN_REGULAR, 2, VALID(5, 30, 6) VALID(10, 60, 6) VALID(20, 120, 1), 120);
  one_run("never/frozen/seed-1", RUN_RESERVOIR, 1, VALID(5, 30, 3) VALID(20, 120, 2), 120);
  one_run("never/frozen/seed-2", RUN_RESERVOIR, 2, VALID(0, 0, 4) VALID(5, 30, 3) VALID(20, 120, 2), 120);
  tarn_results *results;
  tarn_results_table *table = compared(&results, "never");
  for (size_t g = 0; g < 2; g++) {
    const tarn_results_row *row = &table->rows[g];
    const bool frozen = results->groups[g].encoder.frozen;
    assert_int_equal(row->best.count, 2);
    assert_int_equal(row->min_loss.count, 2);
    assert_int_equal(row->min_loss_seconds.count, 0);  // the loss is the same in all validations
    assert_int_equal(row->best_seconds.count, frozen ? 0 : 1);
    if (!frozen) assert_true(row->best_seconds.mean == 60);
    assert_true(frozen == (row->time_ratio != row->time_ratio));
  }
  tarn_results_table_close(&table);
  tarn_results_close(&results);
  write_report("never");
  has("report.md", "3 runs have no better valid/bleu than at the first validation, and no time to best: never/");
  has("report.md", "4 runs have no less valid/loss than at the first validation, and no time to the least");
  has("results.csv", ",3,0,2,,,,");
}

// Language models have regular models too; a recurrence with frozen parts is none.
static void language_models_have_regular_ones(void **state) {
  (void)state;
#define LANGUAGE                                                                                         \
  "model: { d_model: 8, embeddings: none }\nkinds:\n  L: { heads: 2 }\n  R: { heads: 2, frozen: yes }\n" \
  "  P: { mixer: gru, frozen_recurrence: yes }\n"
  one_run("lm/parts", LANGUAGE "decoder: { layers: P*2 }\n", 1, VALID(0, 0, 0) VALID(20, 120, 4), 120);
  one_run("lm/frozen", LANGUAGE "decoder: { layers: L R L }\n", 1, VALID(0, 0, 0) VALID(10, 60, 6), 120);
  one_run("lm/regular", LANGUAGE "decoder: { layers: L*2 }\n", 1, VALID(0, 0, 0) VALID(20, 120, 5), 120);
  tarn_results *results;
  tarn_results_table *table = compared(&results, "lm");
  for (size_t g = 0; g < 3; g++) {
    const tarn_results_group *group = &results->groups[g];
    const bool parts = group->decoder.layers[0].partly_frozen;
    if (parts) assert_int_equal(table->rows[g].regular, results->group_count);
    if (!parts) assert_string_equal(results->groups[table->rows[g].regular].name, "regular");
    if (group->decoder.frozen) assert_true(table->rows[g].time_ratio == 0.5);
  }
  tarn_results_table_close(&table);
  tarn_results_close(&results);
  write_report("lm");
  has("report.md", "| parts | parts of 2 layers frozen |");
}

static void tests_of_both_kinds_have_columns(void **state) {
  (void)state;
  one_run("kinds/a", RUN_REGULAR, 1, VALID(0, 0, 0) VALID(20, 120, 4), 120);
  one_run("kinds/b", RUN_RESERVOIR, 1, VALID(0, 0, 0) VALID(20, 120, 4), 120);
  run_file("kinds/a", "test.json", "{\"bleu\": 33.25}");
  run_file("kinds/b", "test.json", "{\"blimp\": 61.75}");
  write_report("kinds");
  has("report.md", "| best validation BLEU | test BLEU | BLiMP (%) |");
  has("report.md", "| 4.00 | 33.25 | \xE2\x80\x93 | 2.00 |\n");
  has("report.md", "| 4.00 | \xE2\x80\x93 | 61.75 | 2.00 |\n");
  has("report.tex", "\\midrule\n{}a & ");
  has("report.tex", " \\\\\n{}b & ");
}

// The only validation came with the end of the budget, a little after it.
static void late_points_are_drawn(void **state) {
  (void)state;
  one_run("late/a/seed-1", RUN_REGULAR, 1, VALID(20, 120.5, 20), 120.5);
  one_run("late/a/seed-2", RUN_REGULAR, 2, VALID(22, 121.5, 30), 121.5);
  write_report("late");
  has("figures/bleu-time.svg", ">a</text>");
  has("figures/bleu-updates.svg", ">a</text>");
}

// A language model that gets the first `right` of 100 pairs right.
static void paired_run(const char *path, const char *model, int right) {
  char text[160] = "pairs ";
  char json[128];
  one_run(path, model, 1, VALID(0, 0, 0) VALID(20, 120, 4), 120);
  for (int i = 0; i < 100; i++) strcat(text, i < right ? "1" : "0");
  strcat(text, "\n");
  run_file(path, "test.pairs", text);
  snprintf(json, sizeof json, "{\"blimp\": %d, \"pairs\": 100, \"folder\": \"pairs\"}", right);
  run_file(path, "test.json", json);
}

// The sentence on the best mean says what the verdicts say, whichever side the baseline is on.
static void one_seed_decides_of_models(void **state) {
  (void)state;
  paired_run("models/a", LANGUAGE "decoder: { layers: L*2 }\n", 90);
  paired_run("models/b", LANGUAGE "decoder: { layers: L R }\n", 60);
  write_report("models");
  has("report.md",
      "with 90.00; against b it is better, of these two models (p \\< 0.001). With one seed each, nothing is decided "
      "about "
      "the configurations.");
  has("report.md", " worse, of these two models: b (");
  paired_run("models/b", LANGUAGE "decoder: { layers: L R }\n", 99);
  write_report("models");
  has("report.md", "p = 0.002: better, of these two models. With one seed each, nothing is decided about");
  paired_run("models/b", LANGUAGE "decoder: { layers: L R }\n", 90);
  write_report("models");
  has("report.md", "; against b it is undecided, of these two models (p = 1.000). With one seed each, nothing is");
}

static void dated_run(const char *path, int seed, const char *origin) {
  run_config(path, RUN_REGULAR, seed, 2);
  run_file(path, "log.jsonl", VALID(0, 0, 0) VALID(20, 120, 4));
  run_result(path, "minutes", 20, 120, origin);
}

// Data, seeds, days, processors and versions stand on the page and below every figure; what was not recorded is said
// so.
static void origins_are_told(void **state) {
  (void)state;
  const char *old = "Data: train; seeds 1 to 3, 7; date not recorded; processor not recorded, 2 threads; tarn 0.1.0.";
  const char *dated =
      "Data: train; seeds 1 to 3, 7; trained from 2026-11-20 to 2026-11-23 (2 runs without a date); A &lt;fast&gt; one "
      "(avx2), Another "
      "(portable), 2 threads; tarn 0.1.0.";
  for (int seed = 1; seed <= 7; seed = seed < 3 ? seed + 1 : seed + 4) {
    char path[64];
    snprintf(path, sizeof path, "origin/regular/seed-%d", seed);
    dated_run(path, seed, "");
  }
  write_report("origin");
  has("report.md", old);
  has("figures/bleu-time.svg", "Data: train; seeds 1 to 3, 7;");
  has("report.md", "The band is the mean plus and minus one sample standard deviation over the runs of 4 seeds.");
  dated_run("origin/regular/seed-1", 1,
            ", \"date\": \"2026-11-23T01:02:03Z\", \"processor\": \"A <fast> one\", \"kernels\": \"avx2\"");
  dated_run("origin/regular/seed-2", 2,
            ", \"date\": \"2026-11-20T01:02:03Z\", \"processor\": \"Another\", \"kernels\": \"portable\"");
  dated_run("origin/regular/seed-3", 3, ", \"date\": \"yesterday\"");
  write_report("origin");
  has("report.html", dated);
  dated_run("origin/regular/seed-7", 7, ", \"date\": 20261123");
  tarn_results *results;
  tarn_results_table *table = compared(&results, "origin");
  tarn_report_options options;
  tarn_report_default(&options);
  options.output = "report";
  assert_int_equal(tarn_report_write(results, table, &options), TARN_STATUS_DATA);
  assert_non_null(strstr(tarn_error_message(), "seed-7/result.json"));
  tarn_results_table_close(&table);
  tarn_results_close(&results);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(origins_are_told),
      cmocka_unit_test(first_seeds_may_not_have_begun),
      cmocka_unit_test(frozen_matrices_are_told),
      cmocka_unit_test(nothing_saves_time_against_nothing),
      cmocka_unit_test(the_untrained_model_is_never_the_best),
      cmocka_unit_test(runs_that_never_learn_have_no_time_to_best),
      cmocka_unit_test(language_models_have_regular_ones),
      cmocka_unit_test(tests_of_both_kinds_have_columns),
      cmocka_unit_test(late_points_are_drawn),
      cmocka_unit_test(one_seed_decides_of_models),
  };
  return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
