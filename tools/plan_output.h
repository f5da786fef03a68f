// Prints a plan, for tarn plan and tarn train --dry-run.
#ifndef TARN_TOOLS_PLAN_OUTPUT_H
#define TARN_TOOLS_PLAN_OUTPUT_H

#include "tarn/plan.h"

void plan_print_text(const tarn_plan *plan);
void plan_print_json(const tarn_plan *plan);

#endif
