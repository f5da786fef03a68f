// Options that the commands which run models share.
#ifndef TARN_TOOLS_MODEL_OPTIONS_H
#define TARN_TOOLS_MODEL_OPTIONS_H

#include "cli.h"
#include "tarn/checkpoint.h"
#include "tarn/translate.h"

// The words of --precision and --overlong; -1, or the exit code of a usage mistake.
int model_options_words(const cli_command *command, tarn_translate_precision *precision,
                        tarn_translate_overlong *overlong, const char *precision_word, const char *overlong_word);
// The same of --precision alone.
int model_options_precision(const cli_command *command, tarn_translate_precision *precision, const char *word);

// The option --checkpoint of all commands that take a run directory. `word`: const char *, NULL to begin with.
#define CHECKPOINT_OPTION(word) \
  { "checkpoint", CLI_TEXT, &(word), "WHICH", CHECKPOINT_HELP, 0, 0 }
#define CHECKPOINT_HELP \
  "of a run directory: best, last or average; without it best, or average where that validated better"

// Finds the file that is read where `path` and --checkpoint `word` (NULL: not given) are asked for. -1, or the exit
// code of a mistake whose line is printed.
int model_options_find(const cli_command *command, tarn_checkpoint_found *found, const char *path, const char *word);

// Says on standard error which file of a run directory was taken, unless the command fails with `code`, whose line
// names it, or is `quiet`; and closes it. Accepts what was never found.
void model_options_done(const cli_command *command, tarn_checkpoint_found *found, int code, bool quiet);

#endif
