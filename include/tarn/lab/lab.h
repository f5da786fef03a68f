// All of libtarn-lab in one header: tools for research on models. The library requires libtarn of the same version; the
// conventions of tarn/tarn.h apply.
#ifndef TARN_LAB_LAB_H
#define TARN_LAB_LAB_H

#include "tarn/lab/advice.h"
#include "tarn/lab/corpus.h"
#include "tarn/lab/drawings.h"
#include "tarn/lab/dynamics.h"
#include "tarn/lab/fit.h"
#include "tarn/lab/forecast.h"
#include "tarn/lab/foreign.h"
#include "tarn/lab/queue.h"
#include "tarn/lab/recipes.h"
#include "tarn/lab/record.h"
#include "tarn/lab/results.h"
#include "tarn/lab/sequential.h"
#include "tarn/lab/series.h"
#include "tarn/lab/states.h"
#include "tarn/lab/sweep.h"

#endif
