// Finds the sentences of one paragraph.
#ifndef TARN_TEXT_SENTENCES_H
#define TARN_TEXT_SENTENCES_H

#include <stddef.h>
#include <stdint.h>

#include "text/sentence_language.h"

typedef struct tarn__sentence {
  size_t start, end;  // bytes in the paragraph, without white space around
} tarn__sentence;

// Zero-initialise, set the language, use any number of times, close.
typedef struct tarn__sentences {
  const tarn__sentence_language *language;
  tarn__sentence *items;  // the result
  size_t count;
  // Private.
  size_t capacity;
  struct tarn__sentence_character *text;
  size_t length, text_capacity;
} tarn__sentences;

tarn_status tarn__sentences_split(tarn__sentences *sentences, const char *text, size_t length) TARN_CHECKED;
void tarn__sentences_close(tarn__sentences *sentences);

#endif
