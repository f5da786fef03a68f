// Output of tarn sweep about a run, as text and as JSON.
#ifndef TARN_TOOLS_SWEEP_OUTPUT_H
#define TARN_TOOLS_SWEEP_OUTPUT_H

#include <jansson.h>

#include "tarn/lab/sweep.h"

// All known data of a run; NULL if memory runs out. The caller releases it.
json_t *sweep_run_json(const tarn_sweep *sweep, const tarn_sweep_run *run);
// Its results, after its name, on standard output.
void sweep_print_state(const tarn_sweep *sweep, const tarn_sweep_run *run);

#endif
