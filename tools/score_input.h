// Input of scores: the outputs of systems, and their references.
#ifndef TARN_TOOLS_SCORE_INPUT_H
#define TARN_TOOLS_SCORE_INPUT_H

#include "cli.h"
#include "tarn/score.h"

// Zero-initialise.
typedef struct score_input {
  tarn_score_lines *systems;  // one per file
  size_t system_count;
  tarn_score_lines *references;   // one per file
  const char *const **streams;    // their lines: streams[r][s]
  const char *const **following;  // for score_input_from()
  size_t count;                   // number of references
} score_input;

// Reads the systems (none: standard input is the only one) and the reference files, and checks that they have the same
// number of lines. Warns if a system's output equals a reference. Returns -1 to continue, or the exit code after
// printing the error.
int score_input_open(score_input *input, const cli_command *command, const cli_list *systems,
                     const cli_list *references);
void score_input_close(score_input *input);

// The streams of references from sentence s, valid until the next call.
const char *const *const *score_input_from(score_input *input, size_t s);

#endif
