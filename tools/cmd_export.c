// tarn export: a checkpoint for other tools.
#include <stdio.h>

#include "cli.h"
#include "commands.h"
#include "tarn/checkpoint.h"

static const cli_command COMMAND = {
    "export", "RUN|FILE OUTPUT", "Write a checkpoint for other tools.",
    "With --dense the output holds every parameter in fp32, the frozen ones too, under the names that tarn inspect\n"
    "prints; the description of the model is in its metadata. It is a safetensors file, and tarn reads it as well."};

int cmd_export(int argc, char **argv) {
  bool dense = false;
  cli_list files = {0};
  const cli_option table[] = {
      {"dense", CLI_FLAG, &dense, NULL, "store frozen parameters as values; needed: it is the one form there is", 0, 0},
      {0}};
  int code = cli_parse(&COMMAND, table, argc, argv, &files, 2, 2);
  if (code < 0 && !dense) code = cli_usage(&COMMAND, "--dense is missing: it is the one form of export there is");
  if (code < 0) {
    tarn_status status = tarn_checkpoint_export(files.items[1], files.items[0]);
    code = status == TARN_STATUS_OK ? CLI_OK : cli_report(&COMMAND, status);
  }
  cli_list_free(&files);
  return code;
}
