// Prints advice from records, for tarn plan --records.
#ifndef TARN_TOOLS_ADVICE_OUTPUT_H
#define TARN_TOOLS_ADVICE_OUTPUT_H

#include "json_output.h"
#include "tarn/lab/advice.h"

// Returns the exit code.
int advice_print_text(const cli_command *command, const tarn_advice *advice);
// NULL: out of memory.
json_t *advice_json(const tarn_advice *advice);

#endif
