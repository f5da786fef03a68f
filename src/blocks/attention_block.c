// Multi-head attention (Vaswani et al. 2017): self-attention, and in the decoder causal self-attention followed by
// cross-attention over the encoder's output.
#include <math.h>

#include "blocks/block.h"
#include "blocks/registry.h"

typedef struct attention_weights {
  tarn__linear_weights qkv, out;  // self-attention: rows of qkv are queries, keys, values
  tarn__norm_weights norm;
  tarn__linear_weights cross_q, cross_kv, cross_out;  // decoder only
  tarn__norm_weights cross_norm;
} attention_weights;

static void *declare_attention(tarn__declare *declare) {
  void *memory = NULL;
  if (declare->status == TARN_STATUS_OK)
    declare->status = tarn__arena_alloc(declare->arena, &memory, 1, sizeof(attention_weights));
  if (declare->status != TARN_STATUS_OK) return NULL;
  attention_weights *weights = memory;
  int64_t d = declare->d_model;
  // fairseq scales the Xavier bound of query, key and value projections by 1 / sqrt(2).
  double gain = sqrt(0.5);
  weights->qkv = tarn__declare_linear(declare, "self_attn.qkv", 3 * d, d, 3, gain);
  weights->out = tarn__declare_linear(declare, "self_attn.out", d, d, 1, 1.0);
  weights->norm = tarn__declare_norm(declare, "self_attn.norm");
  if (!declare->decoder) return weights;
  weights->cross_q = tarn__declare_linear(declare, "cross_attn.q", d, d, 1, gain);
  weights->cross_kv = tarn__declare_linear(declare, "cross_attn.kv", 2 * d, d, 2, gain);
  weights->cross_out = tarn__declare_linear(declare, "cross_attn.out", d, d, 1, 1.0);
  weights->cross_norm = tarn__declare_norm(declare, "cross_attn.norm");
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
  const attention_weights *weights = memory;
  return linear(run, run->memory, &weights->cross_kv);
}

static tarn__tensor *cross_attention(const tarn__block_run *run, const attention_weights *weights,
                                     const tarn_kind *kind, tarn__tensor *x) {
  tarn__attention_spec spec = {
      .heads = (int)kind->heads, .d = run->d_model, .value_column = run->d_model, .longest = run->memory_longest};
  tarn__tensor *q = linear(run, x, &weights->cross_q);
  if (run->incremental) return tarn__attention_rows(run->graph, q, run->cross_cache, NULL, run->source_ranges, spec);
  return tarn__attention(run->graph, q, build_cross(run, weights), run->offsets, run->memory_offsets, spec);
}

static void build(const tarn__block_run *run, const void *memory, const tarn_kind *kind, tarn__stream *stream) {
  const attention_weights *weights = memory;
  tarn__tensor *x = tarn__stream_enter(run->graph, stream, &weights->norm, kind->norm);
  tarn__tensor *y = linear(run, self_attention(run, weights, kind, x), &weights->out);
  tarn__stream_leave(run->graph, stream, y, kind->dropout, &weights->norm, kind->norm);
  if (!weights->cross_q.weight) return;
  x = tarn__stream_enter(run->graph, stream, &weights->cross_norm, kind->norm);
  y = linear(run, cross_attention(run, weights, kind, x), &weights->cross_out);
  tarn__stream_leave(run->graph, stream, y, kind->dropout, &weights->cross_norm, kind->norm);
}

// Keys and values.
static int64_t cache_width(const tarn_kind *kind, int64_t d_model) {
  (void)kind;
  return 2 * d_model;
}

const tarn__mixer tarn__mixer_attention = {TARN_MIXER_ATTENTION, declare_attention, build, build_cross, cache_width};
