// Shared code of the commands `bleu`, `chrf` and `ter`: their options for files and tests, their control flow, and the
// output of results.
#ifndef TARN_TOOLS_SCORE_FILES_H
#define TARN_TOOLS_SCORE_FILES_H

#include <jansson.h>

#include "cli.h"
#include "tarn/lab/results.h"

enum { SCORE_FILES_MOST = 1000 };  // systems

typedef union score_result {
  tarn_bleu_result bleu;
  tarn_chrf_result chrf;
  tarn_ter_result ter;
} score_result;

// The common part of all results.
typedef struct score_summary {
  char name[TARN_SIGNATURE_TEXT], signature[TARN_SIGNATURE_TEXT];
  double score;
  int64_t invalid;  // malformed UTF-8 sequences
} score_summary;

// A score with its options, filled in by its command.
typedef struct score_metric {
  const cli_command *command;
  const void *options;
  // Computes the score, and its statistics unless that is NULL.
  tarn_status (*compute)(tarn_statistics **statistics, score_result *out, const char *const *hypotheses,
                         const char *const *const *references, size_t sentences, size_t streams, const void *options);
  void (*summarize)(score_summary *out, const score_result *result, const void *options);
  // Details after the score on its line, and in its object. NULL: none.
  void (*print_details)(const score_result *result);
  void (*add_details)(json_t *object, const score_result *result);
} score_metric;

// Zero-initialise, except for numbers, which are CLI_NO_INT; SCORE_FILES does this.
typedef struct score_files {
  cli_list references, systems;
  bool sentence, json, confidence, paired_bs, paired_ar;
  int64_t confidence_n, paired_bs_n, paired_ar_n, seed;
} score_files;

#define SCORE_FILES \
  (score_files) { .confidence_n = CLI_NO_INT, .paired_bs_n = CLI_NO_INT, .paired_ar_n = CLI_NO_INT, .seed = CLI_NO_INT }

// Entries of a table of options. The help of --sentence depends on the metric.
#define SCORE_FILES_REFERENCE(f) \
  { "reference", CLI_LIST, &(f).references, "FILE", "reference translation; give it once for every reference", 0, 0 }
#define SCORE_FILES_SENTENCE(f, help) \
  { "sentence", CLI_FLAG, &(f).sentence, NULL, help, 0, 0 }
#define SCORE_FILES_TESTS(f)                                                                                         \
  {"confidence", CLI_FLAG, &(f).confidence, NULL, "print the 95 % interval of each system, by the bootstrap", 0, 0}, \
      {"confidence-n",                                                                                               \
       CLI_INT,                                                                                                      \
       &(f).confidence_n,                                                                                            \
       "N",                                                                                                          \
       "resamples of --confidence (default 1000)",                                                                   \
       TARN_SIGNIFICANCE_LEAST,                                                                                      \
       TARN_SIGNIFICANCE_MOST},                                                                                      \
      {"paired-bs",                                                                                                  \
       CLI_FLAG,                                                                                                     \
       &(f).paired_bs,                                                                                               \
       NULL,                                                                                                         \
       "test each system against the first one by the paired bootstrap; prints intervals as well",                   \
       0,                                                                                                            \
       0},                                                                                                           \
      {"paired-bs-n",                                                                                                \
       CLI_INT,                                                                                                      \
       &(f).paired_bs_n,                                                                                             \
       "N",                                                                                                          \
       "resamples of --paired-bs (default 1000)",                                                                    \
       TARN_SIGNIFICANCE_LEAST,                                                                                      \
       TARN_SIGNIFICANCE_MOST},                                                                                      \
      {"paired-ar",                                                                                                  \
       CLI_FLAG,                                                                                                     \
       &(f).paired_ar,                                                                                               \
       NULL,                                                                                                         \
       "test each system against the first one by approximate randomization",                                        \
       0,                                                                                                            \
       0},                                                                                                           \
      {"paired-ar-n",                                                                                                \
       CLI_INT,                                                                                                      \
       &(f).paired_ar_n,                                                                                             \
       "N",                                                                                                          \
       "trials of --paired-ar (default 10000)",                                                                      \
       TARN_SIGNIFICANCE_LEAST,                                                                                      \
       TARN_SIGNIFICANCE_MOST},                                                                                      \
      {"seed", CLI_INT, &(f).seed, "N", "of the resamples and trials (default 12345)", 0, 9007199254740992.0}, {     \
    "json", CLI_FLAG, &(f).json, NULL, "print JSON, an object a line", 0, 0                                          \
  }

// For the --help text: about files, and about tests.
#define SCORE_FILES_TEXT                                                                                               \
  "Each SYSTEM is a file with one detokenized sentence a line; without one, standard input is read. Every reference\n" \
  "has the same number of lines. The last line printed is the signature to report with the score."
#define SCORE_FILES_TESTS_TEXT                                                                                         \
  "Of several systems the first one is the baseline. p estimates how often two equally good systems differ at least\n" \
  "as much as these do. With --paired-ar the systems' sentences are exchanged at random, and p counts differences\n"   \
  "in either direction. With --paired-bs test sets are drawn from the sentences, and p, as sacreBLEU and Moses\n"      \
  "compute it, counts one direction: it is half as large, or less. p is about these outputs on such sentences, not\n"  \
  "about other seeds of a training, and is not corrected for the number of systems."

// Runs a command with parsed options and returns its exit code.
int score_files_run(score_files *files, const score_metric *metric);
void score_files_close(score_files *files);

#endif
