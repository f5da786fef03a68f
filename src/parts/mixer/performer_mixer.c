// Performer (Choromanski et al. 2021): linear attention with features of the softmax kernel (FAVOR+) from a random
// matrix that is never trained. In the decoder causal, with a recurrent state, and followed by softmax cross-attention.
#include <math.h>

#include "parts/mixer/linear_attention_layer.h"

typedef struct performer_keys {
  tarn__linear_attention_keys attention;
  int64_t features;  // of each head
  int64_t redraw;    // updates; 0: never
} performer_keys;

static const tarn__option options[] = {
    TARN__KEY_HEADS(tarn__linear_attention_keys,
                    "attention heads, a divisor of model.d_model; of self-attention and of the cross-attention that "
                    "follows"),
    {"features", TARN__KEY_INTEGER(performer_keys, features, 1, 65536),
     .derived = "n ln n, rounded down, at least 1; n = d_model / heads",
     .help = "random features of each head; more come closer to attention by softmax and take more "
             "work",
     .also = "nb_features num_features random_features"},
    {"redraw", TARN__KEY_INTEGER(performer_keys, redraw, 0, 1000000000), .value = "0", .unit = "updates",
     .help =
         "updates after which the random features are drawn anew, as a function of train.seed and the number of the "
         "update, also where train.freeze or train.autofreeze has frozen the layer; 0: never",
     .random = true, .also = "feature_redraw_interval redraw_interval"},
    TARN__KEY_CROSS_DROPOUT(performer_keys, attention.cross_dropout),
};

static tarn_status resolve(const tarn__part_site *site, void *memory) {
  performer_keys *keys = memory;
  TARN_TRY(tarn__heads_check(site, keys->attention.heads));
  const double width = (double)(site->model->d_model / keys->attention.heads);
  if (keys->features == 0) keys->features = (int64_t)fmax(1.0, floor(width * log(width)));
  if (keys->redraw > 0 && site->kind->frozen == TARN_FROZEN_YES)
    return tarn__part_fail(site, "redraw", "the whole layer is frozen; leave it out");
  return TARN_STATUS_OK;
}

static void *declare_performer(tarn__declare *declare, const void *memory) {
  const performer_keys *keys = memory;
  tarn__linear_attention_weights *weights = tarn__linear_attention_declare(declare, &keys->attention);
  if (!weights) return NULL;
  weights->features = keys->features;
  weights->projection =
      tarn__declare_param(declare, "self_attn.features.weight", keys->features,
                          declare->d_model / keys->attention.heads, false, (tarn__init){TARN__INIT_FEATURES, 1.0, 1});
  if (weights->projection) weights->projection->redraw = keys->redraw;
  return weights;
}

static int64_t cache_width(const void *memory, int64_t d_model) {
  const performer_keys *keys = memory;
  return tarn__linear_attention_width(keys->attention.heads, keys->features, d_model, true);
}

// The random features, always.
static bool partly_frozen(const void *keys) {
  (void)keys;
  return true;
}

const tarn__mixer_entry tarn__mixer_performer = {
    .part = {.word = "performer",
             .text = "Performer, Choromanski et al. 2021: linear attention that approximates the softmax by "
                     "random features of queries and keys, so that a token costs the same however long its "
                     "sentence is; in the decoder causal, then cross-attention",
             .equation = "q, k, v = x W_qkv + b_qkv in heads of n columns\n"
                         "phi(x) = exp(W u - |u|^2 / 2) / sqrt(m), u = x / n^(1/4), m = features\n"
                         "W: blocks of n orthogonal rows, each as long as a normal vector; random and frozen\n"
                         "y_i = phi(q_i) S_i / (phi(q_i) . z_i)\n"
                         "S_i = sum over j of phi(k_j) v_j^T,  z_i = sum over j of phi(k_j);  causal: j <= i\n"
                         "out = y W_out + b_out",
             .source = "Choromanski et al. 2021 (arXiv 2009.14794)",
             .also = "favor favor+ favorplus",
             TARN__PART_KEYS(performer_keys, options),
             .resolve = resolve},
    .causal = true,
    .decodes = true,
    .attends = true,
    .sequential = true,
    .wide = true,
    .declare = declare_performer,
    .build = tarn__linear_attention_build,
    .cache_width = cache_width,
    .history = tarn__linear_attention_history,
    .partly_frozen = partly_frozen,
};
