// aMLP (Liu et al. 2021): gMLP, with a tiny attention of one head added to its gate.
#include "parts/mixer/gated_mlp.h"

static const tarn__option options[] = {
    TARN__KEY_GATED_HIDDEN,
    {"attention_width", TARN__KEY_INTEGER(tarn__gated_mlp_keys, attention, 1, 65536), .value = "64",
     .help = "width of the queries, keys and values of the one head", .also = "attn_dim d_attn attention_dim"},
    TARN__KEY_TOKENS(tarn__gated_mlp_keys, tokens),
    TARN__KEY_CROSS_HEADS(tarn__gated_mlp_keys, heads),
    TARN__KEY_CROSS_DROPOUT(tarn__gated_mlp_keys, cross_dropout),
};

const tarn__mixer_entry tarn__mixer_amlp = {
    .part = {.word = "amlp",
             .text = "aMLP, Liu et al. 2021: gMLP with a tiny attention of one head added to its gate (ffn: 0); in the "
                     "decoder causal, then cross-attention",
             .equation = "z_1 = gelu(x U_1 + c_1), z_2 = gelu(x U_2 + c_2), each of hidden / 2 columns\n"
                         "a = softmax(q k^T / sqrt(attention_width)) v W_a + c_a, q, k, v = x W_q, x W_k, x W_v\n"
                         "y = (z_1 * (W norm(z_2) + b + a)) V + c_3, * elementwise; W begins near 0, b at 1\n"
                         "W [tokens, tokens], b [tokens]; a sentence of n tokens uses the first n places; causal: "
                         "the lower triangle of W",
             .source = "Liu et al. 2021 (arXiv 2105.08050)",
             .also = "a_mlp tiny_attention",
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
