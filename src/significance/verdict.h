// Judges whether two configurations differ, by the scores of their runs and, for a test, by resampled tests.
// tarn/lab/results.h describes the method.
#ifndef TARN_SIGNIFICANCE_VERDICT_H
#define TARN_SIGNIFICANCE_VERDICT_H

#include "tarn/lab/results.h"

// The runs of a configuration, one per seed.
typedef struct tarn__verdict_side {
  const double *scores;            // (runs)
  const double *const *resampled;  // (runs) lists of (resamples); NULL: there is no test with items
  size_t runs;
} tarn__verdict_side;

typedef struct tarn__verdict_test {
  int64_t resamples;  // 0: no resampling, and the sides have no `resampled`
  size_t items;
  bool less;  // less is better
} tarn__verdict_test;

// A verdict with the numbers of runs only.
tarn_results_verdict tarn__verdict_none(size_t runs, size_t other_runs, bool less);

// The verdict on the difference a - b as a single comparison: `p` is not corrected. `seeds` and `by_seed` stay empty.
void tarn__verdict_of(tarn_results_verdict *verdict, const tarn__verdict_side *a, const tarn__verdict_side *b,
                      const tarn__verdict_test *test);

// The p-values of comparisons, as members of an array of structures: NAN where there is none.
typedef struct tarn__holm_list {
  const double *first;
  size_t stride, count;  // bytes from one to the next
} tarn__holm_list;

// One of them corrected for multiple comparisons (Holm, "A simple sequentially rejective multiple test procedure",
// Scandinavian Journal of Statistics 1979).
double tarn__holm(const tarn__holm_list *list, size_t index);

// Corrects the p-values, decides, and returns the number of comparisons.
size_t tarn__verdict_correct(tarn_results_verdict *verdicts, size_t count);

// "better" or "worse", of a neutral measure "larger" or "smaller"; of single models "better, of these two models".
const char *tarn__verdict_word(bool better, bool neutral, bool models);

// Whether this verdict, one of `others` comparisons of a table's best row with every other row, allows calling it the
// best. The row was selected by its score, which may be luck in any of these comparisons, so p is multiplied by
// `others`; Holm's smaller factors do not suffice.
bool tarn__verdict_leads(const tarn_results_verdict *verdict, size_t others);

#endif
