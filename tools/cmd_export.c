// tarn export: a checkpoint for other tools.
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "commands.h"
#include "limit_options.h"
#include "model_options.h"
#include "tarn/checkpoint.h"

static const cli_command COMMAND = {
    "export", "RUN|FILE OUTPUT", "Write a checkpoint for other tools.",
    "With --format gpt2 the output is a folder that transformers loads: config.json, model.safetensors, and "
    "vocab.json\n"
    "and merges.txt where the vocabulary is GPT-2's. Frozen and shared layers are written out. A model that the "
    "format\n"
    "cannot express is refused.\n\nWith --dense the output holds every parameter in fp32, the frozen ones too, under "
    "the names that tarn inspect\n"
    "prints; the description of the model is in its metadata. It is a safetensors file, and tarn reads it as well."};

int cmd_export(int argc, char **argv) {
  bool dense = false;
  const char *format = NULL;
  const char *which = NULL;
  cli_list files = {0};
  limit_options limits = {0};
  const cli_option table[] = {{"dense", CLI_FLAG, &dense, NULL, "a checkpoint with frozen parameters as values", 0, 0},
                              {"format", CLI_TEXT, &format, "gpt2", "a folder for another package", 0, 0},
                              CHECKPOINT_OPTION(which),
                              LIMIT_OPTIONS(limits),
                              {0}};
  int code = cli_parse(&COMMAND, table, argc, argv, &files, 2, 2);
  if (code < 0) code = limit_options_set(&COMMAND, &limits);
  if (code < 0 && dense == (format != NULL)) code = cli_usage(&COMMAND, "give one of --dense and --format");
  if (code < 0 && format && strcmp(format, "gpt2") != 0)
    code = cli_usage(&COMMAND, "unknown format \"%s\"; there is gpt2", format);
  tarn_checkpoint_found found = {0};
  if (code < 0) code = model_options_find(&COMMAND, &found, files.items[0], which);
  if (code < 0) {
    tarn_status status = dense ? tarn_checkpoint_export(files.items[1], found.path)
                               : tarn_checkpoint_export_gpt2(files.items[1], found.path);
    code = status == TARN_STATUS_OK ? CLI_OK : cli_report(&COMMAND, status);
  }
  model_options_done(&COMMAND, &found, code, false);
  cli_list_free(&files);
  return code;
}
