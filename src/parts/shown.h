// Tensors inside layers that can be inspected (src/states) and are then kept to the end of the run. Training, decoding
// and scoring keep and compute nothing for this.
#ifndef TARN_PARTS_SHOWN_H
#define TARN_PARTS_SHOWN_H

#include "ops/attention.h"

// The tensors that a layer can show.
typedef enum tarn__show {
  TARN__SHOW_OUTPUT,           // the residual stream after it
  TARN__SHOW_ATTENTION,        // weights of self-attention
  TARN__SHOW_CROSS_ATTENTION,  // and of attention to the encoder's output
  TARN__SHOW_STATES,           // of a recurrence
  TARN__SHOW_CELLS,            // of LSTM
  TARN__SHOW_GATES,
  TARN__SHOW_KERNEL,  // of dynamic convolutions
  TARN__SHOW_HIDDEN,  // of a channel mixer
  TARN__SHOWS
} tarn__show;

// What the reader must compute from the tensor.
typedef enum tarn__shown_form {
  TARN__SHOWN_VALUES,
  TARN__SHOWN_SIGMOID,   // the sigmoid of every value
  TARN__SHOWN_SOFTMAX,   // of every `group` columns
  TARN__SHOWN_ATTENTION  // the weights of tarn__attention() from `tensor` and `keys` by `spec`
} tarn__shown_form;

typedef struct tarn__shown {
  tarn__tensor *tensor;  // NULL: not requested, or not part of the layer
  tarn__shown_form form;
  int64_t column, width;  // the relevant columns
  int64_t group;
  tarn__tensor *keys;
  tarn__attention_spec spec;
  tarn__attention_extras extras;
} tarn__shown;

// The requests to a layer (a set of 1 << tarn__show), and its results.
typedef struct tarn__shows {
  unsigned wanted;
  tarn__shown shown[TARN__SHOWS];
} tarn__shows;

// shows NULL: nothing is requested.
static inline bool tarn__shows_want(const tarn__shows *shows, tarn__show what) {
  return shows && (shows->wanted >> what & 1u);
}

// Shows a tensor, if it is requested.
static inline void tarn__show_part(tarn__shows *shows, tarn__show what, tarn__shown shown) {
  if (!tarn__shows_want(shows, what)) return;
  shown.tensor->keep = true;
  if (shown.keys) shown.keys->keep = true;
  if (shown.extras.biases) shown.extras.biases->keep = true;
  shows->shown[what] = shown;
}
static inline void tarn__show_tensor(tarn__shows *shows, tarn__show what, tarn__tensor *tensor) {
  tarn__show_part(shows, what, (tarn__shown){.tensor = tensor, .width = tensor->cols});
}
// The queries, keys and other arguments of tarn__attention_with().
static inline void tarn__show_attention_with(tarn__shows *shows, tarn__show what, tarn__tensor *queries,
                                             tarn__tensor *keys, const tarn__attention_spec *spec,
                                             const tarn__attention_extras *extras) {
  tarn__show_part(shows, what,
                  (tarn__shown){.tensor = queries,
                                .form = TARN__SHOWN_ATTENTION,
                                .width = spec->heads,
                                .keys = keys,
                                .spec = *spec,
                                .extras = *extras});
}
// The same for tarn__attention().
static inline void tarn__show_attention(tarn__shows *shows, tarn__show what, tarn__tensor *queries, tarn__tensor *keys,
                                        const tarn__attention_spec *spec) {
  tarn__show_attention_with(shows, what, queries, keys, spec, &(tarn__attention_extras){0});
}

#endif
