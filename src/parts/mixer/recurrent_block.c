// Recurrent token mixers: a projection of the layer's input to all gates, a recurrence over each sentence, and a
// projection of its states back to d_model.
//
// bigru is the BiGRU reservoir of Shen et al. (ACL 2021) when frozen: a bidirectional GRU whose two directions a linear
// projection brings back to d_model. The paper leaves its width open; by default both directions together are as wide
// as the layer. gru, lstm and esn go forward only; in the decoder cross-attention follows.
//
// esn is an echo state network (Jaeger 2001; Ueda et al.), h' = (1 - a) h + a f(W_rec h + W_in x), whose W_rec is made
// once and never trained (init/reservoir.h). Its parameters are esn.in, the W_in of a projection, absent where the
// layer's input itself drives the units; esn.recurrent, W_rec; esn.out, the readout.
//
// A layer of one direction without a residual and with hidden units as many as d_model has no MIXER.out: its states are
// its output, as in the usual LSTM language model.
//
// Parameters, MIXER being gru or lstm: MIXER.in, over both directions, gates in PyTorch's order (r, z, n; i, f, g, o);
// MIXER.forward and MIXER.reverse, the recurrent weights, each gate's block initialised apart (frozen: each orthogonal,
// so that no state dies out or explodes by them) and the bias of GRU, whose reset gate acts on it (LSTM needs no second
// one); MIXER.out.
#include <stdio.h>

#include "parts/block.h"
#include "parts/registry.h"

typedef struct recurrent_weights {
  tarn__recurrence_spec spec;
  tarn__linear_weights in, out;  // each without a weight where there is none
  tarn__recurrent cell[2];
  tarn__norm_weights norm;
  tarn__cross_weights cross;  // decoder only
} recurrent_weights;

// The projection of the states, cross-attention, the norm.
static void declare_rest(tarn__declare *declare, const char *mixer, recurrent_weights *weights) {
  const tarn_kind *kind = declare->kind;
  const int64_t d = declare->d_model, width = weights->spec.directions * kind->hidden;
  char name[32];
  declare->frozen_part = kind->frozen_output;
  snprintf(name, sizeof name, "%s.out", mixer);
  if (kind->residual || weights->spec.directions == 2 || width != d)
    weights->out = tarn__declare_linear(declare, name, d, width, 1, 1.0);
  declare->frozen_part = false;
  snprintf(name, sizeof name, "%s.norm", mixer);
  weights->norm = tarn__declare_norm(declare, name);
  if (declare->decoder) weights->cross = tarn__cross_declare(declare);
}

static void *declare_cell(tarn__declare *declare, const char *mixer, tarn__cell cell, int directions) {
  recurrent_weights *weights = tarn__declare_struct(declare, sizeof *weights);
  if (!weights) return NULL;
  const int64_t d = declare->d_model, hidden = declare->kind->hidden;
  const int gates = cell == TARN__CELL_LSTM ? 4 : 3;
  char name[32];
  weights->spec = (tarn__recurrence_spec){.cell = cell, .hidden = hidden, .directions = directions};
  snprintf(name, sizeof name, "%s.in", mixer);
  declare->frozen_part = declare->kind->frozen_input;
  weights->in = tarn__declare_linear(declare, name, directions * gates * hidden, d, directions * gates, 1.0);
  declare->frozen_part = declare->kind->frozen_recurrence;
  for (int i = 0; i < directions; i++) {
    snprintf(name, sizeof name, "%s.%s", mixer, i == 0 ? "forward" : "reverse");
    weights->cell[i].weight = tarn__declare_dense(declare, name, gates * hidden, hidden, gates, 1.0);
    if (cell == TARN__CELL_GRU) weights->cell[i].bias = tarn__declare_bias(declare, name, gates * hidden, hidden);
  }
  declare_rest(declare, mixer, weights);
  return weights;
}

static void *declare_bigru(tarn__declare *declare) { return declare_cell(declare, "gru", TARN__CELL_GRU, 2); }

static void *declare_gru(tarn__declare *declare) { return declare_cell(declare, "gru", TARN__CELL_GRU, 1); }

static void *declare_lstm(tarn__declare *declare) { return declare_cell(declare, "lstm", TARN__CELL_LSTM, 1); }

