#include "decode/steering.h"

#include <math.h>
#include <string.h>

enum {
  SHOWN = 40,       // bytes of a text in a message
  MBR_MOST = 1024,  // samples, each of which is scored against all others
};

void tarn_decoding_default(tarn_decoding *decoding) {
  *decoding = (tarn_decoding){.repetition_penalty = 1.0, .typical_p = 1.0, .groups = 1};
}

const char *tarn_mbr_word(tarn_mbr mbr) {
  static const char *const words[TARN_MBR_COUNT] = {"none", "bleu", "chrf"};
  return (unsigned)mbr < TARN_MBR_COUNT ? words[mbr] : NULL;
}

bool tarn_decoding_same(const tarn_decoding *a, const tarn_decoding *b) {
  if (a->repetition_penalty != b->repetition_penalty || a->presence_penalty != b->presence_penalty ||
      a->frequency_penalty != b->frequency_penalty || a->no_repeat_ngram != b->no_repeat_ngram ||
      a->min_p != b->min_p || a->typical_p != b->typical_p || a->groups != b->groups ||
      a->diversity_penalty != b->diversity_penalty || a->banned_count != b->banned_count || a->mbr != b->mbr)
    return false;
  for (size_t i = 0; i < a->banned_count; i++)
    if (strcmp(a->banned[i], b->banned[i]) != 0) return false;
  return true;
}

static tarn_status check_penalties(const tarn_decoding *d) {
  TARN_REQUIRE(d->repetition_penalty > 0.0 && d->repetition_penalty <= 100.0, USAGE,
               "the repetition penalty must be above 0 and at most 100, not %g", d->repetition_penalty);
  TARN_REQUIRE(d->presence_penalty >= -100.0 && d->presence_penalty <= 100.0, USAGE,
               "the presence penalty must be from -100 to 100, not %g", d->presence_penalty);
  TARN_REQUIRE(d->frequency_penalty >= -100.0 && d->frequency_penalty <= 100.0, USAGE,
               "the frequency penalty must be from -100 to 100, not %g", d->frequency_penalty);
  TARN_REQUIRE(d->no_repeat_ngram >= 0 && d->no_repeat_ngram <= 1000, USAGE,
               "no-repeat-ngram must be from 1 to 1000, or 0, not %lld", (long long)d->no_repeat_ngram);
  return TARN_STATUS_OK;
}

tarn_status tarn__steering_check_search(const tarn_decoding *d, int64_t beam, int64_t samples) {
  TARN_REQUIRE(d->groups >= 1 && d->groups <= beam && beam % d->groups == 0, USAGE,
               "groups must be from 1 to the beam of %lld and divide it, not %lld", (long long)beam,
               (long long)d->groups);
  TARN_REQUIRE(d->diversity_penalty >= 0.0 && d->diversity_penalty <= 1000.0, USAGE,
               "the diversity penalty must be from 0 to 1000, not %g", d->diversity_penalty);
  TARN_REQUIRE(d->diversity_penalty == 0.0 || d->groups > 1, USAGE, "a diversity penalty needs 2 groups or more");
  TARN_REQUIRE(samples > 0 || (d->min_p == 0.0 && d->typical_p == 1.0), USAGE,
               "min-p and typical-p are for sampling, not for a search");
  TARN_REQUIRE((unsigned)d->mbr < TARN_MBR_COUNT, USAGE, "unknown utility of minimum Bayes risk");
  TARN_REQUIRE(samples > 0 || d->mbr == TARN_MBR_NONE, USAGE,
               "minimum Bayes risk chooses among samples, not in a search");
  TARN_REQUIRE(d->mbr == TARN_MBR_NONE || (samples >= 2 && samples <= MBR_MOST), USAGE,
               "minimum Bayes risk chooses among 2 to %d samples, not %lld", MBR_MOST, (long long)samples);
  return TARN_STATUS_OK;
}

tarn_status tarn__steering_check_drawing(double temperature, int64_t top_k, double top_p, bool samples) {
  TARN_REQUIRE(samples || (temperature == 1.0 && top_k == 0 && top_p == 1.0), USAGE,
               "temperature, top-k and top-p are for sampling, not for a search");
  return TARN_STATUS_OK;
}

