// A fit of scaling laws under construction, for the files that build it.
#ifndef TARN_REPORT_FIT_MEMORY_H
#define TARN_REPORT_FIT_MEMORY_H

#include "base/memory.h"
#include "significance/power_law.h"
#include "tarn/lab/fit.h"

_Static_assert((int)TARN_FIT_MOST_AXES == (int)TARN__LAW_AXES, "laws have as many axes as fits");

// What a law of a family is fitted to, and what the bootstrap found.
typedef struct tarn__fit_family {
  const char *name;
  tarn_fit_point *points;
  size_t count, sizes;
  double *log_x, *log_loss;  // of the points, (count, axes) and (count)
  tarn__law law;
  tarn__law *resampled;  // (resamples)
} tarn__fit_family;

struct tarn__fit_memory {
  tarn_fit public;
  const tarn_results *results;
  tarn_fit_options options;
  tarn__arena arena;
  tarn__fit_family *families;
  double *values;  // (resamples): one number of every resample, to be sorted
  const char **notes;
  size_t note_capacity;
};

// Fills the families with their points, and the notes; fails where a family cannot have a law.
tarn_status tarn__fit_collect(struct tarn__fit_memory *m) TARN_CHECKED;
// How many different sizes a law needs.
size_t tarn__fit_least_sizes(size_t axes);
// Whether these are sizes enough for a law.
bool tarn__fit_has_sizes(const tarn_fit_point *points, size_t count, size_t axes);
// Different values of an axis among the points; `axis` = the number of axes: different sizes on all.
size_t tarn__fit_different(const tarn_fit_point *points, size_t count, size_t axes, size_t axis);
// The 95 % interval of m->values, of which those that are not numbers are left out; NAN if fewer than half are numbers.
tarn_fit_value tarn__fit_interval(struct tarn__fit_memory *m, double value);

#endif
