// A mixture of experts (Shazeer et al. 2017), routed as in GShard (Lepikhin et al. 2020): first choices have room
// before second ones, and the balance loss counts first choices. In place of Shazeer's normal noise on logits and
// GShard's random second choice the router has the noise of the Switch Transformer.
#include "parts/channel/experts.h"

static const tarn__option options[] = {{"top", TARN__KEY_INTEGER(tarn__experts_keys, top, 1, 16), .value = "2",
                                        .help = "experts to which each token is given, the most probable ones",
                                        .also = "top_k k num_experts_per_tok experts_per_token moe_top_k"},
                                       TARN__EXPERTS_OPTIONS};

static void *declare_moe(tarn__declare *declare, const void *memory) {
  return tarn__experts_declare(declare, memory, ((const tarn__experts_keys *)memory)->top);
}

const tarn__channel_entry tarn__channel_moe = {
    .part = {.word = "moe",
             .text = "mixture of experts, Shazeer et al. 2017: a router gives each token to `top` of several "
                     "feed-forward networks",
             .equation = "p = softmax(W_r x)\n"
                         "T = the `top` experts with the largest p\n"
                         "y = sum over e in T of p_e / (sum over T of p) (W_2e act(W_1e x + b_1e) + b_2e); with "
                         "`top` 1 p_e itself\n"
                         "balance loss: balance * experts * sum_e f_e P_e, f_e the share of tokens whose first "
                         "choice is e, P_e the mean of p_e",
             .source = "Shazeer et al. 2017 (arXiv 1701.06538); Lepikhin et al. 2020 (arXiv 2006.16668)",
             .also = "mixture_of_experts sparse_moe experts gshard mixtral",
             TARN__PART_KEYS(tarn__experts_keys, options),
             .resolve = tarn__experts_resolve},
    .declare = declare_moe,
    .build = tarn__experts_build,
};
