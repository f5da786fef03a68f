// A layer: a token mixer, then the feed-forward network.
#include "parts/backskip.h"
#include "parts/registry.h"

tarn__layer_weights *tarn__layer_declare(tarn__declare *declare) {
  tarn__layer_weights *weights = tarn__declare_struct(declare, sizeof *weights);
  if (!weights) return NULL;
  weights->kind = declare->kind;
  weights->backskip = tarn__backskip_declare(declare);
  weights->mixer = tarn__mixer_find(declare->kind->mixer);
  weights->crosses = declare->decoder && weights->mixer->build_cross;
  weights->mixing = weights->mixer->declare(declare);
  weights->activation = declare->activation;
  int64_t ffn = declare->kind->ffn;
  if (ffn == 0) return weights;
  weights->ffn_in = tarn__declare_linear(declare, "ffn.in", ffn, declare->d_model, 1, 1.0);
  weights->ffn_out = tarn__declare_linear(declare, "ffn.out", declare->d_model, ffn, 1, 1.0);
  weights->ffn_norm = tarn__declare_norm(declare, "ffn.norm");
  return weights;
}

static tarn__activation op_activation(tarn_activation activation) {
  switch (activation) {
    case TARN_ACTIVATION_GELU:
      return TARN__GELU;
    case TARN_ACTIVATION_GELU_TANH:
      return TARN__GELU_TANH;
    case TARN_ACTIVATION_RELU:
    case TARN_ACTIVATION_COUNT:
      break;
  }
  return TARN__RELU;
}

static void build_ffn(const tarn__block_run *run, const tarn__layer_weights *weights, tarn__stream *stream) {
  const tarn_kind *kind = weights->kind;
  tarn__tensor *x = tarn__stream_enter(run->graph, stream, &weights->ffn_norm, kind->norm);
  tarn__tensor *hidden = tarn__project(run->graph, x, &weights->ffn_in, op_activation(weights->activation));
  tarn__tensor *y = tarn__project(run->graph, hidden, &weights->ffn_out, TARN__IDENTITY);
  tarn__stream_leave(run->graph, stream, y, kind->dropout, &weights->ffn_norm, kind->norm);
}

void tarn__layer_build(const tarn__block_run *run, const tarn__layer_weights *weights, tarn__stream *stream) {
  const tarn_kind *kind = weights->kind;
  tarn__backskip *skip = tarn__backskip_enter(run, weights->backskip, stream);
  stream->begins = true;
  stream->replaced = !kind->residual;
  weights->mixer->build(run, weights->mixing, kind, stream);
  if (kind->ffn > 0) build_ffn(run, weights, stream);
  tarn__backskip_leave(run, skip, stream);
}

int64_t tarn__layer_cache_width(const tarn__layer_weights *weights, int64_t d_model) {
  return weights->mixer->cache_width ? weights->mixer->cache_width(weights->kind, d_model) : 0;
}

int64_t tarn__layer_history(const tarn__layer_weights *weights) {
  if (!weights->mixer->cache_width) return 1;
  return weights->mixer->history ? weights->mixer->history(weights->kind) : INT64_MAX;
}

int64_t tarn__layer_cross_width(const tarn__layer_weights *weights, int64_t d_model) {
  return weights->crosses ? 2 * d_model : 0;
}
