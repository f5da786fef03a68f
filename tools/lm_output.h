// What the commands that score texts say of what they could not score as it was.
#ifndef TARN_TOOLS_LM_OUTPUT_H
#define TARN_TOOLS_LM_OUTPUT_H

#include <stdint.h>

// A line on standard error for each number that is not 0. `unit` is what is truncated: "line" or "sentence".
void lm_print_changes(int64_t unknown, int64_t truncated, const char *unit, int64_t replaced);

// The same of minimal pairs whose two sentences are the same tokens.
void lm_print_equal(int64_t equal);

#endif
