// The branches of a Weighted Transformer (Ahmed et al. 2018): each head is a branch with its own output projection and
// feed-forward network, and trained shares weigh the heads (kappa) and the branches (alpha). The shares are a softmax,
// so they stay positive and add up to 1, which the paper has by projection.
#include <stdio.h>

#include "ops/attention.h"
#include "ops/scale.h"
#include "parts/block.h"

typedef struct branched_keys {
  int64_t heads;  // branches
  int64_t branch_ffn;
  tarn_part_use branch_activation;
  double attention_dropout;
} branched_keys;

static const tarn__option options[] = {
    TARN__KEY_HEADS(branched_keys,
                    "branches, of one head of attention each; a divisor of model.d_model; of the "
                    "cross-attention that follows they are heads"),
    {"branch_ffn", TARN__KEY_INTEGER(branched_keys, branch_ffn, 1, 1048576), .value = "256",
     .help = "inner width of each branch's feed-forward network", .also = "branch_width branch_ffn_dim"},
    {"branch_activation", TARN__KEY_PART(branched_keys, branch_activation, TARN__TABLE_ACTIVATION),
     .derived = "model.activation", .inherits = offsetof(tarn_config_model, activation),
     .help = "between the two products of each branch"},
    TARN__KEY_ATTENTION_DROPOUT(branched_keys, attention_dropout,
                                "on the weights of attention, after their softmax; of self-attention and "
                                "cross-attention (fairseq's attention_dropout)"),
};

typedef struct branch {
  tarn__linear_weights out;  // of its head
  tarn__linear_weights ffn_in, ffn_out;
  tarn__activated activation;
} branch;

typedef struct branched_weights {
  int64_t heads;
  double attention_dropout;
  tarn__linear_weights qkv;  // rows are queries, keys, values of all heads
  branch *branches;
  tarn__param *kappa, *alpha;  // [1, heads]
  tarn__norm_weights norm;
} branched_weights;

static tarn_status resolve(const tarn__part_site *site, void *memory) {
  return tarn__heads_check(site, ((const branched_keys *)memory)->heads);
}

static tarn__linear_weights declare_part(tarn__declare *declare, int64_t number, const char *part, int64_t out,
                                         int64_t in) {
  char name[64];
  snprintf(name, sizeof name, "self_attn.branch%lld.%s", (long long)number + 1, part);
  return tarn__declare_linear(declare, name, out, in, 1, 1.0);
}

static void declare_branch(tarn__declare *declare, branch *b, int64_t number, const branched_keys *keys) {
  const int64_t d = declare->d_model;
  char name[64];
  b->out = declare_part(declare, number, "out", d, d / keys->heads);
  b->ffn_in = declare_part(declare, number, "ffn_in", keys->branch_ffn, d);
  snprintf(name, sizeof name, "self_attn.branch%lld.beta", (long long)number + 1);
  b->activation = tarn__declare_activation(declare, name, &keys->branch_activation);
  b->ffn_out = declare_part(declare, number, "ffn_out", d, keys->branch_ffn);
}

static void *declare_branched(tarn__declare *declare, const void *memory) {
  const branched_keys *keys = memory;
  const tarn__init zero = {TARN__INIT_ZERO, 0.0, 1};
  const bool trained = declare->kind->frozen != TARN_FROZEN_YES;
  branched_weights *weights = tarn__declare_struct(declare, sizeof *weights);
  branch *branches = tarn__declare_struct(declare, (size_t)keys->heads * sizeof *branches);
  if (!weights || !branches) return NULL;
  weights->heads = keys->heads;
  weights->attention_dropout = keys->attention_dropout;
  weights->branches = branches;
  weights->qkv =
      tarn__declare_linear(declare, "self_attn.qkv", 3 * declare->d_model, declare->d_model, 3, TARN__ATTENTION_GAIN);
  for (int64_t i = 0; i < keys->heads; i++) declare_branch(declare, &branches[i], i, keys);
  weights->kappa = tarn__declare_param(declare, "self_attn.kappa", 1, keys->heads, trained, zero);
  weights->alpha = tarn__declare_param(declare, "self_attn.alpha", 1, keys->heads, trained, zero);
  weights->norm = tarn__declare_norm(declare, "self_attn.norm");
  tarn__cross_declare(declare, keys->heads, keys->attention_dropout);
  return weights;
}

