// Sums over sentences.
#include <math.h>

#include "base/memory.h"
#include "dynamics/dynamics.h"
#include "tarn/lab/dynamics.h"

// A number of a sentence; NAN: none.
typedef double (*number)(const tarn_dynamics_sentence *sentence, int64_t exponents);

static double finite_or_nan(double value) { return isfinite(value) ? value : NAN; }

static double first_exponent(const tarn_dynamics_sentence *s, int64_t exponents) {
  return exponents > 0 ? finite_or_nan(s->exponents[0]) : NAN;
}

static double kaplan_yorke(const tarn_dynamics_sentence *s, int64_t exponents) {
  return exponents > 0 ? finite_or_nan(s->kaplan_yorke) : NAN;
}

static double growth(const tarn_dynamics_sentence *s, int64_t exponents) {
  return exponents > 0 ? finite_or_nan(s->growth) : NAN;
}

static double expansion_end(const tarn_dynamics_sentence *s, int64_t exponents) {
  return exponents > 0 && s->verdict != TARN_DYNAMICS_VERDICT_DIVERGED ? (double)s->expansion_end : NAN;
}

static double settled(const tarn_dynamics_sentence *s, int64_t exponents) {
  (void)exponents;
  return s->settled >= 0 ? (double)s->settled : NAN;
}

static double synchronised_at(const tarn_dynamics_synchrony *s) {
  return s->there && s->synchronised ? (double)s->iteration : NAN;
}

static double offset_of(const tarn_dynamics_synchrony *s) {
  return s->there && !s->synchronised ? finite_or_nan(s->offset) : NAN;
}

static double starts_iteration(const tarn_dynamics_sentence *s, int64_t exponents) {
  (void)exponents;
  return synchronised_at(&s->starts);
}

static double starts_offset(const tarn_dynamics_sentence *s, int64_t exponents) {
  (void)exponents;
  return offset_of(&s->starts);
}

static double tokens_iteration(const tarn_dynamics_sentence *s, int64_t exponents) {
  (void)exponents;
  return synchronised_at(&s->between_tokens);
}

static double tokens_offset(const tarn_dynamics_sentence *s, int64_t exponents) {
  (void)exponents;
  return offset_of(&s->between_tokens);
}

#define AT_ENDS(measure)                                                              \
  static double measure##_end(const tarn_dynamics_sentence *s, int64_t exponents) {   \
    (void)exponents;                                                                  \
    return finite_or_nan(s->measure[s->iterations]);                                  \
  }                                                                                   \
  static double measure##_begin(const tarn_dynamics_sentence *s, int64_t exponents) { \
    (void)exponents;                                                                  \
    return finite_or_nan(s->measure[0]);                                              \
  }
AT_ENDS(participation)
AT_ENDS(rank_collapse)
AT_ENDS(token_distance)
#undef AT_ENDS

static double token_cosine(const tarn_dynamics_sentence *s, int64_t exponents) {
  (void)exponents;
  return finite_or_nan(s->token_cosine[s->iterations]);
}

static void count(tarn_dynamics_summary *out, const tarn_dynamics_sentence *s, int64_t exponents) {
  out->vanished += exponents > 0 && s->exponents[0] == -INFINITY;
  out->kaplan_yorke_least += exponents > 0 && s->kaplan_yorke_least;
  out->verdicts[s->verdict]++;
  out->settlings[s->settling]++;
  out->starts += s->starts.there;
  out->starts_synchronised += s->starts.there && s->starts.synchronised;
  out->tokens += s->between_tokens.there;
  out->tokens_synchronised += s->between_tokens.there && s->between_tokens.synchronised;
}

tarn_status tarn_dynamics_summarise(tarn_dynamics_summary *out, const tarn_dynamics_result *result) {
  *out = (tarn_dynamics_summary){.sentences = result->count};
  const struct {
    number of;
    tarn_dynamics_spread *spread;
  } numbers[] = {{first_exponent, &out->exponent},
                 {kaplan_yorke, &out->kaplan_yorke},
                 {growth, &out->growth},
                 {expansion_end, &out->expansion_end},
                 {settled, &out->settled},
                 {starts_iteration, &out->starts_iteration},
                 {starts_offset, &out->starts_offset},
                 {tokens_iteration, &out->tokens_iteration},
                 {tokens_offset, &out->tokens_offset},
                 {participation_end, &out->participation},
                 {participation_begin, &out->participation_start},
                 {rank_collapse_end, &out->rank_collapse},
                 {rank_collapse_begin, &out->rank_collapse_start},
                 {token_distance_end, &out->token_distance},
                 {token_distance_begin, &out->token_distance_start},
                 {token_cosine, &out->token_cosine}};
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)result->count, sizeof(double)));
  double *values = memory;
  for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
    for (int64_t i = 0; i < result->count; i++) values[i] = numbers[k].of(&result->sentences[i], result->exponents);
    tarn__dynamics_spread_of(numbers[k].spread, values, result->count);
  }
  tarn__free(values);
  for (int64_t i = 0; i < result->count; i++) count(out, &result->sentences[i], result->exponents);
  return TARN_STATUS_OK;
}
