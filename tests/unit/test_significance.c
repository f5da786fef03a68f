// Intervals and paired tests against sacreBLEU's over several seeds (tests/golden/scores.json), and where the answer is
// known: equal systems, systems that differ in one sentence, sure differences.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "base/memory.h"
#include "tarn/lab/results.h"
#include "unit/score_golden.h"

enum { SENTENCES = 120, SYSTEMS = 4, SEEDS = 10 };

static json_t *root;
static const char *references[SENTENCES], *systems[SYSTEMS][SENTENCES];
static const char *const *const streams[] = {references};

static void read_texts(const char **out, const json_t *list) {
  assert_int_equal(json_array_size(list), SENTENCES);
  for (size_t s = 0; s < SENTENCES; s++) out[s] = json_string_value(json_array_get(list, s));
}

static int open_golden(void **state) {
  (void)state;
  root = golden_open();
  const json_t *golden = json_object_get(root, "significance");
  read_texts(references, json_object_get(golden, "references"));
  assert_int_equal(json_array_size(json_object_get(golden, "systems")), SYSTEMS);
  for (size_t i = 0; i < SYSTEMS; i++) read_texts(systems[i], json_array_get(json_object_get(golden, "systems"), i));
  return 0;
}

static int close_golden(void **state) {
  (void)state;
  json_decref(root);
  return 0;
}

// The statistics of one system by a metric of the golden file; its signature without what was resampled.
static tarn_statistics *count(const char *metric, const char *const *lines, char signature[TARN_SIGNATURE_TEXT]) {
  tarn_statistics *out = NULL;
  if (strcmp(metric, "BLEU") == 0) {
    tarn_bleu_options options;
    tarn_bleu_result result;
    tarn_bleu_default(&options);
    assert_int_equal(tarn_bleu_statistics(&out, &result, lines, streams, SENTENCES, 1, &options), TARN_STATUS_OK);
    tarn_bleu_signature(signature, &result, &options);
  } else if (strcmp(metric, "CHRF") == 0) {
    tarn_chrf_options options;
    tarn_chrf_result result;
    tarn_chrf_default(&options);
    options.word_order = 2;
    assert_int_equal(tarn_chrf_statistics(&out, &result, lines, streams, SENTENCES, 1, &options), TARN_STATUS_OK);
    tarn_chrf_signature(signature, &result, &options);
  } else {
    tarn_ter_options options;
    tarn_ter_result result;
    tarn_ter_default(&options);
    assert_int_equal(tarn_ter_statistics(&out, &result, lines, streams, SENTENCES, 1, &options), TARN_STATUS_OK);
    tarn_ter_signature(signature, &result, &options);
  }
  return out;
}

// Two means over SEEDS seeds each: five standard deviations of their difference, and what a p of 1 / (n + 1) is off.
static void near(double sum, const json_t *expected, const char *what, const json_t *c) {
  double mean = sum / SEEDS;
  double tolerance = 5 * sqrt(2.0 / SEEDS) * golden_real(expected, "sd") + 0.001;
  if (fabs(mean - golden_real(expected, "mean")) <= tolerance) return;
  char *text = json_dumps(c, 0);
  print_error("%s: got %.5f, more than %.5f from sacreBLEU's in %s\n", what, mean, tolerance, text);
  free(text);
  fail();
}

static void check_signature(const char *signature, const tarn_significance_options *options, const json_t *c,
                            const char *key) {
  char text[TARN_SIGNATURE_TEXT];
  tarn_significance_signature(text, signature, options);
  const char *expected = golden_text(c, key);
  assert_true(strncmp(text, expected, (size_t)(strstr(expected, "version:") - expected)) == 0);
}

