// tarn split: takes a part of a text file, by lines or by bytes.
#include <inttypes.h>
#include <stdio.h>

#include "cli.h"
#include "commands.h"
#include "json_output.h"
#include "progress_show.h"
#include "tarn/split.h"

static const cli_command COMMAND = {
    "split", "FILE", "Take every n-th line of a text, or a range of its bytes.",
    "--every 40 takes lines 40, 80, 120 and so on, for validation say, and --rest has the others. --from and --bytes\n"
    "take a range, moved so that it cuts no character. FILE may be compressed."};

int cmd_split(int argc, char **argv) {
  tarn_split_options options;
  tarn_split_default(&options);
  const char *output = NULL;
  bool json = false;
  cli_list files = {0};
  const cli_option table[] = {
      {"output", CLI_TEXT, &output, "FILE", "where to write the lines or bytes taken; needed", 0, 0},
      {"every", CLI_INT, &options.every, "N", "take one line of N", 0, 1e15},
      {"first", CLI_INT, &options.first, "K", "the first line taken, 1 to N; 0: line N", 0, 1e15},
      {"header", CLI_INT, &options.header, "N", "lines at the beginning that both parts get", 0, 1e15},
      {"rest", CLI_TEXT, &options.rest, "FILE", "where to write the lines that are not taken", 0, 0},
      {"from", CLI_INT, &options.from, "N", "first byte of a range, counted from 0", 0, 1e15},
      {"bytes", CLI_INT, &options.bytes, "N", "bytes of the range", 0, 1e15},
      {"exact", CLI_FLAG, &options.exact, NULL, "fail if FILE ends before the range does", 0, 0},
      {"json", CLI_FLAG, &json, NULL, "print what was taken as JSON", 0, 0},
      PROGRESS_OPTIONS,
      {0}};
  int code = cli_parse(&COMMAND, table, argc, argv, &files, 1, 1);
  if (code < 0 && !output) code = cli_usage(&COMMAND, "--output is needed");
  if (code < 0) {
    tarn_split_result result;
    const tarn_status status = tarn_split_write(&result, output, files.items[0], &options);
    const char *unit = options.every > 0 ? "lines" : "bytes";
    code = status == TARN_STATUS_OK ? CLI_OK : cli_report(&COMMAND, status);
    if (code == CLI_OK && json)
      code = json_output_print(&COMMAND, stdout,
                               json_pack("{s:s, s:I, s:I}", "unit", unit, "taken", (json_int_t)result.taken, "rest",
                                         (json_int_t)result.rest),
                               JSON_COMPACT);
    else if (code == CLI_OK && options.every > 0)
      printf("%s taken, %" PRId64 " left\n", CLI_COUNT(result.taken, "line"), result.rest);
    else if (code == CLI_OK)
      printf("%s taken\n", CLI_COUNT(result.taken, "byte"));
  }
  cli_list_free(&files);
  return code;
}
