// The words of a text as BERT's tokenizer cuts them before it looks for pieces (BasicTokenizer of Devlin et al. 2019,
// in the form that the package tokenizers gives it): control characters, U+0000 and U+FFFD are left out, Chinese
// characters stand alone, accents are removed through canonical decomposition (NFD), letters become small; what is
// left is cut at white space, and every punctuation mark is a word of its own.
#ifndef TARN_TEXT_BERT_SPLIT_H
#define TARN_TEXT_BERT_SPLIT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

typedef struct tarn__bert_rules {
  bool lowercase;      // each letter becomes small
  bool strip_accents;  // the text is decomposed, and marks without a width of their own (Mn) are left out
  bool chinese;        // Chinese characters are words of their own
} tarn__bert_rules;

enum {
  TARN__BERT_LONGEST = 100,                   // characters of a word that is looked up
  TARN__BERT_BYTES = 4 * TARN__BERT_LONGEST,  // and its bytes
  TARN__BERT_TOO_LONG = TARN__BERT_BYTES + 1  // the length that a longer one is said to have
};

// Receives a word, which is not empty, as valid UTF-8; of a word that is too long only the length says something. What
// it returns is passed on unless it is TARN_STATUS_OK.
typedef tarn_status (*tarn__bert_sink)(void *user, const char *word, size_t length);

// Gives the words of a text, in order. Invalid UTF-8 is left out, as U+FFFD is.
tarn_status tarn__bert_split(const tarn__bert_rules *rules, const char *text, size_t length, tarn__bert_sink sink,
                             void *user) TARN_CHECKED;

#endif
