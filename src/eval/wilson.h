// Wilson's interval of a share (1927): its ends lie within 0 .. 1 also where all or none of the cases count.
#ifndef TARN_EVAL_WILSON_H
#define TARN_EVAL_WILSON_H

#include <stdint.h>

// For `right` of `count` cases (at least 1) at 95 %.
void tarn__wilson(double *low, double *high, int64_t right, int64_t count);

#endif
