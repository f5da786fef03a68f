// What joins the bands of a vocabulary: of an adaptive input (Baevski and Auli 2019) their vectors, of an adaptive
// softmax (Grave et al. 2017) their losses and log-probabilities. The bands' own products and softmaxes are those of
// the ops linear, output_loss, output_log_probabilities and output_top.
//
// With the first band's words and a class for each other band in one softmax, the head,
//   log p(v) = log p_head(v)                          of a word of the first band
//   log p(v) = log p_head(class of b) + log p_b(v)    of a word of band b > 0
#ifndef TARN_OPS_ADAPTIVE_H
#define TARN_OPS_ADAPTIVE_H

#include "graph/graph.h"
#include "ops/ops.h"

enum { TARN__ADAPTIVE_PARTS = 8 };

// The rows of the parts, put where they belong: y [R, d], y[rows[i]] = row i of all parts, one part [n_k, d] behind the
// other. rows: I32 [1, R], each number below R once. The gradient of a part is those rows of that of y.
tarn__tensor *tarn__adaptive_rows(tarn__graph *graph, tarn__tensor *const *parts, int count, tarn__tensor *rows);

// The sum of losses as tarn__output_loss() and others make them, F64 [1, 2]. In training the gradients are those that
// the losses compute themselves.
tarn__tensor *tarn__loss_sum(tarn__graph *graph, tarn__tensor *const *losses, int count);
// The losses of rows, F64 [R, 2], of the head, to each of which the loss of a tail is added: tails[k] [n_k, 2], whose
// rows, one tail behind the other, belong to rows [1, sum of n_k] of the head, I32. No gradient.
tarn__tensor *tarn__adaptive_row_losses(tarn__graph *graph, tarn__tensor *head, tarn__tensor *const *tails, int count,
                                        tarn__tensor *rows);

// Log-probabilities [R, V] of all words, from those of the head [R, first band + count] and of each tail.
tarn__tensor *tarn__adaptive_log_probabilities(tarn__graph *graph, tarn__tensor *head, tarn__tensor *const *tails,
                                               int count);

// The best words, as tarn__output_top() has them, a tail at a time. `head` has the best of the head, as many more than
// `best` as there are tails, its classes among them by the ids behind the words. Tail number k, from 0, has its best
// words, whose ids begin at `first`; the result is one shorter and in place of the tail's class has its words. Classes
// that are still to come are called `words` (how many there are in all) + k. So the result of the last tail is exact: a
// class that is not among the head's best has at least `best` words before it.
typedef struct tarn__adaptive_merge {
  int64_t shortlist;  // words of the head; 0: its classes have been renamed, as behind the first tail
  int64_t words, first;
  int tail;
  bool always;  // the word that is always wanted is one of the tail; then the head's is its class
} tarn__adaptive_merge;
tarn__top tarn__adaptive_top(tarn__graph *graph, tarn__top head, tarn__top tail, tarn__adaptive_merge merge);

// Inside: places of inputs, of which rows are the last. Of adaptive_scores a merge has four inputs, all
// log-probabilities the head and the tails.
enum { TARN__ADAPTIVE_ROWS = TARN__ADAPTIVE_PARTS };
enum { TARN__ADAPTIVE_VALUES, TARN__ADAPTIVE_IDS, TARN__ADAPTIVE_TAIL_VALUES, TARN__ADAPTIVE_TAIL_IDS };
typedef struct tarn__adaptive_attr {
  bool top;
  tarn__adaptive_merge merge;
} tarn__adaptive_attr;

#endif
