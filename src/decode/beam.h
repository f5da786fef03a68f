// Beam search for one sentence, independent of any model: it receives the best next tokens of each running hypothesis
// and selects the hypotheses that continue. So it can be tested with a table instead of a network.
//
// The rules are fairseq's (Ott et al. 2019, sequence_generator.py):
//   - a step takes the 2 * beam best continuations of all running hypotheses by summed log-probability; those that end
//     the sentence and are among the first `beam` are finished, and the first `beam` others continue;
//   - the score of a finished hypothesis is log-probability / length^length_penalty, including the end of sentence;
//   - the search ends when `beam` hypotheses are finished, or at the maximum length, where every running hypothesis is
//     forced to end; with late_stop, hypotheses that finish later replace worse ones, until the best running one, its
//     sum divided as if it ended here, is no better than the worst of `beam` finished ones (the default of
//     transformers' generate(), early_stopping=False); no sentence ends before the minimum length, unless the maximum
//     length is smaller.
// For text that may stop anywhere (`open_end`) the maximum length includes the end of sentence, and a hypothesis that
// reaches it without one is finished as it is; the best `beam` ones are kept.
// Ties between sums are broken by the index of the hypothesis, then by token id; ties between scores by order of
// finishing.
#ifndef TARN_DECODE_BEAM_H
#define TARN_DECODE_BEAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { TARN__BANNED = 4 };

typedef struct tarn__beam_options {
  int64_t beam;  // at least 1; 1: greedy
  double length_penalty;
  int32_t eos;
  int64_t min_length;  // minimum number of tokens before the end of sentence
  bool open_end;
  bool late_stop;                // the search may continue after `beam` hypotheses are finished
  int32_t banned[TARN__BANNED];  // tokens that are never chosen
  int banned_count;
} tarn__beam_options;

// Continuations per hypothesis that a step may need: it takes 2 * beam, and the end of sentence may be forbidden.
static inline int64_t tarn__beam_choices(const tarn__beam_options *options) {
  return 2 * options->beam + 1 + options->banned_count;
}

// A token of a hypothesis; hypotheses with a common prefix share its tokens.
typedef struct tarn__beam_token {
  int32_t id, parent;  // parent: index of the previous token; -1: none
  float log_probability;
} tarn__beam_token;

typedef struct tarn__beam_running {
  int32_t last;  // index of its last token; -1: none yet
  int32_t from;  // index, in the previous step, of the hypothesis it continues
  double sum;    // of its log-probabilities
} tarn__beam_running;

typedef struct tarn__beam_finished {
  int32_t last;    // index of its last token before the end of sentence; -1: none
  bool ended;      // with an end of sentence
  float eos;       // log-probability of the end of sentence
  int64_t length;  // including the end of sentence
  double sum, score;
} tarn__beam_finished;

typedef struct tarn__beam_candidate {
  double sum;
  int32_t from, id;
  float log_probability;
} tarn__beam_candidate;

// Zero-initialise before the first use; may be restarted any number of times.
typedef struct tarn__beam {
  tarn__beam_options options;
  int64_t max_length;  // tokens before the end of sentence; with an open end, including it, at least 1
  int64_t step;        // tokens of every running hypothesis
  tarn__beam_token *tokens;
  tarn__beam_running *running;    // best first
  tarn__beam_finished *finished;  // best first once `done`
  tarn__beam_candidate *heap;     // 2 * beam, for a step
  size_t token_count, token_capacity;
  int64_t running_count, finished_count;
  size_t running_capacity, finished_capacity, heap_capacity;
  bool done;
} tarn__beam;

// Begins a sentence with one running hypothesis without tokens.
tarn_status tarn__beam_start(tarn__beam *beam, const tarn__beam_options *options, int64_t max_length) TARN_CHECKED;
void tarn__beam_close(tarn__beam *beam);

// One step. The best continuations of running[h] are ids[h][0 ..] with log_probabilities[h][0 ..] (natural logarithms),
// best first, tarn__beam_choices() of them, padded with -1. The log-probability of the end of sentence follows as the
// last element of each row, so rows of log_probabilities have one element more than rows of ids. Fails with NUMERIC
// (NaN; nothing can be continued or finished) or MEMORY.
tarn_status tarn__beam_advance(tarn__beam *beam, const int32_t *ids, const float *log_probabilities) TARN_CHECKED;

// Whether a token may be chosen.
bool tarn__beam_allows(const tarn__beam *beam, int32_t id);

// The id of the last token of a running hypothesis, or the end of sentence before the first step.
int32_t tarn__beam_last(const tarn__beam *beam, int64_t place);

// Copies a finished hypothesis: ids and log-probabilities [length], with the end of sentence last if there is one.
void tarn__beam_copy(const tarn__beam *beam, int64_t place, int32_t *ids, float *log_probabilities);

#endif
