// The output layers of a Levenshtein Transformer's policies (Gu et al. 2019, equations 2 to 4), above one decoder that
// they share, whose output for token i is h_i:
//   deletion      softmax(h_i A^T)                        delete token i or not; not of borders
//   placeholder   softmax([h_i, h_i+1] B^T)               0 .. max_placeholders between tokens i and i + 1
//   token         softmax(h_i C^T)                        the word of placeholder i: the output layer of translation
#ifndef TARN_TASK_EDIT_HEADS_H
#define TARN_TASK_EDIT_HEADS_H

#include "task/task.h"

// Declares output.deletion.weight (A) and output.placeholders.weight (B).
tarn_status tarn__edit_heads_declare(const tarn__task_site *site, tarn__task_weights *weights) TARN_CHECKED;

// Lists the rows of packed sentences that are no borders; and for each pair of neighbours its two rows. Return how many
// numbers they write: rows - 2 sentences, and 2 (rows - sentences).
int64_t tarn__edit_inner_rows(int32_t *list, const int32_t *offsets, int64_t sentences);
int64_t tarn__edit_pair_rows(int32_t *list, const int32_t *offsets, int64_t sentences);

// The inputs of A and of B, from the decoder's output and such a list.
tarn__tensor *tarn__deletion_input(tarn__graph *graph, tarn__tensor *states, tarn__tensor *rows);
tarn__tensor *tarn__placeholder_input(tarn__graph *graph, tarn__tensor *states, tarn__tensor *rows);

#endif
