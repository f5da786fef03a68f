// Products within packed sentences, between token rows and a fixed number of rows per sentence. Three tensors belong
// together:
//   a [R, heads * h]   rows, for each head h columns
//   x [R, *]           rows, of which `d` columns from `column` on are used, d / heads for each head
//   z [n * h, d]       h rows for each of n sentences: those of sentence s from row s * h on
// Sentence s has the rows offsets[s] .. offsets[s + 1] - 1 (I32 [1, n + 1]); head g has the columns [g h, (g + 1) h) of
// a and [g d / heads, (g + 1) d / heads) of the used ones of x and of z. For each sentence and head
//   OUTER    z = a^T x       what the sentence is, h rows however many tokens it has: tarn__sentence_outer()
//   PRODUCT  x = a z         what each token reads of it: tarn__sentence_product()
//   WEIGHTS  a = x z^T       the gradient of a, of both: of the first with z's gradient, of the second with x's
// and every gradient is again one of the three.
//
// HyperMixer mixes tokens by both (Mai et al. 2023, W2 gelu(W1^T X)); Linformer projects keys and values by the first
// (Wang et al. 2020), a being rows of a table of positions.
#ifndef TARN_OPS_SENTENCE_PRODUCT_H
#define TARN_OPS_SENTENCE_PRODUCT_H

#include "graph/graph.h"

typedef struct tarn__sentence_spec {
  int64_t heads;    // at least 1; divides the columns of a, and d
  int64_t column;   // of x; only OUTER, else 0
  int64_t d;        // used columns of x, and columns of z
  int64_t longest;  // upper bound of the rows of a sentence, for scratch
} tarn__sentence_spec;

// z [n * h, spec.d] of a [R, spec.heads * h] and x; n = offsets->cols - 1. A sentence without rows has zeros.
tarn__tensor *tarn__sentence_outer(tarn__graph *graph, tarn__tensor *a, tarn__tensor *x, tarn__tensor *offsets,
                                   tarn__sentence_spec spec);
// x [R, spec.d] of a [R, spec.heads * h] and z [n * h, spec.d].
tarn__tensor *tarn__sentence_product(tarn__graph *graph, tarn__tensor *a, tarn__tensor *z, tarn__tensor *offsets,
                                     tarn__sentence_spec spec);

// Forward: A and the other factor, x for OUTER and z for PRODUCT; one output.
enum { TARN__SENTENCE_A, TARN__SENTENCE_FACTOR, TARN__SENTENCE_OFFSETS };
// Backward: also (FACTOR is NULL if DA is not wanted) the gradient DY of the output, and the gradients so far of both
// (NULL: none). Out DA and DFACTOR, each NULL if not wanted.
enum { TARN__SENTENCE_DY = 3, TARN__SENTENCE_PREVIOUS_A, TARN__SENTENCE_PREVIOUS_FACTOR };
enum { TARN__SENTENCE_DA, TARN__SENTENCE_DFACTOR };

// One of the three products of a node.
typedef enum tarn__sentence_form {
  TARN__SENTENCE_FORM_OUTER,
  TARN__SENTENCE_FORM_PRODUCT,
  TARN__SENTENCE_FORM_WEIGHTS
} tarn__sentence_form;
typedef struct tarn__sentence_task {
  tarn__sentence_form form;
  const tarn__tensor *a, *x, *z;  // the one given by form is written
  int64_t column;                 // of x: spec.column, or 0 if x has only the used columns
  bool add;                       // to the present values
} tarn__sentence_task;

// The products of a node, at most two. Returns their number.
static inline int tarn__sentence_tasks(tarn__sentence_task tasks[2], const tarn__node *node) {
  const int64_t column = ((const tarn__sentence_spec *)node->attr)->column;
  const tarn__tensor *a = node->in[TARN__SENTENCE_A], *factor = node->in[TARN__SENTENCE_FACTOR];
  const tarn__tensor *dy = node->in[TARN__SENTENCE_DY];
  const bool outer = node->op->id == TARN__OP_SENTENCE_OUTER || node->op->id == TARN__OP_SENTENCE_OUTER_BACKWARD;
  const tarn__sentence_form form = outer ? TARN__SENTENCE_FORM_OUTER : TARN__SENTENCE_FORM_PRODUCT;
  if (!dy) {
    const tarn__tensor *y = node->out[0];
    const tarn__sentence_task only = {form, a, outer ? factor : y, outer ? y : factor, column, false};
    tasks[0] = only;
    return 1;
  }
  const tarn__tensor *da = node->out[TARN__SENTENCE_DA], *dfactor = node->out[TARN__SENTENCE_DFACTOR];
  const tarn__sentence_form other = outer ? TARN__SENTENCE_FORM_PRODUCT : TARN__SENTENCE_FORM_OUTER;
  const bool add_a = node->in[TARN__SENTENCE_PREVIOUS_A] != NULL;
  const bool add_factor = node->in[TARN__SENTENCE_PREVIOUS_FACTOR] != NULL;
  const tarn__sentence_task of_a = {TARN__SENTENCE_FORM_WEIGHTS, da,     outer ? factor : dy,
                                    outer ? dy : factor,         column, add_a};
  const tarn__sentence_task of_factor = {other, a, outer ? dfactor : dy, outer ? dy : dfactor, column, add_factor};
  int count = 0;
  if (da) tasks[count++] = of_a;
  if (dfactor) tasks[count++] = of_factor;
  return count;
}

#endif
