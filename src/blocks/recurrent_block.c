// Recurrent token mixers: a projection of the layer's input to all gates, a recurrence over each sentence, and a
// projection of its states back to d_model.
//
// bigru is the BiGRU reservoir of Shen et al. (ACL 2021) when frozen: a bidirectional GRU whose two directions a linear
// projection brings back to d_model. The paper leaves its width open; by default both directions together are as wide
// as the layer. Parameters: gru.in over both directions, gates r, z, n in PyTorch's order; gru.forward and gru.reverse,
// the recurrent weights, each gate's block initialised apart (frozen: each orthogonal, so no state dies out or
// explodes by them); gru.out.
#include "blocks/block.h"
#include "blocks/registry.h"

typedef struct recurrent_weights {
  tarn__recurrence_spec spec;
  tarn__linear_weights in, out;
  tarn__recurrent cell[2];
  tarn__norm_weights norm;
} recurrent_weights;

static void *declare_bigru(tarn__declare *declare) {
  recurrent_weights *weights = tarn__declare_struct(declare, sizeof *weights);
  if (!weights) return NULL;
  static const char *const names[] = {"gru.forward", "gru.reverse"};
  const int64_t d = declare->d_model, hidden = declare->kind->hidden;
  weights->spec = (tarn__recurrence_spec){.cell = TARN__CELL_GRU, .hidden = hidden, .directions = 2};
  weights->in = tarn__declare_linear(declare, "gru.in", 2 * 3 * hidden, d, 2 * 3, 1.0);
  for (int i = 0; i < 2; i++) {
    weights->cell[i].weight = tarn__declare_dense(declare, names[i], 3 * hidden, hidden, 3, 1.0);
    weights->cell[i].bias = tarn__declare_bias(declare, names[i], 3 * hidden, hidden);
  }
  weights->out = tarn__declare_linear(declare, "gru.out", d, 2 * hidden, 1, 1.0);
  weights->norm = tarn__declare_norm(declare, "gru.norm");
  return weights;
}

static void build(const tarn__block_run *run, const void *memory, const tarn_kind *kind, tarn__stream *stream) {
  const recurrent_weights *weights = memory;
  tarn__tensor *x = tarn__stream_enter(run->graph, stream, &weights->norm, kind->norm);
  tarn__tensor *gates = tarn__project(run->graph, x, &weights->in, TARN__IDENTITY);
  tarn__tensor *states = tarn__recurrence(run->graph, gates, run->offsets, weights->cell, weights->spec);
  tarn__tensor *y = tarn__project(run->graph, states, &weights->out, TARN__IDENTITY);
  tarn__stream_leave(run->graph, stream, y, kind->dropout, &weights->norm, kind->norm);
}

const tarn__mixer tarn__mixer_bigru = {.id = TARN_MIXER_BIGRU, .declare = declare_bigru, .build = build};
