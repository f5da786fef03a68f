#include "parts/block.h"

static tarn__tensor *build(tarn__graph *graph, tarn__tensor *x, const tarn__linear_weights *weights) {
  return tarn__project(graph, x, weights, TARN__GELU);
}

const tarn__activation_entry tarn__activation_gelu = {
    .part = {.word = "gelu",
             .text = "x Phi(x) with the normal distribution's Phi, Hendrycks and Gimpel 2016",
             .equation = "x Phi(x), Phi the distribution function of the normal distribution",
             .source = "Hendrycks and Gimpel 2016 (arXiv 1606.08415)"},
    .form = TARN__GELU,
    .build = build,
};
