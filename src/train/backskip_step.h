// What backskipping adds to an optimiser step: which updates refresh, the predictors' own optimiser, the line of the
// log. See parts/backskip.h.
#ifndef TARN_TRAIN_BACKSKIP_STEP_H
#define TARN_TRAIN_BACKSKIP_STEP_H

#include "train/trainer.h"

// Before the gradients of update number `update`, counted from 1.
void tarn__backskip_begin(tarn_train *train, int64_t update);
// After them: adds up over all ranks what a refresh has measured.
tarn_status tarn__backskip_sum(tarn_train *train) TARN_CHECKED;
// Then: the norm of the predictors' gradients, as the device gives it.
double tarn__backskip_norm(const tarn_train *train);
// Steps the predictors that learned in that update. Adam with a fixed learning rate of 0.001, beta1 0.9, beta2 0.98; it
// counts the refreshes of the kind.
void tarn__backskip_optimise(tarn_train *train, int64_t update);
// Logs the cosines of the last update, if it refreshed: {"kind": "backskip", "step", "time", "cosine": {label:
// number}}.
tarn_status tarn__backskip_log(tarn_train *train) TARN_CHECKED;

#endif
