// Beam search for one sentence, apart from any model: it is fed the best next tokens of each running hypothesis and
// says which hypotheses run on. So it can be tested with a table in place of a network.
//
// The rules are fairseq's (Ott et al. 2019, sequence_generator.py):
//   - a step takes the 2 * beam best continuations of all running hypotheses by summed log-probability; those of them
//     that end the sentence and are among the first `beam` are finished, and the first `beam` others run on;
//   - the score of a finished hypothesis is log-probability / length^length_penalty, its end of sentence counted;
//   - the search ends when `beam` hypotheses are finished, or at the greatest length, where every running hypothesis
//     is ended by force; with late_stop hypotheses that are finished later take the place of worse ones, until
//     the best running one, its sum divided as if it ended here, is no better than the worst of `beam` finished ones
//     (the default of transformers' generate(), early_stopping=False); no sentence ends before the least length, unless
//     the greatest length is smaller.
// Of text that may stop anywhere (`open_end`) the greatest length counts the end of sentence, and a hypothesis that
// reaches it without one is finished as it is; the best `beam` ones are kept.
// Equal sums are ordered by the hypothesis' place and then by the token's id, equal scores by who finished first.
#ifndef TARN_DECODE_BEAM_H
#define TARN_DECODE_BEAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { TARN__BANNED = 4 };

typedef struct tarn__beam_options {
  int64_t beam;  // 1 or more; 1: greedy
  double length_penalty;
  int32_t eos;
  int64_t min_length;  // least tokens before the end of sentence
  bool open_end;
  bool late_stop;                // the search goes on when `beam` hypotheses are finished
  int32_t banned[TARN__BANNED];  // tokens that are never taken
  int banned_count;
} tarn__beam_options;

// Continuations of each hypothesis that a step may need: 2 * beam are taken, and the end of sentence may be forbidden.
static inline int64_t tarn__beam_choices(const tarn__beam_options *options) {
  return 2 * options->beam + 1 + options->banned_count;
}

// A token of a hypothesis; hypotheses with the same beginning share its tokens.
typedef struct tarn__beam_token {
  int32_t id, parent;  // parent: index of the token before it; -1: none
  float log_probability;
} tarn__beam_token;

typedef struct tarn__beam_running {
  int32_t last;  // index of its last token; -1: none yet
  int32_t from;  // place, in the step before, of the hypothesis it continues
  double sum;    // of its log-probabilities
} tarn__beam_running;

typedef struct tarn__beam_finished {
  int32_t last;    // index of its last token before the end of sentence; -1: none
  bool ended;      // by the end of sentence
  float eos;       // log-probability of the end of sentence
  int64_t length;  // with the end of sentence
  double sum, score;
} tarn__beam_finished;

typedef struct tarn__beam_candidate {
  double sum;
  int32_t from, id;
  float log_probability;
} tarn__beam_candidate;

// Zero-initialise before the first use; may be started again and again.
typedef struct tarn__beam {
  tarn__beam_options options;
  int64_t max_length;  // tokens before the end of sentence; with an open end: with it, 1 or more
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

// One step: of running[h] the best continuations are ids[h][0 ..] with log_probabilities[h][0 ..] (natural logarithms),
// best first, tarn__beam_choices() many, -1 where there are no more; behind the last log-probability of each row
// follows that of the end of sentence: rows of ids and of log_probabilities have tarn__beam_choices() and one more
// elements. Fails with NUMERIC (not a number; nothing can be continued or finished) or MEMORY.
tarn_status tarn__beam_advance(tarn__beam *beam, const int32_t *ids, const float *log_probabilities) TARN_CHECKED;

// Whether a token may come next.
bool tarn__beam_allows(const tarn__beam *beam, int32_t id);

// The id of the last token of a running hypothesis, or the end of sentence before the first step.
int32_t tarn__beam_last(const tarn__beam *beam, int64_t place);

// Copies a finished hypothesis: ids and log-probabilities [length], the end of sentence at the end if it has one.
void tarn__beam_copy(const tarn__beam *beam, int64_t place, int32_t *ids, float *log_probabilities);

#endif
