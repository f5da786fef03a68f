// Measures: bits per character of models of bytes and of characters, in the log, as what chooses the best checkpoint,
// as the score of a comparison and in a report, against arithmetic on the text.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>
#include <dirent.h>
#include <jansson.h>

#include "base/file.h"
#include "base/memory.h"
#include "same_run.h"
#include "tarn/data.h"
#include "tarn/lab/results.h"
#include "tarn/lm.h"
#include "tarn/measure.h"

static const char config[] =
    "model: { d_model: 16, dropout: 0, max_length: 12 }\n"
    "decoder: { layers: L }\n"
    "kinds: { L: { mixer: attention, heads: 2, ffn: 32 } }\n"
    "train: { max_updates: 12, lr: 0.02, warmup: 2, max_tokens: 60, threads: 1 }\n"
    "valid: { every: 4, at_start: yes, metric: bpc }\n";

static const char training[] = "a b ab\n\xc3\xa4 b a\nbb \xe2\x82\xac\na \xe2\x82\xac b\nab ab\nba b\naa \xc3\xa4\n";
// The third line has 13 tokens of either vocabulary, so that model.max_length leaves it out.
static const char text[] = "ab a\n\xc3\xa4 \xe2\x82\xac\nab ab ab abb\nb\n";
static const char kept[] = "ab a\n\xc3\xa4 \xe2\x82\xac\nb\n";
enum { CHARACTERS = 4 + 3 + 1 + 3, BYTES = 4 + 6 + 1 + 3 };  // of what is kept, with the ends of lines

