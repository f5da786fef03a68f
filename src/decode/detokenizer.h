// The text of a continuation whose tokens come one by one, at a cost for each that does not grow with the text: only
// the last tokens are decoded, behind some that show how they are written behind others (a SentencePiece model writes
// no space before its first token).
#ifndef TARN_DECODE_DETOKENIZER_H
#define TARN_DECODE_DETOKENIZER_H

#include "base/status.h"
#include "tarn/vocab.h"

// Zero-initialise.
typedef struct tarn__detokenizer {
  const tarn_vocab *vocab;
  char *text;      // [length] bytes, of all tokens that were added; not always whole characters
  size_t length;   // and of these at the beginning
  size_t certain;  // no token to come changes
  // Private: the last tokens, of which the first `lead` have their text in the first `settled` bytes.
  int32_t *ids;
  size_t count, ids_room, lead, settled, text_room;
  tarn_vocab_text before, whole;  // scratch
} tarn__detokenizer;

void tarn__detokenizer_close(tarn__detokenizer *detokenizer);

// Begins a continuation of `count` tokens, whose own text is not part of it.
tarn_status tarn__detokenizer_begin(tarn__detokenizer *detokenizer, const tarn_vocab *vocab, const int32_t *prompt,
                                    size_t count) TARN_CHECKED;
// The next token.
tarn_status tarn__detokenizer_add(tarn__detokenizer *detokenizer, int32_t id) TARN_CHECKED;

#endif
