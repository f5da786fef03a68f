// Shared by light and dynamic convolution (Wu et al. 2019): a projection to 2 d with a gated linear unit, a depthwise
// convolution with a softmax kernel for each head, and a projection back; in the decoder causal, then cross-attention.
// The kernels of a light convolution are a parameter, those of a dynamic one a function of each position.
#ifndef TARN_PARTS_MIXER_CONV_LAYER_H
#define TARN_PARTS_MIXER_CONV_LAYER_H

#include "parts/block.h"

typedef struct tarn__conv_keys {
  int64_t heads;          // kernels of a layer, and heads of the following cross-attention
  int64_t kernel;         // width in tokens; odd in the encoder
  double kernel_dropout;  // DropConnect on the softmax kernel
  double cross_dropout;   // of the weights of that cross-attention
} tarn__conv_keys;

enum { TARN__CONV_OPTIONS = 4 };
extern const tarn__option tarn__conv_options[TARN__CONV_OPTIONS];

typedef struct tarn__conv_weights {
  const tarn__conv_keys *keys;
  tarn__linear_weights in, out;
  tarn__param *light;            // [1, heads * kernel], or NULL
  tarn__linear_weights dynamic;  // [heads * kernel, d], without a bias
  tarn__norm_weights norm;
} tarn__conv_weights;

tarn_status tarn__conv_resolve(const tarn__part_site *site, void *keys);
// Everything except the kernel.
tarn__conv_weights *tarn__conv_declare(tarn__declare *declare, const tarn__conv_keys *keys);
void tarn__conv_build(const tarn__block_run *run, const void *weights, const tarn_kind *kind, tarn__stream *stream);
// The convolved values.
int64_t tarn__conv_cache_width(const void *keys, int64_t d_model);
// As many rows as the kernel is wide.
int64_t tarn__conv_history(const void *keys);

#endif
