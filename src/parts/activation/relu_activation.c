#include "parts/block.h"

static tarn__tensor *build(tarn__graph *graph, tarn__tensor *x, const tarn__linear_weights *weights) {
  return tarn__project(graph, x, weights, TARN__RELU);
}

const tarn__activation_entry tarn__activation_relu = {
    .part = {.word = "relu", .text = "max(x, 0)", .equation = "max(x, 0)", .source = "Nair and Hinton 2010"},
    .form = TARN__RELU,
    .build = build,
};
