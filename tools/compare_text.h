// A comparison as tables for the terminal.
#ifndef TARN_TOOLS_COMPARE_TEXT_H
#define TARN_TOOLS_COMPARE_TEXT_H

#include "cli.h"
#include "tarn/lab/results.h"

// Returns the exit code.
int compare_print_text(const cli_command *command, const tarn_results *results, const tarn_results_table *table);

#endif
