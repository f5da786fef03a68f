// The output layer for words, applied to the states of a stack: one softmax, a mixture of them, or one per band of the
// vocabulary (task/bands.h), whose loss is not smoothed.
#ifndef TARN_TASK_HEAD_H
#define TARN_TASK_HEAD_H

#include "task/task.h"

// The input of the output table, and for a mixture the priors of its softmaxes.
typedef struct tarn__head {
  tarn__tensor *x, *prior;  // prior NULL: no mixture
  const tarn__task_weights *weights;
} tarn__head;

// `x` is the result of the task's output_input() or pooled_input() for `states`.
tarn__head tarn__head_of(tarn__graph *graph, tarn__tensor *states, tarn__tensor *x, const tarn__task_weights *weights);

// As tarn__output_loss(), tarn__output_token_loss(), tarn__output_log_probabilities() and tarn__output_top().
tarn__tensor *tarn__head_loss(tarn__graph *graph, const tarn__head *head, tarn__tensor *targets, double smoothing,
                              double grad_scale);
tarn__tensor *tarn__head_token_loss(tarn__graph *graph, const tarn__head *head, tarn__tensor *targets);
tarn__tensor *tarn__head_log_probabilities(tarn__graph *graph, const tarn__head *head);
// The logits of a softmax over all words; of a mixture or bands their log-probabilities, which differ from logits by
// one number a row at most.
tarn__tensor *tarn__head_logits(tarn__graph *graph, const tarn__head *head);
tarn__top tarn__head_top(tarn__graph *graph, const tarn__head *head, int64_t best, int32_t always);

#endif
