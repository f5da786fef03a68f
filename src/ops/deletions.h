// What a model that edits sentences inserted, and what of it an expert deletes again (Gu et al. 2019, Levenshtein
// Transformer): the answers of one part of a graph become the input of a later one.
#ifndef TARN_OPS_DELETIONS_H
#define TARN_OPS_DELETIONS_H

#include "base/edit_path.h"
#include "graph/graph.h"

// ids I32 [1, R] are packed sentences with placeholders, of two rows or more: the first and the last are borders, which
// nothing deletes. Row rows[k] (I32 [1, n], each row at most once) is a placeholder, in whose place a model puts
// words[k] (I32, n of them; -1: none, then it stays as it is) and the true sentence has truth[k] (I32 [1, n]).
//   filled   I32 [1, R]      the sentences with the model's words
//   deleted  I32 [1, inner]  for all rows but borders (inner = R - 2 sentences, 1 or more; in a graph that is only
//                            planned, perhaps more than that): whether the shortest way to the true sentences deletes
//                            it, 1 or 0 (base/edit_path.h)
// longest: upper bound of the rows of a sentence. Words must be below the size of the vocabulary, as those of
// tarn__output_top() are. There is no gradient: a choice is not differentiable, and the expert is no part of the model.
typedef struct tarn__deletions {
  tarn__tensor *filled, *deleted;
} tarn__deletions;
tarn__deletions tarn__deletions_of(tarn__graph *graph, tarn__tensor *ids, tarn__tensor *offsets, tarn__tensor *rows,
                                   tarn__tensor *words, tarn__tensor *truth, int64_t inner, int64_t longest);

// Internal. Scratch: the true sentences, R integers, and after them (from a multiple of 64 bytes on) the rows of bits
// of all sentences, `words_of_row` words for every row of theirs.
enum {
  TARN__DELETIONS_IDS,
  TARN__DELETIONS_OFFSETS,
  TARN__DELETIONS_ROWS,
  TARN__DELETIONS_WORDS,
  TARN__DELETIONS_TRUTH
};
enum { TARN__DELETIONS_FILLED, TARN__DELETIONS_DELETED };
typedef struct tarn__deletions_attr {
  int64_t words_of_row;
} tarn__deletions_attr;

static inline TARN__HOST_DEVICE size_t tarn__deletions_bits_at(int64_t rows) {
  return ((size_t)rows * sizeof(int32_t) + 63) & ~(size_t)63;
}

static inline size_t tarn__deletions_scratch(const tarn__node *node, int threads) {
  const int64_t rows = node->in[TARN__DELETIONS_IDS]->cols;
  (void)threads;
  return tarn__deletions_bits_at(rows) +
         (size_t)(rows * ((const tarn__deletions_attr *)node->attr)->words_of_row) * sizeof(uint64_t);
}

// The memory of a node, as kernels see it.
typedef struct tarn__deletions_view {
  const int32_t *ids, *offsets, *rows, *words, *truth;
  int32_t *filled, *deleted, *whole;  // whole: the true sentences
  uint64_t *bits;
  int64_t count, placeholders, sentences, words_of_row;
} tarn__deletions_view;

static inline tarn__deletions_view tarn__deletions_see(const tarn__node *node) {
  tarn__deletions_view v;
  v.ids = (const int32_t *)node->in[TARN__DELETIONS_IDS]->data;
  v.offsets = (const int32_t *)node->in[TARN__DELETIONS_OFFSETS]->data;
  v.rows = (const int32_t *)node->in[TARN__DELETIONS_ROWS]->data;
  v.words = (const int32_t *)node->in[TARN__DELETIONS_WORDS]->data;
  v.truth = (const int32_t *)node->in[TARN__DELETIONS_TRUTH]->data;
  v.filled = (int32_t *)node->out[TARN__DELETIONS_FILLED]->data;
  v.deleted = (int32_t *)node->out[TARN__DELETIONS_DELETED]->data;
  v.count = node->in[TARN__DELETIONS_IDS]->cols;
  v.placeholders = node->in[TARN__DELETIONS_ROWS]->cols;
  v.sentences = node->in[TARN__DELETIONS_OFFSETS]->cols - 1;
  v.words_of_row = ((const tarn__deletions_attr *)node->attr)->words_of_row;
  v.whole = (int32_t *)node->scratch;
  v.bits = (uint64_t *)(void *)((char *)node->scratch + tarn__deletions_bits_at(v.count));
  return v;
}

// Placeholder k; and the deletions of sentence s, once all placeholders are filled.
static inline TARN__HOST_DEVICE void tarn__deletions_put(const tarn__deletions_view *v, int64_t k) {
  if (v->words[k] >= 0) v->filled[v->rows[k]] = v->words[k];
  v->whole[v->rows[k]] = v->truth[k];
}

static inline TARN__HOST_DEVICE void tarn__deletions_find(const tarn__deletions_view *v, int64_t s) {
  const int64_t first = v->offsets[s] + 1, inner = v->offsets[s + 1] - 1 - first;
  tarn__edit_path(v->deleted + v->offsets[s] - 2 * s, NULL, v->filled + first, inner, v->whole + first, inner,
                  v->bits + v->offsets[s] * v->words_of_row);
}

#endif
