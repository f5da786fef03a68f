// The Switch Transformer's layer (Fedus et al. 2021): one expert for each token.
#include "parts/channel/experts.h"

static const tarn__option options[] = {TARN__EXPERTS_OPTIONS};

static void *declare_switch(tarn__declare *declare, const void *memory) {
  return tarn__experts_declare(declare, memory, 1);
}

const tarn__channel_entry tarn__channel_switch = {
    .part = {.word = "switch",
             .text = "Switch Transformer, Fedus et al. 2021: a router gives each token to one of several feed-forward "
                     "networks",
             .equation = "p = softmax(W_r x)\n"
                         "y = p_e (W_2e act(W_1e x + b_1e) + b_2e) with e the expert with the largest p\n"
                         "balance loss: balance * experts * sum_e f_e P_e, f_e the share of tokens whose first "
                         "choice is e, P_e the mean of p_e",
             .source = "Fedus et al. 2021 (arXiv 2101.03961)",
             .also = "switch_transformer switch_ffn top1_moe",
             TARN__PART_KEYS(tarn__experts_keys, options),
             .resolve = tarn__experts_resolve},
    .together = true,
    .declare = declare_switch,
    .build = tarn__experts_build,
};