static void check_metric(const char *metric) {
  const json_t *golden = json_object_get(root, "significance");
  tarn_statistics *all[SYSTEMS];
  double means[SYSTEMS] = {0};
  double widths[SYSTEMS] = {0};
  double bootstrap[SYSTEMS] = {0};
  double randomization[SYSTEMS] = {0};
  char signature[TARN_SIGNATURE_TEXT];
  tarn_significance out[SYSTEMS];
  tarn_significance_options bs;
  tarn_significance_options ar;
  tarn_significance_default(&bs);
  tarn_significance_default(&ar);
  bs.paired_bootstrap = true;
  bs.resamples = (int64_t)golden_real(golden, "resamples");
  ar.trials = (int64_t)golden_real(golden, "trials");
  for (size_t i = 0; i < SYSTEMS; i++) all[i] = count(metric, systems[i], signature);
  for (uint64_t seed = 1; seed <= SEEDS; seed++) {
    bs.seed = ar.seed = seed;
    assert_int_equal(tarn_significance_compute(out, (const tarn_statistics *const *)all, SYSTEMS, &bs), TARN_STATUS_OK);
    for (size_t i = 0; i < SYSTEMS; i++) {
      means[i] += out[i].mean;
      widths[i] += out[i].half_width;
      bootstrap[i] += out[i].p;
      assert_true(out[i].low < out[i].mean && out[i].mean < out[i].high);
    }
    assert_int_equal(tarn_significance_compute(out, (const tarn_statistics *const *)all, SYSTEMS, &ar), TARN_STATUS_OK);
    for (size_t i = 0; i < SYSTEMS; i++) randomization[i] += out[i].p;
    assert_true(isnan(out[0].p) && isnan(out[1].mean));
  }
  const json_t *cases = json_object_get(golden, "cases");
  size_t found = 0;
  for (size_t k = 0; k < json_array_size(cases); k++) {
    const json_t *c = json_array_get(cases, k);
    if (strcmp(golden_text(c, "metric"), metric) != 0) continue;
    size_t i = (size_t)golden_real(c, "system");
    assert_in_range(i, 0, SYSTEMS - 1);
    found++;
    golden_near(out[i].score, golden_real(c, "score"), c);
    near(means[i], json_object_get(c, "mean"), "mean", c);
    near(widths[i], json_object_get(c, "half_width"), "half width", c);
    if (i > 0) near(bootstrap[i], json_object_get(c, "p_bs"), "p of the paired bootstrap", c);
    if (i > 0) near(randomization[i], json_object_get(c, "p_ar"), "p of approximate randomization", c);
    check_signature(signature, &bs, c, "bs_signature");
    check_signature(signature, &ar, c, "ar_signature");
  }
  assert_int_equal(found, SYSTEMS);
  for (size_t i = 0; i < SYSTEMS; i++) tarn_statistics_close(&all[i]);
}

static void agrees_with_sacrebleu(void **state) {
  (void)state;
  check_metric("BLEU");
  check_metric("CHRF");
  check_metric("TER");
}

static tarn_significance compare(const char *metric, const char *const *first, const char *const *second,
                                 const tarn_significance_options *options) {
  char signature[TARN_SIGNATURE_TEXT];
  tarn_statistics *both[] = {count(metric, first, signature), count(metric, second, signature)};
  tarn_significance out[2];
  assert_int_equal(tarn_significance_compute(out, (const tarn_statistics *const *)both, 2, options), TARN_STATUS_OK);
  tarn_statistics_close(&both[0]);
  tarn_statistics_close(&both[1]);
  return out[1];
}

// Where sacreBLEU gives 1 / (n + 1).
static void equal_systems_do_not_differ(void **state) {
  (void)state;
  static const char *const metrics[] = {"BLEU", "CHRF", "TER"};
  const tarn_significance_options bs = {.resamples = 200, .paired_bootstrap = true, .seed = 1};
  const tarn_significance_options ar = {.trials = 200, .seed = 1};
  const char *other[SENTENCES];
  memcpy(other, systems[0], sizeof other);
  other[7] = "red";
  for (size_t m = 0; m < 3; m++) {
    assert_true(compare(metrics[m], systems[0], systems[0], &bs).p == 1);
    assert_true(compare(metrics[m], systems[0], systems[0], &ar).p == 1);
    // Exchanging the only sentence that differs, or not, gives the difference there is; of two, in half of the trials.
    other[8] = systems[0][8];
    tarn_significance one = compare(metrics[m], systems[0], other, &ar);
    assert_true(one.difference != 0 && one.p == 1);
    assert_true(compare(metrics[m], systems[0], other, &bs).p == 1);
    other[8] = "red";
    assert_true(compare(metrics[m], systems[0], other, &ar).p == 0.5);
  }
}

static void sure_differences_have_the_smallest_p(void **state) {
  (void)state;
  const tarn_significance_options bs = {.resamples = 999, .paired_bootstrap = true, .seed = 1};
  const tarn_significance_options ar = {.trials = 499, .seed = 1};
  assert_true(compare("BLEU", systems[0], references, &bs).p == 1.0 / 1000);
  assert_true(compare("BLEU", systems[0], references, &ar).p == 1.0 / 500);
  tarn_significance ter = compare("TER", systems[0], references, &ar);
  assert_true(ter.score == 0 && ter.difference < -10 && ter.p == 1.0 / 500);
}

