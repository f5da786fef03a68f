// The tokens of a sentence whose words stand by themselves: each word, as white space divides them, is encoded alone,
// so that it is known where it begins.
#ifndef TARN_DATA_SENTENCE_WORDS_H
#define TARN_DATA_SENTENCE_WORDS_H

#include "data/sentence_pair.h"

// Zero-initialise it; closing accepts that.
typedef struct tarn__sentence_words {
  int64_t words;    // of the text
  int64_t whole;    // of them in the row, the first ones
  int64_t length;   // tokens of the row, its end of sentence included
  int64_t cut_off;  // tokens that did not fit
  int64_t empty;    // the number, from 1, of the first word that gives no token; 0: none
  int32_t *ids;     // [length]
  int32_t *first;   // [whole] the first token of each word of the row
  // Private.
  size_t ids_room, first_room;
  tarn_vocab_ids encoded;
  char *spaced;
  size_t spaced_room;
} tarn__sentence_words;

// The next word from `at` on, and what stands behind it; of length 0: there is none.
tarn__piece tarn__next_word(const char **at, const char *end);

// Makes the row of a text, of at most `most` tokens, at least 2: where words do not fit, the last ones are cut off. A
// word that gives no token is the unknown one; where the vocabulary has none (`empty`) there is no row. Fails with
// MEMORY, or as tarn_vocab_encode() does.
tarn_status tarn__sentence_words_make(tarn__sentence_words *row, const tarn_vocab *vocab, const tarn__piece *text,
                                      int64_t most) TARN_CHECKED;
void tarn__sentence_words_close(tarn__sentence_words *row);

#endif
