// The random Synthesizer (Tay et al. 2021): a table of logits for each head, drawn at random and trained or fixed; it
// depends on the positions of two tokens, not on the tokens.
#include "parts/mixer/synthesizer_layer.h"

typedef struct random_keys {
  tarn__synthesizer_keys common;
  bool fixed;
} random_keys;

static const tarn__option options[] = {TARN__SYNTHESIZER_OPTIONS(random_keys), TARN__SYNTHESIZER_FIXED(random_keys)};

static tarn_status resolve(const tarn__part_site *site, void *memory) {
  random_keys *keys = memory;
  return tarn__synthesizer_resolve_fixed(site, &keys->common, keys->fixed);
}

static void *declare_random(tarn__declare *declare, const void *memory) {
  const random_keys *keys = memory;
  tarn__synthesizer_weights *weights = tarn__declare_struct(declare, sizeof *weights);
  if (!weights) return NULL;
  const int64_t n = keys->common.max_length;
  weights->form = TARN__SYNTHESIS_RANDOM;
  weights->weight =
      tarn__synthesizer_table(declare, "synthesizer.logits.weight", keys->common.heads * n, n, 1.0, keys->fixed);
  tarn__synthesizer_declare_rest(declare, &keys->common, weights);
  return weights;
}

static bool partly_frozen(const void *keys) { return ((const random_keys *)keys)->fixed; }

const tarn__mixer_entry tarn__mixer_synthesizer_random = {
    .part = {.word = "synthesizer_random",
             .text = "random Synthesizer, Tay et al. 2021: attention whose logits are a random table by position; in "
                     "the decoder causal, then cross-attention",
             .equation = "Y_h = softmax(R_h) V_h, the first n rows and columns of R_h [max_length, max_length]\n"
                         "with plus: Y_h = softmax(a1 R_h + a2 Q_h K_h^T / sqrt(d_h)) V_h, a = softmax(m)",
             .source = "Tay et al. 2021 (arXiv 2005.00743)",
             .also = "random_synthesizer synthesizer-random",
             TARN__PART_KEYS(random_keys, options),
             .resolve = resolve},
    .declare = declare_random,
    .partly_frozen = partly_frozen,
    TARN__SYNTHESIZER_ENTRY,
};
