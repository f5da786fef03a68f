#include "score_files.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_output.h"
#include "score_input.h"
#include "tarn/lab/results.h"
#include "text_table.h"

typedef struct work {
  const score_files *files;
  const score_metric *metric;
  tarn_significance_options tests;
  score_input input;
  score_result *results;         // one per system
  tarn_statistics **statistics;  // one per system
  tarn_significance *significances;
} work;

static bool is_tested(const work *w) { return w->tests.paired_bootstrap || w->tests.trials; }

static void summarize(const work *w, score_summary *out, const score_result *result) {
  char signature[TARN_SIGNATURE_TEXT];
  w->metric->summarize(out, result, w->metric->options);
  memcpy(signature, out->signature, sizeof signature);
  tarn_significance_signature(out->signature, signature, &w->tests);
}

static void report_invalid(const work *w, const char *name, int64_t invalid) {
  if (invalid == 0) return;
  fprintf(stderr, "tarn %s: warning: %s%smalformed UTF-8 sequences read as U+FFFD: %lld\n", w->metric->command->name,
          name ? name : "", name ? ": " : "", (long long)invalid);
}

static void add_tests(const work *w, json_t *object, size_t system) {
  const tarn_significance *s = &w->significances[system];
  if (w->tests.resamples)
    json_object_set_new(
        object, "confidence",
        json_pack("{s:f, s:f, s:f, s:f, s:I, s:I}", "mean", s->mean, "low", s->low, "high", s->high, "half_width",
                  s->half_width, "resamples", (json_int_t)w->tests.resamples, "seed", (json_int_t)w->tests.seed));
  if (!is_tested(w) || system == 0) return;
  bool bootstrap = w->tests.paired_bootstrap;
  json_t *test =
      json_pack("{s:s, s:f, s:f, s:I, s:I}", "method", bootstrap ? "paired bootstrap" : "approximate randomization",
                "difference", s->difference, "p", s->p, bootstrap ? "resamples" : "trials",
                (json_int_t)(bootstrap ? w->tests.resamples : w->tests.trials), "seed", (json_int_t)w->tests.seed);
  json_object_set_new(test, "baseline", json_output_text(w->input.systems[0].name));
  json_object_set_new(object, "test", test);
}

// `system` is NULL if there is only one.
static int print_json(const work *w, const score_result *result, const size_t *system) {
  score_summary summary;
  summarize(w, &summary, result);
  json_t *object = json_object();
  if (system) json_object_set_new(object, "system", json_output_text(w->input.systems[*system].name));
  json_object_set_new(object, "name", json_string(summary.name));
  json_object_set_new(object, "score", json_real(summary.score));
  json_object_set_new(object, "signature", json_string(summary.signature));
  if (w->significances) add_tests(w, object, system ? *system : 0);
  if (w->metric->add_details) w->metric->add_details(object, result);
  json_object_set_new(object, "invalid_utf8", json_integer(summary.invalid));
  return json_output_print(w->metric->command, stdout, object, JSON_COMPACT);
}

static void print_text(const work *w) {
  score_summary summary;
  summarize(w, &summary, w->results);
  printf("%s = %.2f", summary.name, summary.score);
  if (w->tests.resamples) printf(" (μ = %.2f ± %.2f)", w->significances->mean, w->significances->half_width);
  if (w->metric->print_details) w->metric->print_details(w->results);
  printf("\n%s\n", summary.signature);
}

// Of a path that is too long for a cell, the end is more informative than the beginning.
static const char *name_of(char text[TEXT_TABLE_CELL], const char *path) {
  enum { SHOWN = 70 };
  size_t length = strlen(path);
  if (length <= SHOWN) return path;
  path += length - SHOWN;
  while (((unsigned char)*path & 0xC0) == 0x80) path++;  // do not split a character
  snprintf(text, TEXT_TABLE_CELL, "...%s", path);
  return text;
}

// p is a fraction with the number of trials as denominator, and never 0.
static void cell_of_p(text_table *table, double p) {
  char text[TARN_RESULTS_P_TEXT];
  tarn_results_p(text, p);
  text_table_cell(table, "%s", text);
}

static int print_table(const work *w) {
  text_table table = {0};
  score_summary summary;
  summarize(w, &summary, w->results);
  text_table_row(&table);
  text_table_cell(&table, "system");
  text_table_cell(&table, "%s", summary.name);
  if (w->tests.resamples) {
    text_table_cell(&table, "mean");
    text_table_cell(&table, "95 %%");
  }
  if (is_tested(w)) {
    text_table_cell(&table, "difference");
    text_table_cell(&table, "p");
  }
  for (size_t i = 0; i < w->input.system_count; i++) {
    char text[TEXT_TABLE_CELL];
    summarize(w, &summary, &w->results[i]);
    text_table_row(&table);
    text_table_cell(&table, "%s%s", name_of(text, w->input.systems[i].name), is_tested(w) && !i ? " (baseline)" : "");
    text_table_cell(&table, "%.2f", summary.score);
    if (w->tests.resamples) {
      text_table_cell(&table, "%.2f", w->significances[i].mean);
      text_table_cell(&table, "± %.2f", w->significances[i].half_width);
    }
    if (is_tested(w) && i == 0) {
      text_table_cell(&table, "-");
      text_table_cell(&table, "-");
    } else if (is_tested(w)) {
      text_table_cell(&table, "%+.2f", w->significances[i].difference);
      cell_of_p(&table, w->significances[i].p);
    }
  }
  if (!text_table_print(&table)) return cli_no_memory(w->metric->command);
  printf("%s\n", summary.signature);
  return CLI_OK;
}

