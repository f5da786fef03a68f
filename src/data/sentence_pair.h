// A row of one or two sentences, as a shard holds it and a classifier reads it: the tokens of the first and an end of
// sentence (two before a second sentence with RoBERTa's vocabulary, like its tokenizer), then the tokens of the second
// and an end of sentence.
#ifndef TARN_DATA_SENTENCE_PAIR_H
#define TARN_DATA_SENTENCE_PAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "tarn/vocab.h"

// A piece of text without a terminating zero byte.
typedef struct tarn__piece {
  const char *text;
  size_t length;
} tarn__piece;

// Zero-initialise or make; may be made repeatedly.
typedef struct tarn__sentence_pair {
  int32_t *ids;     // [length]
  int64_t length;   // with all ends of sentences
  int64_t second;   // start of the second sentence; `length` if there is only one
  int64_t cut_off;  // tokens cut off
  bool empty;       // a sentence has no token; there are then no ids
  // Private.
  size_t capacity;
  tarn_vocab_ids first_ids, second_ids;
} tarn__sentence_pair;

// Encodes one sentence, or two (second->text not NULL), to at most `most` tokens with their ends. Fails with USAGE
// unless `most` leaves space for the ends and a token of each sentence. In an overlong row the longer sentence loses
// tokens at its end until both have the same length, then both do, the first one last: "longest first" of the
// tokenizers package.
tarn_status tarn__sentence_pair_make(tarn__sentence_pair *row, const tarn_vocab *vocab, const tarn__piece *first,
                                     const tarn__piece *second, int64_t most) TARN_CHECKED;
void tarn__sentence_pair_close(tarn__sentence_pair *row);

#endif
