// The text of a continuation, and stop strings in it.
#ifndef TARN_DECODE_CONTINUATION_H
#define TARN_DECODE_CONTINUATION_H

#include "base/status.h"
#include "tarn/vocab.h"

// Scratch. Zero-initialise.
typedef struct tarn__continuation {
  tarn_vocab_text lead, text;  // of the prompt; of all
  size_t begin;                // where the continuation begins in `text`: behind what both share
} tarn__continuation;

void tarn__continuation_close(tarn__continuation *continuation);

// Decodes `length` ids, of which the first `prompt` are those of the prompt.
tarn_status tarn__continuation_decode(tarn__continuation *continuation, const tarn_vocab *vocab, const int32_t *ids,
                                      int64_t prompt, int64_t length) TARN_CHECKED;

// Strings of at least one byte at whose first appearance a continuation ends, before them.
typedef struct tarn__stops {
  const tarn_vocab *vocab;
  const char *const *texts;  // [count]
  size_t count, longest;     // bytes of the longest one
} tarn__stops;

// Where in text [length] the first of them begins, from `begin` on; `length` if there is none.
size_t tarn__stops_find(const tarn__stops *stops, const char *text, size_t begin, size_t length);

// Bytes at the end of a text that may be the beginning of one of them.
size_t tarn__stops_begun(const tarn__stops *stops, const char *text, size_t length);

// Whether the last of `length` ids completes one of them.
tarn_status tarn__stops_here(const tarn__stops *stops, tarn__continuation *continuation, const int32_t *ids,
                             int64_t prompt, int64_t length, bool *here) TARN_CHECKED;

#endif
