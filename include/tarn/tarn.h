// All of libtarn in one header: opening, building, training, using and saving models. libtarn-lab (tarn/lab/lab.h) adds
// tools for research.
//
// Conventions of all headers:
// - tarn_x_default() fills in every field of the options. The caller keeps the data that options point to until the
//   object opened with them is closed.
// - tarn_x_open() sets *x, on failure to NULL. tarn_x_close() frees it, sets the pointer to NULL and accepts NULL.
// - Data returned by pointer are owned by the object they come from, unless the comment says otherwise.
// - A function that can fail returns a tarn_status, and on failure leaves a one-line message (tarn/status.h).
// - Text is UTF-8; paths are the system's.
#ifndef TARN_TARN_H
#define TARN_TARN_H

#include "tarn/checkpoint.h"
#include "tarn/choices.h"
#include "tarn/classify.h"
#include "tarn/config.h"
#include "tarn/data.h"
#include "tarn/decoding.h"
#include "tarn/distill.h"
#include "tarn/images.h"
#include "tarn/lm.h"
#include "tarn/measure.h"
#include "tarn/plan.h"
#include "tarn/process.h"
#include "tarn/score.h"
#include "tarn/split.h"
#include "tarn/status.h"
#include "tarn/text.h"
#include "tarn/train.h"
#include "tarn/translate.h"
#include "tarn/vocab.h"
#include "tarn/work_queue.h"

#endif
