// Common code of tasks that predict the next token of a target from the preceding ones.
#ifndef TARN_TASK_NEXT_TOKEN_H
#define TARN_TASK_NEXT_TOKEN_H

#include "task/task.h"

// Declares the embedding of a side, NAME [vocab, d_model], or a narrower one if factorised, or its first band.
// `shared`: the output uses it too.
tarn_status tarn__next_token_table(tarn__param **table, tarn__bands *bands, const tarn__task_site *site,
                                   const char *name, int64_t vocab, bool trained, bool shared) TARN_CHECKED;
// Declares a matrix of the output layer alone, or its first band.
tarn_status tarn__next_token_output(tarn__task_weights *weights, const tarn__task_site *site) TARN_CHECKED;
// Declares the other parameters of the output layer: the lower matrix of two, a bias.
tarn_status tarn__next_token_declare(const tarn__task_site *site, tarn__task_weights *weights) TARN_CHECKED;

// The input of the output table, from states.
tarn__tensor *tarn__next_token_input(tarn__graph *graph, tarn__tensor *states, const tarn__task_weights *weights);
tarn__tensor *tarn__next_token_loss(tarn__graph *graph, const tarn__task_loss *from);

// A model has diverged if its nll is a hundred times that of a uniform distribution over the words.
bool tarn__next_token_diverged(char is[TARN__TASK_TEXT], double nll, int64_t words);

#endif
