// The area under a convergence curve (AUCC): Shen et al., "Reservoir Transformers", ACL 2021, section 3.
#ifndef TARN_SIGNIFICANCE_AUCC_H
#define TARN_SIGNIFICANCE_AUCC_H

#include <stddef.h>

#include "tarn/lab/results.h"

// Points are those of a series: at least one, with non-decreasing times from 0. The curve is linear between them and
// constant after the last one.

// The integral from 0 to `limit` (> 0 seconds) by the trapezoidal rule, in score times seconds. The curve starts at
// time 0 with the value `start`; the last piece ends at the limit, with the interpolated value.
double tarn__curve_area(const tarn_results_point *points, size_t count, double start, double limit);

#endif
