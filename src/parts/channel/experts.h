// Keys, parameters and graph shared by the entries of experts, which differ in word and number of choices per row.
#ifndef TARN_PARTS_CHANNEL_EXPERTS_H
#define TARN_PARTS_CHANNEL_EXPERTS_H

#include "parts/block.h"

// How a router chooses: NOISY is Shazeer's noisy top-k gating (ops/route.h), only for mixtures.
typedef enum tarn__gating { TARN__GATING_SOFTMAX, TARN__GATING_NOISY } tarn__gating;

typedef struct tarn__experts_keys {
  int64_t experts, top, width;
  double capacity, balance, noise;
  tarn__gating gating;
  double importance, load;  // of NOISY
  tarn_part_use activation;
  bool train_router;
} tarn__experts_keys;

// All keys but `top`.
#define TARN__EXPERTS_OPTIONS                                                                                      \
  {"experts", TARN__KEY_INTEGER(tarn__experts_keys, experts, 1, 4096), .value = "8",                               \
   .help = "feed-forward networks among which tokens are routed",                                                  \
   .also = "num_experts num_local_experts n_experts moe_num_experts"},                                             \
      {"width", TARN__KEY_INTEGER(tarn__experts_keys, width, 1, 1048576), .value = "1024",                         \
       .help = "inner width of each expert", .also = "ffn_dim d_ff expert_capacity_dim intermediate_size hidden"}, \
      {"capacity",                                                                                                 \
       TARN__KEY_REAL(tarn__experts_keys, capacity, 0, 1048576),                                                   \
       TARN__KEY_ABOVE_LEAST,                                                                                      \
       .value = "1.25",                                                                                            \
       .help =                                                                                                     \
           "in training an expert takes at most this many times its even share of the batch's "                    \
           "choices, rounded up; a choice beyond that adds nothing to its token, whose residual "                  \
           "passes by. Elsewhere there is no limit, so that a token's result does not depend on "                  \
           "what is computed with it",                                                                             \
       .also = "capacity_factor expert_capacity moe_capacity_factor"},                                             \
      {"balance", TARN__KEY_REAL(tarn__experts_keys, balance, 0, 1000), .value = "0.01",                           \
       .help =                                                                                                     \
           "weight of the balance loss: experts times the sum over experts of f P, with f the share "              \
           "of tokens whose first choice is the expert and P the mean of its probability; its "                    \
           "gradient is added, but the loss that is logged leaves it out",                                         \
       .also = "aux_loss_coef router_aux_loss_coef balance_loss moe_aux_loss_weight load_balancing"},              \
      {"noise",                                                                                                    \
       TARN__KEY_REAL(tarn__experts_keys, noise, 0, 1),                                                            \
       TARN__KEY_BELOW_MOST,                                                                                       \
       .value = "0.01",                                                                                            \
       .help =                                                                                                     \
           "in training each number that the router reads is multiplied by a random one between 1 - "              \
           "noise and 1 + noise",                                                                                  \
       .also = "jitter router_jitter_noise jitter_eps jitter_noise"},                                              \
      {"activation",                                                                                               \
       TARN__KEY_PART(tarn__experts_keys, activation, TARN__TABLE_ACTIVATION),                                     \
       .derived = "model.activation",                                                                              \
       .inherits = offsetof(tarn_config_model, activation),                                                        \
       .help = "between the two products",                                                                         \
       .also = "activation_fn activation_function hidden_act"},                                                    \
  {                                                                                                                \
    "train_router", TARN__KEY_BOOL(tarn__experts_keys, train_router),                                              \
        .value = "no", .help = "the router is trained although the kind's matrices are frozen (frozen: matrices)"  \
  }

tarn_status tarn__experts_resolve(const tarn__part_site *site, void *keys);
// choices: per token; normalise: its gates are divided by their sum.
void *tarn__experts_declare(tarn__declare *declare, const tarn__experts_keys *keys, int64_t choices);
void tarn__experts_build(const tarn__block_run *run, const void *weights, const tarn_kind *kind, tarn__stream *stream);

#endif
