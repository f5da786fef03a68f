#include "parts/mixer/gated_mlp.h"

#include <stdio.h>

#include "ops/cache.h"

static const double EPSILON = 1e-5;  // of the norm within the gate

typedef struct gated_mlp_weights {
  const tarn__gated_mlp_keys *keys;
  tarn__linear_weights value, gate;  // both halves of the first projection
  tarn__param *gain, *bias;          // of the norm of the mixed half
  tarn__linear_weights tokens, out;
  tarn__linear_weights qkv, attended;  // of the tiny attention; without a weight if there is none
  tarn__norm_weights norm;
} gated_mlp_weights;

tarn_status tarn__gated_mlp_resolve(const tarn__part_site *site, void *memory) {
  tarn__gated_mlp_keys *keys = memory;
  if (keys->hidden == 0) keys->hidden = 4 * site->model->d_model;
  if (keys->hidden % 2 != 0)
    return tarn__part_fail(site, "hidden", "%lld is odd, but one half gates the other; use %lld",
                           (long long)keys->hidden, (long long)keys->hidden + 1);
  TARN_TRY(tarn__tokens_resolve(site, &keys->tokens));
  return site->attends ? tarn__heads_check(site, keys->heads) : TARN_STATUS_OK;
}

// A layer norm of `width` columns, independent of the kind's norm.
static void declare_norm(tarn__declare *declare, gated_mlp_weights *weights, int64_t width) {
  const int64_t d_model = declare->d_model;
  const bool trained = declare->kind->frozen != TARN_FROZEN_YES;
  declare->d_model = width;
  weights->gain = tarn__declare_norm_gain(declare, "gmlp.gate_norm", trained);
  weights->bias = tarn__declare_norm_bias(declare, "gmlp.gate_norm", trained);
  declare->d_model = d_model;
}

void *tarn__gated_mlp_declare(tarn__declare *declare, const void *memory) {
  const tarn__gated_mlp_keys *keys = memory;
  gated_mlp_weights *weights = tarn__declare_struct(declare, sizeof *weights);
  if (!weights) return NULL;
  const int64_t d = declare->d_model, half = keys->hidden / 2;
  weights->keys = keys;
  weights->value = tarn__declare_linear(declare, "gmlp.value", half, d, 1, 1.0);
  weights->gate = tarn__declare_linear(declare, "gmlp.gate", half, d, 1, 1.0);
  declare_norm(declare, weights, half);
  weights->tokens.weight = tarn__token_weight(declare, "gmlp.tokens", keys->tokens, keys->tokens, true);
  weights->tokens.bias = tarn__token_bias_one(declare, "gmlp.tokens", keys->tokens);
  if (keys->attention > 0) {
    weights->qkv = tarn__declare_matrix(declare, "gmlp.qkv", 3 * keys->attention, d, 3, TARN__ATTENTION_GAIN);
    weights->attended = tarn__declare_linear(declare, "gmlp.attended", half, keys->attention, 1, 1.0);
  }
  weights->out = tarn__declare_linear(declare, "gmlp.out", d, half, 1, 1.0);
  weights->norm = tarn__declare_norm(declare, "gmlp.norm");
  tarn__cross_declare(declare, keys->heads, keys->cross_dropout);
  return weights;
}

// The tiny attention's addition to the gate, NULL without one; keys and values go to the cache while decoding.
static tarn__tensor *attend(const tarn__block_run *run, const gated_mlp_weights *weights, tarn__tensor *x,
                            tarn__tensor **cache) {
  const int64_t d = weights->keys->attention;
  if (d == 0) return NULL;
  tarn__tensor *qkv = tarn__project(run->graph, x, &weights->qkv, TARN__IDENTITY), *y;
  if (run->incremental) {
    *cache = tarn__cache_append_columns(run->graph, qkv, d, 2 * d, *cache, weights->keys->hidden / 2, run->first_row);
    const tarn__attention_spec spec = {.heads = 1,
                                       .d = d,
                                       .key_column = weights->keys->hidden / 2,
                                       .value_column = weights->keys->hidden / 2 + d,
                                       .longest = run->longest};
    y = tarn__attention_rows(run->graph, qkv, *cache, run->history, run->history_ranges, spec);
  } else {
    const tarn__attention_spec spec = {
        .heads = 1, .d = d, .key_column = d, .value_column = 2 * d, .causal = run->causal, .longest = run->longest};
    tarn__show_attention(run->shows, TARN__SHOW_ATTENTION, qkv, qkv, &spec);
    y = tarn__attention(run->graph, qkv, qkv, run->offsets, run->offsets, spec);
  }
  return tarn__project(run->graph, y, &weights->attended, TARN__IDENTITY);
}

void tarn__gated_mlp_build(const tarn__block_run *run, const void *memory, const tarn_kind *kind,
                           tarn__stream *stream) {
  const gated_mlp_weights *weights = memory;
  tarn__graph *graph = run->graph;
  const int64_t half = weights->keys->hidden / 2;
  tarn__tensor *x = tarn__stream_enter(graph, stream, &weights->norm, kind->norm), *cache = run->self_cache;
  tarn__tensor *added = attend(run, weights, x, &cache);
  tarn__tensor *value = tarn__project(graph, x, &weights->value, TARN__GELU);
  tarn__tensor *gate = tarn__project(graph, x, &weights->gate, TARN__GELU), *y;
  const tarn__norm norm = {.form = TARN__NORM_LAYER, .epsilon = EPSILON, .gain = weights->gain, .bias = weights->bias};
  gate = tarn__residual_norm(graph, gate, NULL, 0.0, norm).y;
  const tarn__token_gate with = {value, added};
  if (run->incremental) {
    cache = tarn__cache_append_columns(graph, gate, 0, half, cache, 0, run->first_row);
    y = tarn__token_linear_rows(graph, cache, 0, half, run->history, run->history_ranges, weights->tokens.weight,
                                weights->tokens.bias, with);
  } else {
    const tarn__token_spec spec = {.form = TARN__TOKENS_AMONG, .causal = run->causal, .longest = run->longest};
    y = tarn__token_linear(graph, gate, run->offsets, weights->tokens.weight, weights->tokens.bias, with, spec);
  }
  y = tarn__project(graph, y, &weights->out, TARN__IDENTITY);
  tarn__stream_leave(graph, stream, y, kind->dropout, &weights->norm, kind->norm);
}

// The mixed half, and keys and values.
int64_t tarn__gated_mlp_cache_width(const void *memory, int64_t d_model) {
  const tarn__gated_mlp_keys *keys = memory;
  (void)d_model;
  return keys->hidden / 2 + 2 * keys->attention;
}
