// RMSNorm (Zhang and Sennrich 2019): a gain, without mean and bias.
#include "parts/block.h"

typedef struct rms_norm_keys {
  double epsilon;  // added to the mean square
} rms_norm_keys;

static const tarn__option options[] = {TARN__KEY_EPSILON(rms_norm_keys, "added to the mean square")};

static void declare_rms_norm(tarn__declare *declare, const char *name, bool trained, tarn__norm_weights *weights) {
  weights->gain = tarn__declare_norm_gain(declare, name, trained);
}

static tarn__residual_out build(tarn__graph *graph, tarn__tensor *x, tarn__tensor *branch, double dropout,
                                const tarn__norm_weights *weights) {
  const rms_norm_keys *keys = weights->use.keys;
  return tarn__residual_norm(graph, x, branch, dropout,
                             (tarn__norm){TARN__NORM_RMS, keys->epsilon, weights->gain, NULL, weights->skip});
}

const tarn__norm_entry tarn__norm_rms = {
    .part = {.word = "rms",
             .text = "RMSNorm, Zhang and Sennrich 2019: divided by the root of the mean square, with a gain alone",
             .equation = "y = gain x / sqrt(mean(x^2) + epsilon)",
             .source = "Zhang and Sennrich 2019 (arXiv 1910.07467)",
             .also = "rms_norm rmsnorm t5_layer_norm",
             TARN__PART_KEYS(rms_norm_keys, options)},
    .declare = declare_rms_norm,
    .build = build,
};
