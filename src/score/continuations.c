// How likely a text continues another one.
#include "score/continuations.h"

#include <string.h>

#include "base/memory.h"
#include "comm/ranks.h"
#include "eval/codepoints.h"
#include "text/repair.h"

void tarn__continuations_close(tarn__continuations *work) {
  tarn__arena_close(&work->arena);
  tarn__free(work->sentences);
  tarn_vocab_ids_close(&work->context);
  tarn_vocab_ids_close(&work->whole);
  tarn__buffer_close(&work->text);
  tarn__free(work->repaired.data);
}

// Appends a text in valid UTF-8.
static tarn_status append(tarn__continuations *w, const tarn_lm *lm, const char *text, size_t length, bool *replaced) {
  bool here = false;
  TARN_TRY(tarn__repair(&w->repaired, &text, &length, tarn__lm_strict(lm), &here));
  *replaced |= here;
  tarn__buffer_put(&w->text, text, length);
  return w->text.status;
}

// The tokens of both texts, and how many of them are the context's.
static tarn_status encode(tarn__continuations *w, const tarn_lm *lm, tarn_continuation_score *score,
                          const tarn_continuation *c, int64_t *before) {
  tarn__buffer_reset(&w->text);
  TARN_TRY(append(w, lm, c->context, c->context_length, &score->replaced));
  const size_t context = tarn__rstrip(w->text.data, w->text.used);
  TARN_TRY(tarn_vocab_encode(tarn__lm_vocab(lm), &w->context, w->text.data, context));
  TARN_TRY(append(w, lm, c->text, c->length, &score->replaced));
  TARN_TRY(tarn_vocab_encode(tarn__lm_vocab(lm), &w->whole, w->text.data, w->text.used));
  TARN_REQUIRE(w->whole.count > w->context.count, DATA,
               "the continuation has no token of its own: the vocabulary makes %zu of the context, and %zu with it",
               w->context.count, w->whole.count);
  *before = (int64_t)w->context.count;
  return TARN_STATUS_OK;
}

// Drops the beginning of a context that is too long.
static tarn_status fit(const tarn_lm *lm, tarn__scorer_sentence *s, tarn_continuation_score *score) {
  const int64_t most = tarn__lm_longest(lm), more = s->length - most;
  if (more <= 0) return TARN_STATUS_OK;
  TARN_REQUIRE(score->tokens <= most, DATA, "the continuation has %lld tokens, and the model takes %lld",
               (long long)score->tokens, (long long)most);
  TARN_REQUIRE(
      tarn__lm_truncates(lm), DATA,
      "%lld tokens with the context, and the model takes %lld; what is overlong is refused here, not truncated",
      (long long)s->length, (long long)most);
  s->before = &s->ids[more - 1];
  s->ids += more;
  s->length -= more;
  s->known -= more;
  score->truncated = true;
  return TARN_STATUS_OK;
}

static tarn_status prepare(tarn__continuations *w, const tarn_lm *lm, tarn__scorer_sentence *s,
                           tarn_continuation_score *score, const tarn_continuation *c, bool bos) {
  int64_t before = 0;
  void *memory;
  *score = (tarn_continuation_score){0};
  TARN_REQUIRE(c->length > 0, DATA, "the continuation is empty");
  TARN_TRY(encode(w, lm, score, c, &before));
  const size_t count = w->whole.count;
  TARN_TRY(tarn__arena_alloc(&w->arena, &memory, count, sizeof(int32_t)));
  int32_t *ids = memory;
  memcpy(ids, w->whole.data, count * sizeof *ids);
  TARN_TRY(tarn__arena_alloc(&w->arena, &memory, count, sizeof(double)));
  double *log_probabilities = memory;
  TARN_TRY(tarn__arena_alloc(&w->arena, &memory, count, sizeof(int32_t)));
  const int32_t unknown = tarn_vocab_unk(tarn__lm_vocab(lm));
  for (size_t i = 0; i < count; i++) score->unknown += ids[i] == unknown;
  *s = (tarn__scorer_sentence){
      .ids = ids, .length = (int64_t)count, .known = before, .log_probabilities = log_probabilities, .best = memory};
  score->tokens = s->length - before;
  if (!bos && before > 0) {
    s->before = s->ids++;
    s->length--;
    s->known--;
  }
  return fit(lm, s, score);
}

tarn_status tarn__continuations_run(tarn__continuations *work, tarn_lm *lm, tarn_continuation_score *scores,
                                    const tarn_continuation *continuations, size_t count, bool bos, size_t *which) {
  *which = count;
  TARN_REQUIRE(!tarn__lm_masked(lm), USAGE,
               "%s is a masked language model, which sees what follows; continuations want a language model",
               tarn_lm_path(lm));
  tarn__arena_reset(&work->arena);
  TARN_TRY(tarn__grow(&work->sentences, &work->sentences_capacity, count, sizeof *work->sentences));
  for (size_t i = 0; i < count; i++) {
    tarn_status status = prepare(work, lm, &work->sentences[i], &scores[i], &continuations[i], bos);
    if (status == TARN_STATUS_OK) continue;
    *which = i;
    return status;
  }
  TARN_TRY(tarn__scorer_run(tarn__lm_scorer(lm), work->sentences, (int64_t)count));
  for (size_t i = 0; i < count; i++) {
    const tarn__scorer_sentence *s = &work->sentences[i];
    scores[i].greedy = true;
    for (int64_t t = s->known; t < s->length; t++) {
      scores[i].log_probability += s->log_probabilities[t];
      scores[i].greedy &= s->best[t] == s->ids[t];
    }
  }
  return TARN_STATUS_OK;
}

tarn_status tarn_continuations_score(tarn_lm *lm, tarn_continuation_score *scores,
                                     const tarn_continuation *continuations, size_t count, bool bos) {
  if (tarn__lm_ranks(lm) > 1)
    return tarn__fail(TARN_STATUS_USAGE, "tarn_continuations_score() is for a single process, not %d ranks",
                      tarn__lm_ranks(lm));
  tarn__continuations work = {0};
  size_t which;
  tarn_status status = tarn__continuations_run(&work, lm, scores, continuations, count, bos, &which);
  if (status != TARN_STATUS_OK && which < count) status = tarn__fail_prefix(status, "continuation %zu: ", which + 1);
  tarn__continuations_close(&work);
  return status;
}
