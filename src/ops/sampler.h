// Drawing the next token of a text from a model's distribution, after the usual changes, in this order (as in the
// package transformers): the logits are divided by the temperature; only the top_k most likely tokens stay; of those
// only the nucleus stays, the fewest most likely ones whose probabilities sum to at least top_p (Holtzman et al., "The
// Curious Case of Neural Text Degeneration", ICLR 2020). What is left is scaled to sum to 1. Of equally likely tokens
// the one with the lower id counts as the more likely one.
#ifndef TARN_OPS_SAMPLER_H
#define TARN_OPS_SAMPLER_H

#include <stdint.h>

typedef struct tarn__sampling {
  double temperature;  // above 0; 1 leaves the distribution as it is
  int64_t top_k;       // 0: all tokens stay
  double top_p;        // above 0, at most 1; 1: all tokens stay
  uint64_t seed;
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

// The one that `uniform`, in [0, 1), draws from the candidates, which change their places. Without any the id is -1 and
// the log-probability -infinity. With top_k as many of the most likely tokens suffice as candidates.
tarn__candidate tarn__sample(const tarn__sampling *sampling, tarn__candidate *candidates, int64_t count,
                             double uniform);

// The random number in [0, 1) of a position of a sample. `key` stands for the prompt. The same arguments give the same
// bits, whatever else is generated.
double tarn__sampling_uniform(uint64_t seed, uint64_t key, uint32_t sample, uint32_t position);

#endif