tarn_status tarn__steering_check_sampling(const tarn__sampling *s) {
  TARN_REQUIRE(s->temperature > 0.0 && isfinite(s->temperature), USAGE, "the temperature must be above 0, not %g",
               s->temperature);
  TARN_REQUIRE(s->top_k >= 0, USAGE, "top-k must be 1 or more, not %lld", (long long)s->top_k);
  TARN_REQUIRE(s->top_p > 0.0 && s->top_p <= 1.0, USAGE, "top-p must be above 0 and at most 1, not %g", s->top_p);
  TARN_REQUIRE(s->min_p >= 0.0 && s->min_p < 1.0, USAGE, "min-p must be from 0 to 1, without 1, not %g", s->min_p);
  TARN_REQUIRE(s->typical_p > 0.0 && s->typical_p <= 1.0, USAGE, "typical-p must be above 0 and at most 1, not %g",
               s->typical_p);
  return TARN_STATUS_OK;
}

// Copies texts into the memory of the steering.
static tarn_status copy_texts(tarn__steering *s, const char *const **to, const char *const *texts, size_t count) {
  void *memory;
  *to = NULL;
  if (count == 0) return TARN_STATUS_OK;
  TARN_TRY(tarn__arena_alloc(&s->memory, &memory, count, sizeof *texts));
  const char **copies = memory;
  for (size_t i = 0; i < count; i++) {
    const size_t size = strlen(texts[i]) + 1;
    TARN_TRY(tarn__arena_alloc(&s->memory, &memory, size, 1));
    memcpy(memory, texts[i], size);
    copies[i] = memory;
  }
  *to = copies;
  return TARN_STATUS_OK;
}

tarn_status tarn__steering_phrase(tarn__arena *arena, tarn__phrase *phrase, const char *what, const char *text,
                                  size_t length, const tarn_vocab *vocab, tarn_vocab_ids *ids) {
  TARN_TRY(tarn_vocab_encode(vocab, ids, text, length));
  TARN_REQUIRE(ids->count > 0, USAGE, "a %s text has no token", what);
  for (size_t i = 0; i < ids->count; i++)
    TARN_REQUIRE(ids->data[i] != tarn_vocab_unk(vocab), USAGE,
                 "the %s text \"%.*s\" has a token that is not in the vocabulary", what,
                 length < SHOWN ? (int)length : SHOWN, text);
  void *memory;
  TARN_TRY(tarn__arena_alloc(arena, &memory, ids->count, sizeof *ids->data));
  memcpy(memory, ids->data, ids->count * sizeof *ids->data);
  *phrase = (tarn__phrase){memory, (int64_t)ids->count};
  return TARN_STATUS_OK;
}

static tarn_status encode_banned(tarn__steering *s, const tarn_vocab *vocab) {
  const tarn_decoding *d = &s->decoding;
  void *memory;
  if (d->banned_count == 0) return TARN_STATUS_OK;
  TARN_TRY(tarn__arena_alloc(&s->memory, &memory, d->banned_count, sizeof(tarn__phrase)));
  tarn__phrase *phrases = memory;
  tarn_vocab_ids ids = {0};
  tarn_status status = TARN_STATUS_OK;
  for (size_t i = 0; i < d->banned_count && status == TARN_STATUS_OK; i++)
    status = tarn__steering_phrase(&s->memory, &phrases[i], "banned", d->banned[i], strlen(d->banned[i]), vocab, &ids);
  tarn_vocab_ids_close(&ids);
  s->processing.banned = phrases;
  s->processing.banned_count = (int64_t)d->banned_count;
  return status;
}

tarn_status tarn__steering_open(tarn__steering *s, const tarn_decoding *decoding, const char *const *stop,
                                size_t stop_count, const tarn_vocab *vocab) {
  *s = (tarn__steering){.decoding = *decoding};
  TARN_TRY(check_penalties(decoding));
  s->processing = (tarn__processing){.repetition_penalty = decoding->repetition_penalty,
                                     .presence_penalty = decoding->presence_penalty,
                                     .frequency_penalty = decoding->frequency_penalty,
                                     .no_repeat_ngram = decoding->no_repeat_ngram};
  TARN_TRY(copy_texts(s, &s->decoding.banned, decoding->banned, decoding->banned_count));
  TARN_TRY(encode_banned(s, vocab));
  s->stops = (tarn__stops){.vocab = vocab, .count = stop_count};
  TARN_TRY(copy_texts(s, &s->stops.texts, stop, stop_count));
  for (size_t i = 0; i < stop_count; i++) {
    const size_t length = strlen(stop[i]);
    TARN_REQUIRE(length > 0, USAGE, "a stop string must have at least one byte");
    if (length > s->stops.longest) s->stops.longest = length;
  }
  return TARN_STATUS_OK;
}

void tarn__steering_close(tarn__steering *s) {
  tarn__arena_close(&s->memory);
  *s = (tarn__steering){0};
}
