// Joins the bands of a vocabulary: their vectors in an adaptive input (Baevski and Auli 2019), their losses and
// log-probabilities in an adaptive softmax (Grave et al. 2017). The bands' products and softmaxes are the ops linear,
// output_loss, output_log_probabilities and output_top.
//
// With the first band's words and a class for each other band in one softmax, the head,
//   log p(v) = log p_head(v)                          of a word of the first band
//   log p(v) = log p_head(class of b) + log p_b(v)    of a word of band b > 0
#ifndef TARN_OPS_ADAPTIVE_H
#define TARN_OPS_ADAPTIVE_H

#include "graph/graph.h"
#include "ops/ops.h"

enum { TARN__ADAPTIVE_PARTS = 8 };

// The rows of the parts in their places: y [R, d], y[rows[i]] = row i of the concatenated parts [n_k, d]. rows: I32
// [1, R], each number below R once. The gradient of a part is those rows of that of y.
tarn__tensor *tarn__adaptive_rows(tarn__graph *graph, tarn__tensor *const *parts, int count, tarn__tensor *rows);

// The sum of losses from tarn__output_loss() and others, F64 [1, 2]. In training the losses compute their own
// gradients.
tarn__tensor *tarn__loss_sum(tarn__graph *graph, tarn__tensor *const *losses, int count);
// Adds the losses of tails to the head's losses of rows, F64 [R, 2]: tails[k] [n_k, 2], whose concatenated rows belong
// to rows [1, sum of n_k] of the head, I32. No gradient.
tarn__tensor *tarn__adaptive_row_losses(tarn__graph *graph, tarn__tensor *head, tarn__tensor *const *tails, int count,
                                        tarn__tensor *rows);

// Log-probabilities [R, V] of all words, from those of the head [R, first band + count] and of each tail.
tarn__tensor *tarn__adaptive_log_probabilities(tarn__graph *graph, tarn__tensor *head, tarn__tensor *const *tails,
                                               int count);

// The best words, as from tarn__output_top(), one tail at a time. `head` has the best of the head, `best` plus the
// number of tails, including its classes, whose ids follow those of the words. Tail number k, from 0, has its best
// words, whose ids begin at `first`; the result is one shorter and has the tail's words instead of its class. Remaining
// classes have the ids `words` (the number of all words) + k. So the result of the last tail is exact: a class that is
// not among the head's best has at least `best` words before it.
typedef struct tarn__adaptive_merge {
  int64_t shortlist;  // words of the head; 0: its classes have been renamed, as after the first tail
  int64_t words, first;
  int tail;
  bool always;  // the word `always` is one of the tail; then the head's is its class
} tarn__adaptive_merge;
tarn__top tarn__adaptive_top(tarn__graph *graph, tarn__top head, tarn__top tail, tarn__adaptive_merge merge);

// Internal: indices of inputs, the last of which are rows. A merge of adaptive_scores has four inputs, all
// log-probabilities the head and the tails.
enum { TARN__ADAPTIVE_ROWS = TARN__ADAPTIVE_PARTS };
enum { TARN__ADAPTIVE_VALUES, TARN__ADAPTIVE_IDS, TARN__ADAPTIVE_TAIL_VALUES, TARN__ADAPTIVE_TAIL_IDS };
typedef struct tarn__adaptive_attr {
  bool top;
  tarn__adaptive_merge merge;
} tarn__adaptive_attr;

#endif
