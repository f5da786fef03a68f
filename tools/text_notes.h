// Notes on standard error by commands that read text for a model.
#ifndef TARN_TOOLS_TEXT_NOTES_H
#define TARN_TOOLS_TEXT_NOTES_H

#include <stdint.h>

#include "cli.h"

// Warns if the share of tokens unknown to the model's vocabulary exceeds TARN_VOCAB_UNKNOWN_WARNED. `what` names them:
// "tokens", "source tokens".
void text_notes_unknown(const cli_command *command, const char *what, int64_t unknown, int64_t tokens);

// A line if lines were encoded in parts because of their length (tarn_vocab_encode()).
void text_notes_cut(int64_t lines);

#endif
