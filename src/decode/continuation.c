#include "decode/continuation.h"

#include <string.h>

void tarn__continuation_close(tarn__continuation *continuation) {
  tarn_vocab_text_close(&continuation->lead);
  tarn_vocab_text_close(&continuation->text);
  *continuation = (tarn__continuation){0};
}

tarn_status tarn__continuation_decode(tarn__continuation *c, const tarn_vocab *vocab, const int32_t *ids,
                                      int64_t prompt, int64_t length) {
  TARN_TRY(tarn_vocab_decode(vocab, &c->lead, ids, (size_t)prompt));
  TARN_TRY(tarn_vocab_decode(vocab, &c->text, ids, (size_t)length));
  c->begin = 0;
  while (c->begin < c->lead.length && c->begin < c->text.length && c->lead.data[c->begin] == c->text.data[c->begin])
    c->begin++;
  return TARN_STATUS_OK;
}

size_t tarn__stops_find(const tarn__stops *stops, const char *text, size_t begin, size_t length) {
  size_t first = length;
  for (size_t i = 0; i < stops->count; i++) {
    const size_t size = strlen(stops->texts[i]);
    for (size_t at = begin; at + size <= length && at < first; at++)
      if (memcmp(text + at, stops->texts[i], size) == 0) first = at;
  }
  return first;
}

size_t tarn__stops_begun(const tarn__stops *stops, const char *text, size_t length) {
  size_t begun = 0;
  for (size_t i = 0; i < stops->count; i++) {
    const size_t most = strlen(stops->texts[i]) - 1;
    for (size_t n = most < length ? most : length; n > begun; n--)
      if (memcmp(text + length - n, stops->texts[i], n) == 0) begun = n;
  }
  return begun;
}

// Tokens without text of their own that may stand in the last part of a text.
enum { EMPTY_TOKENS = 16 };

tarn_status tarn__stops_here(const tarn__stops *stops, tarn__continuation *c, const int32_t *ids, int64_t prompt,
                             int64_t length, bool *here) {
  // A string that the last token completes stands in the last tokens, and the text of one more before them shows how
  // they are written behind others.
  const int64_t last = (int64_t)stops->longest + EMPTY_TOKENS, first = length > last + 1 ? length - last - 1 : 0;
  const int64_t before = prompt > first ? prompt - first : first > 0;
  TARN_TRY(tarn__continuation_decode(c, stops->vocab, ids + first, before, length - first));
  *here = tarn__stops_find(stops, c->text.data, c->begin, c->text.length) < c->text.length;
  return TARN_STATUS_OK;
}
