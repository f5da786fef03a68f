// What all tasks share that predict the next token of a target, each token from those before it.
#ifndef TARN_TASK_NEXT_TOKEN_H
#define TARN_TASK_NEXT_TOKEN_H

#include "task/task.h"

// The embedding of a side, NAME [vocab, d_model], or narrower where it is factorised, or its first band. `shared`: the
// output has it too.
tarn_status tarn__next_token_table(tarn__param **table, tarn__bands *bands, const tarn__task_site *site,
                                   const char *name, int64_t vocab, bool trained, bool shared) TARN_CHECKED;
// A matrix of the output layer alone, or its first band.
tarn_status tarn__next_token_output(tarn__task_weights *weights, const tarn__task_site *site) TARN_CHECKED;
// What else the output layer has: the lower matrix of two, a bias.
tarn_status tarn__next_token_declare(const tarn__task_site *site, tarn__task_weights *weights) TARN_CHECKED;

// What the output table reads of states.
tarn__tensor *tarn__next_token_input(tarn__graph *graph, tarn__tensor *states, const tarn__task_weights *weights);
tarn__tensor *tarn__next_token_loss(tarn__graph *graph, const tarn__task_loss *from);

// A model has diverged with a hundred times the nll of one that knows nothing but the number of words.
bool tarn__next_token_diverged(char is[TARN__TASK_TEXT], double nll, int64_t words);

#endif
