// gMLP (Liu et al. 2021): a projection, whose one half gates the other after a linear layer across tokens, and a
// projection back.
#include "parts/mixer/gated_mlp.h"

static const tarn__option options[] = {
    TARN__KEY_GATED_HIDDEN,
    TARN__KEY_TOKENS(tarn__gated_mlp_keys, tokens),
    TARN__KEY_CROSS_HEADS(tarn__gated_mlp_keys, heads),
    TARN__KEY_CROSS_DROPOUT(tarn__gated_mlp_keys, cross_dropout),
};

const tarn__mixer_entry tarn__mixer_gmlp = {
    .part = {.word = "gmlp",
             .text = "gMLP, Liu et al. 2021: half of the channels gated by what a linear layer across tokens "
                     "makes of the other half, with projections of its own (ffn: 0); in the decoder causal, "
                     "then cross-attention",
             .equation = "z_1 = gelu(x U_1 + c_1), z_2 = gelu(x U_2 + c_2), each of hidden / 2 columns\n"
                         "y = (z_1 * (W norm(z_2) + b)) V + c_3, * elementwise; W begins near 0, b at 1\n"
                         "W [tokens, tokens], b [tokens]; a sentence of n tokens uses the first n places; causal: "
                         "the lower triangle of W",
             .source = "Liu et al. 2021 (arXiv 2105.08050)",
             .also = "g_mlp gated_mlp spatial_gating sgu",
             TARN__PART_KEYS(tarn__gated_mlp_keys, options),
             .resolve = tarn__gated_mlp_resolve},
    .causal = true,
    .decodes = true,
    .attends = true,
    .bounded = true,
    .declare = tarn__gated_mlp_declare,
    .build = tarn__gated_mlp_build,
    .cache_width = tarn__gated_mlp_cache_width,
};
