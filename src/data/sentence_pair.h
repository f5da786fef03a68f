// A row of one sentence or of two, as a shard holds it and a classifier reads it: the tokens of the first and an end of
// sentence, or two of them before a second sentence where the vocabulary is RoBERTa's, as its tokenizer puts them; then
// those of the second and an end of sentence.
#ifndef TARN_DATA_SENTENCE_PAIR_H
#define TARN_DATA_SENTENCE_PAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "tarn/vocab.h"

// A piece of text, not ended by a zero byte.
typedef struct tarn__piece {
  const char *text;
  size_t length;
} tarn__piece;

// Zero-initialise or make; may be made again and again.
typedef struct tarn__sentence_pair {
  int32_t *ids;     // [length]
  int64_t length;   // with all ends of sentences
  int64_t second;   // where the second sentence begins; `length` where there is one only
  int64_t cut_off;  // tokens that were cut off
  bool empty;       // a sentence has no token; there are no ids then
  // Private.
  size_t capacity;
  tarn_vocab_ids first_ids, second_ids;
} tarn__sentence_pair;

// Encodes one sentence, or two (second->text not NULL), to at most `most` tokens with their ends. Fails with USAGE
// unless `most` leaves room for a token of each sentence beside the ends. In a row that is too long the longer sentence
// loses tokens at its end until both are of one length, then both do, the first one last: "longest first" of the
// tokenizers package.
tarn_status tarn__sentence_pair_make(tarn__sentence_pair *row, const tarn_vocab *vocab, const tarn__piece *first,
                                     const tarn__piece *second, int64_t most) TARN_CHECKED;
void tarn__sentence_pair_close(tarn__sentence_pair *row);

#endif
