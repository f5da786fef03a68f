// All of libtarn-lab in one header: what belongs to research on models rather than to their use. Its library needs that
// of tarn/tarn.h, of the same version, whose conventions hold here too.
#ifndef TARN_LAB_LAB_H
#define TARN_LAB_LAB_H

#include "tarn/lab/corpus.h"
#include "tarn/lab/dynamics.h"
#include "tarn/lab/forecast.h"
#include "tarn/lab/foreign.h"
#include "tarn/lab/results.h"
#include "tarn/lab/series.h"
#include "tarn/lab/states.h"
#include "tarn/lab/sweep.h"

#endif
