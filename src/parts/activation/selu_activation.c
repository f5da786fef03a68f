#include "parts/block.h"

static tarn__tensor *build(tarn__graph *graph, tarn__tensor *x, const tarn__linear_weights *weights) {
  return tarn__project(graph, x, weights, TARN__SELU);
}

const tarn__activation_entry tarn__activation_selu = {
    .part = {.word = "selu",
             .text = "1.0507 x where x > 0, else 1.7581 (e^x - 1), Klambauer et al. 2017",
             .equation = "1.0507 x where x > 0, else 1.7581 (e^x - 1)",
             .source = "Klambauer et al. 2017 (arXiv 1706.02515)"},
    .form = TARN__SELU,
    .build = build,
};
