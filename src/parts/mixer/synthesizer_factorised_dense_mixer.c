// The factorised dense Synthesizer (Tay et al. 2021): a token gives two short rows of a and b numbers, a b >=
// max_length, and its logit for position j is the product of number j mod a of the first and number j div a of the
// second, the result of tiling the one and repeating the other.
#include "parts/mixer/synthesizer_layer.h"

typedef struct factorised_keys {
  tarn__synthesizer_keys common;
  int64_t hidden;  // times heads, of all together
  int64_t factor;  // a
} factorised_keys;

static const tarn__option options[] = {
    TARN__SYNTHESIZER_OPTIONS(factorised_keys),
    TARN__SYNTHESIZER_HIDDEN(factorised_keys),
    {"factor", TARN__KEY_INTEGER(factorised_keys, factor, 1, 65536), .derived = "sqrt(model.max_length), rounded up",
     .help = "the first width, a; the second is model.max_length / a, rounded up", .also = "a widths factors"}};

static tarn_status resolve(const tarn__part_site *site, void *memory) {
  factorised_keys *keys = memory;
  TARN_TRY(tarn__synthesizer_resolve_hidden(site, &keys->common, &keys->hidden));
  const int64_t longest = keys->common.max_length;
  if (keys->factor == 0)
    for (keys->factor = 1; keys->factor * keys->factor < longest;) keys->factor++;
  if (keys->factor <= longest) return TARN_STATUS_OK;
  return tarn__part_fail(site, "factor", "%lld is more than model.max_length (%lld)", (long long)keys->factor,
                         (long long)longest);
}

static void *declare_factorised(tarn__declare *declare, const void *memory) {
  const factorised_keys *keys = memory;
  tarn__synthesizer_weights *weights = tarn__declare_struct(declare, sizeof *weights);
  if (!weights) return NULL;
  const int64_t heads = keys->common.heads, left = keys->factor, right = (keys->common.max_length + left - 1) / left;
  weights->form = TARN__SYNTHESIS_FACTORISED;
  weights->left = left;
  weights->hidden = tarn__declare_linear(declare, "synthesizer.token", heads * keys->hidden, declare->d_model, 1, 1.0);
  weights->factors =
      tarn__declare_linear(declare, "synthesizer.factors", heads * (left + right), heads * keys->hidden, 1, 1.0);
  tarn__synthesizer_declare_rest(declare, &keys->common, weights);
  return weights;
}

const tarn__mixer_entry tarn__mixer_synthesizer_factorised_dense = {
    .part = {.word = "synthesizer_factorised_dense",
             .text = "factorised dense Synthesizer, Tay et al. 2021: the logits that a token makes are products of two "
                     "short rows; in the decoder causal, then cross-attention",
             .equation = "[A | B]_h = (relu(X W1^T + b1) W2^T + b2)_h   [n, a + b], a b >= max_length\n"
                         "C_h[i, j] = A_h[i, j mod a] B_h[i, j div a]\n"
                         "Y_h = softmax(C_h) V_h, or with plus softmax(a1 C_h + a2 Q_h K_h^T / sqrt(d_h)) V_h, "
                         "a = softmax(m)",
             .source = "Tay et al. 2021 (arXiv 2005.00743)",
             .also = "factorized_dense synthesizer_factorized_dense factorised_dense",
             TARN__PART_KEYS(factorised_keys, options),
             .resolve = resolve},
    .declare = declare_factorised,
    TARN__SYNTHESIZER_ENTRY,
};
