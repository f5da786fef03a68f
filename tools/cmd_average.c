// tarn average: the mean of several checkpoints.
#include <stdio.h>

#include "cli.h"
#include "commands.h"
#include "tarn/checkpoint.h"

static const cli_command COMMAND = {
    "average", "CHECKPOINT...", "Write the mean of the trained parameters of several checkpoints.",
    "The checkpoints must be of one training. Configuration and vocabularies are those of the last one given."};

int cmd_average(int argc, char **argv) {
  const char *output = NULL;
  cli_list files = {0};
  const cli_option table[] = {{"output", CLI_TEXT, &output, "FILE", "where to write the mean; needed", 0, 0}, {0}};
  int code = cli_parse(&COMMAND, table, argc, argv, &files, 1, SIZE_MAX);
  if (code < 0 && !output) code = cli_usage(&COMMAND, "--output is missing");
  if (code < 0) {
    tarn_status status = tarn_checkpoint_average(output, files.items, files.count);
    code = status == TARN_STATUS_OK ? CLI_OK : cli_report(&COMMAND, status);
  }
  cli_list_free(&files);
  return code;
}
