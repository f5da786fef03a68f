// The tables of parts, a line per entry: TABLE(X) with X(entry). The first entry of a table is its default.
#ifndef TARN_PARTS_TABLE_PART_TABLE_H
#define TARN_PARTS_TABLE_PART_TABLE_H

#include "parts/block.h"

#define TARN__MIXERS(X)                        \
  X(tarn__mixer_attention)                     \
  X(tarn__mixer_none)                          \
  X(tarn__mixer_bigru)                         \
  X(tarn__mixer_light_conv)                    \
  X(tarn__mixer_dynamic_conv)                  \
  X(tarn__mixer_gru)                           \
  X(tarn__mixer_lstm)                          \
  X(tarn__mixer_esn)                           \
  X(tarn__mixer_pooling)                       \
  X(tarn__mixer_fnet)                          \
  X(tarn__mixer_mlp_mixer)                     \
  X(tarn__mixer_gmlp)                          \
  X(tarn__mixer_amlp)                          \
  X(tarn__mixer_linear_attention)              \
  X(tarn__mixer_performer)                     \
  X(tarn__mixer_linformer)                     \
  X(tarn__mixer_hypermixer)                    \
  X(tarn__mixer_synthesizer_dense)             \
  X(tarn__mixer_synthesizer_random)            \
  X(tarn__mixer_synthesizer_factorised_dense)  \
  X(tarn__mixer_synthesizer_factorised_random) \
  X(tarn__mixer_branched_attention)            \
  X(tarn__mixer_evolved_attention)             \
  X(tarn__mixer_evolved_conv)
#define TARN__CHANNELS(X) \
  X(tarn__channel_ffn)    \
  X(tarn__channel_glu)    \
  X(tarn__channel_geglu)  \
  X(tarn__channel_reglu)  \
  X(tarn__channel_swiglu) \
  X(tarn__channel_liglu)  \
  X(tarn__channel_moe) X(tarn__channel_switch) X(tarn__channel_product_keys) X(tarn__channel_gated_linear)
#define TARN__NORMS(X) X(tarn__norm_layer) X(tarn__norm_rms) X(tarn__norm_scale)
#define TARN__POSITIONS(X)           \
  X(tarn__position_sinusoidal)       \
  X(tarn__position_learned)          \
  X(tarn__position_none)             \
  X(tarn__position_rotary)           \
  X(tarn__position_alibi)            \
  X(tarn__position_sinusoidal_paper) \
  X(tarn__position_shape)            \
  X(tarn__position_t5)               \
  X(tarn__position_shaw)
// Those of ops/activation_table.h, followed by those with a file of their own.
#define TARN__OWN_ACTIVATIONS(X) X(tarn__activation_swish_beta)

#define TARN__DECLARE_MIXER(name) extern const tarn__mixer_entry name;
#define TARN__DECLARE_CHANNEL(name) extern const tarn__channel_entry name;
#define TARN__DECLARE_NORM(name) extern const tarn__norm_entry name;
#define TARN__DECLARE_POSITION(name) extern const tarn__position_entry name;
#define TARN__DECLARE_ACTIVATION(name) extern const tarn__activation_entry name;
TARN__MIXERS(TARN__DECLARE_MIXER)
TARN__CHANNELS(TARN__DECLARE_CHANNEL)
TARN__NORMS(TARN__DECLARE_NORM)
TARN__POSITIONS(TARN__DECLARE_POSITION)
#define TARN__DECLARE_PLAIN_ACTIVATION(name, word, ...) extern const tarn__activation_entry tarn__activation_##word;
TARN__ACTIVATION_WORDS(TARN__DECLARE_PLAIN_ACTIVATION)
TARN__OWN_ACTIVATIONS(TARN__DECLARE_ACTIVATION)

// Entry `index` of a table; NULL past the last one.
const tarn__part *tarn__part_at(tarn__part_table table, int index);

// The entry of a word; NULL if there is none.
const tarn__part *tarn__part_find(tarn__part_table table, const char *word);

// The noun for the entries of a table in messages: "mixer".
const char *tarn__part_noun(tarn__part_table table);

#endif
