// Dynamic convolution: each position computes its kernels from itself.
#include "parts/mixer/conv_layer.h"

static void *declare_dynamic(tarn__declare *declare, const void *memory) {
  const tarn__conv_keys *keys = memory;
  tarn__conv_weights *weights = tarn__conv_declare(declare, keys);
  if (!weights) return NULL;
  weights->dynamic = tarn__declare_matrix(declare, "conv.kernel", keys->heads * keys->kernel, declare->d_model, 1, 1.0);
  return weights;
}

const tarn__mixer_entry tarn__mixer_dynamic_conv = {
    .part = {.word = "dynamic_conv",
             .text = "dynamic convolution, Wu et al. 2019: a light convolution with kernels that each position "
                     "computes from itself",
             .equation = "u = GLU(x W_1)\n"
                         "y_t = (sum over k of softmax(W_head u_t)_k u_{t + k - before}) W_2\n"
                         "k from 0; before = (kernel - 1) / 2, in a decoder kernel - 1",
             .source = "Wu et al. 2019 (arXiv 1901.10430)",
             .also = "dynamic dynamicconv",
             TARN__PART_KEYS(tarn__conv_keys, tarn__conv_options),
             .resolve = tarn__conv_resolve},
    .causal = true,
    .decodes = true,
    .attends = true,
    .declare = declare_dynamic,
    .build = tarn__conv_build,
    .cache_width = tarn__conv_cache_width,
    .history = tarn__conv_history,
};
