#include "parts/mixer/synthesizer_layer.h"

tarn_status tarn__synthesizer_resolve(const tarn__part_site *site, tarn__synthesizer_keys *keys) {
  keys->max_length = site->model->max_length;
  return tarn__heads_check(site, keys->heads);
}

tarn_status tarn__synthesizer_resolve_hidden(const tarn__part_site *site, tarn__synthesizer_keys *keys,
                                             int64_t *hidden) {
  TARN_TRY(tarn__synthesizer_resolve(site, keys));
  if (*hidden == 0) *hidden = site->model->d_model / keys->heads;
  return TARN_STATUS_OK;
}

tarn_status tarn__synthesizer_resolve_fixed(const tarn__part_site *site, tarn__synthesizer_keys *keys, bool fixed) {
  TARN_TRY(tarn__synthesizer_resolve(site, keys));
  if (!fixed || site->kind->frozen == TARN_FROZEN_NO) return TARN_STATUS_OK;
  return tarn__part_fail(site, "fixed", "%s",
                         site->kind->frozen == TARN_FROZEN_YES ? "the whole layer is frozen; leave it out"
                                                               : "all matrices of the layer are frozen; leave it out");
}

tarn__param *tarn__synthesizer_table(tarn__declare *declare, const char *name, int64_t rows, int64_t cols, double std,
                                     bool fixed) {
  const bool trained = declare->kind->frozen == TARN_FROZEN_NO && !declare->frozen_part && !fixed;
  return tarn__declare_param(declare, name, rows, cols, trained,
                             (tarn__init){TARN__INIT_NORMAL, std * declare->kind->init_gain, 1});
}

void tarn__synthesizer_declare_rest(tarn__declare *declare, const tarn__synthesizer_keys *keys,
                                    tarn__synthesizer_weights *weights) {
  const int64_t d = declare->d_model;
  weights->keys = keys;
  if (keys->plus) {
    weights->in = tarn__declare_linear(declare, "synthesizer.qkv", 3 * d, d, 3, TARN__ATTENTION_GAIN);
    // Two equal shares, trained like biases.
    weights->mix = tarn__declare_param(declare, "synthesizer.mix.bias", 1, 2, declare->kind->frozen != TARN_FROZEN_YES,
                                       (tarn__init){TARN__INIT_ZERO, 0.0, 1});
  } else {
    weights->in = tarn__declare_linear(declare, "synthesizer.value", d, d, 1, TARN__ATTENTION_GAIN);
  }
  weights->out = tarn__declare_linear(declare, "synthesizer.out", d, d, 1, 1.0);
  weights->norm = tarn__declare_norm(declare, "synthesizer.norm");
  tarn__cross_declare(declare, keys->heads, keys->cross_dropout);
}

// The source of the logits of x.
static tarn__synthesis_logits logits_of(const tarn__block_run *run, const tarn__synthesizer_weights *weights,
                                        tarn__tensor *x) {
  tarn__graph *graph = run->graph;
  tarn__synthesis_logits logits = {.weight = weights->weight, .bias = weights->bias, .mix = weights->mix};
  if (weights->places)
    logits.source = tarn__embedding(graph, run->positions, NULL, weights->places, NULL, 1.0, 0.0);
  else if (weights->hidden.weight)
    logits.source = tarn__project(graph, x, &weights->hidden, TARN__RELU);
  if (weights->factors.weight) logits.source = tarn__project(graph, logits.source, &weights->factors, TARN__IDENTITY);
  return logits;
}

static tarn__tensor *mix_tokens(const tarn__block_run *run, const tarn__synthesizer_weights *weights, tarn__tensor *x) {
  const tarn__synthesizer_keys *keys = weights->keys;
  // The planned length may exceed every actual sentence: the op reads those.
  const int64_t longest = run->longest < keys->max_length ? run->longest : keys->max_length;
  const tarn__synthesis_spec spec = {.form = weights->form,
                                     .heads = keys->heads,
                                     .d = run->d_model,
                                     .places = keys->max_length,
                                     .left = weights->left,
                                     .longest = longest,
                                     .causal = run->causal};
  const tarn__synthesis_logits logits = logits_of(run, weights, x);
  tarn__tensor *in = tarn__project(run->graph, x, &weights->in, TARN__IDENTITY);
  if (!run->incremental) return tarn__synthesis(run->graph, in, logits, run->offsets, spec);
  const int64_t column = keys->plus ? run->d_model : 0;
  tarn__tensor *cache = tarn__cache_append(run->graph, in, column, run->self_cache, run->first_row);
  return tarn__synthesis_rows(run->graph, in, logits, cache, run->history, run->history_ranges, spec);
}

void tarn__synthesizer_build(const tarn__block_run *run, const void *memory, const tarn_kind *kind,
                             tarn__stream *stream) {
  const tarn__synthesizer_weights *weights = memory;
  tarn__tensor *x = tarn__stream_enter(run->graph, stream, &weights->norm, kind->norm);
  tarn__tensor *y = tarn__project(run->graph, mix_tokens(run, weights, x), &weights->out, TARN__IDENTITY);
  tarn__stream_leave(run->graph, stream, y, kind->dropout, &weights->norm, kind->norm);
}

// Values, and keys if they are compared.
int64_t tarn__synthesizer_cache_width(const void *keys, int64_t d_model) {
  return ((const tarn__synthesizer_keys *)keys)->plus ? 2 * d_model : d_model;
}

bool tarn__synthesizer_by_position(const void *keys) {
  (void)keys;
  return true;
}
