// The gated linear unit alone (Dauphin et al. 2017), as wide as the layer, without the second product of a feed-forward
// network: the first block of an Evolved Transformer's encoder cell.
#include "parts/block.h"

typedef struct gated_linear_weights {
  tarn__linear_weights in;  // rows are left, right
  tarn__norm_weights norm;
} gated_linear_weights;

static void *declare_gated_linear(tarn__declare *declare, const void *keys) {
  (void)keys;
  gated_linear_weights *weights = tarn__declare_struct(declare, sizeof *weights);
  if (!weights) return NULL;
  weights->in = tarn__declare_linear(declare, "ffn.in", 2 * declare->d_model, declare->d_model, 2, 1.0);
  weights->norm = tarn__declare_norm(declare, "ffn.norm");
  return weights;
}

static void build(const tarn__block_run *run, const void *memory, const tarn_kind *kind, tarn__stream *stream) {
  const gated_linear_weights *weights = memory;
  tarn__tensor *x = tarn__stream_enter(run->graph, stream, &weights->norm, kind->norm);
  tarn__tensor *halves = tarn__project(run->graph, x, &weights->in, TARN__IDENTITY);
  tarn__tensor *y = tarn__glu(run->graph, halves, TARN__SIGMOID);
  tarn__show_tensor(run->shows, TARN__SHOW_HIDDEN, y);
  tarn__stream_leave(run->graph, stream, y, kind->dropout, &weights->norm, kind->norm);
}

const tarn__channel_entry tarn__channel_gated_linear = {
    .part = {.word = "gated_linear",
             .text = "a gated linear unit as wide as the layer, without a second product, Dauphin et al. 2017: with "
                     "mixer none the first block of an Evolved Transformer's encoder cell",
             .equation = "y = (W_l x + b_l) * sigmoid(W_r x + b_r)",
             .source = "Dauphin et al. 2017 (arXiv 1612.08083); So et al. 2019 (arXiv 1901.11117)",
             .also = "gated_linear_unit"},
    .declare = declare_gated_linear,
    .build = build,
};
