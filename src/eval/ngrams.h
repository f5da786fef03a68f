// Counts of the n-grams of one sentence's references, and how many of them a hypothesis matches.
//
// All n-grams live in one trie whose edges are in one hash table keyed by (node, symbol): a node is one distinct
// n-gram, so only 64-bit keys are compared and no n-gram is mistaken for another. Characters are their own symbols; a
// word's symbol is the node of its spelling.
#ifndef TARN_EVAL_NGRAMS_H
#define TARN_EVAL_NGRAMS_H

#include "eval/codepoints.h"

// The roots of the kinds of sequences in the trie.
enum { TARN__NGRAMS_SPELLING = 1, TARN__NGRAMS_CHARACTERS = 2, TARN__NGRAMS_WORDS = 3, TARN__NGRAMS_FIRST = 4 };

typedef struct tarn__ngrams_edge {
  uint64_t key;         // node << 32 | symbol
  uint32_t node;        // the child
  uint32_t generation;  // the edge exists if this equals the table's
} tarn__ngrams_edge;

typedef struct tarn__ngrams_node {
  uint32_t reference;  // the last reference that has the n-gram
  uint32_t now;        // its count there
  uint32_t best;       // its highest count in a reference
  uint32_t used;       // number of these that the hypothesis has matched
} tarn__ngrams_node;

// Zero-initialise.
typedef struct tarn__ngrams {
  tarn__ngrams_edge *edges;
  size_t edges_capacity, edges_count;  // the capacity is 0 or a power of two
  tarn__ngrams_node *nodes;
  size_t nodes_capacity, nodes_count;
  uint32_t generation;
  uint32_t references;
} tarn__ngrams;
void tarn__ngrams_close(tarn__ngrams *grams);

// Clears everything in constant time; call it before the first reference of a sentence.
tarn_status tarn__ngrams_clear(tarn__ngrams *grams) TARN_CHECKED;

// The symbol of a word. If `add` is false and no reference has the word, the symbol is 0, which matches nothing.
tarn_status tarn__ngrams_word(tarn__ngrams *grams, uint32_t *symbol, const int32_t *spelling, size_t length,
                              bool add) TARN_CHECKED;

// Begins a reference, then counts the n-grams of 1 to `order` symbols of a sequence under `root`.
void tarn__ngrams_reference(tarn__ngrams *grams);
tarn_status tarn__ngrams_add(tarn__ngrams *grams, uint32_t root, const uint32_t *symbols, size_t count,
                             int order) TARN_CHECKED;

// Adds to matched[n - 1] the number of n-grams of a hypothesis that the references also have, each at most as often as
// in the reference with most of them (BLEU's clipped counts).
void tarn__ngrams_match(tarn__ngrams *grams, int64_t *matched, uint32_t root, const uint32_t *symbols, size_t count,
                        int order);

#endif
