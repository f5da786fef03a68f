// What tarn sweep says of a run, to people and as JSON.
#ifndef TARN_TOOLS_SWEEP_OUTPUT_H
#define TARN_TOOLS_SWEEP_OUTPUT_H

#include <jansson.h>

#include "tarn/lab/sweep.h"

// All that is known of it; NULL where memory is out. The caller gives it back.
json_t *sweep_run_json(const tarn_sweep *sweep, const tarn_sweep_run *run);
// What it has reached, behind its name, to standard output.
void sweep_print_state(const tarn_sweep *sweep, const tarn_sweep_run *run);

#endif
