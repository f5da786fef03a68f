// What commands that read text for a model say of it on standard error.
#ifndef TARN_TOOLS_TEXT_NOTES_H
#define TARN_TOOLS_TEXT_NOTES_H

#include <stdint.h>

#include "cli.h"

// Warns where more of the tokens are unknown to the model's vocabulary than TARN_VOCAB_UNKNOWN_WARNED. `what` they are:
// "tokens", "source tokens".
void text_notes_unknown(const cli_command *command, const char *what, int64_t unknown, int64_t tokens);

// A line where lines were so long that they were encoded in parts (tarn_vocab_encode()).
void text_notes_cut(int64_t lines);

#endif
