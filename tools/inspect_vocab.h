// Output of tarn inspect for a vocabulary.
#ifndef TARN_TOOLS_INSPECT_VOCAB_H
#define TARN_TOOLS_INSPECT_VOCAB_H

#include "cli.h"

// Returns the exit code.
int inspect_vocab(const cli_command *command, const char *path, bool json);

#endif
