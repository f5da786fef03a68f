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
// Diverse beam search (Vijayakumar et al., AAAI 2018) divides the hypotheses into groups, each of which is searched as
// above with beam / groups hypotheses of its own. In a step the groups follow each other, and a token loses `diversity`
// for every hypothesis of an earlier group that it continues in this step; sums include what was lost, and in the end
// the finished hypotheses of all groups are sorted together.
// With phrases that a translation has to contain (forced.h) the hypotheses are dealt among banks, one for each number
// of their tokens that a hypothesis has (Post and Vilar, NAACL 2018): of the continuations of all hypotheses, each also
// by the next tokens of its phrases, the banks keep the best in turns, the fullest bank first, until `beam` continue.
// Only those with all phrases end, if they are among the first `beam` of their bank. Every bank is so searched as
// above, and the beam is not filled with hypotheses that put the phrases off. Where log-probabilities after processors
// of logits select, sums and scores are sums of these, except that with a beam of 1 the score comes from the model's
// own; those of the tokens are always the model's own. Ties between sums are broken by the index of the hypothesis,
// then by token id; ties between scores by order of finishing.
#ifndef TARN_DECODE_BEAM_H
#define TARN_DECODE_BEAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "decode/forced.h"

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
  int64_t groups;    // of diverse beam search, a divisor of `beam`; 0 or 1: one
  double diversity;  // 0 or more
} tarn__beam_options;

static inline int64_t tarn__beam_groups(const tarn__beam_options *options) {
  return options->groups > 1 ? options->groups : 1;
}

// Continuations per hypothesis that a step may need: it takes 2 * beam of a group, the end of sentence may be
// forbidden, and the tokens of earlier groups may fall behind: up to 2 * their beam, where stop strings end some.
static inline int64_t tarn__beam_choices(const tarn__beam_options *options) {
  const int64_t groups = tarn__beam_groups(options), width = options->beam / groups;
  return 2 * width + 1 + options->banned_count + 2 * (groups - 1) * width;
}

typedef struct tarn__beam tarn__beam;

// A token of a hypothesis; hypotheses with a common prefix share its tokens.
typedef struct tarn__beam_token {
  int32_t id, parent;  // parent: index of the previous token; -1: none
  float log_probability;
} tarn__beam_token;

typedef struct tarn__beam_running {
  int32_t last;       // index of its last token; -1: none yet
  int32_t from;       // index, in the previous step, of the hypothesis it continues
  double sum;         // of the log-probabilities by which it was selected
  double likelihood;  // of the model's own
} tarn__beam_running;

typedef struct tarn__beam_finished {
  int32_t last;    // index of its last token before the end of sentence; -1: none
  bool ended;      // with an end of sentence
  float eos;       // log-probability of the end of sentence
  int64_t length;  // including the end of sentence
  double sum, likelihood, score;
} tarn__beam_finished;

// The hypotheses of a group: running ones from `first` on, and finished ones in its part of the array.
typedef struct tarn__beam_group {
  int64_t first, running, finished;
  bool done;
} tarn__beam_group;

typedef struct tarn__beam_candidate {
  double sum;
  int32_t from, id;
  float log_probability;  // the model's own
} tarn__beam_candidate;

// The best candidates of a step; the worst of them is at the root.
typedef struct tarn__beam_heap {
  tarn__beam_candidate *items;
  int64_t count, limit;
} tarn__beam_heap;

// The tokens that a step is to try whatever their rank: of running[h] they are ids[h] [count], padded with -1, of these
// log-probabilities, whose rows have one element more; `own` as in tarn__beam_rows.
typedef struct tarn__beam_wanted {
  const int32_t *ids;
  const float *values, *own;
  int64_t count;
} tarn__beam_wanted;

// Whether a hypothesis is complete with the token `id` after its last one `last` (of beam->tokens), although that is no
// end of sentence.
typedef struct tarn__beam_stop {
  tarn_status (*stops)(void *user, const tarn__beam *beam, int32_t last, int32_t id, bool *stop);
  void *user;
} tarn__beam_stop;

// Zero-initialise before the first use; may be restarted any number of times.
struct tarn__beam {
  tarn__beam_options options;
  int64_t max_length;  // tokens before the end of sentence; with an open end, including it, at least 1
  int64_t step;        // tokens of every running hypothesis
  tarn__beam_token *tokens;
  tarn__beam_running *running;    // of each group best first
  tarn__beam_running *next;       // of the next step
  tarn__beam_finished *finished;  // best first once `done`
  tarn__beam_group *groups;
  tarn__beam_candidate *heap;  // 2 * beam, for a step; with phrases that of each bank, and beam more
  tarn__beam_stop stop;        // set after the start, if anything stops hypotheses
  // With phrases: how far the hypotheses are with each, [beam][forced->count] of `running`, the same of `next`, and two
  // rows more.
  const tarn__forced *forced;
  int32_t *progress;
  tarn__beam_heap *banks;    // [forced->tokens + 1]
  tarn__beam_wanted wanted;  // set before each step
  size_t token_count, token_capacity;
  int64_t running_count, finished_count;
  size_t running_capacity, next_capacity, finished_capacity, group_capacity, heap_capacity;
  size_t progress_capacity, bank_capacity;
  bool done;
};

// Begins a sentence with one running hypothesis without tokens.
tarn_status tarn__beam_start(tarn__beam *beam, const tarn__beam_options *options, int64_t max_length) TARN_CHECKED;
void tarn__beam_close(tarn__beam *beam);

// After the start, with one group: hypotheses have to contain these phrases, which stay the caller's; `before` [count]
// stands in front of all. Fails with DATA if they do not fit into the maximum length, or MEMORY.
tarn_status tarn__beam_force(tarn__beam *beam, const tarn__forced *forced, const int32_t *before,
                             int64_t count) TARN_CHECKED;
// How far a running hypothesis is with each phrase.
static inline const int32_t *tarn__beam_progress(const tarn__beam *beam, int64_t place) {
  return beam->progress + place * beam->forced->count;
}

// The rows of a step: the best continuations of running[h] are ids[h] [count] with values[h] [count], their
// log-probabilities (natural logarithms), best first, padded with -1. The log-probability of the end of sentence
// follows as the last element of each row, so rows of values have one element more than rows of ids. `count` is at
// least tarn__beam_choices(), which are all that a search looks at. `own`: the values of the model alone, if those are
// after processors of logits; NULL: they are the model's.
typedef struct tarn__beam_rows {
  const int32_t *ids;
  const float *values, *own;
  int64_t count;
} tarn__beam_rows;

// One step. Fails with NUMERIC (NaN; nothing can be continued or finished), DATA (the same, because of a phrase) or
// MEMORY.
tarn_status tarn__beam_advance(tarn__beam *beam, const tarn__beam_rows *rows) TARN_CHECKED;

// The ids of the `count` tokens of a hypothesis that ends with number `last` of beam->tokens.
void tarn__beam_tokens(const tarn__beam *beam, int32_t last, int64_t count, int32_t *ids);

// Whether a token may be chosen.
bool tarn__beam_allows(const tarn__beam *beam, int32_t id);

// The id of the last token of a running hypothesis, or the end of sentence before the first step.
int32_t tarn__beam_last(const tarn__beam *beam, int64_t place);

// Copies a finished hypothesis: ids and log-probabilities [length], with the end of sentence last if there is one.
void tarn__beam_copy(const tarn__beam *beam, int64_t place, int32_t *ids, float *log_probabilities);

#endif
