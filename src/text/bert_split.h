// The words of a text as BERT's tokenizer cuts them before it looks for pieces (BasicTokenizer of Devlin et al. 2019,
// in the form of the package tokenizers): control characters, U+0000 and U+FFFD are dropped, Chinese characters are
// separate words, accents are removed through canonical decomposition (NFD), letters become lower case; the rest is cut
// at white space, and every punctuation mark is a word.
#ifndef TARN_TEXT_BERT_SPLIT_H
#define TARN_TEXT_BERT_SPLIT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

typedef struct tarn__bert_rules {
  bool lowercase;      // letters become lower case
  bool strip_accents;  // the text is decomposed, and nonspacing marks (Mn) are dropped
  bool chinese;        // Chinese characters are separate words
} tarn__bert_rules;

enum {
  TARN__BERT_LONGEST = 100,                   // characters of a word that is looked up
  TARN__BERT_BYTES = 4 * TARN__BERT_LONGEST,  // its bytes
  TARN__BERT_TOO_LONG = TARN__BERT_BYTES + 1  // the length reported for a longer one
};

// Receives a non-empty word as valid UTF-8; if the word is too long, only its length is meaningful. A status other than
// TARN_STATUS_OK is passed on.
typedef tarn_status (*tarn__bert_sink)(void *user, const char *word, size_t length);

// Passes the words of a text, in order. Invalid UTF-8 is dropped like U+FFFD.
tarn_status tarn__bert_split(const tarn__bert_rules *rules, const char *text, size_t length, tarn__bert_sink sink,
                             void *user) TARN_CHECKED;

#endif
