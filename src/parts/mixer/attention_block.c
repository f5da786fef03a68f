// Multi-head attention (Vaswani et al. 2017): self-attention, and in the decoder causal self-attention followed by
// cross-attention over the encoder's output.
#include "parts/block.h"
#include "parts/registry.h"

typedef struct attention_weights {
  tarn__linear_weights qkv, out;  // self-attention: rows of qkv are queries, keys, values
  tarn__norm_weights norm;
  tarn__cross_weights cross;  // decoder only
} attention_weights;

static void *declare_attention(tarn__declare *declare) {
  attention_weights *weights = tarn__declare_struct(declare, sizeof *weights);
  if (!weights) return NULL;
  int64_t d = declare->d_model;
  weights->qkv = tarn__declare_linear(declare, "self_attn.qkv", 3 * d, d, 3, TARN__ATTENTION_GAIN);
  weights->out = tarn__declare_linear(declare, "self_attn.out", d, d, 1, 1.0);
  weights->norm = tarn__declare_norm(declare, "self_attn.norm");
  if (declare->decoder) weights->cross = tarn__cross_declare(declare);
  return weights;
}

static tarn__tensor *linear(const tarn__block_run *run, tarn__tensor *x, const tarn__linear_weights *weights) {
  return tarn__project(run->graph, x, weights, TARN__IDENTITY);
}

static tarn__tensor *self_attention(const tarn__block_run *run, const attention_weights *weights, const tarn_kind *kind,
                                    tarn__tensor *x) {
  int64_t d = run->d_model;
  tarn__tensor *qkv = linear(run, x, &weights->qkv);
  if (run->incremental) {
    tarn__tensor *cache = tarn__cache_append(run->graph, qkv, d, run->self_cache, run->first_row);
    tarn__attention_spec spec = {.heads = (int)kind->heads, .d = d, .value_column = d, .longest = run->longest};
    return tarn__attention_rows(run->graph, qkv, cache, run->history, run->history_ranges, spec);
  }
  tarn__attention_spec spec = {.heads = (int)kind->heads,
                               .d = d,
                               .key_column = d,
                               .value_column = 2 * d,
                               .causal = run->causal,
                               .longest = run->longest};
  return tarn__attention(run->graph, qkv, qkv, run->offsets, run->offsets, spec);
}

static tarn__tensor *build_cross(const tarn__block_run *run, const void *memory) {
  return tarn__cross_memory(run, &((const attention_weights *)memory)->cross);
}

static void build(const tarn__block_run *run, const void *memory, const tarn_kind *kind, tarn__stream *stream) {
  const attention_weights *weights = memory;
  tarn__tensor *x = tarn__stream_enter(run->graph, stream, &weights->norm, kind->norm);
  tarn__tensor *y = linear(run, self_attention(run, weights, kind, x), &weights->out);
  tarn__stream_leave(run->graph, stream, y, kind->dropout, &weights->norm, kind->norm);
  if (weights->cross.q.weight) tarn__cross_build(run, &weights->cross, kind, stream);
}

// Keys and values.
static int64_t cache_width(const tarn_kind *kind, int64_t d_model) {
  (void)kind;
  return 2 * d_model;
}

const tarn__mixer tarn__mixer_attention = {.id = TARN_MIXER_ATTENTION,
                                           .declare = declare_attention,
                                           .build = build,
                                           .build_cross = build_cross,
                                           .cache_width = cache_width};
