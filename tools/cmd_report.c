// tarn report: writes a comparison of runs as a page, tables and figures.
#include <stdio.h>

#include "cli.h"
#include "commands.h"
#include "json_output.h"
#include "progress_show.h"
#include "tarn/lab/results.h"

static const cli_command command = {
    .name = "report",
    .arguments = "RUN... --output DIR",
    .summary = "Write a page with tables and figures that compare runs.",
    .text =
        "RUN is a run directory, the folder of a sweep, or a folder that holds some. Runs whose configurations differ\n"
        "in the seed only are one model, shown by mean and standard deviation. DIR gets report.html (a page that\n"
        "needs nothing else), report.md, report.tex, results.csv, runs.csv and figures/*.svg; see\n"
        "docs/experiments.md."};

static tarn_status write_report(const cli_list *paths, const tarn_results_options *compare,
                                const tarn_report_options *options, bool pdf) {
  tarn_results *results = NULL;
  tarn_results_table *table = NULL;
  tarn_status status = tarn_results_open(&results, paths->items, paths->count);
  if (status == TARN_STATUS_OK) status = tarn_results_compare(&table, results, compare);
  if (status == TARN_STATUS_OK && pdf) status = tarn_report_write_pdf(results, table, options);
  if (status == TARN_STATUS_OK) status = tarn_report_write(results, table, options);
  tarn_results_table_close(&table);
  tarn_results_close(&results);
  return status;
}

int cmd_report(int argc, char **argv) {
  tarn_results_options compare;
  tarn_report_options report;
  tarn_results_default(&compare);
  tarn_report_default(&report);
  double minutes = 0;
  bool pdf = false;
  bool json = false;
  cli_list paths = {0};
  const cli_option options[] = {
      {"output", CLI_TEXT, &report.output, "DIR", "folder of the report; made if it does not exist", 0, 0},
      {"title", CLI_TEXT, &report.title, "TEXT", "title; the sweep's name where it is not given", 0, 0},
      {"pdf", CLI_FLAG, &pdf, NULL, "write figures/*.pdf too, for report.tex; needs a build with librsvg", 0, 0},
      {"metric", CLI_TEXT, &compare.metric, "NAME",
       "score of the log to compare by; without it bleu where all runs have it, else the valid.metric of all, or loss "
       "where they differ",
       0, 0},
      {"budget", CLI_REAL, &minutes, "MIN",
       "training time that is compared, in minutes; 0: the sweep's, else train.max_minutes", 0, 1e9},
      {"baseline", CLI_TEXT, &compare.baseline, "NAME", "model compared with; the sweep's, else the first", 0, 0},
      {"resamples", CLI_INT, &compare.resamples, "N",
       "resamples of the test set, 40 to 1000000; 0: no verdicts on test scores", 0, 1000000},
      {"json", CLI_FLAG, &json, NULL, "print the path of the page as JSON", 0, 0},
      PROGRESS_OPTIONS,
      {0}};
  int code = cli_parse(&command, options, argc, argv, &paths, 1, 100000);
  if (code < 0 && !report.output) code = cli_usage(&command, "--output DIR is missing");
  if (code < 0) {
    compare.budget = 60 * minutes;
    tarn_status status = write_report(&paths, &compare, &report, pdf);
    code = status == TARN_STATUS_OK ? CLI_OK : cli_report(&command, status);
    char page[4096];
    snprintf(page, sizeof page, "%s/report.html", report.output);
    if (code == CLI_OK && json) code = json_output_made(&command, page, NULL, NULL);
    if (code == CLI_OK && !json) printf("%s\n", page);
  }
  cli_list_free(&paths);
  return code;
}
