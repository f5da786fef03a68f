// Critical values of looks at accumulating data by alpha spending, and sequential p-values (tarn/lab/sequential.h has
// the sources).
#ifndef TARN_SIGNIFICANCE_SPENDING_H
#define TARN_SIGNIFICANCE_SPENDING_H

#include <stddef.h>

#include "base/status.h"
#include "tarn/lab/sequential.h"

typedef struct tarn__looks {
  const double *spent_times;  // (count) at which alpha is spent, 0 < t <= 1, ascending
  const double *information;  // (count) > 0, ascending: the looks' correlation is the root of its ratio; a look that
                              // adds none has an infinite critical value
  size_t count;               // 1 .. TARN_SEQUENTIAL_SEEDS
  int sides;                  // 2: alpha for |z|, half of it for either side; 1: for z
  tarn_sequential_spending spending;
} tarn__looks;

// The share of alpha spent up to a time, of a one-sided test.
double tarn__spent(tarn_sequential_spending spending, double alpha, double time);

// The z, 0 or more, whose two-sided (one-sided: any sign) normal probability is p.
double tarn__normal_z(double p, int sides);

// critical[k] of each look: by chance |z| (or z) reaches one of the first k with probability spent up to then. Computed
// by recursive numerical integration (Armitage, McPherson and Rowe, JRSS A 1969), to 4 digits for alpha of 1e-10 and
// more. INFINITY where nothing is spent. Fails with MEMORY.
tarn_status tarn__critical_values(double *critical, const tarn__looks *looks, double alpha) TARN_CHECKED;

// The least alpha at which one of the z (looks->count; two-sided: their absolute values count) reaches its critical
// value, 1e-10 .. 1, and the first look that does, from 1 (0: none). Of alpha above 0.3 critical values need not fall
// with alpha, so larger p only say that there is nothing.
tarn_status tarn__sequential_p(double *p, size_t *look, const tarn__looks *looks, const double *z) TARN_CHECKED;

#endif
