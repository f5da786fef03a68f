#include "parts/block.h"

static tarn__tensor *build(tarn__graph *graph, tarn__tensor *x, const tarn__linear_weights *weights) {
  return tarn__project(graph, x, weights, TARN__GELU_TANH);
}

const tarn__activation_entry tarn__activation_gelu_tanh = {
    .part = {.word = "gelu_tanh",
             .text = "x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))): that of GPT-2, gelu_new at Hugging Face",
             .equation = "x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))",
             .source = "Hendrycks and Gimpel 2016 (arXiv 1606.08415)",
             .also = "gelu_new gelu_pytorch_tanh gelu_fast"},
    .form = TARN__GELU_TANH,
    .build = build,
};
