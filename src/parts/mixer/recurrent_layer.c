#include "parts/mixer/recurrent_layer.h"

#include <stdio.h>

#include "ops/recurrence_inside.h"
#include "ops/sparse_linear.h"

const tarn__option tarn__recurrent_options[TARN__RECURRENT_OPTIONS] = {
    TARN__KEY_CROSS_HEADS(tarn__recurrent_keys, heads),
    TARN__KEY_HIDDEN(tarn__recurrent_keys, hidden, "model.d_model", "units of the recurrence"),
    TARN__KEY_FROZEN_INPUT(tarn__recurrent_keys, frozen_input),
    TARN__KEY_FROZEN_RECURRENCE(tarn__recurrent_keys, frozen_recurrence),
    TARN__KEY_FROZEN_OUTPUT(tarn__recurrent_keys, frozen_output),
    TARN__KEY_CROSS_DROPOUT(tarn__recurrent_keys, cross_dropout),
};

void tarn__recurrent_default(tarn__recurrent_keys *keys, int64_t hidden) {
  if (keys->hidden == 0) keys->hidden = hidden;
}

// Partly frozen matrices must exist, in a trained kind.
tarn_status tarn__recurrent_check(const tarn__part_site *site, const tarn__recurrent_keys *keys, int directions) {
  const tarn_kind *kind = site->kind;
  const struct {
    const char *name;
    bool set;
  } parts[] = {{"frozen_input", keys->frozen_input},
               {"frozen_recurrence", keys->frozen_recurrence},
               {"frozen_output", keys->frozen_output}};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    if (!parts[i].set || kind->frozen == TARN_FROZEN_NO) continue;
    return tarn__part_fail(site, parts[i].name, "%s",
                           kind->frozen == TARN_FROZEN_YES ? "the whole layer is frozen; leave it out"
                                                           : "all matrices of the layer are frozen; leave it out");
  }
  const bool projects = kind->residual || directions == 2 || keys->hidden != site->model->d_model;
  if (keys->frozen_output && !projects)
    return tarn__part_fail(site, "frozen_output",
                           "without residual, and with model.d_model units, the layer has no W_out; leave it out");
  return site->attends ? tarn__heads_check(site, keys->heads) : TARN_STATUS_OK;
}

tarn_status tarn__recurrent_resolve(const tarn__part_site *site, void *keys) {
  tarn__recurrent_default(keys, site->model->d_model);
  return tarn__recurrent_check(site, keys, 1);
}

void tarn__recurrent_declare_rest(tarn__declare *declare, const tarn__recurrent_keys *keys, const char *mixer,
                                  tarn__recurrent_weights *weights) {
  const int64_t d = declare->d_model, width = weights->spec.directions * keys->hidden;
  char name[32];
  declare->frozen_part = keys->frozen_output;
  snprintf(name, sizeof name, "%s.out", mixer);
  if (declare->kind->residual || weights->spec.directions == 2 || width != d)
    weights->out = tarn__declare_linear(declare, name, d, width, 1, 1.0);
  declare->frozen_part = false;
  snprintf(name, sizeof name, "%s.norm", mixer);
  weights->norm = tarn__declare_norm(declare, name);
  if (weights->spec.directions == 1) tarn__cross_declare(declare, keys->heads, keys->cross_dropout);
}

tarn__recurrent_weights *tarn__recurrent_declare(tarn__declare *declare, const tarn__recurrent_keys *keys,
                                                 const char *mixer, tarn__cell cell, int directions) {
  tarn__recurrent_weights *weights = tarn__declare_struct(declare, sizeof *weights);
  if (!weights) return NULL;
  const int64_t d = declare->d_model, hidden = keys->hidden;
  const int gates = cell == TARN__CELL_LSTM ? 4 : 3;
  char name[32];
  weights->spec = (tarn__recurrence_spec){.cell = cell, .hidden = hidden, .directions = directions};
  snprintf(name, sizeof name, "%s.in", mixer);
  declare->frozen_part = keys->frozen_input;
  weights->in = tarn__declare_linear(declare, name, directions * gates * hidden, d, directions * gates, 1.0);
  declare->frozen_part = keys->frozen_recurrence;
  for (int i = 0; i < directions; i++) {
    snprintf(name, sizeof name, "%s.%s", mixer, i == 0 ? "forward" : "reverse");
    weights->cell[i].weight = tarn__declare_dense(declare, name, gates * hidden, hidden, gates, 1.0);
    if (cell == TARN__CELL_GRU) weights->cell[i].bias = tarn__declare_bias(declare, name, gates * hidden, hidden);
  }
  tarn__recurrent_declare_rest(declare, keys, mixer, weights);
  return weights;
}

// The states of all rows.
static tarn__tensor *recur(const tarn__block_run *run, const tarn__recurrent_weights *weights, tarn__tensor *gates) {
  if (run->incremental)
    return tarn__recurrence_rows(run->graph, gates, run->self_cache, run->first_row, run->history, run->history_ranges,
                                 weights->cell[0], weights->spec);
  if (run->start)
    return tarn__recurrence_carried(run->graph, gates, run->offsets, weights->cell[0], weights->spec, run->start,
                                    run->end);
  return tarn__recurrence(run->graph, gates, run->offsets, weights->cell, weights->spec);
}

// The input's contribution to all gates.
static tarn__tensor *drive(const tarn__block_run *run, const tarn__recurrent_weights *weights, tarn__tensor *x) {
  if (!weights->in.weight) return x;
  if (weights->in.weight->entries > 0) return tarn__sparse_linear(run->graph, x, weights->in.weight);
  return tarn__project(run->graph, x, &weights->in, TARN__IDENTITY);
}

// The single block of an echo state network is no gate.
static void show(const tarn__block_run *run, const tarn__recurrent_weights *weights, tarn__tensor *states) {
  tarn__show_tensor(run->shows, TARN__SHOW_STATES, states);
  const bool wanted = tarn__shows_want(run->shows, TARN__SHOW_GATES) || tarn__shows_want(run->shows, TARN__SHOW_CELLS);
  if (!wanted || weights->spec.cell == TARN__CELL_ECHO) return;
  tarn__tensor *gates, *cells;
  tarn__recurrence_inside(run->graph, states, &gates, &cells);
  if (gates) tarn__show_tensor(run->shows, TARN__SHOW_GATES, gates);
  if (cells) tarn__show_tensor(run->shows, TARN__SHOW_CELLS, cells);
}

void tarn__recurrent_build(const tarn__block_run *run, const void *memory, const tarn_kind *kind,
                           tarn__stream *stream) {
  const tarn__recurrent_weights *weights = memory;
  tarn__tensor *x = tarn__stream_enter(run->graph, stream, &weights->norm, kind->norm);
  tarn__tensor *states = recur(run, weights, drive(run, weights, x));
  show(run, weights, states);
  tarn__tensor *y = weights->out.weight ? tarn__project(run->graph, states, &weights->out, TARN__IDENTITY) : states;
  tarn__stream_leave(run->graph, stream, y, kind->dropout, &weights->norm, kind->norm);
}

int64_t tarn__recurrent_history(const void *keys) {
  (void)keys;
  return 2;
}

bool tarn__recurrent_partly_frozen(const void *memory) {
  const tarn__recurrent_keys *keys = memory;
  return keys->frozen_input || keys->frozen_recurrence || keys->frozen_output;
}
