#include "parts/block.h"

static tarn__tensor *build(tarn__graph *graph, tarn__tensor *x, const tarn__linear_weights *weights) {
  return tarn__project(graph, x, weights, TARN__RELU_SQUARED);
}

const tarn__activation_entry tarn__activation_relu_squared = {
    .part = {.word = "relu_squared",
             .text = "max(x, 0)^2, So et al. 2021",
             .equation = "max(x, 0)^2",
             .source = "So et al. 2021 (arXiv 2109.08668)",
             .also = "relu2 squared_relu"},
    .form = TARN__RELU_SQUARED,
    .build = build,
};
