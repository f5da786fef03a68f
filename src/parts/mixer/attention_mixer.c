// Multi-head attention (Vaswani et al. 2017): self-attention, and in the decoder causal self-attention followed by
// cross-attention over the encoder's output. Groups of heads may share their keys and values (Shazeer 2019: all of
// them; Ainslie et al. 2023).
#include "ops/attention.h"
#include "parts/block.h"
#include "parts/prefix.h"

typedef struct attention_keys {
  int64_t heads;             // divides d_model; of self-attention and cross-attention
  int64_t kv_heads;          // of keys and values, divides heads; 0: heads
  double attention_dropout;  // of both
  int64_t head_width;        // columns of a head; 0: d_model / heads
} attention_keys;

static const tarn__option options[] = {
    TARN__KEY_HEADS(attention_keys,
                    "attention heads, a divisor of model.d_model; of self-attention and cross-attention"),
    TARN__KEY_ATTENTION_DROPOUT(
        attention_keys, attention_dropout,
        "on the weights of attention, after their softmax; of self-attention and cross-attention "
        "(fairseq's attention_dropout, GPT-2's attn_pdrop, BERT's attention_probs_dropout_prob)"),
    {"kv_heads", TARN__KEY_INTEGER(attention_keys, kv_heads, 0, 1024), .value = "0",
     .help = "heads of keys and values, a divisor of heads, each shared by the same number of "
             "neighbouring heads of queries; 1: multi-query attention; 0: as many as heads; of "
             "self-attention and cross-attention",
     .later = true, .also = "num_key_value_heads multi_query n_kv_heads num_kv_heads key_value_heads n_head_kv"},
    {"head_width", TARN__KEY_INTEGER(attention_keys, head_width, 0, 65536), .value = "0", .unit = "columns",
     .help = "of each head, in queries, keys and values, as in T5, where heads trade against other sizes; 0: "
             "model.d_model / heads",
     .later = true, .also = "d_kv head_dim key_value_proj_dim"},
};

// Self-attention. With equal numbers of heads one product computes queries, keys and values.
typedef struct attention_weights {
  int64_t heads, kv_heads, width;  // of a head
  double attention_dropout;
  tarn__linear_weights qkv;    // rows are queries, keys, values; weight NULL with fewer kv_heads:
  tarn__linear_weights q, kv;  // rows of kv are keys, values
  tarn__relative relative;     // of the position scheme; keys NULL: none
  tarn__linear_weights out;
  tarn__norm_weights norm;
} attention_weights;

static int64_t kv_heads_of(const attention_keys *keys) { return keys->kv_heads > 0 ? keys->kv_heads : keys->heads; }

static int64_t width_of(const attention_keys *keys, int64_t d_model) {
  return keys->head_width > 0 ? keys->head_width : d_model / keys->heads;
}

static tarn_status resolve(const tarn__part_site *site, void *memory) {
  const attention_keys *keys = memory;
  TARN_TRY(keys->head_width > 0 ? tarn__head_width_check(site, keys->heads, keys->head_width)
                                : tarn__heads_check(site, keys->heads));
  if (keys->heads % kv_heads_of(keys) == 0) return TARN_STATUS_OK;
  return tarn__part_fail(site, "kv_heads", "%lld does not divide heads %lld", (long long)keys->kv_heads,
                         (long long)keys->heads);
}

// The vectors by distance of a position scheme, shared by all heads.
static tarn__relative declare_relative(tarn__declare *declare, int64_t width) {
  const tarn__position_entry *position = tarn__position_of(declare->position);
  tarn__relative relative = {0};
  if (!position->relative) return relative;
  bool values;
  const int64_t rows = 2 * position->relative(declare->position->keys, &values) + 1;
  relative.keys = tarn__declare_dense(declare, "self_attn.relative_k", rows, width, 1, 1.0);
  if (values) relative.values = tarn__declare_dense(declare, "self_attn.relative_v", rows, width, 1, 1.0);
  return relative;
}

static void *declare_attention(tarn__declare *declare, const void *memory) {
  const attention_keys *keys = memory;
  attention_weights *weights = tarn__declare_struct(declare, sizeof *weights);
  if (!weights) return NULL;
  weights->heads = keys->heads;
  weights->attention_dropout = keys->attention_dropout;
  weights->kv_heads = kv_heads_of(keys);
  weights->width = width_of(keys, declare->d_model);
  const int64_t d = declare->d_model, inner = weights->heads * weights->width, kv = weights->kv_heads * weights->width;
  if (kv == inner) {
    weights->qkv = tarn__declare_linear(declare, "self_attn.qkv", 3 * inner, d, 3, TARN__ATTENTION_GAIN);
  } else {
    weights->q = tarn__declare_linear(declare, "self_attn.q", inner, d, 1, TARN__ATTENTION_GAIN);
    weights->kv = tarn__declare_linear(declare, "self_attn.kv", 2 * kv, d, 2, TARN__ATTENTION_GAIN);
  }
  weights->relative = declare_relative(declare, weights->width);
  weights->out = tarn__declare_linear(declare, "self_attn.out", d, inner, 1, 1.0);
  weights->norm = tarn__declare_norm(declare, "self_attn.norm");
  const tarn__cross_heads cross = {keys->heads, weights->kv_heads, weights->width};
  tarn__cross_declare_heads(declare, cross, keys->attention_dropout);
  return weights;
}

static tarn__tensor *linear(const tarn__block_run *run, tarn__tensor *x, const tarn__linear_weights *weights) {
  return tarn__project(run->graph, x, weights, TARN__IDENTITY);
}

