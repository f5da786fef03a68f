// Cross-attention of a decoder layer, after the token mixer.
#include "ops/attention.h"
#include "parts/block.h"

static void declare_products(tarn__declare *declare, tarn__cross_heads heads, double attention_dropout) {
  const int64_t d = declare->d_model, inner = heads.heads * heads.width;
  tarn__cross_weights *weights = declare->cross;
  weights->heads = heads.heads;
  weights->kv_heads = heads.kv_heads;
  weights->width = heads.width;
  weights->attention_dropout = attention_dropout;
  weights->q = tarn__declare_linear(declare, "cross_attn.q", inner, d, 1, TARN__ATTENTION_GAIN);
  weights->kv =
      tarn__declare_linear(declare, "cross_attn.kv", 2 * heads.kv_heads * heads.width, d, 2, TARN__ATTENTION_GAIN);
  weights->out = tarn__declare_linear(declare, "cross_attn.out", d, inner, 1, 1.0);
}

static tarn__cross_heads usual(const tarn__declare *declare, int64_t heads) {
  return (tarn__cross_heads){heads, heads, declare->d_model / heads};
}

void tarn__cross_declare(tarn__declare *declare, int64_t heads, double attention_dropout) {
  tarn__cross_declare_heads(declare, usual(declare, heads), attention_dropout);
}

void tarn__cross_declare_heads(tarn__declare *declare, tarn__cross_heads heads, double attention_dropout) {
  if (!declare->attends) return;
  declare_products(declare, heads, attention_dropout);
  declare->cross->norm = tarn__declare_norm(declare, "cross_attn.norm");
}

void tarn__cross_declare_beside(tarn__declare *declare, int64_t heads, double attention_dropout) {
  if (declare->attends) declare_products(declare, usual(declare, heads), attention_dropout);
}

tarn__tensor *tarn__cross_memory(const tarn__block_run *run, const tarn__cross_weights *weights) {
  return tarn__project(run->graph, run->memory, &weights->kv, TARN__IDENTITY);
}

static tarn__tensor *attend(const tarn__block_run *run, const tarn__cross_weights *weights, tarn__tensor *x) {
  tarn__attention_spec spec = {.heads = (int)weights->heads,
                               .d = weights->heads * weights->width,
                               .value_column = weights->kv_heads * weights->width,
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

tarn__tensor *tarn__cross_attend(const tarn__block_run *run, const tarn__cross_weights *weights, tarn__tensor *x) {
  return tarn__project(run->graph, attend(run, weights, x), &weights->out, TARN__IDENTITY);
}

void tarn__cross_build(const tarn__block_run *run, const tarn__cross_weights *weights, const tarn_kind *kind,
                       tarn__stream *stream) {
  tarn__tensor *x = tarn__stream_enter(run->graph, stream, &weights->norm, kind->norm);
  tarn__tensor *y = tarn__cross_attend(run, weights, x);
  tarn__stream_leave(run->graph, stream, y, kind->dropout, &weights->norm, kind->norm);
}