static tarn__topology topology_of(tarn_topology topology) {
  switch (topology) {
    case TARN_TOPOLOGY_SMALL_WORLD:
      return TARN__TOPOLOGY_SMALL_WORLD;
    case TARN_TOPOLOGY_SCALE_FREE:
      return TARN__TOPOLOGY_SCALE_FREE;
    case TARN_TOPOLOGY_RING:
      return TARN__TOPOLOGY_RING;
    case TARN_TOPOLOGY_RANDOM:
    case TARN_TOPOLOGY_COUNT:
      break;
  }
  return TARN__TOPOLOGY_RANDOM;
}

static void *declare_esn(tarn__declare *declare) {
  recurrent_weights *weights = tarn__declare_struct(declare, sizeof *weights);
  tarn__reservoir *reservoir = tarn__declare_struct(declare, sizeof *reservoir);
  if (!weights || !reservoir) return NULL;
  const tarn_kind *kind = declare->kind;
  const int64_t hidden = kind->hidden;
  const bool relu = kind->nonlinearity == TARN_NONLINEARITY_RELU;
  weights->spec = (tarn__recurrence_spec){
      .cell = TARN__CELL_ECHO, .hidden = hidden, .directions = 1, .relu = relu, .leak = kind->leak_rate};
  const bool frozen_input = declare->frozen_part = kind->frozen_input;
  if (kind->input == TARN_RESERVOIR_INPUT_PROJECTION && kind->input_scaling > 0)
    weights->in.weight = tarn__declare_param(declare, "esn.in.weight", hidden, declare->d_model,
                                             kind->frozen == TARN_FROZEN_NO && !frozen_input,
                                             (tarn__init){TARN__INIT_NORMAL, kind->input_scaling, 1});
  else if (kind->input == TARN_RESERVOIR_INPUT_PROJECTION)
    weights->in = tarn__declare_matrix(declare, "esn.in", hidden, declare->d_model, 1, 1.0);
  *reservoir = (tarn__reservoir){topology_of(kind->topology), kind->sparsity, kind->name};
  weights->cell[0].weight = tarn__declare_param(declare, "esn.recurrent.weight", hidden, hidden, false,
                                                (tarn__init){TARN__INIT_RESERVOIR, kind->spectral_radius, 1});
  if (weights->cell[0].weight) weights->cell[0].weight->reservoir = reservoir;
  declare_rest(declare, "esn", weights);
  return weights;
}

static void build(const tarn__block_run *run, const void *memory, const tarn_kind *kind, tarn__stream *stream) {
  const recurrent_weights *weights = memory;
  tarn__tensor *x = tarn__stream_enter(run->graph, stream, &weights->norm, kind->norm);
  tarn__tensor *gates = weights->in.weight ? tarn__project(run->graph, x, &weights->in, TARN__IDENTITY) : x;
  tarn__tensor *states = run->incremental
                             ? tarn__recurrence_rows(run->graph, gates, run->self_cache, run->first_row, run->history,
                                                     run->history_ranges, weights->cell[0], weights->spec)
                             : tarn__recurrence(run->graph, gates, run->offsets, weights->cell, weights->spec);
  tarn__tensor *y = weights->out.weight ? tarn__project(run->graph, states, &weights->out, TARN__IDENTITY) : states;
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

static int64_t esn_width(const tarn_kind *kind, int64_t d_model) {
  (void)d_model;
  return tarn__recurrence_cache_width(TARN__CELL_ECHO, kind->hidden);
}

// Its own row and that of the token before.
static int64_t history(const tarn_kind *kind) {
  (void)kind;
  return 2;
}

const tarn__mixer tarn__mixer_bigru = {.id = TARN_MIXER_BIGRU, .declare = declare_bigru, .build = build};

const tarn__mixer tarn__mixer_gru = {.id = TARN_MIXER_GRU,
                                     .declare = declare_gru,
                                     .build = build,
                                     .build_cross = build_cross,
                                     .cache_width = gru_width,
                                     .history = history,
                                     .sequential = true};

const tarn__mixer tarn__mixer_lstm = {.id = TARN_MIXER_LSTM,
                                      .declare = declare_lstm,
                                      .build = build,
                                      .build_cross = build_cross,
                                      .cache_width = lstm_width,
                                      .history = history,
                                      .sequential = true};

const tarn__mixer tarn__mixer_esn = {.id = TARN_MIXER_ESN,
                                     .declare = declare_esn,
                                     .build = build,
                                     .build_cross = build_cross,
                                     .cache_width = esn_width,
                                     .history = history,
                                     .sequential = true};
