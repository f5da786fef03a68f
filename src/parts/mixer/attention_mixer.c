// Multi-head attention (Vaswani et al. 2017): self-attention, and in the decoder causal self-attention followed by
// cross-attention over the encoder's output.
#include "parts/block.h"

typedef struct attention_keys {
  int64_t heads;             // divides d_model; of self-attention and cross-attention
  double attention_dropout;  // of both
} attention_keys;

static const tarn__option options[] = {
    TARN__KEY_HEADS(attention_keys,
                    "attention heads, a divisor of model.d_model; of self-attention and cross-attention"),
    TARN__KEY_ATTENTION_DROPOUT(attention_keys, attention_dropout,
                                "on the weights of attention, behind their softmax; of self-attention and "
                                "cross-attention (fairseq's attention_dropout, GPT-2's attn_pdrop, BERT's "
                                "attention_probs_dropout_prob)"),
};

typedef struct attention_weights {
  int64_t heads;
  double attention_dropout;
  tarn__linear_weights qkv, out;  // self-attention: rows of qkv are queries, keys, values
  tarn__norm_weights norm;
} attention_weights;

static tarn_status resolve(const tarn__part_site *site, void *memory) {
  return tarn__heads_check(site, ((const attention_keys *)memory)->heads);
}

static void *declare_attention(tarn__declare *declare, const void *memory) {
  const attention_keys *keys = memory;
  attention_weights *weights = tarn__declare_struct(declare, sizeof *weights);
  if (!weights) return NULL;
  int64_t d = declare->d_model;
  weights->heads = keys->heads;
  weights->attention_dropout = keys->attention_dropout;
  weights->qkv = tarn__declare_linear(declare, "self_attn.qkv", 3 * d, d, 3, TARN__ATTENTION_GAIN);
  weights->out = tarn__declare_linear(declare, "self_attn.out", d, d, 1, 1.0);
  weights->norm = tarn__declare_norm(declare, "self_attn.norm");
  tarn__cross_declare(declare, keys->heads, keys->attention_dropout);
  return weights;
}

static tarn__tensor *linear(const tarn__block_run *run, tarn__tensor *x, const tarn__linear_weights *weights) {
  return tarn__project(run->graph, x, weights, TARN__IDENTITY);
}

static tarn__tensor *self_attention(const tarn__block_run *run, const attention_weights *weights, tarn__tensor *x) {
  const tarn__position_entry *position = tarn__position_of(run->position);
  int64_t d = run->d_model;
  tarn__tensor *qkv = linear(run, x, &weights->qkv);
  if (position->turn) qkv = position->turn(run, qkv, 2 * d, d / weights->heads);
  if (run->incremental) {
    tarn__tensor *cache = tarn__cache_append(run->graph, qkv, d, run->self_cache, run->first_row);
    tarn__attention_spec spec = {.heads = (int)weights->heads, .d = d, .value_column = d, .longest = run->longest};
    if (position->bias) position->bias(run, &spec);
    return tarn__attention_rows(run->graph, qkv, cache, run->history, run->history_ranges, spec);
  }
  tarn__attention_spec spec = {.heads = (int)weights->heads,
                               .d = d,
                               .key_column = d,
                               .value_column = 2 * d,
                               .causal = run->causal,
                               .longest = run->longest,
                               .dropout = weights->attention_dropout};
  if (position->bias) position->bias(run, &spec);
  tarn__show_attention(run->shows, TARN__SHOW_ATTENTION, qkv, qkv, &spec);
  return tarn__attention(run->graph, qkv, qkv, run->offsets, run->offsets, spec);
}

static void build(const tarn__block_run *run, const void *memory, const tarn_kind *kind, tarn__stream *stream) {
  const attention_weights *weights = memory;
  tarn__tensor *x = tarn__stream_enter(run->graph, stream, &weights->norm, kind->norm);
  tarn__tensor *y = linear(run, self_attention(run, weights, x), &weights->out);
  tarn__stream_leave(run->graph, stream, y, kind->dropout, &weights->norm, kind->norm);
}

// Keys and values.
static int64_t cache_width(const void *keys, int64_t d_model) {
  (void)keys;
  return 2 * d_model;
}

const tarn__mixer_entry tarn__mixer_attention = {
    .part = {.word = "attention",
             .text = "multi-head self-attention; in the decoder causal, then cross-attention",
             .equation = "Q, K, V = x W_q, x W_k, x W_v, each in heads of d_head = d_model / heads columns\n"
                         "head = softmax(Q K^T / sqrt(d_head)) V, in a decoder over the token and those before it\n"
                         "y = [head_1 .. head_h] W_o",
             .source = "Vaswani et al. 2017 (arXiv 1706.03762)",
             .also = "self_attention self-attention multihead_attention mha transformer",
             TARN__PART_KEYS(attention_keys, options),
             .resolve = resolve},
    .causal = true,
    .decodes = true,
    .attends = true,
    .pairs = true,
    .declare = declare_attention,
    .build = build,
    .cache_width = cache_width,
};
