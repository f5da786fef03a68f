// Notes of the commands that score texts about input that was changed before scoring.
#ifndef TARN_TOOLS_LM_OUTPUT_H
#define TARN_TOOLS_LM_OUTPUT_H

#include <stdint.h>

// One line on standard error for each nonzero number. `unit` is the truncated unit: "line" or "sentence".
void lm_print_changes(int64_t unknown, int64_t truncated, const char *unit, int64_t replaced);

// The same for minimal pairs whose sentences have the same tokens.
void lm_print_equal(int64_t equal);

#endif
