// Verdicts of a sequential design, from what each look saw. tarn/lab/sequential.h describes the method.
#ifndef TARN_SIGNIFICANCE_SEQUENTIAL_H
#define TARN_SIGNIFICANCE_SEQUENTIAL_H

#include <stdbool.h>

#include "base/status.h"
#include "tarn/lab/results.h"
#include "tarn/lab/sequential.h"

// The looks taken at one comparison: the verdict on the runs of each look's seeds, as a single comparison. A look whose
// runs give no p decides nothing;
// `words` say why.
typedef struct tarn__sequential_looks {
  tarn_results_verdict at[TARN_SEQUENTIAL_SEEDS];
  size_t count;  // 0 .. design->look_count
} tarn__sequential_looks;

// The state of a comparison that was not looked at yet.
void tarn__sequential_blank(tarn_sequential_verdict *verdict, const tarn_sequential_design *design, size_t comparisons);

// Fills verdicts[i] for each of `count` comparisons of a design. Fails with MEMORY.
tarn_status tarn__sequential_judge(tarn_sequential_verdict *verdicts, const tarn__sequential_looks *looks, size_t count,
                                   const tarn_sequential_design *design) TARN_CHECKED;

// The chance that a comparison is decided at look `look` (an index, not before its latest one), as it stands:
// `decided` comparisons of the design are decided as different, and `equal` as equivalent. NAN if it is not known.
tarn_status tarn__sequential_chance(double *chance, const tarn_sequential_verdict *verdict,
                                    const tarn_sequential_design *design, size_t look, size_t decided,
                                    size_t equal) TARN_CHECKED;

// What a design may be about, by index: a key of tarn_results_judged; NULL beyond the last. Measures of a test stand
// first.
enum { TARN__SEQUENTIAL_TESTS = 3, TARN__SEQUENTIAL_MEASURES = 6 };
const char *tarn__sequential_measure(int index);

// Whether no value of the design's measure is better than another: `better` is the larger one then.
bool tarn__sequential_is_neutral(const tarn_sequential_design *design);

// Whether a decision is a verdict.
bool tarn__sequential_is_decided(tarn_sequential_decision decision);

#endif
