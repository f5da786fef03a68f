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
#include "eval/statistics.h"
#include "results_runs.h"
#include "tarn/lab/results.h"

enum { SENTENCES = 60, PAIRS = 2, RESAMPLES = 400 };

static json_t *root;
static const char *references[SENTENCES], *systems[PAIRS][SENTENCES], *baselines[PAIRS][SENTENCES];
static uint32_t indices[RESAMPLES * SENTENCES];
static tarn_statistics *statistics[2 * PAIRS];

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

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a;
  double y = *(const double *)b;
  return (x > y) - (x < y);
}

// The observed difference and those of all resamples, against the same of sacreBLEU's scores.
static void same(double observed, double *differences, const json_t *expected) {
  double wins = 0;
  near(observed, number(expected, "difference"), 1e-9);
  for (size_t r = 0; r < RESAMPLES; r++) wins += differences[r] > 0;
  near(wins / RESAMPLES, number(expected, "wins"), 1e-9);
  qsort(differences, RESAMPLES, sizeof *differences, by_value);
  near(differences[RESAMPLES / 40], number(expected, "low"), 1e-9);
  near(differences[RESAMPLES - 1 - RESAMPLES / 40], number(expected, "high"), 1e-9);
}

static double score(void *user, size_t system, const uint32_t *times) {
  double sums[64];
  (void)user;
  assert_true(statistics[system]->width <= 64);
  return tarn__statistics_score_of(statistics[system], times, sums);
}

static void agrees_with_sacrebleu(void **state) {
  (void)state;
  static double resampled[2 * PAIRS * RESAMPLES], differences[(PAIRS + 1) * RESAMPLES];
  double observed[2 * PAIRS];
  const json_t *b = json_object_get(root, "bootstrap");
  const char *const *stream = references;
  tarn_bleu_result result;
  for (size_t i = 0; i < 2 * PAIRS; i++)
    assert_int_equal(tarn_bleu_statistics(&statistics[i], &result, i < PAIRS ? systems[i] : baselines[i - PAIRS],
                                          &stream, SENTENCES, 1, NULL),
                     TARN_STATUS_OK);
  const tarn__bootstrap_options options = {.resamples = RESAMPLES, .indices = indices};
  assert_int_equal(tarn__bootstrap(observed, resampled, 2 * PAIRS, SENTENCES, score, NULL, &options), TARN_STATUS_OK);
  double pooled = 0;
  for (size_t i = 0; i < 2 * PAIRS; i++)
    near(observed[i], json_number_value(json_array_get(json_object_get(b, "scores"), i)), 1e-11);
  for (size_t r = 0; r < 5; r++)
    near(resampled[r], json_number_value(json_array_get(json_object_get(b, "resampled"), r)), 1e-9);
  for (size_t i = 0; i < PAIRS; i++) {
    for (size_t r = 0; r < RESAMPLES; r++) {
      const double difference = resampled[i * RESAMPLES + r] - resampled[(PAIRS + i) * RESAMPLES + r];
      differences[i * RESAMPLES + r] = difference;
      differences[PAIRS * RESAMPLES + r] += difference / PAIRS;
    }
    pooled += (observed[i] - observed[PAIRS + i]) / PAIRS;
    same(observed[i] - observed[PAIRS + i], differences + i * RESAMPLES,
         json_array_get(json_object_get(b, "pairs"), i));
  }
  same(pooled, differences + PAIRS * RESAMPLES, json_object_get(b, "pooled"));
  for (size_t i = 0; i < 2 * PAIRS; i++) tarn_statistics_close(&statistics[i]);
}

// How often items are drawn, kept as the "score".
typedef struct draws {
  double firsts;  // of the first stratum
  double variance;
} draws;

static double count_draws(void *user, size_t system, const uint32_t *times) {
  draws *d = user;
  double sum = 0;
  if (!times) return 0;
  for (size_t s = 0; s < 3; s++) d->firsts += times[s];
  for (size_t s = 0; s < SENTENCES; s++) {
    sum += times[s];
    d->variance += ((double)times[s] - 1) * ((double)times[s] - 1) / SENTENCES;
  }
  assert_true(sum == SENTENCES);
  return times[system];
}

