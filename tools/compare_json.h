// A comparison as one JSON object.
#ifndef TARN_TOOLS_COMPARE_JSON_H
#define TARN_TOOLS_COMPARE_JSON_H

#include "cli.h"
#include "tarn/lab/results.h"

// Prints it with a newline; unknown values are null. Returns the exit code.
int compare_print_json(const cli_command *command, const tarn_results *results, const tarn_results_table *table);

#endif