static void seeds_repeat(void **state) {
  (void)state;
  tarn_significance_options options = {.resamples = 100, .paired_bootstrap = true, .seed = 5};
  tarn_significance first = compare("BLEU", systems[0], systems[1], &options);
  tarn_significance again = compare("BLEU", systems[0], systems[1], &options);
  assert_memory_equal(&first, &again, sizeof first);
  options.seed = 6;
  again = compare("BLEU", systems[0], systems[1], &options);
  assert_true(again.mean != first.mean && again.score == first.score);
}

static void bad_arguments_fail(void **state) {
  (void)state;
  char signature[TARN_SIGNATURE_TEXT];
  tarn_significance out[2];
  tarn_significance_options options;
  tarn_statistics *bleu = count("BLEU", systems[0], signature);
  tarn_statistics *ter = count("TER", systems[0], signature);
  const tarn_statistics *const same[] = {bleu, bleu};
  const tarn_statistics *const mixed[] = {bleu, ter};
  const tarn_significance_options bad[] = {{.resamples = 39},
                                           {.trials = TARN_SIGNIFICANCE_MOST + 1},
                                           {.resamples = -1},
                                           {.paired_bootstrap = true},
                                           {.paired_bootstrap = true, .resamples = 100, .trials = 100}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    assert_int_equal(tarn_significance_compute(out, same, 2, &bad[i]), TARN_STATUS_USAGE);
  tarn_significance_default(&options);
  assert_int_equal(tarn_significance_compute(out, same, 0, &options), TARN_STATUS_USAGE);
  assert_int_equal(tarn_significance_compute(out, mixed, 2, &options), TARN_STATUS_USAGE);
  assert_int_equal(tarn_significance_compute(out, same, 2, NULL), TARN_STATUS_OK);
  assert_true(isnan(out[1].p) && isnan(out[1].mean) && out[0].score == out[1].score);
  options.trials = 100;
  assert_int_equal(tarn_significance_compute(out, same, 1, &options), TARN_STATUS_USAGE);
  tarn_significance_signature(signature, "nrefs:1|case:lc", &options);
  assert_string_equal(signature, "nrefs:1|ar:100|seed:12345|case:lc");
  tarn_statistics_close(&bleu);
  tarn_statistics_close(&ter);
  tarn_statistics_close(&ter);
  assert_null(ter);
}

// Every allocation fails once; nothing leaks and the last attempt succeeds.
static void out_of_memory(void **state) {
  (void)state;
  const tarn_significance_options options = {.resamples = 40};
  size_t before = tarn__memory_now(TARN__MEMORY_OTHER);
  for (int metric = 0; metric < 3; metric++) {
    tarn_status status = TARN_STATUS_MEMORY;
    int failures = 0;
    for (uint64_t n = 1; status == TARN_STATUS_MEMORY; n++) {
      tarn_statistics *statistics = NULL;
      tarn_bleu_result bleu;
      tarn_chrf_result chrf;
      tarn_ter_result ter;
      tarn_significance out;
      tarn__memory_fail_after(n);
      status = metric == 0   ? tarn_bleu_statistics(&statistics, &bleu, systems[0], streams, 3, 1, NULL)
               : metric == 1 ? tarn_chrf_statistics(&statistics, &chrf, systems[0], streams, 3, 1, NULL)
                             : tarn_ter_statistics(&statistics, &ter, systems[0], streams, 3, 1, NULL);
      if (status == TARN_STATUS_OK)
        status = tarn_significance_compute(&out, (const tarn_statistics *const *)&statistics, 1, &options);
      else
        assert_null(statistics);
      tarn_statistics_close(&statistics);
      failures += status == TARN_STATUS_MEMORY;
      assert_int_equal(tarn__memory_now(TARN__MEMORY_OTHER), before);
    }
    tarn__memory_fail_after(0);
    assert_int_equal(status, TARN_STATUS_OK);
    assert_true(failures >= 10);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(agrees_with_sacrebleu),
      cmocka_unit_test(equal_systems_do_not_differ),
      cmocka_unit_test(sure_differences_have_the_smallest_p),
      cmocka_unit_test(seeds_repeat),
      cmocka_unit_test(bad_arguments_fail),
      cmocka_unit_test(out_of_memory),
  };
  return cmocka_run_group_tests(tests, open_golden, close_golden);
}
