// What a training costs beside time: energy, operations and bytes, counted wherever its clock runs.
#ifndef TARN_TRAIN_TRAIN_COST_H
#define TARN_TRAIN_TRAIN_COST_H

#include "base/energy.h"
#include "store/checkpoint.h"
#include "tarn/plan.h"
#include "tarn/train.h"

// Opens the source of energy, on rank 0. Of several ranks, which may be on several machines, no cost is known.
tarn_status tarn__cost_open(tarn_train *train) TARN_CHECKED;

// A stretch of training time begins. What the stepper counts from here on belongs to it.
void tarn__cost_begin(tarn_train *train);
// It ends: adds what it took to `progress`. Without `counted` its operations are not known, because not all of them are
// in graphs.
void tarn__cost_end(tarn_train *train, tarn__progress *progress, bool counted);

// This validation is the best so far.
void tarn__cost_best(tarn__progress *progress);

// The energy so far, in joules; NAN: not known.
double tarn__cost_joules(const tarn__progress *progress);
// All of it. The name of the source is written to `source`.
void tarn__cost_fill(const tarn_train *train, tarn_cost *cost, char source[TARN__ENERGY_TEXT]);

#endif
