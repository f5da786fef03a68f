// Cross-attention of a decoder layer, after the token mixer.
#include "ops/attention.h"
#include "parts/block.h"

void tarn__cross_declare(tarn__declare *declare, int64_t heads, double attention_dropout) {
  tarn__cross_declare_grouped(declare, heads, heads, attention_dropout);
}

void tarn__cross_declare_grouped(tarn__declare *declare, int64_t heads, int64_t kv_heads, double attention_dropout) {
  if (!declare->attends) return;
  const int64_t d = declare->d_model;
  tarn__cross_weights *weights = declare->cross;
  weights->heads = heads;
  weights->kv_heads = kv_heads;
  weights->attention_dropout = attention_dropout;
  weights->q = tarn__declare_linear(declare, "cross_attn.q", d, d, 1, TARN__ATTENTION_GAIN);
  weights->kv = tarn__declare_linear(declare, "cross_attn.kv", 2 * (d / heads * kv_heads), d, 2, TARN__ATTENTION_GAIN);
  weights->out = tarn__declare_linear(declare, "cross_attn.out", d, d, 1, 1.0);
  weights->norm = tarn__declare_norm(declare, "cross_attn.norm");
}

tarn__tensor *tarn__cross_memory(const tarn__block_run *run, const tarn__cross_weights *weights) {
  return tarn__project(run->graph, run->memory, &weights->kv, TARN__IDENTITY);
}

static tarn__tensor *attend(const tarn__block_run *run, const tarn__cross_weights *weights, tarn__tensor *x) {
  tarn__attention_spec spec = {.heads = (int)weights->heads,
                               .d = run->d_model,
                               .value_column = run->d_model / weights->heads * weights->kv_heads,
                               .longest = run->memory_longest,
                               .dropout = weights->attention_dropout};
  const tarn__attention_extras extras = {.kv_heads = (int)weights->kv_heads};
  tarn__tensor *q = tarn__project(run->graph, x, &weights->q, TARN__IDENTITY);
  if (run->incremental)
    return tarn__attention_rows_with(run->graph, q, run->cross_cache, NULL, run->source_ranges, spec, extras);
  tarn__tensor *memory = run->cross_cache ? run->cross_cache : tarn__cross_memory(run, weights);
  tarn__tensor *readers = run->memory_readers ? run->memory_readers : run->offsets;
  tarn__show_attention_with(run->shows, TARN__SHOW_CROSS_ATTENTION, q, memory, &spec, &extras);
  return tarn__attention_with(run->graph, q, memory, readers, run->memory_offsets, spec, extras);
}

void tarn__cross_build(const tarn__block_run *run, const tarn__cross_weights *weights, const tarn_kind *kind,
                       tarn__stream *stream) {
  tarn__tensor *x = tarn__stream_enter(run->graph, stream, &weights->norm, kind->norm);
  tarn__tensor *y = tarn__project(run->graph, attend(run, weights, x), &weights->out, TARN__IDENTITY);
  tarn__stream_leave(run->graph, stream, y, kind->dropout, &weights->norm, kind->norm);
}
