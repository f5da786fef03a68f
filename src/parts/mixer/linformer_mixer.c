// Linformer (Wang et al. 2020): attention to k rows, to which a table of positions projects keys and values over the
// tokens of a sentence. A sentence of n tokens uses the table's first n rows. Every projected row mixes the whole
// sentence, so there is no causal form.
#include "ops/sentence_product.h"
#include "parts/mixer/token_layer.h"

typedef enum linformer_sharing { NONE, HEADWISE, KEY_VALUE, LAYERWISE } linformer_sharing;

typedef struct linformer_keys {
  int64_t heads, rows, tokens;
  linformer_sharing sharing;
  double attention_dropout;
} linformer_keys;

static const tarn_config_word sharing_words[] = {
    {"none", "each head has two tables, for keys and for values", NONE},
    {"headwise", "all heads of a layer share both tables", HEADWISE},
    {"key_value", "all heads share one table for keys and values", KEY_VALUE},
    {"layerwise", "so do all layers of the kind in a stack", LAYERWISE},
};

static const tarn__option options[] = {
    TARN__KEY_HEADS(linformer_keys, "attention heads, a divisor of model.d_model"),
    {"rows", TARN__KEY_INTEGER(linformer_keys, rows, 1, 65536), .value = "256",
     .help = "rows to which the keys and values of a sentence are projected (k)", .also = "k proj_k projected_length"},
    TARN__KEY_TOKENS(linformer_keys, tokens),
    {"sharing", TARN__KEY_WORD(linformer_keys, sharing, sharing_words), .value = "headwise",
     .help = "which projections of keys and values over the tokens are one table [tokens, rows]",
     .also = "parameter_sharing share_kv shared_kv_compressed"},
    TARN__KEY_ATTENTION_DROPOUT(linformer_keys, attention_dropout, "on the weights of attention, after their softmax"),
};

typedef struct linformer_weights {
  const linformer_keys *keys;
  tarn__linear_weights qkv, out;
  tarn__param *table;  // [tokens, tables rows]: one table, or those of keys and values, or those of the keys of all
                       // heads and then the values
  tarn__norm_weights norm;
} linformer_weights;

static int64_t tables_of(const linformer_keys *keys) {
  return keys->sharing == NONE ? 2 * keys->heads : keys->sharing == HEADWISE ? 2 : 1;
}

static tarn_status resolve(const tarn__part_site *site, void *memory) {
  linformer_keys *keys = memory;
  TARN_TRY(tarn__tokens_resolve(site, &keys->tokens));
  return tarn__heads_check(site, keys->heads);
}

static void *declare_linformer(tarn__declare *declare, const void *memory) {
  const linformer_keys *keys = memory;
  linformer_weights *weights = tarn__declare_struct(declare, sizeof *weights);
  if (!weights) return NULL;
  const int64_t d = declare->d_model;
  weights->keys = keys;
  weights->qkv = tarn__declare_linear(declare, "self_attn.qkv", 3 * d, d, 3, TARN__ATTENTION_GAIN);
  weights->table =
      keys->sharing == LAYERWISE
          ? tarn__declare_dense_shared(declare, "tokens", keys->tokens, keys->rows, 1.0)
          : tarn__declare_dense(declare, "self_attn.tokens", keys->tokens, tables_of(keys) * keys->rows, 1, 1.0);
  weights->out = tarn__declare_linear(declare, "self_attn.out", d, d, 1, 1.0);
  weights->norm = tarn__declare_norm(declare, "self_attn.norm");
  return weights;
}

// The integers that structure a batch: the position of each token in its sentence, and the first projected row of each
// sentence. Without values if the graph is only planned.
static tarn__tensor *places_of(const tarn__block_run *run, int64_t rows) {
  const int32_t *offset = run->offsets->host;
  void *memory = NULL;
  if (offset && tarn__arena_alloc(&run->graph->arena, &memory, (size_t)rows, sizeof(int32_t)) != TARN_STATUS_OK)
    tarn__graph_fail(run->graph, TARN_STATUS_MEMORY, "%s", tarn_error_message());
  int32_t *places = memory;
  for (int64_t s = 0; places && s + 1 < run->offsets->cols; s++)
    for (int32_t r = offset[s]; r < offset[s + 1]; r++) places[r] = r - offset[s];
  return tarn__graph_input(run->graph, rows, places, "places");
}

static tarn__tensor *key_offsets_of(const tarn__block_run *run, int64_t rows) {
  const int64_t count = run->offsets->cols;
  void *memory = NULL;
  if (run->offsets->host &&
      tarn__arena_alloc(&run->graph->arena, &memory, (size_t)count, sizeof(int32_t)) != TARN_STATUS_OK)
    tarn__graph_fail(run->graph, TARN_STATUS_MEMORY, "%s", tarn_error_message());
  int32_t *offset = memory;
  for (int64_t s = 0; offset && s < count; s++) offset[s] = (int32_t)(s * rows);
  return tarn__graph_input(run->graph, count, offset, "offsets of keys");
}

static tarn__tensor *attend(const tarn__block_run *run, const linformer_weights *weights, tarn__tensor *x) {
  const linformer_keys *keys = weights->keys;
  const int64_t d = run->d_model;
  tarn__graph *graph = run->graph;
  tarn__tensor *qkv = tarn__project(graph, x, &weights->qkv, TARN__IDENTITY);
  tarn__tensor *factors = tarn__embedding(graph, places_of(run, x->rows), NULL, weights->table, NULL, 1.0, 0.0);
  tarn__tensor *projected = tarn__sentence_outer(
      graph, factors, qkv, run->offsets,
      (tarn__sentence_spec){.heads = tables_of(keys), .column = d, .d = 2 * d, .longest = run->longest});
  const tarn__attention_spec spec = {
      .heads = (int)keys->heads, .d = d, .value_column = d, .longest = keys->rows, .dropout = keys->attention_dropout};
  return tarn__attention(graph, qkv, projected, run->offsets, key_offsets_of(run, keys->rows), spec);
}

static void build(const tarn__block_run *run, const void *memory, const tarn_kind *kind, tarn__stream *stream) {
  const linformer_weights *weights = memory;
  tarn__tensor *x = tarn__stream_enter(run->graph, stream, &weights->norm, kind->norm);
  tarn__tensor *y = tarn__project(run->graph, attend(run, weights, x), &weights->out, TARN__IDENTITY);
  tarn__stream_leave(run->graph, stream, y, kind->dropout, &weights->norm, kind->norm);
}

const tarn__mixer_entry tarn__mixer_linformer = {
    .part = {.word = "linformer",
             .text = "Linformer, Wang et al. 2020: attention to a fixed number of rows, to which tables by "
                     "position project the keys and values of a sentence; encoder only",
             .equation = "q, k, v = x W_qkv + b_qkv in heads of n columns\n"
                         "y = softmax(q (E^T k)^T / sqrt(n)) F^T v\n"
                         "E, F: the first rows of tables [tokens, rows], as many as the sentence has tokens; of each "
                         "head, of all heads (headwise), one for both (key_value), one for all layers (layerwise)\n"
                         "out = y W_out + b_out",
             .source = "Wang et al. 2020 (arXiv 2006.04768)",
             TARN__PART_KEYS(linformer_keys, options),
             .resolve = resolve},
    .bounded = true,
    .declare = declare_linformer,
    .build = build,
};
