// tarn record: keeps the finished runs of a sweep as small text.
#include <jansson.h>
#include <stdio.h>

#include "cli.h"
#include "commands.h"
#include "json_output.h"
#include "progress_show.h"
#include "tarn/lab/record.h"

static const cli_command COMMAND = {
    "record", "SWEEP", "Record the finished runs of a sweep as small text, without weights and translations.",
    "SWEEP is a sweep's folder; --output is made or extended. `tarn compare` reads a record like a sweep, and `tarn\n"
    "sweep --reuse` takes its runs. See docs/experiments.md."};

static int print_json(const tarn_record_summary *s) {
  return json_output_print(
      &COMMAND, stdout,
      json_pack("{s:I, s:I, s:I, s:I, s:I}", "added", (json_int_t)s->added, "kept", (json_int_t)s->kept, "differing",
                (json_int_t)s->differing, "untested", (json_int_t)s->untested, "missing", (json_int_t)s->missing),
      JSON_COMPACT);
}

static int print_text(const tarn_record_summary *s, const char *output) {
  printf("%s: added %s, %zu already recorded", output, CLI_COUNT((int64_t)s->added, "run"), s->kept);
  if (s->differing) printf(", %zu recorded with another result", s->differing);
  if (s->untested) printf("; %zu not yet tested", s->untested);
  if (s->missing) printf("; %zu unfinished", s->missing);
  putchar('\n');
  return CLI_OK;
}

int cmd_record(int argc, char **argv) {
  const char *output = NULL;
  bool json = false;
  tarn_record_summary summary;
  cli_list sweep = {0};
  const cli_option table[] = {
      {"output", CLI_TEXT, &output, "DIR", "folder of the record, made or extended; needed", 0, 0},
      {"json", CLI_FLAG, &json, NULL, "print the counts as one JSON object", 0, 0},
      PROGRESS_OPTIONS,
      {0}};
  int code = cli_parse(&COMMAND, table, argc, argv, &sweep, 1, 1);
  if (code < 0 && !output) code = cli_usage(&COMMAND, "--output is missing");
  if (code < 0) {
    const tarn_status status = tarn_record(&summary, sweep.items[0], output);
    code = status != TARN_STATUS_OK ? cli_report(&COMMAND, status)
           : json                   ? print_json(&summary)
                                    : print_text(&summary, output);
  }
  cli_list_free(&sweep);
  return code;
}
