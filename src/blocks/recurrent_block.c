// Recurrent token mixers: a projection of the layer's input to all gates, a recurrence over each sentence, and a
// projection of its states back to d_model.
//
// bigru is the BiGRU reservoir of Shen et al. (ACL 2021) when frozen: a bidirectional GRU whose two directions a linear
// projection brings back to d_model. The paper leaves its width open; by default both directions together are as wide
// as the layer. gru and lstm go forward only; in the decoder cross-attention follows.
//
// Parameters, MIXER being gru or lstm: MIXER.in, over both directions, gates in PyTorch's order (r, z, n; i, f, g, o);
// MIXER.forward and MIXER.reverse, the recurrent weights, each gate's block initialised apart (frozen: each orthogonal,
// so that no state dies out or explodes by them) and the bias of GRU, whose reset gate acts on it (LSTM needs no second
// one); MIXER.out.
#include <stdio.h>

#include "blocks/block.h"
#include "blocks/registry.h"

typedef struct recurrent_weights {
  tarn__recurrence_spec spec;
  tarn__linear_weights in, out;
  tarn__recurrent cell[2];
  tarn__norm_weights norm;
  tarn__cross_weights cross;  // decoder only
} recurrent_weights;

static void *declare_cell(tarn__declare *declare, const char *mixer, tarn__cell cell, int directions) {
  recurrent_weights *weights = tarn__declare_struct(declare, sizeof *weights);
  if (!weights) return NULL;
  const int64_t d = declare->d_model, hidden = declare->kind->hidden;
  const int gates = cell == TARN__CELL_LSTM ? 4 : 3;
  char name[32];
  weights->spec = (tarn__recurrence_spec){.cell = cell, .hidden = hidden, .directions = directions};
  snprintf(name, sizeof name, "%s.in", mixer);
  weights->in = tarn__declare_linear(declare, name, directions * gates * hidden, d, directions * gates, 1.0);
  for (int i = 0; i < directions; i++) {
    snprintf(name, sizeof name, "%s.%s", mixer, i == 0 ? "forward" : "reverse");
    weights->cell[i].weight = tarn__declare_dense(declare, name, gates * hidden, hidden, gates, 1.0);
    if (cell == TARN__CELL_GRU) weights->cell[i].bias = tarn__declare_bias(declare, name, gates * hidden, hidden);
  }
  snprintf(name, sizeof name, "%s.out", mixer);
  weights->out = tarn__declare_linear(declare, name, d, directions * hidden, 1, 1.0);
  snprintf(name, sizeof name, "%s.norm", mixer);
  weights->norm = tarn__declare_norm(declare, name);
  if (declare->decoder) weights->cross = tarn__cross_declare(declare);
  return weights;
}

static void *declare_bigru(tarn__declare *declare) { return declare_cell(declare, "gru", TARN__CELL_GRU, 2); }

static void *declare_gru(tarn__declare *declare) { return declare_cell(declare, "gru", TARN__CELL_GRU, 1); }

static void *declare_lstm(tarn__declare *declare) { return declare_cell(declare, "lstm", TARN__CELL_LSTM, 1); }

static void build(const tarn__block_run *run, const void *memory, const tarn_kind *kind, tarn__stream *stream) {
  const recurrent_weights *weights = memory;
  tarn__tensor *x = tarn__stream_enter(run->graph, stream, &weights->norm, kind->norm);
  tarn__tensor *gates = tarn__project(run->graph, x, &weights->in, TARN__IDENTITY);
  tarn__tensor *states = run->incremental
                             ? tarn__recurrence_rows(run->graph, gates, run->self_cache, run->first_row, run->history,
                                                     run->history_ranges, weights->cell[0], weights->spec)
                             : tarn__recurrence(run->graph, gates, run->offsets, weights->cell, weights->spec);
  tarn__tensor *y = tarn__project(run->graph, states, &weights->out, TARN__IDENTITY);
  tarn__stream_leave(run->graph, stream, y, kind->dropout, &weights->norm, kind->norm);
  if (weights->cross.q.weight) tarn__cross_build(run, &weights->cross, kind, stream);
}

static tarn__tensor *build_cross(const tarn__block_run *run, const void *memory) {
  return tarn__cross_memory(run, &((const recurrent_weights *)memory)->cross);
}

static int64_t gru_width(const tarn_kind *kind, int64_t d_model) {
  (void)d_model;
  return tarn__recurrence_cache_width(TARN__CELL_GRU, kind->hidden);
}

static int64_t lstm_width(const tarn_kind *kind, int64_t d_model) {
  (void)d_model;
  return tarn__recurrence_cache_width(TARN__CELL_LSTM, kind->hidden);
}

const tarn__mixer tarn__mixer_bigru = {.id = TARN_MIXER_BIGRU, .declare = declare_bigru, .build = build};

const tarn__mixer tarn__mixer_gru = {
    .id = TARN_MIXER_GRU, .declare = declare_gru, .build = build, .build_cross = build_cross, .cache_width = gru_width};

const tarn__mixer tarn__mixer_lstm = {.id = TARN_MIXER_LSTM,
                                      .declare = declare_lstm,
                                      .build = build,
                                      .build_cross = build_cross,
                                      .cache_width = lstm_width};
