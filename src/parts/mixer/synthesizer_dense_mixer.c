// The dense Synthesizer (Tay et al. 2021): a two-layer network computes a token's logits over all positions of its
// sentence from the token alone. The hidden layer is divided among the heads, so all heads together cost as much as
// attention of that width; only logits of existing positions are computed.
#include "parts/mixer/synthesizer_layer.h"

typedef struct dense_keys {
  tarn__synthesizer_keys common;
  int64_t hidden;  // of each head
} dense_keys;

static const tarn__option options[] = {TARN__SYNTHESIZER_OPTIONS(dense_keys), TARN__SYNTHESIZER_HIDDEN(dense_keys)};

static tarn_status resolve(const tarn__part_site *site, void *memory) {
  dense_keys *keys = memory;
  return tarn__synthesizer_resolve_hidden(site, &keys->common, &keys->hidden);
}

static void *declare_dense(tarn__declare *declare, const void *memory) {
  const dense_keys *keys = memory;
  tarn__synthesizer_weights *weights = tarn__declare_struct(declare, sizeof *weights);
  if (!weights) return NULL;
  const int64_t heads = keys->common.heads, places = heads * keys->common.max_length;
  weights->form = TARN__SYNTHESIS_DENSE;
  weights->hidden = tarn__declare_linear(declare, "synthesizer.token", heads * keys->hidden, declare->d_model, 1, 1.0);
  weights->weight = tarn__declare_dense(declare, "synthesizer.logits", places, keys->hidden, (int)heads, 1.0);
  weights->bias = tarn__declare_bias(declare, "synthesizer.logits", places, keys->hidden);
  tarn__synthesizer_declare_rest(declare, &keys->common, weights);
  return weights;
}

const tarn__mixer_entry tarn__mixer_synthesizer_dense = {
    .part = {.word = "synthesizer_dense",
             .text =
                 "dense Synthesizer, Tay et al. 2021: attention whose logits each token makes from itself alone; in "
                 "the decoder causal, then cross-attention",
             .equation = "B_h = relu(X W1_h^T + b1_h) W2_h^T + b2_h   [n, n], the first n of max_length columns\n"
                         "Y_h = softmax(B_h) V_h, or with plus softmax(a1 B_h + a2 Q_h K_h^T / sqrt(d_h)) V_h, "
                         "a = softmax(m)",
             .source = "Tay et al. 2021 (arXiv 2005.00743)",
             .also = "synthesizer dense_synthesizer synthesizer-dense",
             TARN__PART_KEYS(dense_keys, options),
             .resolve = resolve},
    .declare = declare_dense,
    TARN__SYNTHESIZER_ENTRY,
};
