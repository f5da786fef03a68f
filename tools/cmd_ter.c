#include <stdio.h>

#include "cli.h"
#include "commands.h"
#include "progress_show.h"
#include "score_files.h"

static const cli_command command = {"ter", "[SYSTEM...] < SYSTEM",
                                    "Score translations by TER, as sacreBLEU computes it.",
                                    SCORE_FILES_TEXT
                                    "\nTER is the number of edits (words inserted, deleted and substituted, and blocks "
                                    "of words moved) for a hundred words\n"
                                    "of the references: lower is better.\n\n" SCORE_FILES_TESTS_TEXT};

static tarn_status compute(tarn_statistics **statistics, score_result *out, const char *const *hypotheses,
                           const char *const *const *references, size_t sentences, size_t streams,
                           const void *options) {
  if (!statistics) return tarn_ter_corpus(&out->ter, hypotheses, references, sentences, streams, options);
  return tarn_ter_statistics(statistics, &out->ter, hypotheses, references, sentences, streams, options);
}

static void summarize(score_summary *out, const score_result *result, const void *options) {
  snprintf(out->name, sizeof out->name, "TER");
  tarn_ter_signature(out->signature, &result->ter, options);
  out->score = result->ter.score;
  out->invalid = result->ter.invalid;
}

static void add_details(json_t *object, const score_result *result) {
  json_object_set_new(object, "edits", json_integer(result->ter.edits));
  json_object_set_new(object, "ref_len", json_real(result->ter.reference_length));
}

static void print_details(const score_result *result) {
  printf(" (edits = %lld ref_len = %.1f)", (long long)result->ter.edits, result->ter.reference_length);
}

int cmd_ter(int argc, char **argv) {
  tarn_ter_options options;
  tarn_ter_default(&options);
  score_files files = SCORE_FILES;
  const score_metric metric = {&command, &options, compute, summarize, print_details, add_details};
  const cli_option table[] = {
      SCORE_FILES_REFERENCE(files),
      {"case-sensitive", CLI_FLAG, &options.case_sensitive, NULL, "do not ignore case", 0, 0},
      {"normalized", CLI_FLAG, &options.normalized, NULL, "cut off punctuation, and read &amp; and the like, as Tercom",
       0, 0},
      {"no-punct", CLI_FLAG, &options.no_punct, NULL, "remove punctuation", 0, 0},
      {"asian-support", CLI_FLAG, &options.asian_support, NULL,
       "with --normalized, every ideograph is a word; with --no-punct, remove CJK punctuation too", 0, 0},
      SCORE_FILES_SENTENCE(files, "print one score a line"),
      SCORE_FILES_TESTS(files),
      PROGRESS_OPTIONS,
      {0}};
  int code = cli_parse(&command, table, argc, argv, &files.systems, 0, SCORE_FILES_MOST);
  if (code < 0) code = score_files_run(&files, &metric);
  score_files_close(&files);
  return code;
}
