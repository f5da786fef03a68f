// Shared by gMLP and aMLP (Liu et al. 2021): the block with its spatial gating unit, to which aMLP adds a tiny
// attention.
#ifndef TARN_PARTS_MIXER_GATED_MLP_H
#define TARN_PARTS_MIXER_GATED_MLP_H

#include "parts/mixer/token_layer.h"

typedef struct tarn__gated_mlp_keys {
  int64_t hidden, tokens;
  int64_t attention;  // width; 0: there is none
  int64_t heads;      // of a following cross-attention
  double cross_dropout;
} tarn__gated_mlp_keys;

#define TARN__KEY_GATED_HIDDEN                                                                      \
  {                                                                                                 \
    "hidden", TARN__KEY_INTEGER(tarn__gated_mlp_keys, hidden, 2, 1048576),                          \
        .derived = "4 model.d_model",                                                               \
        .help =                                                                                     \
            "width of both halves together, one of which gates the other (d_ffn); even. The block " \
            "mixes channels itself, so it is used with ffn: 0",                                     \
        .also = "d_ffn dim_ff ffn_dim d_ff"                                                         \
  }

tarn_status tarn__gated_mlp_resolve(const tarn__part_site *site, void *keys);
void *tarn__gated_mlp_declare(tarn__declare *declare, const void *keys);
void tarn__gated_mlp_build(const tarn__block_run *run, const void *weights, const tarn_kind *kind,
                           tarn__stream *stream);
int64_t tarn__gated_mlp_cache_width(const void *keys, int64_t d_model);

#endif
