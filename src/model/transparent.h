// Transparent attention (Bapna et al. 2018): what each layer of a decoder attends to is a trained mean of the
// embeddings and the outputs of all layers of the encoder, before the encoder's final norm, which it then passes:
//   memory of layer j = Norm(sum over n of softmax(w_j)[n] h_n), h_0 the embeddings
#ifndef TARN_MODEL_TRANSPARENT_H
#define TARN_MODEL_TRANSPARENT_H

#include "model/model.h"

// Of the decoder, if the description says so: decoder.transparent.layerJ [1, layers of the encoder + 1], at first
// zeros, so that all have equal shares. The encoder is declared.
tarn_status tarn__transparent_declare(tarn__model *model, tarn__declare *declare,
                                      const tarn_stack *layers) TARN_CHECKED;

// Room for the outputs of the encoder's layers while a graph is built, for tarn__model_shortcuts; NULL: not needed.
tarn__tensor **tarn__transparent_outputs(const tarn__model *model, tarn__graph *graph);

// The memory of layer `layer` of the decoder, from these outputs.
tarn__tensor *tarn__transparent_memory(const tarn__model *model, tarn__graph *graph, tarn__tensor *const *outputs,
                                       int layer);

#endif
