// What the commands share that score texts with a language model: the output they open first, and notes about input
// that was changed before scoring.
#ifndef TARN_TOOLS_LM_OUTPUT_H
#define TARN_TOOLS_LM_OUTPUT_H

#include <stdint.h>
#include <stdio.h>

#include "cli.h"
#include "tarn/lm.h"

// What a command does with its model; `file` (NULL: none) takes its results as well. Returns an exit code.
typedef int lm_work(tarn_lm *lm, FILE *file, void *user);

// Opens the model `path`, then the file `output` (NULL: none), because the work takes minutes, and replaces that file
// if the work succeeds. Returns an exit code, whose error has been printed.
int lm_output_run(const cli_command *command, const char *path, const tarn_lm_options *options, const char *output,
                  lm_work *work, void *user);

// One line on standard error for each nonzero number. `unit` is the truncated unit: "line" or "sentence".
void lm_print_changes(int64_t unknown, int64_t truncated, const char *unit, int64_t replaced);

// The same for minimal pairs whose sentences have the same tokens.
void lm_print_equal(int64_t equal);

#endif
