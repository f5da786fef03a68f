// Light convolution: the kernels are a parameter.
#include <math.h>

#include "parts/mixer/conv_layer.h"

// The kernel of a light convolution is no projection: with any init it has the spread of Xavier's rule for fairseq's
// tensor [heads, 1, kernel], uniform or, with init normal, normal.
static void *declare_light(tarn__declare *declare, const void *memory) {
  const tarn__conv_keys *keys = memory;
  tarn__conv_weights *weights = tarn__conv_declare(declare, keys);
  if (!weights) return NULL;
  const tarn_kind *kind = declare->kind;
  const double width = (double)keys->kernel, deviation = sqrt(2.0 / (width + (double)keys->heads * width));
  tarn__init init = {TARN__INIT_UNIFORM, sqrt(3.0) * deviation, 1};
  if (kind->init == TARN_INIT_NORMAL) init = (tarn__init){TARN__INIT_NORMAL, deviation, 1};
  weights->light =
      tarn__declare_param(declare, "conv.kernel", 1, keys->heads * keys->kernel, kind->frozen == TARN_FROZEN_NO, init);
  return weights;
}

const tarn__mixer_entry tarn__mixer_light_conv = {
    .part = {.word = "light_conv",
             .text = "light convolution, Wu et al. 2019: GLU, then a depthwise convolution whose kernel is shared by "
                     "the channels of a head and normalised by a softmax; in the decoder causal, then cross-attention",
             .equation = "u = GLU(x W_1)\n"
                         "y_t = (sum over k of softmax(w_head)_k u_{t + k - before}) W_2\n"
                         "k from 0; before = (kernel - 1) / 2, in a decoder kernel - 1",
             .source = "Wu et al. 2019 (arXiv 1901.10430)",
             .also = "lightweight lightconv lightweight_conv",
             TARN__PART_KEYS(tarn__conv_keys, tarn__conv_options),
             .resolve = tarn__conv_resolve},
    .causal = true,
    .decodes = true,
    .attends = true,
    .declare = declare_light,
    .build = tarn__conv_build,
    .cache_width = tarn__conv_cache_width,
    .history = tarn__conv_history,
};
