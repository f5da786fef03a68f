// GRU (Cho et al. 2014), forward only; in the decoder cross-attention follows.
#include "parts/mixer/recurrent_layer.h"

static void *declare_gru(tarn__declare *declare, const void *keys) {
  return tarn__recurrent_declare(declare, keys, "gru", TARN__CELL_GRU, 1);
}

static int64_t cache_width(const void *keys, int64_t d_model) {
  (void)d_model;
  return tarn__recurrence_cache_width(TARN__CELL_GRU, ((const tarn__recurrent_keys *)keys)->hidden);
}

const tarn__mixer_entry tarn__mixer_gru = {
    .part = {.word = "gru",
             .text = "GRU and a projection of its states; in the decoder then cross-attention",
             .equation = "r = sigmoid(W_ir x + W_hr h + b_r)\n"
                         "z = sigmoid(W_iz x + W_hz h + b_z)\n"
                         "n = tanh(W_in x + r (W_hn h + b_n))\n"
                         "h' = (1 - z) n + z h\n"
                         "y = W_o h'",
             .source = "Cho et al. 2014 (arXiv 1406.1078), with r after the product with W_hn, as in PyTorch",
             TARN__PART_KEYS(tarn__recurrent_keys, tarn__recurrent_options),
             .resolve = tarn__recurrent_resolve},
    .causal = true,
    .decodes = true,
    .attends = true,
    .sequential = true,
    .declare = declare_gru,
    .build = tarn__recurrent_build,
    .cache_width = cache_width,
    .history = tarn__recurrent_history,
    .partly_frozen = tarn__recurrent_partly_frozen,
};
