// What the commands `bleu` and `chrf` share: the hypothesis, its references, and how results are printed.
#ifndef TARN_TOOLS_SCORE_INPUT_H
#define TARN_TOOLS_SCORE_INPUT_H

#include "cli.h"
#include "tarn/score.h"

// Zero-initialise.
typedef struct score_input {
  tarn_score_lines hypothesis;
  tarn_score_lines *references;  // one a file
  const char *const **streams;   // their lines: streams[r][s]
  const char **row;              // the references of one sentence
  size_t count;                  // references
} score_input;

// Reads the hypothesis (NULL: standard input) and the reference files, and checks that their lines correspond. Returns
// -1 to go on, or the exit code after it has printed what is wrong.
int score_input_open(score_input *input, const cli_command *command, const char *hypothesis,
                     const cli_list *references);
void score_input_close(score_input *input);

// The references of sentence s as an array of `count`, valid until the next call.
const char *const *score_input_row(score_input *input, size_t s);

// Warns on standard error when malformed UTF-8 was replaced.
void score_report_invalid(const cli_command *command, int64_t invalid);

#endif
