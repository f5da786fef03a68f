// Shared by the Synthesizers (Tay et al. 2021): values, a projection after the mean, the mixture with attention by
// queries and keys ("plus"), and their graph; the entries declare the sources of their logits.
#ifndef TARN_PARTS_MIXER_SYNTHESIZER_LAYER_H
#define TARN_PARTS_MIXER_SYNTHESIZER_LAYER_H

#include "ops/synthesis.h"
#include "parts/block.h"

// The first member of each entry's keys.
typedef struct tarn__synthesizer_keys {
  int64_t heads;         // of the mixer and the following cross-attention
  bool plus;             // logits are mixed with scores of queries and keys
  double cross_dropout;  // of the following cross-attention
  int64_t max_length;    // the model's
} tarn__synthesizer_keys;

// The options of these, and their conditions on the others.
#define TARN__SYNTHESIZER_OPTIONS(structure)                                                                        \
  {"heads", TARN__KEY_INTEGER(structure, common.heads, 1, 1024), .value = "4",                                      \
   .help = "heads of the mixer and of the cross-attention that follows; a divisor of model.d_model",                \
   .also = "attention_heads transformer-heads num_heads"},                                                          \
      {"plus", TARN__KEY_BOOL(structure, common.plus), .value = "no",                                               \
       .help =                                                                                                      \
           "mix the synthetic logits with those of dot-product attention, in two trained shares that add up to 1"}, \
      TARN__KEY_CROSS_DROPOUT(structure, common.cross_dropout)

// The key `hidden` of the two-layer networks that compute logits from a token.
#define TARN__SYNTHESIZER_HIDDEN(structure)                                                     \
  {                                                                                             \
    "hidden", TARN__KEY_INTEGER(structure, hidden, 1, 65536),                                   \
        .derived = "model.d_model / heads",                                                     \
        .help =                                                                                 \
            "for each head, width of the hidden layer, with ReLU, of the network that makes a " \
            "token's logits",                                                                   \
        .also = "hidden_size d_hidden synthesizer_hidden"                                       \
  }
// The key `fixed` of logits that depend on positions alone.
#define TARN__SYNTHESIZER_FIXED(structure)                                                                           \
  {                                                                                                                  \
    "fixed", TARN__KEY_BOOL(structure, fixed),                                                                       \
        .value = "no", .help = "leave the random logits as they were drawn, while the rest of the layer is trained", \
        .also = "fix freeze_random"                                                                                  \
  }

typedef struct tarn__synthesizer_weights {
  const tarn__synthesizer_keys *keys;
  tarn__synthesis_form form;
  int64_t left;                      // of FACTORISED
  tarn__linear_weights hidden;       // computes a token's source; without a weight if there is none
  tarn__linear_weights factors;      // after it, of FACTORISED
  tarn__param *places;               // [max_length, heads * k]: the source is its row for the position; NULL: it is not
  tarn__param *weight, *bias, *mix;  // as tarn__synthesis() takes them
  tarn__linear_weights in, out;      // in: values, or queries, keys and values
  tarn__norm_weights norm;
} tarn__synthesizer_weights;

tarn_status tarn__synthesizer_resolve(const tarn__part_site *site, tarn__synthesizer_keys *keys);
// The same, and the default of `hidden`.
tarn_status tarn__synthesizer_resolve_hidden(const tarn__part_site *site, tarn__synthesizer_keys *keys,
                                             int64_t *hidden);
// The same, and the check of `fixed`.
tarn_status tarn__synthesizer_resolve_fixed(const tarn__part_site *site, tarn__synthesizer_keys *keys, bool fixed);
// Declares the common parameters, after the entry's own.
void tarn__synthesizer_declare_rest(tarn__declare *declare, const tarn__synthesizer_keys *keys,
                                    tarn__synthesizer_weights *weights);
// A matrix NAME.weight of normal numbers of this standard deviation; `fixed`: never trained.
tarn__param *tarn__synthesizer_table(tarn__declare *declare, const char *name, int64_t rows, int64_t cols, double std,
                                     bool fixed);
void tarn__synthesizer_build(const tarn__block_run *run, const void *weights, const tarn_kind *kind,
                             tarn__stream *stream);
int64_t tarn__synthesizer_cache_width(const void *keys, int64_t d_model);
bool tarn__synthesizer_by_position(const void *keys);

// The members of an entry other than `part` and `declare`.
#define TARN__SYNTHESIZER_ENTRY                                                                        \
  .causal = true, .decodes = true, .attends = true, .bounded = true, .build = tarn__synthesizer_build, \
  .cache_width = tarn__synthesizer_cache_width, .by_position = tarn__synthesizer_by_position

#endif
