// Prints a plan, for tarn plan and tarn train --dry-run.
#ifndef TARN_TOOLS_PLAN_OUTPUT_H
#define TARN_TOOLS_PLAN_OUTPUT_H

#include "json_output.h"
#include "tarn/lab/forecast.h"
#include "tarn/plan.h"

void plan_print_text(const tarn_plan *plan);
// NULL: out of memory.
json_t *plan_json(const tarn_plan *plan);

// Prints the duration of the training, after the plan.
void plan_print_duration(const tarn_duration *duration);
json_t *plan_duration_json(const tarn_duration *duration);

#endif
