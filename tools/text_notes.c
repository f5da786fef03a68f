#include "text_notes.h"

#include <inttypes.h>
#include <stdio.h>

#include "tarn/vocab.h"

void text_notes_unknown(const cli_command *command, const char *what, int64_t unknown, int64_t tokens) {
  if ((double)unknown <= TARN_VOCAB_UNKNOWN_WARNED * (double)tokens) return;
  fprintf(stderr,
          "tarn %s: warning: %.1f %% of the %s are unknown to the model's vocabulary; is the text of its language?\n",
          command->name, 100.0 * (double)unknown / (double)tokens, what);
}

void text_notes_cut(int64_t lines) {
  if (lines) fprintf(stderr, "longer than 65536 bytes, encoded in parts: %s\n", CLI_COUNT(lines, "line"));
}
