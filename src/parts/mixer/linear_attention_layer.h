// Shared by linear attention and Performer: a projection to queries, keys and values, attention by products of their
// features, and an output projection.
//
// Parameters are those of attention (self_attn.qkv, self_attn.out, self_attn.norm, the following cross-attention), and
// with the softmax kernel self_attn.features.weight [features, d_model / heads], always frozen.
#ifndef TARN_PARTS_MIXER_LINEAR_ATTENTION_LAYER_H
#define TARN_PARTS_MIXER_LINEAR_ATTENTION_LAYER_H

#include "ops/linear_attention.h"
#include "parts/block.h"

// The first fields of both mixers' keys.
typedef struct tarn__linear_attention_keys {
  int64_t heads;         // divides d_model; of self-attention and the following cross-attention
  double cross_dropout;  // of the weights of the latter
} tarn__linear_attention_keys;

typedef struct tarn__linear_attention_weights {
  int64_t heads, features;
  tarn__linear_weights qkv, out;
  tarn__param *projection;  // NULL: features are elu + 1
  tarn__norm_weights norm;
} tarn__linear_attention_weights;

// The weights without `projection` and `features`; NULL after a failure.
tarn__linear_attention_weights *tarn__linear_attention_declare(tarn__declare *declare,
                                                               const tarn__linear_attention_keys *keys);
void tarn__linear_attention_build(const tarn__block_run *run, const void *weights, const tarn_kind *kind,
                                  tarn__stream *stream);
// Size of the state after a token; `softmax`: with the features of the softmax kernel.
int64_t tarn__linear_attention_width(int64_t heads, int64_t features, int64_t d_model, bool softmax);
// A state summarises all earlier tokens: a token sees the previous state and its own.
int64_t tarn__linear_attention_history(const void *keys);

#endif
