// A tree of the bytes of tokens, for the longest token that a text begins with.
#ifndef TARN_TEXT_PIECE_TRIE_H
#define TARN_TEXT_PIECE_TRIE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct tarn__piece {
  const char *text;
  size_t length;  // at least 1
  int32_t id;
} tarn__piece;

typedef struct tarn__piece_node tarn__piece_node;

typedef struct tarn__piece_trie {
  tarn__piece_node *nodes;  // the children of a node lie side by side, in the order of their bytes
  uint32_t start[256];      // the node of each first byte; 0: no token begins with it
} tarn__piece_trie;

// Makes the tree and puts the pieces into another order. Of equal pieces the one of the highest id is known. Start it
// as {0}; close it also after a failure.
tarn_status tarn__piece_trie_open(tarn__piece_trie *trie, tarn__piece *pieces, size_t count) TARN_CHECKED;
void tarn__piece_trie_close(tarn__piece_trie *trie);

// The id of the longest piece that begins the text, and its length; -1 if none does.
int32_t tarn__piece_trie_longest(const tarn__piece_trie *trie, size_t *length, const char *text, size_t size);

#endif
