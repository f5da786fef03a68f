// Paired bootstrap resampling against sacreBLEU's BLEU of the same resamples (tests/golden/aucc.json), and from run
// directories.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <math.h>

#include "eval/bootstrap.h"
#include "results_runs.h"

enum { SENTENCES = 60, PAIRS = 2, RESAMPLES = 400 };

static json_t *root;
static const char *references[SENTENCES], *systems[PAIRS][SENTENCES], *baselines[PAIRS][SENTENCES];
static uint32_t indices[RESAMPLES * SENTENCES];
static tarn__bleu_statistics statistics[2 * PAIRS][SENTENCES];

static void read_texts(const char **out, const json_t *list) {
  assert_int_equal(json_array_size(list), SENTENCES);
  for (size_t s = 0; s < SENTENCES; s++) out[s] = json_string_value(json_array_get(list, s));
}

static int open_golden(void **state) {
  root = json_load_file(TARN_SOURCE_DIR "/tests/golden/aucc.json", 0, NULL);
  const json_t *b = json_object_get(root, "bootstrap");
  assert_non_null(b);
  read_texts(references, json_object_get(b, "references"));
  for (size_t i = 0; i < PAIRS; i++) {
    read_texts(systems[i], json_array_get(json_object_get(b, "systems"), i));
    read_texts(baselines[i], json_array_get(json_object_get(b, "baselines"), i));
  }
  for (size_t r = 0; r < RESAMPLES; r++) {
    const json_t *row = json_array_get(json_object_get(b, "indices"), r);
    for (size_t s = 0; s < SENTENCES; s++)
      indices[r * SENTENCES + s] = (uint32_t)json_integer_value(json_array_get(row, s));
  }
  return sandbox_open(state);
}

static int close_golden(void **state) {
  json_decref(root);
  return sandbox_close(state);
}

static void near(double got, double expected, double tolerance) {
  if (fabs(got - expected) <= tolerance) return;
  print_error("got %.17g, expected %.17g\n", got, expected);
  fail();
}

static double number(const json_t *object, const char *key) { return json_number_value(json_object_get(object, key)); }

static void same(const tarn_results_significance *got, const json_t *expected) {
  const double tolerance = 1e-9;
  near(got->difference, number(expected, "difference"), tolerance);
  near(got->low, number(expected, "low"), tolerance);
  near(got->high, number(expected, "high"), tolerance);
  near(got->wins, number(expected, "wins"), tolerance);
  near(got->p, number(expected, "p"), tolerance);
  near(got->p_sacrebleu, number(expected, "p_sacrebleu"), tolerance);
  near(got->p_two_sided, fmin(1, 2 * number(expected, "p")), tolerance);
}

static void agrees_with_sacrebleu(void **state) {
  (void)state;
  const json_t *b = json_object_get(root, "bootstrap");
  const char *const *stream = references;
  tarn_bleu_options bleu;
  const tarn__bleu_statistics *lists[2 * PAIRS];
  tarn_results_significance pooled;
  tarn_results_significance pairs[PAIRS];
  tarn_bleu_default(&bleu);
  for (size_t i = 0; i < 2 * PAIRS; i++) {
    tarn__bleu_statistics sums = {0};
    assert_int_equal(tarn__bleu_sentences(statistics[i], i < PAIRS ? systems[i] : baselines[i - PAIRS], &stream,
                                          SENTENCES, 1, &bleu),
                     TARN_STATUS_OK);
    lists[i] = statistics[i];
    for (size_t s = 0; s < SENTENCES; s++) {
      for (int n = 0; n < TARN_BLEU_ORDER; n++) {
        sums.counts[n] += statistics[i][s].counts[n];
        sums.totals[n] += statistics[i][s].totals[n];
      }
      sums.hypothesis_length += statistics[i][s].hypothesis_length;
      sums.reference_length += statistics[i][s].reference_length;
    }
    near(tarn__bleu_score(&sums, &bleu), json_number_value(json_array_get(json_object_get(b, "scores"), i)), 1e-11);
  }
  tarn__bootstrap_options options = {.bleu = &bleu, .resamples = RESAMPLES, .indices = indices};
  assert_int_equal(tarn__bootstrap(&pooled, pairs, lists, lists + PAIRS, PAIRS, SENTENCES, &options), TARN_STATUS_OK);
  same(&pooled, json_object_get(b, "pooled"));
  for (size_t i = 0; i < PAIRS; i++) same(&pairs[i], json_array_get(json_object_get(b, "pairs"), i));
}

