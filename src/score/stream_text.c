// The log-probability of a text as one stream of tokens, by a sliding window.
#include <string.h>

#include "base/memory.h"
#include "base/threads.h"
#include "base/work.h"
#include "data/token_stream.h"
#include "score/lm_text.h"
#include "score/scorer.h"

enum { READ_AHEAD = 16 << 20 };  // bytes

typedef struct slide {
  int64_t window, stride;
  tarn__encode_pool *pool;
  tarn__token_stream stream;
  int32_t *ids;  // tokens `base` .. `end` - 1 of the text
  size_t ids_capacity;
  int64_t base, end;
  bool ended;     // no more tokens
  int64_t start;  // of the next window
  int64_t counted;
  // The windows of a batch.
  int64_t most, count;
  tarn__scorer_sentence *sentences;  // [most]
  double *log_probabilities;         // [most * window]
} slide;

static tarn_status open_slide(slide *s, tarn_lm *lm, const char *path) {
  void *memory;
  const int64_t together = tarn__lm_max_tokens(lm) * tarn__lm_ranks(lm) / s->window;
  s->most = together > 1 ? together : 1;
  TARN_TRY(tarn__encode_pool_open(&s->pool, tarn__threads()));
  TARN_TRY(tarn__token_stream_open(&s->stream, tarn__lm_vocab(lm), s->pool, READ_AHEAD, path, tarn__lm_strict(lm)));
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)s->most, sizeof *s->sentences));
  s->sentences = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)(s->most * s->window), sizeof(double)));
  s->log_probabilities = memory;
  return TARN_STATUS_OK;
}

static void close_slide(slide *s) {
  tarn__token_stream_close(&s->stream);
  tarn__encode_pool_close(&s->pool);
  tarn__free(s->ids);
  tarn__free(s->sentences);
  tarn__free(s->log_probabilities);
}

// Reads enough tokens for the next windows. Keeps earlier tokens from the beginning of the last window on: the text's
// last window begins after it.
static tarn_status fill(slide *s) {
  const int64_t gone = s->start - s->stride - s->base;
  if (gone > 0) {
    memmove(s->ids, s->ids + gone, (size_t)(s->end - s->base - gone) * sizeof *s->ids);
    s->base += gone;
  }
  while (!s->ended && s->end < s->start + (s->most - 1) * s->stride + s->window) {
    const int32_t *ids;
    int64_t count;
    TARN_TRY(tarn__token_stream_next(&s->stream, &ids, &count));
    s->ended = count == 0;
    TARN_TRY(tarn__grow(&s->ids, &s->ids_capacity, (size_t)(s->end - s->base + count), sizeof *s->ids));
    if (count > 0) memcpy(s->ids + (s->end - s->base), ids, (size_t)count * sizeof *s->ids);
    s->end += count;
  }
  return TARN_STATUS_OK;
}

static void add_window(slide *s, int64_t start, int64_t length) {
  const int32_t *ids = s->ids + (start - s->base);
  s->sentences[s->count] = (tarn__scorer_sentence){.ids = ids,
                                                   .length = length,
                                                   .known = s->counted - start,
                                                   .before = start > 0 ? ids - 1 : NULL,
                                                   .log_probabilities = s->log_probabilities + s->count * s->window};
  s->count++;
  s->counted = start + length;
}

// The next windows. The last one ends with the text, so its context is no shorter than that of others.
static void cut_windows(slide *s) {
  s->count = 0;
  for (; s->count < s->most && s->start + s->window <= s->end; s->start += s->stride)
    add_window(s, s->start, s->window);
  if (!s->ended || s->count == s->most || s->counted == s->end) return;
  const int64_t first = s->end > s->window ? s->end - s->window : 0;
  add_window(s, first, s->end - first);
}

static tarn_status give(const slide *s, tarn_lm_total *total, tarn_lm_stream_sink sink, void *user) {
  for (int64_t w = 0; w < s->count; w++) {
    const tarn__scorer_sentence *one = &s->sentences[w];
    const tarn_lm_stretch stretch = {.first = s->base + (one->ids - s->ids) + one->known,
                                     .context = one->known + (one->before != NULL),
                                     .count = one->length - one->known,
                                     .ids = one->ids + one->known,
                                     .log_probabilities = one->log_probabilities + one->known};
    for (int64_t t = 0; t < stretch.count; t++) total->log_probability += stretch.log_probabilities[t];
    total->tokens += stretch.count;
    if (sink) TARN_TRY(sink(user, &stretch));
  }
  return TARN_STATUS_OK;
}

static tarn_status run(slide *s, tarn_lm *lm, tarn__work *work, tarn_lm_total *total, tarn_lm_stream_sink sink,
                       void *user) {
  do {
    const double share = tarn__lines_share(&s->stream.encoded.lines), before = (double)total->tokens;
    TARN_TRY(fill(s));
    cut_windows(s);
    tarn__work_part(work, before, share, (double)(s->base + s->counted), tarn__lines_share(&s->stream.encoded.lines));
    TARN_TRY(tarn__scorer_run(tarn__lm_scorer(lm), s->sentences, s->count));
    TARN_TRY(give(s, total, sink, user));
  } while (s->count > 0);
  total->lines = s->stream.lines;
  total->bytes = s->stream.bytes;
  total->characters = s->stream.characters;
  total->unknown = s->stream.unknown;
  total->replaced = s->stream.encoded.lines.replaced;
  total->cut = s->stream.cut;
  return TARN_STATUS_OK;
}

tarn_status tarn_lm_score_stream(tarn_lm *lm, tarn_lm_total *total, const char *path, int64_t window, int64_t stride,
                                 tarn_lm_stream_sink sink, void *user) {
  const int64_t most = tarn__lm_longest(lm);
  slide s = {.window = window ? window : tarn__lm_window(lm), .stride = stride};
  *total = (tarn_lm_total){0};
  TARN_REQUIRE(!tarn__lm_masked(lm), USAGE,
               "%s: a masked language model sees both sides of a token, so that no window slides over a text; score it "
               "line by line",
               tarn_lm_path(lm));
  TARN_REQUIRE(s.window >= 1 && s.window <= most, USAGE, "a window of %lld tokens, and the model takes 1 to %lld",
               (long long)s.window, (long long)most);
  TARN_REQUIRE(stride >= 1 && stride <= s.window, USAGE, "the stride is 1 to the window of %lld tokens, not %lld",
               (long long)s.window, (long long)stride);
  if (tarn__lm_helps(lm)) return tarn__scorer_help(tarn__lm_scorer(lm));
  tarn_status status = open_slide(&s, lm, path);
  tarn__work work;
  tarn__work_begin(&work, "scoring", "tokens");
  if (status == TARN_STATUS_OK) status = run(&s, lm, &work, total, sink, user);
  tarn__work_end(&work);
  close_slide(&s);
  return status == TARN_STATUS_OK ? tarn__scorer_end(tarn__lm_scorer(lm)) : status;
}
