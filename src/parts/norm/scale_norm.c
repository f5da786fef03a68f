// ScaleNorm (Nguyen and Salazar 2019): one gain, without mean and bias.
#include <math.h>
#include <stdio.h>

#include "parts/block.h"

typedef struct scale_norm_keys {
  double epsilon;  // added to the mean square
} scale_norm_keys;

static const tarn__option options[] = {TARN__KEY_EPSILON(scale_norm_keys, "added to the mean square")};

static void declare_scale_norm(tarn__declare *declare, const char *name, bool trained, tarn__norm_weights *weights) {
  char part[128];
  snprintf(part, sizeof part, "%s.gain", name);
  weights->gain = tarn__declare_param(declare, part, 1, 1, trained,
                                      (tarn__init){TARN__INIT_CONSTANT, sqrt((double)declare->d_model), 1});
}

static tarn__residual_out build(tarn__graph *graph, tarn__tensor *x, tarn__tensor *branch, double dropout,
                                const tarn__norm_weights *weights) {
  const scale_norm_keys *keys = weights->use.keys;
  return tarn__residual_norm(graph, x, branch, dropout,
                             (tarn__norm){TARN__NORM_SCALE, keys->epsilon, weights->gain, NULL, weights->skip});
}

const tarn__norm_entry tarn__norm_scale = {
    .part = {.word = "scale",
             .text = "ScaleNorm, Nguyen and Salazar 2019: divided by the length, with one number as gain, at first "
                     "sqrt(d_model)",
             .equation = "y = gain x / sqrt(d (mean(x^2) + epsilon)), gain one number, which begins at sqrt(d)",
             .source = "Nguyen and Salazar 2019 (arXiv 1910.05895)",
             .also = "scale_norm scalenorm",
             TARN__PART_KEYS(scale_norm_keys, options)},
    .declare = declare_scale_norm,
    .build = build,
};
