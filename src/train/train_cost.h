// The cost of training other than time: energy, operations and bytes, counted while its clock runs.
#ifndef TARN_TRAIN_TRAIN_COST_H
#define TARN_TRAIN_TRAIN_COST_H

#include "base/energy.h"
#include "store/checkpoint.h"
#include "tarn/plan.h"
#include "tarn/train.h"

// Opens the source of energy, on rank 0. With several ranks, possibly on several machines, no cost is known.
tarn_status tarn__cost_open(tarn_train *train) TARN_CHECKED;

// Begins an interval of training time. The work counted by the stepper from now on belongs to it.
void tarn__cost_begin(tarn_train *train);
// Ends it and adds its cost to `progress`. Without `counted` its operations are unknown, because not all are in graphs.
void tarn__cost_end(tarn_train *train, tarn__progress *progress, bool counted);

// The current validation is the best so far.
void tarn__cost_best(tarn__progress *progress);

// The energy so far, in joules; NAN: unknown.
double tarn__cost_joules(const tarn__progress *progress);
// The total cost. The name of the source is written to `source`.
void tarn__cost_fill(const tarn_train *train, tarn_cost *cost, char source[TARN__ENERGY_TEXT]);

#endif
