// A mixture of experts (Shazeer et al. 2017), routed as in GShard (Lepikhin et al. 2020): first choices take precedence
// over second ones, and the balance loss counts first choices. Instead of GShard's random second choice the router has
// the noise of the Switch Transformer, or Shazeer's: normal noise of learnt size on logits, with his two losses.
#include "parts/channel/experts.h"

static const tarn_config_word gatings[] = {
    {"softmax", "the most probable experts, with the loss `balance` and the noise `noise`", TARN__GATING_SOFTMAX},
    {"noisy",
     "noisy top-k gating, Shazeer et al. 2017: in training logits have normal noise of a learnt size; with the "
     "losses `importance` and `load` in place of `balance`",
     TARN__GATING_NOISY},
};

static const tarn__option options[] = {
    {"top", TARN__KEY_INTEGER(tarn__experts_keys, top, 1, 16), .value = "2",
     .help = "experts to which each token is given, the most probable ones",
     .also = "top_k k num_experts_per_tok experts_per_token moe_top_k"},
    {"gating", TARN__KEY_WORD(tarn__experts_keys, gating, gatings), .value = "softmax", .later = true,
     .help = "how the router chooses", .also = "gate router noisy_gating noisy_top_k router_type"},
    {"importance", TARN__KEY_REAL(tarn__experts_keys, importance, 0, 1000), .value = "0.01", .later = true,
     .help = "weight of the first loss of gating: noisy, which is the squared coefficient of "
             "variation, over the experts, of their sums of gates in the batch; its "
             "gradient is added, but the loss that is logged leaves it out",
     .also = "w_importance importance_loss"},
    {"load", TARN__KEY_REAL(tarn__experts_keys, load, 0, 1000), .value = "0.01", .later = true,
     .help = "weight of the second loss of gating: noisy, which is the squared coefficient of "
             "variation, over the experts, of their load: the sum over the tokens of the "
             "probability of choosing the expert if the noise were drawn again",
     .also = "w_load load_loss"},
    TARN__EXPERTS_OPTIONS};

// Whether a weight differs from its default; a key given with its default goes unnoticed.
static bool is_given(double value) { return value != 0.01; }

// Refuses keys that the gating does not have.
static tarn_status check_gating(const tarn__part_site *site, const tarn__experts_keys *keys) {
  if (keys->gating == TARN__GATING_SOFTMAX) {
    if (!is_given(keys->importance) && !is_given(keys->load)) return TARN_STATUS_OK;
    return tarn__part_fail(site, is_given(keys->importance) ? "importance" : "load",
                           "with gating: softmax the loss of balance has the weight `balance`");
  }
  if (is_given(keys->balance))
    return tarn__part_fail(site, "balance", "with gating: noisy there are the losses `importance` and `load`");
  if (is_given(keys->noise))
    return tarn__part_fail(site, "noise", "with gating: noisy the size of the noise is learnt");
  if (keys->top < 2)
    return tarn__part_fail(site, "top",
                           "with gating: noisy there are 2 choices or more: the gate of a single one is 1");
  if (keys->top == keys->experts)
    return tarn__part_fail(site, "top", "with gating: noisy there are fewer choices than experts");
  return TARN_STATUS_OK;
}

static tarn_status resolve_moe(const tarn__part_site *site, void *keys) {
  TARN_TRY(tarn__experts_resolve(site, keys));
  return check_gating(site, keys);
}

static void *declare_moe(tarn__declare *declare, const void *memory) {
  return tarn__experts_declare(declare, memory, ((const tarn__experts_keys *)memory)->top);
}

const tarn__channel_entry tarn__channel_moe = {
    .part = {.word = "moe",
             .text = "mixture of experts, Shazeer et al. 2017: a router gives each token to `top` of several "
                     "feed-forward networks",
             .equation =
                 "p = softmax(W_r x)\n"
                 "T = the `top` experts with the largest p\n"
                 "y = sum over e in T of p_e / (sum over T of p) (W_2e act(W_1e x + b_1e) + b_2e); with "
                 "`top` 1 p_e itself\n"
                 "balance loss: balance * experts * sum_e f_e P_e, f_e the share of tokens whose first "
                 "choice is e, P_e the mean of p_e\n"
                 "with gating: noisy, in training: h = W_r x + n softplus(W_n x), n normal, in the place of "
                 "W_r x\n"
                 "importance loss: importance CV(sum over tokens of the gates)^2\n"
                 "load loss: load CV(sum over tokens of P)^2, P_e = Phi(((W_r x)_e - t_e) / softplus(W_n x)_e), "
                 "t_e the `top`-th largest of the other h",
             .source = "Shazeer et al. 2017 (arXiv 1701.06538); Lepikhin et al. 2020 (arXiv 2006.16668)",
             .also = "mixture_of_experts sparse_moe experts gshard mixtral",
             TARN__PART_KEYS(tarn__experts_keys, options),
             .resolve = resolve_moe},
    .together = true,
    .declare = declare_moe,
    .build = tarn__experts_build,
};
