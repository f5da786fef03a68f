// A memory with product keys (Lample et al. 2019), in place of a feed-forward network. The paper normalises queries
// over the batch; here they have a layer norm, so a row does not depend on its batch, and decoding and packing change
// no bit.
#include "ops/product_keys.h"
#include "ops/weighted_rows.h"
#include "parts/block.h"

#include <math.h>

typedef struct product_keys {
  int64_t heads, keys, nearest, query;
} product_keys;

static const tarn__option options[] = {
    {"memory_heads", TARN__KEY_INTEGER(product_keys, heads, 1, 1024), .value = "4",
     .help = "queries of each token; what they read is added up", .also = "mem_heads pkm_heads"},
    {"keys", TARN__KEY_INTEGER(product_keys, keys, 1, 16384), .value = "128",
     .help = "keys of each half; there are as many values as pairs of them: keys^2",
     .also = "n_keys num_keys mem_n_keys"},
    {"nearest", TARN__KEY_INTEGER(product_keys, nearest, 1, TARN__PRODUCT_KEYS_MOST), .value = "32",
     .help = "values that each query reads: those of the pairs of keys that are nearest to it; at "
             "most as many as `keys`",
     .also = "knn topk top_k k mem_knn"},
    {"query", TARN__KEY_INTEGER(product_keys, query, 1, 65536), .value = "128", .help = "width of half a query",
     .also = "dim_head k_dim half_dim mem_k_dim"},
};

typedef struct product_keys_weights {
  const product_keys *keys;
  tarn__linear_weights queries;
  tarn__param *query_gain, *query_bias;  // of the norm of queries
  tarn__param *halves, *values;
  tarn__norm_weights norm;
} product_keys_weights;

// A stack of matrices [out, in], normal with the deviation `spread`.
static tarn__param *declare_stack(tarn__declare *declare, const char *name, int64_t rows, int64_t out, int64_t in,
                                  double spread) {
  const tarn_kind *kind = declare->kind;
  const bool trained = kind->frozen == TARN_FROZEN_NO && !declare->frozen_part;
  tarn__param *stack = tarn__declare_param(declare, name, rows, in, trained,
                                           (tarn__init){TARN__INIT_NORMAL, spread * kind->init_gain, 1});
  if (!stack) return NULL;
  stack->out = out;
  stack->in = in;
  return stack;
}

static void *declare_keys(tarn__declare *declare, const void *memory) {
  const product_keys *keys = memory;
  product_keys_weights *weights = tarn__declare_struct(declare, sizeof *weights);
  if (!weights) return NULL;
  const int64_t width = 2 * keys->heads * keys->query;
  const bool learns = declare->kind->frozen != TARN_FROZEN_YES;
  weights->keys = keys;
  weights->queries = tarn__declare_linear(declare, "ffn.queries", width, declare->d_model, 1, 1.0);
  weights->query_gain =
      tarn__declare_param(declare, "ffn.queries.norm.gain", 1, width, learns, (tarn__init){TARN__INIT_ONE, 0.0, 1});
  weights->query_bias =
      tarn__declare_param(declare, "ffn.queries.norm.bias", 1, width, learns, (tarn__init){TARN__INIT_ZERO, 0.0, 1});
  weights->halves = declare_stack(declare, "ffn.keys.weight", 2 * keys->heads * keys->keys, keys->keys, keys->query,
                                  1.0 / sqrt((double)keys->query));
  weights->values = declare_stack(declare, "ffn.values.weight", keys->keys * keys->keys, 1, declare->d_model,
                                  1.0 / sqrt((double)declare->d_model));
  weights->norm = tarn__declare_norm(declare, "ffn.norm");
  return weights;
}

static void build(const tarn__block_run *run, const void *memory, const tarn_kind *kind, tarn__stream *stream) {
  const product_keys_weights *weights = memory;
  const product_keys *keys = weights->keys;
  const tarn__norm norm = {
      .form = TARN__NORM_LAYER, .epsilon = 1e-5, .gain = weights->query_gain, .bias = weights->query_bias};
  tarn__tensor *x = tarn__stream_enter(run->graph, stream, &weights->norm, kind->norm);
  tarn__tensor *queries = tarn__project(run->graph, x, &weights->queries, TARN__IDENTITY);
  queries = tarn__residual_norm(run->graph, queries, NULL, 0.0, norm).y;
  const tarn__nearest nearest =
      tarn__product_keys(run->graph, queries, weights->halves,
                         (tarn__product_keys_spec){.heads = keys->heads,
                                                   .nearest = keys->nearest < keys->keys ? keys->nearest : keys->keys});
  tarn__tensor *values = tarn__graph_param(run->graph, weights->values);
  tarn__tensor *y = tarn__weighted_rows(run->graph, values, nearest.ids, nearest.gates);
  tarn__stream_leave(run->graph, stream, y, kind->dropout, &weights->norm, kind->norm);
}

const tarn__channel_entry tarn__channel_product_keys = {
    .part = {.word = "product_keys",
             .text = "memory with product keys, Lample et al. 2019: each token reads the values of the keys that are "
                     "nearest to its queries",
             .equation = "(u_h, v_h) = the halves of query h of LayerNorm(W_q x + b_q)\n"
                         "s_ij = u_h . k_hi + v_h . k'_hj for all pairs of keys\n"
                         "N_h = the `nearest` pairs with the largest s\n"
                         "y = sum_h sum over (i, j) in N_h of softmax(s over N_h)_ij V_ij",
             .source = "Lample et al. 2019 (arXiv 1907.05242), with a layer norm of queries in place of batch "
                       "normalisation",
             .also = "pkm product_key_memory memory",
             TARN__PART_KEYS(product_keys, options)},
    .declare = declare_keys,
    .build = build,
};
