// Output of tarn fit.
#ifndef TARN_TOOLS_FIT_OUTPUT_H
#define TARN_TOOLS_FIT_OUTPUT_H

#include "cli.h"
#include "tarn/lab/fit.h"

// Both return an exit code.
int fit_print_text(const cli_command *command, const tarn_fit *fit);
int fit_print_json(const cli_command *command, const tarn_results *results, const tarn_fit *fit);

#endif
