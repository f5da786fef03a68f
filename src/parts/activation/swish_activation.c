#include "parts/block.h"

static tarn__tensor *build(tarn__graph *graph, tarn__tensor *x, const tarn__linear_weights *weights) {
  return tarn__project(graph, x, weights, TARN__SWISH);
}

const tarn__activation_entry tarn__activation_swish = {
    .part = {.word = "swish",
             .text = "x / (1 + e^-x), Ramachandran et al. 2017 with beta 1; also called SiLU",
             .equation = "x / (1 + e^-x)",
             .source = "Ramachandran et al. 2017 (arXiv 1710.05941)",
             .also = "silu"},
    .form = TARN__SWISH,
    .build = build,
};
