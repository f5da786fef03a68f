// Layer normalisation (Ba, Kiros and Hinton 2016).
#include "parts/block.h"

typedef struct layer_norm_keys {
  double epsilon;  // added to the variance
} layer_norm_keys;

static const tarn__option options[] = {TARN__KEY_EPSILON(layer_norm_keys, "added to the variance")};

static void declare_layer_norm(tarn__declare *declare, const char *name, bool trained, tarn__norm_weights *weights) {
  weights->gain = tarn__declare_norm_gain(declare, name, trained);
  weights->bias = tarn__declare_norm_bias(declare, name, trained);
}

static tarn__residual_out build(tarn__graph *graph, tarn__tensor *x, tarn__tensor *branch, double dropout,
                                const tarn__norm_weights *weights) {
  const layer_norm_keys *keys = weights->use.keys;
  return tarn__residual_norm(
      graph, x, branch, dropout,
      (tarn__norm){TARN__NORM_LAYER, keys->epsilon, weights->gain, weights->bias, weights->skip});
}

const tarn__norm_entry tarn__norm_layer = {
    .part = {.word = "layer",
             .text = "layer normalisation, Ba et al. 2016: less the mean, divided by the standard deviation",
             .equation = "y = gain (x - mean(x)) / sqrt(variance(x) + epsilon) + bias",
             .source = "Ba et al. 2016 (arXiv 1607.06450)",
             .also = "layer_norm layernorm ln",
             TARN__PART_KEYS(layer_norm_keys, options)},
    .declare = declare_layer_norm,
    .build = build,
};