static void draws_evenly(void **state) {
  (void)state;
  enum { MANY = 4000 };
  static double resampled[MANY], again[MANY];
  static const size_t strata[] = {3, SENTENCES - 3};
  double observed;
  draws d = {0};
  tarn__bootstrap_options options = {.resamples = MANY, .seed = 12345};
  assert_int_equal(tarn__bootstrap(&observed, resampled, 1, SENTENCES, count_draws, &d, &options), TARN_STATUS_OK);
  near(d.firsts / MANY, 3, 0.15);  // five standard errors
  near(d.variance / MANY, 1 - 1.0 / SENTENCES, 0.03);
  assert_int_equal(tarn__bootstrap(&observed, again, 1, SENTENCES, count_draws, &d, &options), TARN_STATUS_OK);
  assert_memory_equal(resampled, again, sizeof again);
  options.seed = 1;
  assert_int_equal(tarn__bootstrap(&observed, again, 1, SENTENCES, count_draws, &d, &options), TARN_STATUS_OK);
  assert_true(memcmp(resampled, again, sizeof again) != 0);
  // Within strata each has as many items as ever.
  options.strata = strata;
  options.stratum_count = 2;
  d = (draws){0};
  assert_int_equal(tarn__bootstrap(&observed, again, 1, SENTENCES, count_draws, &d, &options), TARN_STATUS_OK);
  assert_true(d.firsts == 3.0 * MANY);
  options.resamples = 0;
  assert_int_equal(tarn__bootstrap(&observed, again, 1, SENTENCES, count_draws, &d, &options), TARN_STATUS_USAGE);
  options.resamples = 1;
  assert_int_equal(tarn__bootstrap(&observed, again, 0, SENTENCES, count_draws, &d, &options), TARN_STATUS_USAGE);
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
  tarn_results *results;
  tarn_results_table *table;
  write_lines(".", "test.en", references);
  for (int i = 0; i < PAIRS; i++) {
    write_run(RUN_RESERVOIR, "system", i + 1, systems[i], json_number_value(json_array_get(scores, (size_t)i)));
    write_run(RUN_REGULAR, "baseline", i + 1, baselines[i], json_number_value(json_array_get(scores, (size_t)i + 2)));
  }
  assert_int_equal(compare(&table, &results), TARN_STATUS_OK);
  assert_string_equal(results->groups[1].name, "system");
  const tarn_results_judged *judged = &table->judged[TARN_RESULTS_JUDGED_TEST_BLEU];
  const tarn_results_verdict *v = &judged->verdicts[1];
  assert_int_equal(v->seed_count, PAIRS);
  assert_int_equal(v->seeds[1], 2);
  assert_int_equal(v->basis, TARN_RESULTS_TWO_SEEDS);
  assert_true(isnan(v->p) && v->low < v->difference && v->difference < v->high);
  assert_int_equal(judged->comparisons, 0);
  near(v->difference, table->rows[1].test_bleu.mean - table->rows[0].test_bleu.mean, 1e-9);
  near(v->by_seed[1], json_number_value(json_array_get(scores, 1)) - json_number_value(json_array_get(scores, 3)),
       1e-9);
  tarn_results_table_close(&table);
  tarn_results_close(&results);
  // An output that is another one than was scored.
  write_lines("runs/system/seed-1", "test.hyp", baselines[0]);
  assert_int_equal(compare(&table, &results), TARN_STATUS_DATA);
  assert_non_null(strstr(tarn_error_message(), "do not belong together"));
  tarn_results_close(&results);
  // Outputs that are missing: the difference stays that of the means, there is no verdict, and a note says so.
  assert_int_equal(remove("runs/system/seed-1/test.hyp"), 0);
  assert_int_equal(compare(&table, &results), TARN_STATUS_OK);
  v = &table->judged[TARN_RESULTS_JUDGED_TEST_BLEU].verdicts[1];
  assert_int_equal(v->basis, TARN_RESULTS_NO_ITEMS);
  near(v->difference, table->rows[1].test_bleu.mean - table->rows[0].test_bleu.mean, 1e-9);
  assert_true(isnan(v->p) && isnan(v->low));
  assert_int_equal(table->note_count, 3);  // the last one: of a single validation there is no time to best
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
