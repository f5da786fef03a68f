// Entities in sentences whose words have labels, as conlleval and seqeval find them: in the label "B-PER" B says where
// the word stands in its entity and PER what that is.
//
//   B begins an entity, I goes on with it, E ends it, S is one of a single word (IOBES; L and U are E and S); O is
//   none. An I or E that continues nothing begins an entity, so that IOB1 is read too. Any other label ("NOUN") is an
//   entity of a single word.
#ifndef TARN_EVAL_SPANS_H
#define TARN_EVAL_SPANS_H

#include <stdint.h>

typedef struct tarn__span_label {
  char place;    // 'B', 'I', 'E', 'S' or 'O'
  int32_t type;  // the number of the first label of its type
} tarn__span_label;

// What each of `count` labels says.
void tarn__span_labels(tarn__span_label *labels, const char *const *names, int32_t count);

// What is counted in a sentence.
typedef struct tarn__span_counts {
  int64_t words, right_words;
  int64_t right, found, hits;  // entities that are right, that were found, and both: the same words and type
} tarn__span_counts;

// Of a sentence of `words` words: the numbers of their labels, right and found.
tarn__span_counts tarn__spans_count(const tarn__span_label *labels, const int32_t *right, const int32_t *found,
                                    int64_t words);

#endif
