// Swish with a number beta (Ramachandran et al. 2017), learnt by the layer or given in the description.
#include "ops/swish_beta.h"
#include "parts/block.h"

typedef struct swish_keys {
  double beta;
  bool learned;
} swish_keys;

static const tarn__option options[] = {
    {"beta", TARN__KEY_REAL(swish_keys, beta, 0, 1000), .value = "1",
     .help = "what x is multiplied by inside the sigmoid; 1.702 is close to GELU; with `learned`, where each "
             "layer begins"},
    {"learned", TARN__KEY_BOOL(swish_keys, learned), .value = "yes",
     .help = "each layer that is not frozen learns a beta of its own; no: beta is a constant",
     .also = "trainable learnable learn_beta"},
};

static tarn__param *declare_beta(tarn__declare *declare, const char *name, const void *memory) {
  const swish_keys *keys = memory;
  return keys->learned ? tarn__declare_number(declare, name, keys->beta) : NULL;
}

static tarn__tensor *apply(tarn__graph *graph, tarn__tensor *z, tarn__tensor *offsets, const void *memory,
                           tarn__param *beta) {
  return tarn__swish_beta(graph, z, offsets, ((const swish_keys *)memory)->beta, beta, false);
}

const tarn__activation_entry tarn__activation_swish_beta = {
    .part = {.word = "swish_beta",
             .text = "x / (1 + e^(-beta x)), Ramachandran et al. 2017: beta is a number that each layer learns, or a "
                     "constant",
             .equation = "x / (1 + e^{-beta x})\n"
                         "beta [1, 1] trained, one a layer (learned: yes), or a constant",
             .source = "Ramachandran et al. 2017 (arXiv 1710.05941)",
             .also = "swish_trainable e_swish",
             TARN__PART_KEYS(swish_keys, options)},
    .declare = declare_beta,
    .apply = apply,
};
