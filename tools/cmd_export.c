// tarn export: a checkpoint for other tools.
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "commands.h"
#include "json_output.h"
#include "limit_options.h"
#include "model_options.h"
#include "progress_show.h"
#include "tarn/checkpoint.h"

static const cli_command COMMAND = {
    "export", "RUN|FILE OUTPUT", "Write a checkpoint for other tools.",
    "With --format the output is a folder that transformers loads: config.json, model.safetensors, and the "
    "vocabulary's\n"
    "files where it is GPT-2's, RoBERTa's or WordPiece. Language models are written as gpt2, masked language models "
    "and\n"
    "classifiers with an encoder alone as bert or roberta. Frozen and shared layers are written out. A model that the\n"
    "format cannot express is refused.\n\n"
    "With --dense the output holds every parameter in fp32, the frozen ones too, under "
    "the names that tarn inspect\n"
    "prints; the description of the model is in its metadata. It is a safetensors file, and tarn reads it as well."};

static const char *const FORMATS[] = {"gpt2", "bert", "roberta"};
enum { FORMAT_GPT2, FORMAT_BERT, FORMAT_COUNT = sizeof FORMATS / sizeof *FORMATS };

static tarn_status export_as(const char *folder, const char *path, int format) {
  if (format == FORMAT_GPT2) return tarn_checkpoint_export_gpt2(folder, path);
  return tarn_checkpoint_export_bert(folder, path,
                                     format == FORMAT_BERT ? TARN_BERT_FORMAT_BERT : TARN_BERT_FORMAT_ROBERTA);
}

int cmd_export(int argc, char **argv) {
  bool dense = false;
  const char *format = NULL;
  const char *which = NULL;
  bool json = false;
  cli_list files = {0};
  limit_options limits = {0};
  const cli_option table[] = {
      {"dense", CLI_FLAG, &dense, NULL, "a checkpoint with frozen parameters as values", 0, 0},
      {"format", CLI_TEXT, &format, "NAME", "a folder for transformers: gpt2, bert or roberta", 0, 0},
      CHECKPOINT_OPTION(which),
      LIMIT_OPTIONS(limits),
      {"json", CLI_FLAG, &json, NULL, "print what was made as JSON", 0, 0},
      PROGRESS_OPTIONS,
      {0}};
  int code = cli_parse(&COMMAND, table, argc, argv, &files, 2, 2);
  if (code < 0) code = limit_options_set(&COMMAND, &limits);
  if (code < 0 && dense == (format != NULL)) code = cli_usage(&COMMAND, "give one of --dense and --format");
  int place = 0;
  if (code < 0 && format) code = cli_word(&COMMAND, &place, "--format", format, FORMATS, FORMAT_COUNT);
  tarn_checkpoint_found found = {0};
  if (code < 0) code = model_options_find(&COMMAND, &found, files.items[0], which);
  if (code < 0) {
    tarn_status status =
        dense ? tarn_checkpoint_export(files.items[1], found.path) : export_as(files.items[1], found.path, place);
    code = status == TARN_STATUS_OK ? CLI_OK : cli_report(&COMMAND, status);
    if (code == CLI_OK && json) code = json_output_made(&COMMAND, files.items[1], "checkpoint", found.path);
  }
  model_options_done(&COMMAND, &found, code, false);
  cli_list_free(&files);
  return code;
}
