// Student's t distribution, with real degrees of freedom.
#ifndef TARN_SIGNIFICANCE_STUDENT_H
#define TARN_SIGNIFICANCE_STUDENT_H

// The two-sided probability of a t at least this far from 0. `freedom` is at least 1; INFINITY is the normal
// distribution. Relative error below 1e-8, and below 1e-5 beyond a million degrees of freedom, where the normal
// distribution replaces it (for p above 1e-6).
double tarn__student_p(double t, double freedom);

// The non-negative t with tarn__student_p() == p, 0 < p <= 1: with p = 0.05 the half width of a 95 % interval in
// standard errors.
double tarn__student_quantile(double p, double freedom);

#endif
