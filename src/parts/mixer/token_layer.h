// Shared by mixers with weights indexed by the position of a token in its sentence.
#ifndef TARN_PARTS_MIXER_TOKEN_LAYER_H
#define TARN_PARTS_MIXER_TOKEN_LAYER_H

#include "ops/token_linear.h"
#include "parts/block.h"

// The key `tokens`, which tarn__tokens_resolve() fills in and checks.
#define TARN__KEY_TOKENS(structure, field)                                                     \
  {                                                                                            \
    "tokens", TARN__KEY_INTEGER(structure, field, 1, 1048576),                                 \
        .derived = "model.max_length", .unit = "tokens",                                       \
        .help = "places in a sentence for which there are weights; at least model.max_length", \
        .also = "seq_len dim_seq num_patches n_tokens"                                         \
  }
tarn_status tarn__tokens_resolve(const tarn__part_site *site, int64_t *tokens);

// NAME.weight [out, in] by the kind's init. With `near_zero`, if trained, uniform below 1e-3 times init_gain.
tarn__param *tarn__token_weight(tarn__declare *declare, const char *name, int64_t out, int64_t in, bool near_zero);
// NAME.bias [n], all ones.
tarn__param *tarn__token_bias_one(tarn__declare *declare, const char *name, int64_t n);

#endif
