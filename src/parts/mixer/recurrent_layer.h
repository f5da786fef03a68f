// Shared by the recurrent token mixers: a projection of the layer's input to all gates, a recurrence over each
// sentence, and a projection of its states back to d_model.
//
// A unidirectional layer without a residual and with d_model units has no MIXER.out: its states are its output, as in
// the usual LSTM language model.
//
// Parameters, MIXER being gru or lstm: MIXER.in, over both directions, gates in PyTorch's order (r, z, n; i, f, g, o);
// MIXER.forward and MIXER.reverse, the recurrent weights, each gate's block initialised separately (frozen: each
// orthogonal, so that states neither vanish nor explode) and the bias of GRU, on which its reset gate acts (LSTM needs
// no second one); MIXER.out.
#ifndef TARN_PARTS_MIXER_RECURRENT_LAYER_H
#define TARN_PARTS_MIXER_RECURRENT_LAYER_H

#include "parts/block.h"

// Partly frozen matrices keep their random first values in a trained kind.
typedef struct tarn__recurrent_keys {
  int64_t heads;           // of a following cross-attention
  double cross_dropout;    // of its weights
  int64_t hidden;          // units of each direction
  bool frozen_input;       // W_in, the projection of the layer's input to all gates
  bool frozen_recurrence;  // W_rec, the recurrent weights
  bool frozen_output;      // W_out, the projection of the states
} tarn__recurrent_keys;

// The keys, for a table of options: a structure, and its field.
#define TARN__KEY_HIDDEN(structure, field, otherwise, meaning)                                                \
  {                                                                                                           \
    "hidden", TARN__KEY_INTEGER(structure, field, 1, 65536), .derived = otherwise, .help = meaning,           \
                                                             .also = "hidden_size units reservoir_size n_rec" \
  }
#define TARN__KEY_FROZEN_INPUT(structure, field)                                                             \
  {                                                                                                          \
    "frozen_input", TARN__KEY_BOOL(structure, field), .value = "no",                                         \
                                                      .help = "freeze W_in of a layer whose kind is trained" \
  }
#define TARN__KEY_FROZEN_RECURRENCE(structure, field)                                          \
  {                                                                                            \
    "frozen_recurrence", TARN__KEY_BOOL(structure, field),                                     \
        .value = "no", .help = "freeze the recurrent weights of a layer whose kind is trained" \
  }
#define TARN__KEY_FROZEN_OUTPUT(structure, field)                                              \
  {                                                                                            \
    "frozen_output", TARN__KEY_BOOL(structure, field),                                         \
        .value = "no", .help = "freeze the projection of the states where the kind is trained" \
  }

// Those of gru and lstm.
enum { TARN__RECURRENT_OPTIONS = 6 };
extern const tarn__option tarn__recurrent_options[TARN__RECURRENT_OPTIONS];

typedef struct tarn__recurrent_weights {
  tarn__recurrence_spec spec;
  tarn__linear_weights in, out;  // without a weight if missing; that of `in` may be stored as entries
  tarn__recurrent cell[2];
  tarn__norm_weights norm;
} tarn__recurrent_weights;

// Resolving, in this order: the default of hidden, then (after the mixer's checks) the conditions on the others.
void tarn__recurrent_default(tarn__recurrent_keys *keys, int64_t hidden);
tarn_status tarn__recurrent_check(const tarn__part_site *site, const tarn__recurrent_keys *keys, int directions);
// Both for one direction.
tarn_status tarn__recurrent_resolve(const tarn__part_site *site, void *keys);

// Parameters of a gated cell, named after `mixer`.
tarn__recurrent_weights *tarn__recurrent_declare(tarn__declare *declare, const tarn__recurrent_keys *keys,
                                                 const char *mixer, tarn__cell cell, int directions);
// Of these the projection of the states, the norm and cross-attention; spec is set.
void tarn__recurrent_declare_rest(tarn__declare *declare, const tarn__recurrent_keys *keys, const char *mixer,
                                  tarn__recurrent_weights *weights);
void tarn__recurrent_build(const tarn__block_run *run, const void *weights, const tarn_kind *kind,
                           tarn__stream *stream);
// Its own row and the previous one.
int64_t tarn__recurrent_history(const void *keys);
bool tarn__recurrent_partly_frozen(const void *keys);

#endif