static int print_systems(const work *w) {
  if (w->input.system_count == 1 && !w->files->json) print_text(w);
  if (w->input.system_count > 1 && !w->files->json) return print_table(w);
  for (size_t i = 0; i < w->input.system_count && w->files->json; i++) {
    int code = print_json(w, &w->results[i], w->input.system_count > 1 ? &i : NULL);
    if (code != CLI_OK) return code;
  }
  return CLI_OK;
}

static int score_sentences(work *w) {
  const score_metric *m = w->metric;
  const tarn_score_lines *lines = w->input.systems;
  int64_t invalid = 0;
  for (size_t s = 0; s < lines->count; s++) {
    score_result result;
    score_summary summary;
    tarn_status status =
        m->compute(NULL, &result, lines->items + s, score_input_from(&w->input, s), 1, w->input.count, m->options);
    if (status != TARN_STATUS_OK) return cli_report(m->command, status);
    summarize(w, &summary, &result);
    invalid += summary.invalid;
    if (!w->files->json)
      printf("%.2f\n", summary.score);
    else if (print_json(w, &result, NULL) != CLI_OK)
      return CLI_FAILURE;
  }
  report_invalid(w, NULL, invalid);
  return CLI_OK;
}

static tarn_status compute(work *w) {
  const score_metric *m = w->metric;
  bool keep = w->tests.resamples || w->tests.trials;
  for (size_t i = 0; i < w->input.system_count; i++) {
    score_summary summary;
    tarn_status status =
        m->compute(keep ? &w->statistics[i] : NULL, &w->results[i], w->input.systems[i].items,
                   score_input_from(&w->input, 0), w->input.systems[i].count, w->input.count, m->options);
    if (status != TARN_STATUS_OK) return status;
    summarize(w, &summary, &w->results[i]);
    report_invalid(w, w->input.system_count > 1 ? w->input.systems[i].name : NULL, summary.invalid);
  }
  if (!keep) return TARN_STATUS_OK;
  return tarn_significance_compute(w->significances, (const tarn_statistics *const *)w->statistics,
                                   w->input.system_count, &w->tests);
}

static int score_systems(work *w) {
  size_t count = w->input.system_count;
  w->results = calloc(count, sizeof *w->results);
  w->statistics = calloc(count, sizeof *w->statistics);
  if (w->tests.resamples || w->tests.trials) w->significances = calloc(count, sizeof *w->significances);
  bool whole = w->results && w->statistics && (w->significances || !(w->tests.resamples || w->tests.trials));
  int code = whole ? CLI_OK : cli_no_memory(w->metric->command);
  if (code == CLI_OK) {
    tarn_status status = compute(w);
    code = status == TARN_STATUS_OK ? print_systems(w) : cli_report(w->metric->command, status);
  }
  for (size_t i = 0; i < count && w->statistics; i++) tarn_statistics_close(&w->statistics[i]);
  free(w->results);
  free(w->statistics);
  free(w->significances);
  return code;
}

// A number without its option would have no effect.
static int take_number(const work *w, int64_t *out, int64_t given, const char *name, const char *needs, bool used,
                       int64_t otherwise) {
  if (given != CLI_NO_INT && !used) return cli_usage(w->metric->command, "--%s needs %s", name, needs);
  *out = given != CLI_NO_INT ? given : otherwise;
  return -1;
}

static int take_tests(work *w) {
  const score_files *f = w->files;
  const cli_command *command = w->metric->command;
  bool any = f->confidence || f->paired_bs || f->paired_ar;
  int64_t confidence = 0;
  int64_t bootstrap = 0;
  int64_t trials = 0;
  int64_t seed = 0;
  tarn_significance_default(&w->tests);
  if (any && f->sentence) return cli_usage(command, "--sentence has no intervals and no tests");
  if (f->sentence && f->systems.count > 1) return cli_usage(command, "--sentence takes one system");
  if (f->paired_bs && f->paired_ar) return cli_usage(command, "--paired-bs and --paired-ar are two tests; take one");
  if ((f->paired_bs || f->paired_ar) && f->systems.count < 2)
    return cli_usage(command, "%s needs two systems or more", f->paired_bs ? "--paired-bs" : "--paired-ar");
  int code =
      take_number(w, &confidence, f->confidence_n, "confidence-n",
                  f->paired_bs ? "--confidence without --paired-bs, which has intervals of its own" : "--confidence",
                  f->confidence && !f->paired_bs, 1000);
  if (code < 0) code = take_number(w, &bootstrap, f->paired_bs_n, "paired-bs-n", "--paired-bs", f->paired_bs, 1000);
  if (code < 0) code = take_number(w, &trials, f->paired_ar_n, "paired-ar-n", "--paired-ar", f->paired_ar, 10000);
  if (code < 0)
    code =
        take_number(w, &seed, f->seed, "seed", "--confidence, --paired-bs or --paired-ar", any, (int64_t)w->tests.seed);
  if (code >= 0) return code;
  if (f->confidence) w->tests.resamples = confidence;
  if (f->paired_bs) w->tests.resamples = bootstrap;
  if (f->paired_ar) w->tests.trials = trials;
  w->tests.paired_bootstrap = f->paired_bs;
  w->tests.seed = (uint64_t)seed;
  return -1;
}

int score_files_run(score_files *files, const score_metric *metric) {
  work w = {.files = files, .metric = metric};
  int code = take_tests(&w);
  if (code < 0) code = score_input_open(&w.input, metric->command, &files->systems, &files->references);
  if (code < 0) code = files->sentence ? score_sentences(&w) : score_systems(&w);
  score_input_close(&w.input);
  return code;
}

void score_files_close(score_files *files) {
  cli_list_free(&files->references);
  cli_list_free(&files->systems);
}
