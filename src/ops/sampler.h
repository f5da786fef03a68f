// Drawing the next token of a text from a model's distribution, after the usual changes, in this order (as in the
// package transformers): the logits are divided by the temperature; only the top_k most likely tokens stay; of those
// only the nucleus stays, the fewest most likely ones whose probabilities sum to at least top_p (Holtzman et al., "The
// Curious Case of Neural Text Degeneration", ICLR 2020); of those the ones at least min_p times as likely as the most
// likely one (Nguyen et al., "Turning Up the Heat", ICLR 2025); of those the typical ones, the fewest whose information
// -log p is nearest to its expectation and whose probabilities sum to at least typical_p (Meister et al., "Locally
// Typical Sampling", TACL 2023). What is left is scaled to sum to 1. Of equally likely or equally typical tokens the
// one with the lower id counts as the more likely or typical one.
#ifndef TARN_OPS_SAMPLER_H
#define TARN_OPS_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/host_device.h"

typedef struct tarn__sampling {
  double temperature;  // above 0; 1 leaves the distribution as it is
  int64_t top_k;       // 0: all tokens stay
  double top_p;        // above 0, at most 1; 1: all tokens stay
  uint64_t seed;
  double min_p;      // from 0, below 1; 0: all tokens stay
  double typical_p;  // above 0, at most 1; 1: all tokens stay. For a zeroed structure 0 is taken as 1
} tarn__sampling;

// A token that may be drawn.
typedef struct tarn__candidate {
  float log_probability;
  int32_t id;
} tarn__candidate;

// Tokens that are never drawn.
typedef struct tarn__ban {
  const int32_t *ids;
  int count;
} tarn__ban;

// Collects the candidates of a row of log-probabilities [count]: of the tokens ids[i], or of the tokens i if ids is
// NULL. Left out are those without a finite log-probability, those with a negative id, and the banned ones. Returns how
// many there are.
int64_t tarn__sample_collect(tarn__candidate *candidates, const int32_t *ids, const float *log_probabilities,
                             int64_t count, tarn__ban banned);

// Whether the typical tokens are looked for: then the candidates must come from a row of all words, `row`.
static inline TARN__HOST_DEVICE bool tarn__sampling_typical(const tarn__sampling *sampling) {
  return sampling->typical_p > 0.0 && sampling->typical_p < 1.0;
}

// The one that `uniform`, in [0, 1), draws from the candidates, which change their places. Without any the id is -1 and
// the log-probability -infinity. With top_k as many of the most likely tokens suffice as candidates. `row`: the
// log-probability of token i at row[i], read for typical_p only; else it may be NULL. Log-probabilities may all be
// shifted by one number.
tarn__candidate tarn__sample(const tarn__sampling *sampling, tarn__candidate *candidates, int64_t count,
                             const float *row, double uniform);

// The random number in [0, 1) of a position of a sample. `key` stands for the prompt. The same arguments give the same
// bits, whatever else is generated.
double tarn__sampling_uniform(uint64_t seed, uint64_t key, uint32_t sample, uint32_t position);

#endif
