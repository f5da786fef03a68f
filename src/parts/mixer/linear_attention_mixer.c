// Linear attention (Katharopoulos, Vyas, Pappas, Fleuret 2020): the features of queries and keys are elu + 1. In the
// decoder causal, with a recurrent state, and followed by softmax cross-attention.
#include "parts/mixer/linear_attention_layer.h"

static const tarn__option options[] = {
    TARN__KEY_HEADS(tarn__linear_attention_keys,
                    "attention heads, a divisor of model.d_model; of self-attention and of the cross-attention that "
                    "follows"),
    TARN__KEY_CROSS_DROPOUT(tarn__linear_attention_keys, cross_dropout),
};

static tarn_status resolve(const tarn__part_site *site, void *keys) {
  return tarn__heads_check(site, ((const tarn__linear_attention_keys *)keys)->heads);
}

static void *declare_linear_attention(tarn__declare *declare, const void *keys) {
  tarn__linear_attention_weights *weights = tarn__linear_attention_declare(declare, keys);
  if (weights) weights->features = declare->d_model / weights->heads;
  return weights;
}

static int64_t cache_width(const void *keys, int64_t d_model) {
  const int64_t heads = ((const tarn__linear_attention_keys *)keys)->heads;
  return tarn__linear_attention_width(heads, d_model / heads, d_model, false);
}

const tarn__mixer_entry tarn__mixer_linear_attention = {
    .part = {.word = "linear_attention",
             .text = "linear attention, Katharopoulos et al. 2020: products of features of queries and keys "
                     "in place of a softmax, so that a token costs the same however long its sentence is; in "
                     "the decoder causal, then cross-attention",
             .equation = "q, k, v = x W_qkv + b_qkv in heads;  phi(x) = elu(x) + 1\n"
                         "y_i = phi(q_i) S_i / (phi(q_i) . z_i)\n"
                         "S_i = sum over j of phi(k_j) v_j^T,  z_i = sum over j of phi(k_j);  causal: j <= i\n"
                         "out = y W_out + b_out",
             .source = "Katharopoulos et al. 2020 (arXiv 2006.16236)",
             .also = "linear linear_transformer",
             TARN__PART_KEYS(tarn__linear_attention_keys, options),
             .resolve = resolve},
    .causal = true,
    .decodes = true,
    .attends = true,
    .sequential = true,
    .wide = true,
    .declare = declare_linear_attention,
    .build = tarn__linear_attention_build,
    .cache_width = cache_width,
    .history = tarn__linear_attention_history,
};
