// The first block of an Evolved Transformer's decoder cell (So et al. 2019): self-attention and cross-attention read
// the same input, and their sum is one sublayer. Self-attention has twice as many heads.
#include "ops/attention.h"
#include "parts/block.h"

typedef struct evolved_keys {
  int64_t heads;
  double attention_dropout;
} evolved_keys;

static const tarn__option options[] = {
    TARN__KEY_HEADS(evolved_keys,
                    "heads of the cross-attention; self-attention has twice as many, a divisor of model.d_model"),
    TARN__KEY_ATTENTION_DROPOUT(evolved_keys, attention_dropout,
                                "on the weights of attention, after their softmax; of self-attention and "
                                "cross-attention (fairseq's attention_dropout)"),
};

typedef struct evolved_weights {
  int64_t heads;  // of self-attention
  double attention_dropout;
  tarn__linear_weights qkv, out;     // rows of qkv are queries, keys, values
  const tarn__cross_weights *cross;  // heads 0: there is none
  tarn__norm_weights norm;
} evolved_weights;

static tarn_status resolve(const tarn__part_site *site, void *memory) {
  const int64_t heads = ((const evolved_keys *)memory)->heads;
  TARN_TRY(tarn__heads_check(site, heads));
  if (site->model->d_model % (2 * heads) == 0) return TARN_STATUS_OK;
  return tarn__part_fail(site, "heads",
                         "self-attention has twice as many, %lld, which do not divide model.d_model %lld",
                         (long long)(2 * heads), (long long)site->model->d_model);
}

static void *declare_evolved(tarn__declare *declare, const void *memory) {
  const evolved_keys *keys = memory;
  const int64_t d = declare->d_model;
  evolved_weights *weights = tarn__declare_struct(declare, sizeof *weights);
  if (!weights) return NULL;
  weights->heads = 2 * keys->heads;
  weights->attention_dropout = keys->attention_dropout;
  weights->qkv = tarn__declare_linear(declare, "self_attn.qkv", 3 * d, d, 3, TARN__ATTENTION_GAIN);
  weights->out = tarn__declare_linear(declare, "self_attn.out", d, d, 1, 1.0);
  tarn__cross_declare_beside(declare, keys->heads, keys->attention_dropout);
  weights->cross = declare->cross;
  weights->norm = tarn__declare_norm(declare, "self_attn.norm");
  return weights;
}

static tarn__tensor *self_attention(const tarn__block_run *run, const evolved_weights *weights, tarn__tensor *x) {
  const int64_t d = run->d_model;
  tarn__attention_spec spec = {.heads = (int)weights->heads, .d = d, .value_column = d, .longest = run->longest};
  tarn__tensor *qkv = tarn__project(run->graph, x, &weights->qkv, TARN__IDENTITY), *y;
  if (run->incremental) {
    tarn__tensor *cache = tarn__cache_append(run->graph, qkv, d, run->self_cache, run->first_row);
    y = tarn__attention_rows(run->graph, qkv, cache, run->history, run->history_ranges, spec);
  } else {
    spec.key_column = d;
    spec.value_column = 2 * d;
    spec.causal = run->causal;
    spec.dropout = weights->attention_dropout;
    tarn__show_attention(run->shows, TARN__SHOW_ATTENTION, qkv, qkv, &spec);
    y = tarn__attention(run->graph, qkv, qkv, run->offsets, run->offsets, spec);
  }
  return tarn__project(run->graph, y, &weights->out, TARN__IDENTITY);
}

static void build(const tarn__block_run *run, const void *memory, const tarn_kind *kind, tarn__stream *stream) {
  const evolved_weights *weights = memory;
  double dropout = kind->dropout;
  tarn__tensor *x = tarn__stream_enter(run->graph, stream, &weights->norm, kind->norm);
  tarn__tensor *y = self_attention(run, weights, x);
  if (weights->cross->heads > 0) {
    tarn__tensor *other = tarn__cross_attend(run, weights->cross, x);
    y = tarn__dropout_apply(run->graph, y, dropout);
    y = tarn__stream_sum(run->graph, y, other, dropout);
    dropout = 0.0;  // each of the two had its own
  }
  tarn__stream_leave(run->graph, stream, y, dropout, &weights->norm, kind->norm);
}

// Keys and values.
static int64_t cache_width(const void *memory, int64_t d_model) {
  (void)memory;
  return 2 * d_model;
}

const tarn__mixer_entry tarn__mixer_evolved_attention = {
    .part = {.word = "evolved_attention",
             .text = "the first block of an Evolved Transformer's decoder cell, So et al. 2019: self-attention, in a "
                     "decoder causal, with twice as many heads as the cross-attention, which reads the same input; "
                     "without an encoder self-attention alone. Positions are those of the embeddings",
             .equation = "y = attention_2h(x, x) + attention_h(x, memory)",
             .source = "So et al. 2019 (arXiv 1901.11117)",
             .also = "double_attention double_heads_attention 16_head_self_attention",
             TARN__PART_KEYS(evolved_keys, options),
             .resolve = resolve},
    .causal = true,
    .decodes = true,
    .attends = true,
    .beside = true,
    .declare = declare_evolved,
    .build = build,
    .cache_width = cache_width,
};
