// The factorised random Synthesizer (Tay et al. 2021): the random table of logits of each head is a product of two of
// low rank.
#include <math.h>

#include "parts/mixer/synthesizer_layer.h"

typedef struct low_rank_keys {
  tarn__synthesizer_keys common;
  bool fixed;
  int64_t rank;  // k
} low_rank_keys;

static const tarn__option options[] = {
    TARN__SYNTHESIZER_OPTIONS(low_rank_keys),
    TARN__SYNTHESIZER_FIXED(low_rank_keys),
    {"rank", TARN__KEY_INTEGER(low_rank_keys, rank, 1, 65536), .value = "8",
     .help = "columns of each factor of the table of a head, k", .also = "k low_rank factor"}};

static tarn_status resolve(const tarn__part_site *site, void *memory) {
  low_rank_keys *keys = memory;
  return tarn__synthesizer_resolve_fixed(site, &keys->common, keys->fixed);
}

// Both factors are scaled so that logits have variance 1.
static void *declare_low_rank(tarn__declare *declare, const void *memory) {
  const low_rank_keys *keys = memory;
  tarn__synthesizer_weights *weights = tarn__declare_struct(declare, sizeof *weights);
  if (!weights) return NULL;
  const int64_t heads = keys->common.heads, n = keys->common.max_length, k = keys->rank;
  const double std = 1.0 / sqrt(sqrt((double)k));
  weights->form = TARN__SYNTHESIS_DENSE;
  weights->places = tarn__synthesizer_table(declare, "synthesizer.rows.weight", n, heads * k, std, keys->fixed);
  weights->weight = tarn__synthesizer_table(declare, "synthesizer.columns.weight", heads * n, k, std, keys->fixed);
  tarn__synthesizer_declare_rest(declare, &keys->common, weights);
  return weights;
}

static bool partly_frozen(const void *keys) { return ((const low_rank_keys *)keys)->fixed; }

const tarn__mixer_entry tarn__mixer_synthesizer_factorised_random = {
    .part = {.word = "synthesizer_factorised_random",
             .text =
                 "factorised random Synthesizer, Tay et al. 2021: the random table of logits is a product of two of "
                 "low rank; in the decoder causal, then cross-attention",
             .equation = "R_h = R1_h R2_h^T, R1_h and R2_h [max_length, k], the first n rows of each\n"
                         "Y_h = softmax(R_h) V_h, or with plus softmax(a1 R_h + a2 Q_h K_h^T / sqrt(d_h)) V_h, "
                         "a = softmax(m)",
             .source = "Tay et al. 2021 (arXiv 2005.00743)",
             .also = "factorized_random synthesizer_factorized_random factorised_random",
             TARN__PART_KEYS(low_rank_keys, options),
             .resolve = resolve},
    .declare = declare_low_rank,
    .partly_frozen = partly_frozen,
    TARN__SYNTHESIZER_ENTRY,
};
