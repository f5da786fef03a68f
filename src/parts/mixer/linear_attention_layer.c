#include "parts/mixer/linear_attention_layer.h"

#include "ops/feature_map.h"

tarn__linear_attention_weights *tarn__linear_attention_declare(tarn__declare *declare,
                                                               const tarn__linear_attention_keys *keys) {
  tarn__linear_attention_weights *weights = tarn__declare_struct(declare, sizeof *weights);
  if (!weights) return NULL;
  const int64_t d = declare->d_model;
  weights->heads = keys->heads;
  weights->qkv = tarn__declare_linear(declare, "self_attn.qkv", 3 * d, d, 3, TARN__ATTENTION_GAIN);
  weights->out = tarn__declare_linear(declare, "self_attn.out", d, d, 1, 1.0);
  weights->norm = tarn__declare_norm(declare, "self_attn.norm");
  tarn__cross_declare(declare, keys->heads, keys->cross_dropout);
  return weights;
}

static tarn__tensor *attend(const tarn__block_run *run, const tarn__linear_attention_weights *weights,
                            tarn__tensor *x) {
  const int64_t d = run->d_model, width = d / weights->heads;
  tarn__tensor *qkv = tarn__project(run->graph, x, &weights->qkv, TARN__IDENTITY);
  const tarn__feature_map_spec map = {
      .heads = weights->heads, .width = width, .features = weights->features, .key_column = d};
  tarn__tensor *phi = tarn__feature_map(run->graph, qkv, weights->projection, map);
  const tarn__linear_attention_spec spec = {.heads = weights->heads,
                                            .width = width,
                                            .features = weights->features,
                                            .value_column = 2 * d,
                                            .causal = run->causal,
                                            .exponents = weights->projection != NULL};
  if (run->incremental)
    return tarn__linear_attention_rows(run->graph, phi, qkv, run->self_cache, run->first_row, run->history,
                                       run->history_ranges, spec);
  return tarn__linear_attention(run->graph, phi, qkv, run->offsets, spec, run->start, run->end);
}

void tarn__linear_attention_build(const tarn__block_run *run, const void *memory, const tarn_kind *kind,
                                  tarn__stream *stream) {
  const tarn__linear_attention_weights *weights = memory;
  tarn__tensor *x = tarn__stream_enter(run->graph, stream, &weights->norm, kind->norm);
  tarn__tensor *y = tarn__project(run->graph, attend(run, weights, x), &weights->out, TARN__IDENTITY);
  tarn__stream_leave(run->graph, stream, y, kind->dropout, &weights->norm, kind->norm);
}

int64_t tarn__linear_attention_width(int64_t heads, int64_t features, int64_t d_model, bool softmax) {
  const tarn__linear_attention_spec spec = {
      .heads = heads, .width = d_model / heads, .features = features, .exponents = softmax};
  return tarn__linear_attention_state(&spec);
}

int64_t tarn__linear_attention_history(const void *keys) {
  (void)keys;
  return 2;
}
