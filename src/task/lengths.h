// The length of a translation, predicted from the encoder's output (Ghazvininejad et al. 2019, section 3.3): a softmax
// over the lengths below model.max_length, whose logits are the products of the output at the LENGTH position with a
// vector for each length. That position is the end of sentence of the source, which sees the whole sentence; where the
// paper adds a token of its own, the decoder attends to it here.
#ifndef TARN_TASK_LENGTHS_H
#define TARN_TASK_LENGTHS_H

#include "task/task.h"

// Declares output.length.weight [model.max_length, d_model], row n for n tokens without the end of sentence.
tarn_status tarn__lengths_declare(const tarn__task_site *site, tarn__task_weights *weights) TARN_CHECKED;

// Cross-entropy of the lengths of a batch's targets, which are whole rows, F64 [1, 2] as of tarn__output_loss().
tarn__tensor *tarn__lengths_loss(tarn__graph *graph, const tarn__task_loss *from);

// The `best` likeliest lengths of the sentences of `source`, from the encoder's output [source.rows, d_model]: ids are
// lengths (results).
tarn__top tarn__lengths_top(tarn__graph *graph, tarn__tensor *memory, const tarn__packed *source,
                            const tarn__task_weights *weights, int64_t best);

#endif
