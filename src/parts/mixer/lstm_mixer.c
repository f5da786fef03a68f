// LSTM (Hochreiter and Schmidhuber 1997), forward only; in the decoder cross-attention follows.
#include "parts/mixer/recurrent_layer.h"

static void *declare_lstm(tarn__declare *declare, const void *keys) {
  return tarn__recurrent_declare(declare, keys, "lstm", TARN__CELL_LSTM, 1);
}

static int64_t cache_width(const void *keys, int64_t d_model) {
  (void)d_model;
  return tarn__recurrence_cache_width(TARN__CELL_LSTM, ((const tarn__recurrent_keys *)keys)->hidden);
}

const tarn__mixer_entry tarn__mixer_lstm = {
    .part = {.word = "lstm",
             .text = "LSTM and a projection of its states; in the decoder then cross-attention",
             .equation = "i, f, o = sigmoid(W_i x + W_h h + b), each with weights of its own\n"
                         "g = tanh(W_ig x + W_hg h + b_g)\n"
                         "c' = f c + i g\n"
                         "h' = o tanh(c')\n"
                         "y = W_o h'",
             .source = "Hochreiter and Schmidhuber 1997; Gers et al. 2000 for the forget gate",
             TARN__PART_KEYS(tarn__recurrent_keys, tarn__recurrent_options),
             .resolve = tarn__recurrent_resolve},
    .causal = true,
    .decodes = true,
    .attends = true,
    .sequential = true,
    .declare = declare_lstm,
    .build = tarn__recurrent_build,
    .cache_width = cache_width,
    .history = tarn__recurrent_history,
    .partly_frozen = tarn__recurrent_partly_frozen,
};
