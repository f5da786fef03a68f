// Sequential designs: comparisons that are looked at after every few seeds and end when they are decided, with the
// number of looks counted in p.
//
// A comparison of a variant with a baseline is looked at when the first n_1, n_2, ... n_K seeds of both are over. A
// look uses the runs of these seeds and no others, so the looks, and all that follows from them, depend on the runs
// alone: not on the order in which they finish, nor on which machine trained them.
//
// Difference. At look k the two-sided p of tarn_results_verdict becomes z_k = normal quantile of 1 - p / 2 (the
// "significance level approach": Pocock, Biometrika 1977; Jennison and Turnbull, "Group Sequential Methods", 2000). The
// comparison is decided where z_k reaches the critical value c_k. These follow from the share of alpha that may be
// spent up to look k (Lan and DeMets, "Discrete sequential boundaries for clinical trials", Biometrika 1983), half of
// it for either direction, with t_k the runs of a side (the harmonic mean of both) over max_seeds, and t_K = 1:
//
//   obrien-fleming   2 - 2 Phi(q / sqrt(t)), Phi(q) = 1 - a / 2, a the alpha of a direction: little is spent early
//   pocock           a ln(1 + (e - 1) t)
//
// The joint distribution of the z_k is taken to be that of a mean of independent values, corr(z_j, z_k) = sqrt(t_j /
// t_k). Variation that all looks share (the sentences of a test) makes them more alike than that and fewer verdicts
// false. p is the sequential p-value (Liu and Anderson, "On adaptive extensions of group sequential trials for clinical
// investigations", JASA 2008): the least alpha at which one of the looks so far is decided. It does not rise when
// seeds are added, but may when a failed run is retried, which changes the looks it belongs to. It is corrected for all
// comparisons of the design by Holm's method, like p of tarn/lab/results.h: those without three seeds yet count as p
// = 1. tests/unit/test_sequential.c simulates the rate of false verdicts with few seeds.
//
// Equivalence. With a margin m, two one-sided tests (Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 1987)
// at alpha each: p_equal is the sequential p-value of the larger of the p of difference <= -m and difference >= m. It
// is corrected among the comparisons in the same way. Rates of error hold for either kind of claim: differences where
// there are none, and equivalence where the difference is m or more.
//
// No chance. From the estimate and its variance at the latest look follows the predictive distribution of the estimate
// at the last look (Spiegelhalter, Freedman and Blackburn, Controlled Clinical Trials 1986; Student's t for the
// estimated variance), and so the chance that the comparison is then decided, or shown equivalent. Below `futility` it
// is closed. This does not bind: it spends no alpha, and a comparison that was closed may open again, e.g. with more
// seeds.
#ifndef TARN_LAB_SEQUENTIAL_H
#define TARN_LAB_SEQUENTIAL_H

#include <stddef.h>
#include <stdint.h>

#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TARN_SEQUENTIAL_SEEDS = 100 };  // most of max_seeds

typedef enum tarn_sequential_spending {
  TARN_SEQUENTIAL_OBRIEN_FLEMING,  // "obrien-fleming", the default
  TARN_SEQUENTIAL_POCOCK,          // "pocock"
  TARN_SEQUENTIAL_SPENDINGS
} tarn_sequential_spending;
// The words above; NULL for another value.
TARN_API const char *tarn_sequential_spending_name(tarn_sequential_spending spending);

// The key `sequential` of a sweep file (docs/experiments.md).
typedef struct tarn_sequential_design {
  int64_t max_seeds;  // of a variant, 3 .. TARN_SEQUENTIAL_SEEDS; 0: there is no design
  int64_t
      looks[TARN_SEQUENTIAL_SEEDS];  // (look_count) seeds of either side, ascending, 3 .. max_seeds, which is the last
  size_t look_count;
  const char *measure;  // key of a tarn_results_judged: "test_bleu", "test_blimp", "test_score", "best", "aucc_mean",
                        // "exponent"
  double alpha;         // 0.0001 .. 0.2; default 0.05
  tarn_sequential_spending spending;
  double equivalence;  // margin, in units of the measure; 0: equivalence is not asked (default)
  double futility;     // 0 .. 0.5; 0: a comparison is never closed before max_seeds; default 0.1
} tarn_sequential_design;

// Why this is no design, as "max_seeds: expected 3 to 100"; NULL: it is one.
TARN_API const char *tarn_sequential_problem(const tarn_sequential_design *design);

typedef enum tarn_sequential_decision {
  TARN_SEQUENTIAL_OPEN,        // undecided: more seeds may decide
  TARN_SEQUENTIAL_BETTER,      // p <= alpha; of a neutral measure (tarn_results_judged) larger
  TARN_SEQUENTIAL_WORSE,       // the same; smaller
  TARN_SEQUENTIAL_EQUIVALENT,  // not decided as different, and p_equal <= alpha
  TARN_SEQUENTIAL_FULL,        // closed, undecided with max_seeds
  TARN_SEQUENTIAL_HOPELESS,    // closed: the chance of a verdict is below `futility`, or there is an obstacle
  TARN_SEQUENTIAL_DECISIONS
} tarn_sequential_decision;
// "open", "better", "worse", "equivalent", "full", "hopeless"; NULL for another value. Sentences use
// tarn_sequential_words().
TARN_API const char *tarn_sequential_decision_name(tarn_sequential_decision decision);

// The state of a comparison. Numbers are NAN before the first look, and where the runs give none.
typedef struct tarn_sequential_verdict {
  tarn_sequential_decision decision;
  size_t looks;        // taken
  int64_t seeds;       // of either side at the latest look; 0: none
  int64_t next_seeds;  // at the next look; 0: there is none
  // At the latest look: the variant's mean minus the baseline's, its standard error, the seeds' part of that, and the
  // degrees of freedom.
  double difference, error, seed_error, freedom;
  // Repeated confidence interval (Jennison and Turnbull, JRSS B 1989) at 1 - alpha, for this comparison alone: all
  // looks together contain the truth at that rate.
  double low, high;
  double p_single, p;              // of the difference: sequential; corrected for the comparisons
  size_t p_look;                   // that gives them and the direction, from 1; 0: none
  double p_equal_single, p_equal;  // of equivalence; NAN without a margin
  size_t comparisons;              // corrected together
  double chance;                   // of a verdict at the last look; NAN: not known
  // Why neither these runs nor further ones can give a p, as "no verdict (outputs missing)"; NULL: they can.
  const char *obstacle;
} tarn_sequential_verdict;

// The verdict in words: "better", of a neutral measure "larger", "worse, but equivalent within 0.3", "equivalent within
// 0.3", "not looked at yet", "undecided", "undecided with all 12 seeds", "closed: chance of a verdict with 12 seeds 4
// %", "closed: no verdict (outputs missing)".
enum { TARN_SEQUENTIAL_TEXT = 128 };
TARN_API void tarn_sequential_words(char text[TARN_SEQUENTIAL_TEXT], const tarn_sequential_verdict *verdict,
                                    const tarn_sequential_design *design);

#ifdef __cplusplus
}
#endif

#endif