static void draws_evenly(void **state) {
  (void)state;
  const json_t *b = json_object_get(root, "bootstrap");
  const char *const *h[] = {systems[0], systems[1]};
  const char *const *k[] = {baselines[0], baselines[1]};
  tarn_results_significance first;
  tarn_results_significance again;
  tarn_results_significance pairs[PAIRS];
  const int64_t resamples = 4000;
  assert_int_equal(tarn_results_bootstrap(&first, pairs, h, k, PAIRS, references, SENTENCES, NULL, resamples, 12345),
                   TARN_STATUS_OK);
  // 400 and 4,000 resamples: five standard deviations of a share of about 0.08 are 0.07.
  near(first.p, number(json_object_get(b, "pooled"), "p"), 0.07);
  near(first.wins, number(json_object_get(b, "pooled"), "wins"), 0.07);
  near(first.low, number(json_object_get(b, "pooled"), "low"), 1.5);
  near(first.high, number(json_object_get(b, "pooled"), "high"), 1.5);
  assert_int_equal(tarn_results_bootstrap(&again, NULL, h, k, PAIRS, references, SENTENCES, NULL, resamples, 12345),
                   TARN_STATUS_OK);
  assert_memory_equal(&first, &again, sizeof first);
  assert_int_equal(tarn_results_bootstrap(&again, NULL, h, k, PAIRS, references, SENTENCES, NULL, resamples, 1),
                   TARN_STATUS_OK);
  assert_true(first.low != again.low);
  // A system against itself.
  assert_int_equal(tarn_results_bootstrap(&again, NULL, h, h, PAIRS, references, SENTENCES, NULL, 100, 1),
                   TARN_STATUS_OK);
  assert_true(again.p == 1 && again.p_two_sided == 1 && again.wins == 0 && again.difference == 0);
  assert_int_equal(tarn_results_bootstrap(&again, NULL, h, k, PAIRS, references, SENTENCES, NULL, 0, 1),
                   TARN_STATUS_USAGE);
  assert_int_equal(tarn_results_bootstrap(&again, NULL, h, k, 0, references, SENTENCES, NULL, 10, 1),
                   TARN_STATUS_USAGE);
}

// --- from run directories
// ---------------------------------------------------------------------------------------------

static void write_lines(const char *folder, const char *name, const char *const *lines) {
  char text[16384] = "";
  for (size_t s = 0; s < SENTENCES; s++) {
    strcat(text, lines[s]);
    strcat(text, "\n");
  }
  run_file(folder, name, text);
}

static void write_run(const char *model, const char *group, int seed, const char *const *hypotheses, double bleu) {
  char path[128];
  char test[512];
  snprintf(path, sizeof path, "runs/%s/seed-%d", group, seed);
  run_config(path, model, seed, 2);
  run_file(path, "log.jsonl", "{\"kind\":\"valid\",\"step\":9,\"epoch\":1,\"time\":120,\"valid_bleu\":9}\n");
  run_result(path, "minutes", 9, 120, "");
  write_lines(path, "test.hyp", hypotheses);
  snprintf(test, sizeof test,
           "{\"bleu\": %.17g, \"signature\": \"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:tarn 0.1.0\","
           " \"reference\": \"test.en\", \"sentences\": %d}",
           bleu, SENTENCES);
  run_file(path, "test.json", test);
}

static tarn_status compare(tarn_results_table **table, tarn_results **results) {
  const char *path = "runs";
  *table = NULL;
  tarn_status status = tarn_results_open(results, &path, 1);
  return status == TARN_STATUS_OK ? tarn_results_compare(table, *results, NULL) : status;
}

static void tests_runs(void **state) {
  (void)state;
  const json_t *scores = json_object_get(json_object_get(root, "bootstrap"), "scores");
  const char *const *h[] = {systems[0], systems[1]};
  const char *const *k[] = {baselines[0], baselines[1]};
  tarn_results_significance expected;
  tarn_results *results;
  tarn_results_table *table;
  write_lines(".", "test.en", references);
  for (int i = 0; i < PAIRS; i++) {
    write_run(RUN_RESERVOIR, "system", i + 1, systems[i], json_number_value(json_array_get(scores, (size_t)i)));
    write_run(RUN_REGULAR, "baseline", i + 1, baselines[i], json_number_value(json_array_get(scores, (size_t)i + 2)));
  }
  assert_int_equal(compare(&table, &results), TARN_STATUS_OK);
  assert_string_equal(results->groups[1].name, "system");
  assert_int_equal(tarn_results_bootstrap(&expected, NULL, h, k, PAIRS, references, SENTENCES, NULL, 1000, 12345),
                   TARN_STATUS_OK);
  assert_int_equal(table->rows[0].seed_count, 0);
  assert_int_equal(table->rows[1].seed_count, PAIRS);
  assert_int_equal(table->rows[1].seeds[1], 2);
  assert_memory_equal(&table->rows[1].pooled, &expected, sizeof expected);
  near(table->rows[1].pooled.difference, table->rows[1].test_bleu.mean - table->rows[0].test_bleu.mean, 1e-9);
  tarn_results_table_close(&table);
  tarn_results_close(&results);
  // An output that is another one than was scored.
  write_lines("runs/system/seed-1", "test.hyp", baselines[0]);
  assert_int_equal(compare(&table, &results), TARN_STATUS_DATA);
  assert_non_null(strstr(tarn_error_message(), "do not belong together"));
  tarn_results_close(&results);
  // Outputs that are missing: that seed has no part, and a note says so.
  assert_int_equal(remove("runs/system/seed-1/test.hyp"), 0);
  assert_int_equal(compare(&table, &results), TARN_STATUS_OK);
  assert_int_equal(table->rows[1].seed_count, 1);
  assert_int_equal(table->note_count, 2);
  tarn_results_table_close(&table);
  tarn_results_close(&results);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(agrees_with_sacrebleu),
      cmocka_unit_test(draws_evenly),
      cmocka_unit_test(tests_runs),
  };
  return cmocka_run_group_tests(tests, open_golden, close_golden);
}