// Head `number`, of columns of queries, keys and values that all heads share.
static tarn__tensor *head_of(const tarn__block_run *run, const branched_weights *weights, tarn__tensor *qkv,
                             tarn__tensor *cache, int64_t number) {
  const int64_t d = run->d_model, width = d / weights->heads, column = number * width;
  tarn__attention_spec spec = {.heads = 1, .d = width, .query_column = column, .longest = run->longest};
  if (cache) {
    spec.key_column = column;
    spec.value_column = d + column;
    return tarn__attention_rows(run->graph, qkv, cache, run->history, run->history_ranges, spec);
  }
  spec.key_column = d + column;
  spec.value_column = 2 * d + column;
  spec.causal = run->causal;
  spec.dropout = weights->attention_dropout;
  return tarn__attention(run->graph, qkv, qkv, run->offsets, run->offsets, spec);
}

static tarn__tensor *branch_of(const tarn__block_run *run, const branched_weights *weights, tarn__tensor *head,
                               int64_t number) {
  const branch *b = &weights->branches[number];
  tarn__tensor *x = tarn__project(run->graph, head, &b->out, TARN__IDENTITY);
  x = tarn__scale_share(run->graph, x, weights->kappa, number);
  x = tarn__activated_project(run->graph, x, &b->ffn_in, &b->activation);
  x = tarn__project(run->graph, x, &b->ffn_out, TARN__IDENTITY);
  return tarn__scale_share(run->graph, x, weights->alpha, number);
}

// What tarn states shows: the weights of all heads, as of one attention.
static void show(const tarn__block_run *run, const branched_weights *weights, tarn__tensor *qkv) {
  const tarn__attention_spec spec = {.heads = (int)weights->heads,
                                     .d = run->d_model,
                                     .key_column = run->d_model,
                                     .value_column = 2 * run->d_model,
                                     .causal = run->causal,
                                     .longest = run->longest};
  tarn__show_attention(run->shows, TARN__SHOW_ATTENTION, qkv, qkv, &spec);
}

static void build(const tarn__block_run *run, const void *memory, const tarn_kind *kind, tarn__stream *stream) {
  const branched_weights *weights = memory;
  tarn__tensor *x = tarn__stream_enter(run->graph, stream, &weights->norm, kind->norm), *y = NULL, *cache = NULL;
  tarn__tensor *qkv = tarn__project(run->graph, x, &weights->qkv, TARN__IDENTITY);
  if (run->incremental)
    cache = tarn__cache_append(run->graph, qkv, run->d_model, run->self_cache, run->first_row);
  else
    show(run, weights, qkv);
  for (int64_t i = 0; i < weights->heads; i++) {
    tarn__tensor *part = branch_of(run, weights, head_of(run, weights, qkv, cache, i), i);
    y = y ? tarn__stream_sum(run->graph, y, part, 0.0) : part;
  }
  tarn__stream_leave(run->graph, stream, y, kind->dropout, &weights->norm, kind->norm);
}

// Keys and values.
static int64_t cache_width(const void *memory, int64_t d_model) {
  (void)memory;
  return 2 * d_model;
}

const tarn__mixer_entry tarn__mixer_branched_attention = {
    .part = {.word = "branched_attention",
             .text = "the branches of a Weighted Transformer, Ahmed et al. 2018: each head has a feed-forward network, "
                     "and trained weights add the branches up; in the decoder causal, then cross-attention. The "
                     "paper's layer has no other FFN (ffn: 0). Positions are those of the embeddings",
             .equation = "head_i = softmax(Q_i K_i^T / sqrt(d_head)) V_i, i from 1 to heads\n"
                         "y = sum_i alpha_i FFN_i(kappa_i (head_i W_oi + b_oi)), FFN_i(x) = W_2i act(W_1i x + b_1i) + "
                         "b_2i\n"
                         "kappa and alpha are each the softmax of heads trained numbers, at first equal",
             .source = "Ahmed et al. 2018 (arXiv 1711.02132)",
             .also = "weighted weighted_transformer branched multibranch multi_branch weighted_attention",
             TARN__PART_KEYS(branched_keys, options),
             .resolve = resolve},
    .causal = true,
    .decodes = true,
    .attends = true,
    .declare = declare_branched,
    .build = build,
    .cache_width = cache_width,
};