// Queries, keys and values after rotation by the position scheme.
typedef struct projected {
  tarn__tensor *q, *kv;  // one tensor if the numbers of heads are equal
  int64_t key_column, value_column;
} projected;

static projected project(const tarn__block_run *run, const attention_weights *weights, tarn__tensor *x) {
  const tarn__position_entry *position = tarn__position_of(run->position);
  const int64_t head = weights->width, inner = head * weights->heads, kv = head * weights->kv_heads;
  if (kv == inner) {
    tarn__tensor *qkv = linear(run, x, &weights->qkv);
    if (position->turn) qkv = position->turn(run, qkv, 2 * inner, head);
    return (projected){qkv, qkv, inner, 2 * inner};
  }
  projected p = {linear(run, x, &weights->q), linear(run, x, &weights->kv), 0, kv};
  if (position->turn) {
    p.q = position->turn(run, p.q, inner, head);
    p.kv = position->turn(run, p.kv, kv, head);
  }
  return p;
}

// Of sentences with a prefix: its rows attend to all of it, all others as `whole` says.
static tarn__tensor *attend_prefix(const tarn__block_run *run, const projected *p, tarn__tensor *whole,
                                   tarn__attention_spec spec, tarn__attention_extras extras) {
  const tarn__prefix *prefix = run->prefix;
  spec.causal = false;
  spec.longest = prefix->source_longest;
  tarn__tensor *q = tarn__select_rows(run->graph, p->q, prefix->source_rows);
  tarn__tensor *kv = p->kv == p->q ? q : tarn__select_rows(run->graph, p->kv, prefix->source_rows);
  tarn__tensor *source =
      tarn__attention_with(run->graph, q, kv, prefix->source_offsets, prefix->source_offsets, spec, extras);
  return tarn__prefix_join(run->graph, prefix, source, tarn__select_rows(run->graph, whole, prefix->target_rows));
}

static tarn__tensor *self_attention(const tarn__block_run *run, const attention_weights *weights, tarn__tensor *x) {
  const tarn__position_entry *position = tarn__position_of(run->position);
  const tarn__attention_extras extras = {
      .kv_heads = (int)weights->kv_heads, .biases = run->biases, .relative = weights->relative};
  const int64_t inner = weights->heads * weights->width, kv = weights->kv_heads * weights->width;
  const projected p = project(run, weights, x);
  if (run->incremental) {
    tarn__tensor *cache = tarn__cache_append(run->graph, p.kv, p.key_column, run->self_cache, run->first_row);
    tarn__attention_spec spec = {.heads = (int)weights->heads, .d = inner, .value_column = kv, .longest = run->longest};
    if (position->bias) position->bias(run, &spec);
    return tarn__attention_rows_with(run->graph, p.q, cache, run->history, run->history_ranges, spec, extras);
  }
  tarn__attention_spec spec = {.heads = (int)weights->heads,
                               .d = inner,
                               .key_column = p.key_column,
                               .value_column = p.value_column,
                               .causal = run->causal,
                               .longest = run->longest,
                               .dropout = weights->attention_dropout};
  if (position->bias) position->bias(run, &spec);
  if (run->read_rows)
    return tarn__attention_with(run->graph, tarn__select_rows(run->graph, p.q, run->read_rows), p.kv, run->read_offsets,
                                run->offsets, spec, extras);
  tarn__show_attention_with(run->shows, TARN__SHOW_ATTENTION, p.q, p.kv, &spec, &extras);
  tarn__tensor *y = tarn__attention_with(run->graph, p.q, p.kv, run->offsets, run->offsets, spec, extras);
  return run->prefix ? attend_prefix(run, &p, y, spec, extras) : y;
}

static void build(const tarn__block_run *run, const void *memory, const tarn_kind *kind, tarn__stream *stream) {
  const attention_weights *weights = memory;
  tarn__tensor *x = tarn__stream_enter(run->graph, stream, &weights->norm, kind->norm);
  tarn__tensor *y = linear(run, self_attention(run, weights, x), &weights->out);
  if (run->read_rows) tarn__stream_select(run->graph, stream, run->read_rows);
  tarn__stream_leave(run->graph, stream, y, kind->dropout, &weights->norm, kind->norm);
}

// Keys and values.
static int64_t cache_width(const void *memory, int64_t d_model) {
  const attention_keys *keys = memory;
  return 2 * kv_heads_of(keys) * width_of(keys, d_model);
}

static int64_t heads(const void *keys) { return ((const attention_keys *)keys)->heads; }

const tarn__mixer_entry tarn__mixer_attention = {
    .part = {.word = "attention",
             .text = "multi-head self-attention; in the decoder causal, then cross-attention",
             .equation = "Q, K, V = x W_q, x W_k, x W_v, each in heads of d_head = head_width columns,\n"
                         "d_model / heads if that is 0\n"
                         "head = softmax(Q K^T / sqrt(d_head)) V, in a decoder over the token and those before it\n"
                         "y = [head_1 .. head_h] W_o\n"
                         "with kv_heads, K and V have that many heads, and head h, counted from 0, reads head h "
                         "kv_heads / heads, rounded down",
             .source = "Vaswani et al. 2017 (arXiv 1706.03762); kv_heads: Shazeer 2019 (arXiv 1911.02150), Ainslie et "
                       "al. 2023 (arXiv 2305.13245)",
             .also = "self_attention self-attention multihead_attention mha transformer",
             TARN__PART_KEYS(attention_keys, options),
             .resolve = resolve},
    .causal = true,
    .prefixes = true,
    .decodes = true,
    .reads_rows = true,
    .attends = true,
    .pairs = true,
    .declare = declare_attention,
    .build = build,
    .cache_width = cache_width,
    .heads = heads,
};
