#include "parts/block.h"

static tarn__tensor *build(tarn__graph *graph, tarn__tensor *x, const tarn__linear_weights *weights) {
  return tarn__project(graph, x, weights, TARN__ELU);
}

const tarn__activation_entry tarn__activation_elu = {
    .part = {.word = "elu",
             .text = "x where x > 0, else e^x - 1, Clevert et al. 2016",
             .equation = "x where x > 0, else e^x - 1",
             .source = "Clevert et al. 2016 (arXiv 1511.07289)"},
    .form = TARN__ELU,
    .build = build,
};
