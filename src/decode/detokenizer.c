#include "decode/detokenizer.h"

#include <string.h>

#include "base/memory.h"

// LEAD: tokens of a prompt to begin with. A character has at most 4 bytes, each of which may be a token, so BYTES
// before the last may belong to one that is not complete; LOOSE: tokens without a complete character, after which those
// before the last BYTES count as complete.
enum { LEAD = 8, BYTES = 3, LOOSE = 16 };

void tarn__detokenizer_close(tarn__detokenizer *d) {
  tarn__free(d->text);
  tarn__free(d->ids);
  tarn_vocab_text_close(&d->before);
  tarn_vocab_text_close(&d->whole);
  *d = (tarn__detokenizer){0};
}

tarn_status tarn__detokenizer_begin(tarn__detokenizer *d, const tarn_vocab *vocab, const int32_t *prompt,
                                    size_t count) {
  size_t lead = count < LEAD ? count : LEAD;
  d->vocab = vocab;
  d->length = d->certain = d->settled = 0;
  // Tokens without text do not show how others are written behind them.
  for (;; lead = 2 * lead < count ? 2 * lead : count) {
    TARN_TRY(tarn_vocab_decode(vocab, &d->before, lead < count ? prompt + (count - lead) : prompt, lead));
    if (d->before.length > 0 || lead == count) break;
  }
  TARN_TRY(tarn__grow(&d->ids, &d->ids_room, lead + 1, sizeof *d->ids));
  if (lead > 0) memcpy(d->ids, prompt + (count - lead), lead * sizeof *prompt);
  d->count = d->lead = lead;
  TARN_TRY(tarn__grow(&d->text, &d->text_room, 1, 1));
  d->text[0] = '\0';
  return TARN_STATUS_OK;
}

// Bytes at the end of a text that the next tokens may change: a part of a character, or U+FFFD, which a vocabulary may
// write for a part of one.
static size_t loose_end(const char *text, size_t length) {
  static const char replacement[] = "\xEF\xBF\xBD";
  size_t end = length;
  for (int i = 0; i < BYTES && end >= 3 && memcmp(text + end - 3, replacement, 3) == 0; i++) end -= 3;
  if (end < length) return length - end;
  for (size_t n = 1; n <= BYTES && n <= length; n++) {
    const unsigned char byte = (unsigned char)text[length - n];
    if ((byte & 0xC0u) == 0x80u) continue;
    const size_t wanted = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    return wanted > n ? n : 0;
  }
  return 0;
}

static size_t common(const tarn_vocab_text *a, const tarn_vocab_text *b) {
  size_t n = 0;
  while (n < a->length && n < b->length && a->data[n] == b->data[n]) n++;
  return n;
}

// The tokens before number `end` have their text in the first `settled` bytes. Those before them are dropped, if the
// others show how more are written.
static tarn_status settle(tarn__detokenizer *d, size_t end, size_t settled) {
  const size_t first = d->lead;
  d->lead = end;
  d->settled = settled;
  TARN_TRY(tarn_vocab_decode(d->vocab, &d->before, d->ids + first, end - first));
  if (d->before.length == 0 || first == 0) return TARN_STATUS_OK;
  memmove(d->ids, d->ids + first, (d->count - first) * sizeof *d->ids);
  d->count -= first;
  d->lead -= first;
  return TARN_STATUS_OK;
}

tarn_status tarn__detokenizer_add(tarn__detokenizer *d, int32_t id) {
  TARN_TRY(tarn__grow(&d->ids, &d->ids_room, d->count + 1, sizeof *d->ids));
  d->ids[d->count++] = id;
  TARN_TRY(tarn_vocab_decode(d->vocab, &d->before, d->ids, d->lead));
  TARN_TRY(tarn_vocab_decode(d->vocab, &d->whole, d->ids, d->count));
  const size_t begin = common(&d->before, &d->whole), fresh = d->whole.length - begin;
  TARN_TRY(tarn__grow(&d->text, &d->text_room, d->settled + fresh + 1, 1));
  memcpy(d->text + d->settled, d->whole.data + begin, fresh);
  d->length = d->settled + fresh;
  d->text[d->length] = '\0';
  const size_t loose = loose_end(d->text + d->settled, fresh);
  d->certain = d->length - loose;
  if (loose == 0) return settle(d, d->count, d->length);
  if (d->count - d->lead <= LOOSE) return TARN_STATUS_OK;
  TARN_TRY(tarn_vocab_decode(d->vocab, &d->whole, d->ids, d->count - BYTES));
  return settle(d, d->count - BYTES, d->settled + d->whole.length - common(&d->before, &d->whole));
}
