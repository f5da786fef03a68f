// tarn compare: prints the tables of a comparison.
#include "cli.h"
#include "commands.h"
#include "compare_json.h"
#include "compare_text.h"
#include "progress_show.h"
#include "tarn/lab/results.h"

static const cli_command COMMAND = {
    "compare", "RUN...", "Compare finished runs: scores, times, losses, sizes, and verdicts on the differences.",
    "RUN is a run directory, a sweep's folder, or a folder that holds some. Runs that differ only by their seed are "
    "one\n"
    "configuration, shown as mean ± sample standard deviation. Verdicts count what other seeds and other test\n"
    "sentences would change; see docs/experiments.md for them and for the measures."};

static int compare(const cli_list *paths, const tarn_results_options *options, bool json) {
  tarn_results *results;
  tarn_results_table *table = NULL;
  tarn_status status = tarn_results_open(&results, paths->items, paths->count);
  if (status == TARN_STATUS_OK) status = tarn_results_compare(&table, results, options);
  int code = status != TARN_STATUS_OK ? cli_report(&COMMAND, status)
             : json                   ? compare_print_json(&COMMAND, results, table)
                                      : compare_print_text(&COMMAND, results, table);
  tarn_results_table_close(&table);
  tarn_results_close(&results);
  return code;
}

int cmd_compare(int argc, char **argv) {
  tarn_results_options options;
  tarn_results_default(&options);
  cli_list paths = {0};
  double minutes = 0;
  int64_t seed = (int64_t)options.seed;
  bool json = false;
  const cli_option table[] = {
      {"metric", CLI_TEXT, &options.metric, "NAME",
       "score to compare by: bleu, loss, nll, ppl, train/loss, or any other of the log; without it bleu where all runs "
       "have it, else the valid.metric of all, or loss where they differ",
       0, 0},
      {"budget", CLI_REAL, &minutes, "MIN",
       "minutes of training to compare over; 0: the runs' own, which must be equal", 0, 1e7},
      {"baseline", CLI_TEXT, &options.baseline, "NAME",
       "configuration to test against; without it the sweep's, or the first", 0, 0},
      {"resamples", CLI_INT, &options.resamples, "N",
       "resamples of the test set, 40 to 1000000; 0: no verdicts on test scores", 0, 1e6},
      {"seed", CLI_INT, &seed, "N", "seed of the bootstrap", 0, 9007199254740992},
      {"json", CLI_FLAG, &json, NULL, "print everything as one JSON object", 0, 0},
      PROGRESS_OPTIONS,
      {0}};
  int code = cli_parse(&COMMAND, table, argc, argv, &paths, 1, 100000);
  if (code < 0) {
    options.budget = minutes * 60;
    options.seed = (uint64_t)seed;
    code = compare(&paths, &options, json);
  }
  cli_list_free(&paths);
  return code;
}
