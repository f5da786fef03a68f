// Average pooling (MetaFormer: Yu et al. 2022, whose PoolFormer it is): the mean of a window of tokens of the sentence,
// minus the token itself, which the residual adds again. It has no weights but its norm; in the decoder it is causal,
// followed by cross-attention.
#include "parts/block.h"

typedef struct pooling_keys {
  int64_t heads;         // of a following cross-attention
  double cross_dropout;  // of its weights
  int64_t window;        // tokens; odd in the encoder; with 1 the mean would be the token itself, and the output 0
} pooling_keys;

static const tarn__option options[] = {
    TARN__KEY_CROSS_HEADS(pooling_keys, heads),
    {"window", TARN__KEY_INTEGER(pooling_keys, window, 2, 65536), .value = "3", .unit = "tokens",
     .help =
         "tokens that are averaged, centred on the token, so the width is odd; in the decoder, and in language models, "
         "the token and those before it",
     .also = "pool_size pool pooling_size window_size"},
    TARN__KEY_CROSS_DROPOUT(pooling_keys, cross_dropout),
};

typedef struct pooling_weights {
  const pooling_keys *keys;
  tarn__norm_weights norm;
} pooling_weights;

static tarn_status resolve(const tarn__part_site *site, void *memory) {
  const pooling_keys *keys = memory;
  TARN_TRY(tarn__centred_check(site, "window", keys->window));
  return site->attends ? tarn__heads_check(site, keys->heads) : TARN_STATUS_OK;
}

static void *declare_pooling(tarn__declare *declare, const void *memory) {
  const pooling_keys *keys = memory;
  pooling_weights *weights = tarn__declare_struct(declare, sizeof *weights);
  if (!weights) return NULL;
  weights->keys = keys;
  weights->norm = tarn__declare_norm(declare, "pooling.norm");
  tarn__cross_declare(declare, keys->heads, keys->cross_dropout);
  return weights;
}

static tarn__tensor *pool(const tarn__block_run *run, int64_t window, tarn__tensor *x) {
  if (run->incremental) {
    tarn__tensor *cache = tarn__cache_append(run->graph, x, 0, run->self_cache, run->first_row);
    return tarn__pooling_rows(run->graph, cache, run->history, run->history_ranges, window);
  }
  const tarn__pooling_spec spec = {.width = window, .before = run->causal ? window - 1 : (window - 1) / 2};
  return tarn__pooling(run->graph, x, run->offsets, spec);
}

static void build(const tarn__block_run *run, const void *memory, const tarn_kind *kind, tarn__stream *stream) {
  const pooling_weights *weights = memory;
  tarn__tensor *x = tarn__stream_enter(run->graph, stream, &weights->norm, kind->norm);
  tarn__tensor *y = pool(run, weights->keys->window, x);
  tarn__stream_leave(run->graph, stream, y, kind->dropout, &weights->norm, kind->norm);
}

// The averaged values.
static int64_t cache_width(const void *keys, int64_t d_model) {
  (void)keys;
  return d_model;
}

static int64_t history(const void *keys) { return ((const pooling_keys *)keys)->window; }

const tarn__mixer_entry tarn__mixer_pooling = {
    .part = {.word = "pooling",
             .text = "average pooling, Yu et al. 2022: the mean of a window of tokens less the token itself, without "
                     "weights; in the decoder causal, then cross-attention",
             .equation = "y_t = (mean of x over the window around t) - x_t",
             .source = "Yu et al. 2022 (arXiv 2111.11418)",
             .also = "pool avg_pool average_pooling poolformer metaformer",
             TARN__PART_KEYS(pooling_keys, options),
             .resolve = resolve},
    .causal = true,
    .decodes = true,
    .attends = true,
    .declare = declare_pooling,
    .build = build,
    .cache_width = cache_width,
    .history = history,
};
