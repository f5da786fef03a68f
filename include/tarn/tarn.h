// All of libtarn in one header: what a program embeds to open, build, train, use and save models. What researchers need
// on top is libtarn-lab (tarn/lab/lab.h).
//
// The headers share these conventions.
// - tarn_x_default() fills in every field of the options. The caller keeps what options point to until the object that
//   was opened with them is closed.
// - tarn_x_open() sets *x, on failure to NULL. tarn_x_close() frees it, sets the pointer to NULL and accepts NULL.
// - What a function returns by pointer belongs to the object that it came from, unless its comment says otherwise.
// - A function that can fail returns a tarn_status, and on failure leaves one line of text (tarn/status.h).
// - Text is UTF-8; paths are those of the system.
#ifndef TARN_TARN_H
#define TARN_TARN_H

#include "tarn/checkpoint.h"
#include "tarn/classify.h"
#include "tarn/config.h"
#include "tarn/data.h"
#include "tarn/lm.h"
#include "tarn/measure.h"
#include "tarn/plan.h"
#include "tarn/process.h"
#include "tarn/score.h"
#include "tarn/status.h"
#include "tarn/text.h"
#include "tarn/train.h"
#include "tarn/translate.h"
#include "tarn/vocab.h"
#include "tarn/work_queue.h"

#endif
