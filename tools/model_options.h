// Options that the commands which run models share.
#ifndef TARN_TOOLS_MODEL_OPTIONS_H
#define TARN_TOOLS_MODEL_OPTIONS_H

#include "cli.h"
#include "tarn/translate.h"

// The words of --precision and --overlong; -1, or the exit code of a usage mistake.
int model_options_words(const cli_command *command, tarn_translate_precision *precision,
                        tarn_translate_overlong *overlong, const char *precision_word, const char *overlong_word);
// The same of --precision alone.
int model_options_precision(const cli_command *command, tarn_translate_precision *precision, const char *word);

#endif
