// Which run a queue takes next. Pure functions of what is known of its sweeps; tarn/lab/queue.h has the rule.
#ifndef TARN_SWEEP_QUEUE_CHOOSE_H
#define TARN_SWEEP_QUEUE_CHOOSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "tarn/lab/sequential.h"

typedef enum tarn__queue_state {
  TARN__QUEUE_READY,    // zero
  TARN__QUEUE_WAITING,  // for another training (queue_body.c)
  TARN__QUEUE_RUNNING,
  TARN__QUEUE_OVER
} tarn__queue_state;

// A sweep. Runs are variant * seeds + place in the list of seeds.
typedef struct tarn__queue_lane {
  const tarn_sequential_design *design;
  size_t variants, seeds, baseline;
  const tarn__queue_state *states;          // (variants, seeds)
  const double *seconds;                    // (variants, seeds) left of each run; above 0
  const uint64_t *keys;                     // (variants, seeds) equal ones are of one run, in several lanes; NULL: none
  const tarn_sequential_verdict *verdicts;  // (variants); the baseline's is unused
  const bool *unaffordable;                 // (variants)
  size_t share, shares;                     // only runs whose (variant + seed) % shares is `share`; 0, 0: all
  bool full;                                // it has no place for another run now
  bool left_out;                            // no more of its runs are taken
} tarn__queue_lane;

typedef struct tarn__queue_pick {
  size_t lane, variant, seed;
  size_t compared;      // the variant of the comparison that gains most for the time
  size_t comparisons;   // that need the run, of all sweeps that have it
  double gain;          // share of the variance of that comparison that its next look takes away
  size_t look_runs;     // that this look still needs,
  double look_seconds;  // and their time
} tarn__queue_pick;

// False: no run is to be taken now.
bool tarn__queue_choose(tarn__queue_pick *pick, const tarn__queue_lane *lanes, size_t count);

// The share of the variance of a difference that goes until look `look` (an index).
double tarn__queue_gain(const tarn_sequential_verdict *verdict, const tarn_sequential_design *design, size_t look);

// The runs of a comparison that are not over and that a look needs.
typedef struct tarn__queue_need {
  size_t runs;
  double seconds;               // of all,
  double own_seconds, longest;  // of those of the own share, and of the longest of these
} tarn__queue_need;
tarn__queue_need tarn__queue_look_need(const tarn__queue_lane *lane, size_t variant, size_t look);

// Whether so many seconds of training, of which a single run can have `longest`, are too few for a verdict on an open
// comparison: the next look takes more, or the chance of a verdict at the last look within them is below `futility`.
// *chance: NAN if there is no look within them.
tarn_status tarn__queue_unaffordable(bool *unaffordable, double *chance, const tarn__queue_lane *lane, size_t variant,
                                     double seconds, double longest) TARN_CHECKED;

#endif
