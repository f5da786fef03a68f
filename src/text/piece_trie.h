// A trie of the bytes of tokens, to find the longest token with which a text begins.
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
  tarn__piece_node *nodes;  // the children of a node are adjacent, in the order of their bytes
  uint32_t start[256];      // the node of each first byte; 0: no token begins with it
} tarn__piece_trie;

// Builds the trie and reorders the pieces. Of equal pieces the one with the highest id counts. Start it as {0}; close
// it even after a failure.
tarn_status tarn__piece_trie_open(tarn__piece_trie *trie, tarn__piece *pieces, size_t count) TARN_CHECKED;
void tarn__piece_trie_close(tarn__piece_trie *trie);

// The id of the longest piece that begins the text, and its length; -1 if none does.
int32_t tarn__piece_trie_longest(const tarn__piece_trie *trie, size_t *length, const char *text, size_t size);

#endif
