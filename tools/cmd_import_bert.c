// tarn import-bert: a checkpoint of tarn from one of Hugging Face's transformers.
#include <stdio.h>

#include "cli.h"
#include "commands.h"
#include "tarn/checkpoint.h"

static const cli_command COMMAND = {
    "import-bert", "FOLDER", "Make a checkpoint of a BERT or RoBERTa model from transformers.",
    "FOLDER holds config.json and model.safetensors as save_pretrained() writes them, and the vocabulary as vocab.txt\n"
    "(BERT) or vocab.json and merges.txt (RoBERTa). The checkpoint is a masked language model, or a classifier where "
    "the\n"
    "file is one of sentences. Outputs of other tasks are left out; where there is none of these two, that of a "
    "masked\n"
    "language model is drawn anew, with a warning. tarn export --format bert or roberta is the way back."};

int cmd_import_bert(int argc, char **argv) {
  const char *output = NULL;
  const char *vocab = NULL;
  cli_list folders = {0};
  const cli_option table[] = {
      {"output", CLI_TEXT, &output, "FILE", "where to write the checkpoint; needed", 0, 0},
      {"vocab", CLI_TEXT, &vocab, "FILE", "vocabulary, for a folder that has none or another one", 0, 0},
      {0}};
  int code = cli_parse(&COMMAND, table, argc, argv, &folders, 1, 1);
  if (code < 0 && !output) code = cli_usage(&COMMAND, "--output is missing");
  if (code < 0) {
    tarn_status status = tarn_checkpoint_import_bert(output, folders.items[0], vocab);
    code = status == TARN_STATUS_OK ? CLI_OK : cli_report(&COMMAND, status);
  }
  cli_list_free(&folders);
  return code;
}