static void must(tarn_status status) {
  if (status != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
}

static void prepare(const char *vocab, const char *from, const char *to) {
  tarn_prepare_options options;
  tarn_prepare_default(&options);
  options.vocab = vocab;
  options.text = from;
  options.output = to;
  tarn_prepare_result result;
  must(tarn_prepare_run(&result, &options));
}

// Vocabulary NAME, shards NAME_text and NAME_valid, run NAME.run.
static void make(const char *name, tarn_vocab_type type) {
  static const char *const files[] = {"training"};
  char train[64], valid[64], vocab[64], run[32];
  tarn_vocab_options how;
  tarn_vocab_default(&how);
  how.type = type;
  must(tarn_vocab_train(name, files, type == TARN_VOCAB_TYPE_BYTE ? 0 : 1, &how));
  snprintf(vocab, sizeof vocab, "data.vocab=%s", name);
  snprintf(train, sizeof train, "data.train=%s_text", name);
  snprintf(valid, sizeof valid, "data.valid=%s_valid", name);
  snprintf(run, sizeof run, "%s.run", name);
  prepare(name, "training", strchr(train, '=') + 1);
  prepare(name, "text", strchr(valid, '=') + 1);
  const char *const set[] = {vocab, train, valid};
  must(tiny_train("config.yaml", run, set, 3, NULL, NULL, NULL));
}

static int open_all(void **state) {
  if (sandbox_open(state) != 0) return -1;
  sandbox_write("config.yaml", config, strlen(config));
  sandbox_write("training", training, strlen(training));
  sandbox_write("text", text, strlen(text));
  sandbox_write("kept", kept, strlen(kept));
  make("char", TARN_VOCAB_TYPE_CHAR);
  make("byte", TARN_VOCAB_TYPE_BYTE);
  return 0;
}

static double number(const json_t *record, const char *key) {
  const json_t *value = json_object_get(record, key);
  if (!json_is_number(value)) fail_msg("no number %s", key);
  return json_number_value(value);
}

static double scored(const char *run) {
  tarn_lm *lm;
  tarn_lm_options options;
  tarn_lm_line line[3];
  tarn_lm_total total = {0};
  static const char *const lines[] = {"ab a", "\xc3\xa4 \xe2\x82\xac", "b"};
  const size_t lengths[] = {strlen(lines[0]), strlen(lines[1]), strlen(lines[2])};
  tarn_lm_default(&options);
  must(tarn_lm_open(&lm, run, &options));
  must(tarn_lm_score(lm, line, lines, lengths, 3));
  for (int i = 0; i < 3; i++) tarn_lm_total_add(&total, &line[i]);
  assert_int_equal(total.characters, CHARACTERS);
  tarn_lm_close(&lm);
  return tarn_lm_bits_per_character(&total);
}

static void the_log_has_bits_per_character(void **state) {
  (void)state;
  static const struct {
    const char *run;
    double tokens;
  } runs[] = {{"char.run", CHARACTERS}, {"byte.run", BYTES}};
  for (int r = 0; r < 2; r++) {
    char path[64];
    double best = INFINITY;
    int validations = 0;
    json_t *lines = read_log(runs[r].run);
    for (size_t i = 0; i < json_array_size(lines); i++) {
      const json_t *record = json_array_get(lines, i);
      if (strcmp(json_string_value(json_object_get(record, "kind")), "valid") != 0) continue;
      const double bits = number(record, "valid_nll") / log(2) * runs[r].tokens / CHARACTERS;
      assert_true(fabs(number(record, "valid_bpc") - bits) < 1e-7 * bits);
      assert_null(json_object_get(record, "valid_bleu"));
      if (number(record, "step") > 0 && number(record, "valid_bpc") < best) best = number(record, "valid_bpc");
      validations++;
    }
    assert_int_equal(validations, 4);
    json_decref(lines);
    snprintf(path, sizeof path, "%s/result.json", runs[r].run);
    json_t *result = json_load_file(path, 0, NULL);
    assert_string_equal(json_string_value(json_object_get(result, "metric")), "bpc");
    assert_true(fabs(number(result, "best") - best) < 1e-7);
    json_decref(result);
    // What `tarn score` says of the checkpoint that was best.
    assert_true(fabs(scored(runs[r].run) - best) < 1e-4);
  }
}

// The trapezoids of the log.
static double area(const tarn_results_series *series, double budget) {
  double sum = 0;
  const tarn_results_point *p = series->points;
  for (size_t i = 1; i < series->count; i++)
    sum += (p[i].seconds - p[i - 1].seconds) * (p[i].value + p[i - 1].value) / 2;
  return sum + (budget - p[series->count - 1].seconds) * p[series->count - 1].value;
}

static void it_is_compared_by(void **state) {
  (void)state;
  static const char *const paths[] = {"char.run"};
  tarn_results *results;
  tarn_results_table *table;
  tarn_results_options options;
  tarn_results_default(&options);
  options.metric = "bpc";
  must(tarn_results_open(&results, paths, 1));
  must(tarn_results_compare(&table, results, &options));
  assert_string_equal(table->metric, "valid/bpc");
  assert_true(table->less);
  const tarn_results_series *series = tarn_results_find(&results->runs[0], "bpc");
  assert_non_null(series);
  const double expected = -area(series, table->budget) / 60;
  assert_true(fabs(table->rows[0].aucc.mean - expected) < 1e-9 * fabs(expected));
  tarn_report_options how;
  tarn_report_default(&how);
  how.output = "report";
  must(tarn_report_write(results, table, &how));
  tarn_results_table_close(&table);
  options.metric = "bcp";
  assert_int_equal(tarn_results_compare(&table, results, &options), TARN_STATUS_USAGE);
  assert_non_null(strstr(tarn_error_message(), "did you mean \"bpc\"?"));
  tarn_results_table_close(&table);
  tarn_results_close(&results);
  char *page;
  size_t size;
  must(tarn__file_read("report/report.html", &page, &size));
  assert_non_null(strstr(page, "best validation bits per character"));
  tarn__free(page);
}

static void tensorboard_has_it(void **state) {
  (void)state;
  DIR *folder = opendir("byte.run");
  bool found = false;
  assert_non_null(folder);
  for (const struct dirent *entry; (entry = readdir(folder));) {
    char path[512], *bytes;
    size_t size;
    if (strncmp(entry->d_name, "events.out", 10) != 0) continue;
    snprintf(path, sizeof path, "byte.run/%s", entry->d_name);
    must(tarn__file_read(path, &bytes, &size));
    found = found || memmem(bytes, size, "valid/bpc", 9);
    tarn__free(bytes);
  }
  closedir(folder);
  assert_true(found);
}

// A vocabulary of words has no such figure, and choosing by it is refused before anything is trained.
static void words_have_none(void **state) {
  (void)state;
  tiny_files();
  make_text_shard("words", 30, TINY_VOCAB, 5);
  static const char *const set[] = {"data.vocab=vocab", "data.train=words", "data.valid=words", "model.max_length=60"};
  static const char *const only[] = {"data.vocab=vocab", "data.train=words", "data.valid=", "model.max_length=60",
                                     "sets={words: {data: words}}"};
  for (int sets = 0; sets < 2; sets++) {
    assert_int_equal(tiny_train("config.yaml", "words.run", sets ? only : set, sets ? 5 : 4, NULL, NULL, NULL),
                     TARN_STATUS_USAGE);
    assert_string_equal(
        tarn_error_message(),
        "config.yaml:5: valid.metric: bpc needs a vocabulary of bytes or characters, and vocab is of longer "
        "tokens; choose loss, nll or ppl");
  }
  static const char *const by_ppl[] = {"data.vocab=vocab", "data.train=words",    "data.valid=words",
                                       "valid.metric=ppl", "model.max_length=60", "train.average=2",
                                       "train.keep_last=2"};
  must(tiny_train("config.yaml", "words.run", by_ppl, 7, NULL, NULL, NULL));
  json_t *result = json_load_file("words.run/result.json", 0, NULL);
  json_t *lines = read_log("words.run");
  double best = INFINITY;
  for (size_t i = 0; i < json_array_size(lines); i++) {
    const json_t *record = json_array_get(lines, i);
    if (json_is_true(json_object_get(record, "best"))) best = exp(number(record, "valid_nll"));
    assert_null(json_object_get(record, "valid_bpc"));
  }
  assert_true(fabs(number(result, "best") - best) < 1e-6 * best);
  json_decref(result);
  json_decref(lines);
  // The average is chosen or left by what follows from the log.
  tarn_checkpoint_found found;
  must(tarn_checkpoint_find(&found, "words.run", TARN_CHECKPOINT_CHOICE_AUTO));
  if (strncmp(found.reason, "perplexity ", 11) != 0) fail_msg("%s", found.reason);
  tarn_checkpoint_found_close(&found);
}

static void every_measure_is_found_by_its_names(void **state) {
  (void)state;
  for (int m = 0; m < tarn_measure_count(); m++) {
    const tarn_measure *measure = tarn_measure_of(m);
    char name[64];
    assert_int_equal(measure->number, m);
    snprintf(name, sizeof name, "average/%s", measure->word);
    assert_ptr_equal(tarn_measure_find(name), measure);
    assert_ptr_equal(tarn_measure_find(measure->word), measure);
  }
  assert_null(tarn_measure_find("train/lr"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_log_has_bits_per_character),
      cmocka_unit_test(it_is_compared_by),
      cmocka_unit_test(tensorboard_has_it),
      cmocka_unit_test(words_have_none),
      cmocka_unit_test(every_measure_is_found_by_its_names),
  };
  return cmocka_run_group_tests(tests, open_all, sandbox_close);
}
