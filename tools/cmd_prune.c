// tarn prune: writes a checkpoint with a subset of a model's layers.
#include <stdio.h>

#include "cli.h"
#include "commands.h"
#include "json_output.h"
#include "limit_options.h"
#include "model_options.h"
#include "progress_show.h"
#include "tarn/checkpoint.h"

static const cli_command COMMAND = {
    "prune", "RUN|FILE OUTPUT", "Write a checkpoint without some of its layers.",
    "Works best for models that were trained with LayerDrop (encoder.layerdrop, decoder.layerdrop). The output is a\n"
    "checkpoint that translates as tarn translate does with the same options; its parameters keep their names."};

int cmd_prune(int argc, char **argv) {
  tarn_prune prune = {0};
  const char *which = NULL;
  bool json = false;
  cli_list files = {0};
  limit_options limits = {0};
  const cli_option table[] = {
      {"encoder-layers-to-keep", CLI_TEXT, &prune.encoder_layers_to_keep, "N,N,...",
       "depths of the encoder that are kept, from 1", 0, 0},
      {"decoder-layers-to-keep", CLI_TEXT, &prune.decoder_layers_to_keep, "N,N,...", "the same of the decoder", 0, 0},
      {"rate", CLI_REAL, &prune.rate, "X", "of a stack without a list, leave out depths that floor(1/X) divides", 0,
       0.5},
      CHECKPOINT_OPTION(which),
      LIMIT_OPTIONS(limits),
      {"json", CLI_FLAG, &json, NULL, "print what was made as JSON", 0, 0},
      PROGRESS_OPTIONS,
      {0}};
  int code = cli_parse(&COMMAND, table, argc, argv, &files, 2, 2);
  if (code < 0) code = limit_options_set(&COMMAND, &limits);
  bool nothing = !prune.encoder_layers_to_keep && !prune.decoder_layers_to_keep && prune.rate == 0;
  if (code < 0 && nothing) code = cli_usage(&COMMAND, "say which layers to keep, or the rate");
  tarn_checkpoint_found found = {0};
  if (code < 0) code = model_options_find(&COMMAND, &found, files.items[0], which);
  if (code < 0) {
    tarn_status status = tarn_checkpoint_prune(files.items[1], found.path, &prune);
    code = status == TARN_STATUS_OK ? CLI_OK : cli_report(&COMMAND, status);
    if (code == CLI_OK && json) code = json_output_made(&COMMAND, files.items[1], "checkpoint", found.path);
  }
  model_options_done(&COMMAND, &found, code, false);
  cli_list_free(&files);
  return code;
}
