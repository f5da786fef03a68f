// Attention with linear biases (ALiBi: Press et al. 2022): nothing is added to embeddings, and the scores of
// self-attention fall linearly with the distance between query and key, with a different slope in each head. In
// encoders, whose tokens also see later ones, the distance counts equally in both directions.
#include "parts/block.h"

typedef struct alibi_keys {
  double exponent;
} alibi_keys;

static const tarn__option options[] = {
    {"exponent", TARN__KEY_REAL(alibi_keys, exponent, 0, 64), TARN__KEY_ABOVE_LEAST, .value = "8",
     .help =
         "slope of the last head as a power of 1/2; those of n heads, n a power of two, are 2^(-exponent i / n) for "
         "i = 1 .. n",
     .also = "alibi_bias_max bias_max max_bias"},
};

static void bias(const tarn__block_run *run, tarn__attention_spec *spec) {
  const alibi_keys *keys = run->position->keys;
  spec->alibi = keys->exponent;
}

// Every distance has a bias, and none is learnt, so a model can read longer texts than it was trained on.
const tarn__position_entry tarn__position_alibi = {
    .part = {.word = "alibi",
             .text = "linear biases, Press et al. 2022: scores of self-attention fall linearly with the distance "
                     "between query and key, with a slope for each head, as in BLOOM and MPT",
             .equation = "score_{ij} = q_i k_j / sqrt(d_head) - slope_head |i - j|",
             .source = "Press et al. 2022 (arXiv 2108.12409)",
             .also = "attention_linear_biases linear_biases",
             TARN__PART_KEYS(alibi_keys, options)},
    .bias = bias,
};
