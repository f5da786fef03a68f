// Translation token by token: the decoder (decoder.h) as an engine, and the memory that it needs, from the graphs of a
// full batch.
#include "base/memory.h"
#include "decode/engine.h"
#include "decode/steering.h"

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static tarn_status check(const tarn__translator_options *options) {
  TARN_REQUIRE(options->beam >= 1 && options->beam <= 1024, USAGE, "beam must be from 1 to 1024, not %lld",
               (long long)options->beam);
  TARN_REQUIRE(options->samples >= 0 && options->samples <= 1000000, USAGE,
               "samples must be from 1 to 1000000, not %lld", (long long)options->samples);
  const int64_t most = options->samples > 0 ? options->samples : options->beam;
  TARN_REQUIRE(options->n_best >= 1 && options->n_best <= most, USAGE,
               "n-best must be from 1 to the %s of %lld, not %lld", options->samples > 0 ? "samples" : "beam",
               (long long)most, (long long)options->n_best);
  if (options->samples > 0) TARN_TRY(tarn__steering_check_sampling(&options->sampling));
  TARN_REQUIRE(options->length_penalty >= -100 && options->length_penalty <= 100, USAGE,
               "length penalty must be from -100 to 100, not %g", options->length_penalty);
  TARN_REQUIRE(options->max_len_a >= 0 && options->max_len_a <= 1e6 && options->max_len_b >= 0 &&
                   options->max_len_b <= (int64_t)1 << 30,
               USAGE, "the greatest length %g * source tokens + %lld is out of range", options->max_len_a,
               (long long)options->max_len_b);
  return TARN_STATUS_OK;
}

static tarn_status open_own(void **own, const tarn__model *model, const tarn__decoder_options *options, int threads) {
  tarn__decoder *decoder;
  const tarn_status status = tarn__decoder_open(&decoder, model, options, threads);
  *own = decoder;
  return status;
}

static void close_own(void **own) {
  tarn__decoder *decoder = *own;
  tarn__decoder_close(&decoder);
  *own = NULL;
}

static void lend(void *own, void *memory, size_t bytes) { tarn__decoder_lend(own, memory, bytes); }

static void reset(void *own) { tarn__decoder_reset(own); }

static tarn_status run(void *own, tarn__queue *queue, tarn__translation *results) {
  return tarn__decoder_run(own, queue, results);
}

static void add_stats(const void *own, tarn__decoder_stats *stats) { tarn__decoder_add_stats(own, stats); }

static int64_t rows_of(const tarn__decoder_options *options, int64_t length) {
  (void)length;
  return options->search.beam;
}

static tarn_status plan_step(size_t *bytes, const tarn__model *model, const tarn__translator_options *options,
                             int64_t rows, int64_t longest, int64_t source_rows) {
  void *nothing;  // addresses of caches, unused by planning
  TARN_TRY(tarn__alloc(&nothing, TARN__MEMORY_OTHER, (size_t)model->decoder.count, sizeof(void *)));
  const int64_t near = smaller(longest, model->sights[TARN__NEAR]);
  tarn__model_step step = {
      .rows = rows,
      .self_cache = nothing,
      .histories = {{.count = rows * longest, .cache_rows = rows * longest},
                    {.count = rows * near, .cache_rows = rows * near}},
      .longest = longest,
      .positions_end = longest,
      .cross_cache = nothing,
      .source_rows = source_rows,
      .best = tarn__beam_choices(&(tarn__beam_options){.beam = options->beam, .banned_count = !options->allow_unk})};
  tarn__graph graph = {0};
  tarn__model_begin(model, &graph, false, 1);
  tarn__model_build_step(model, &graph, &step);
  tarn_status status = tarn__graph_plan(&graph);
  *bytes = graph.workspace_bytes;
  tarn__graph_close(&graph);
  tarn__free(nothing);
  return status;
}

static tarn_status plan(size_t *bytes, const tarn__model *model, const tarn__translator_options *options, double length,
                        int64_t all) {
  int64_t rows = smaller(options->max_tokens, TARN__DECODER_ROWS);
  int64_t sentences = smaller(rows > options->beam ? rows / options->beam : 1, all);
  // The sources decoded together share a budget of tokens, too.
  const int64_t fit = (int64_t)((double)options->max_tokens / (length > 1 ? length : 1));
  sentences = smaller(sentences, fit > 1 ? fit : 1);
  int64_t source_rows = (int64_t)((double)sentences * length) + 1;
  if (source_rows > options->max_tokens) source_rows = options->max_tokens;
  rows = sentences * options->beam;
  // Translations by an untrained model reach the maximum length.
  double greatest = options->max_len_a * length + (double)options->max_len_b + 1.0;
  double most = (double)model->config->model.max_length;
  int64_t longest = (int64_t)(greatest < most ? greatest : most);
  // Without an encoder the sources are rows of the first step, which every later one sees.
  const bool joined = model->encoder.count == 0;
  if (joined) longest += (int64_t)length + 1;
  size_t encode;
  size_t step;
  TARN_TRY(tarn__engine_plan_encode(&encode, model, sentences, source_rows));
  TARN_TRY(plan_step(&step, model, options, joined ? rows + source_rows : rows, longest, source_rows));
  // The hypotheses of a sentence usually differ only in their last few tokens, and share the rows of the rest. If
  // layers see only some rows, such as a state, each hypothesis keeps no more than those.
  const int64_t all_seen = sentences * (longest + 2 * options->beam);
  // While caches grow, the old ones coexist with new ones of twice the needed size.
  const size_t number = 3 * tarn__dtype_size(model->dtype);
  const int64_t d = model->config->model.d_model;
  size_t caches = 0;
  for (int l = 0; l < model->decoder.count; l++) {
    const tarn__layer_weights *weights = model->decoder.layers[l].weights;
    const int64_t sight = model->sights[model->decoder.layers[l].sight];
    const int64_t seen = sight < longest ? smaller(all_seen, rows * sight) : all_seen;
    caches += 3 * tarn__dtype_size(tarn__layer_cache_dtype(weights, model->dtype)) *
              (size_t)(tarn__layer_cache_width(weights, d) * seen);
    caches += number * (size_t)(tarn__layer_cross_width(weights) * source_rows);
  }
  *bytes = tarn__engine_room(encode) + tarn__engine_room(step) + caches;
  return TARN_STATUS_OK;
}

const tarn__engine tarn__token_engine = {.check = check,
                                         .open = open_own,
                                         .close = close_own,
                                         .lend = lend,
                                         .reset = reset,
                                         .run = run,
                                         .add_stats = add_stats,
                                         .rows = rows_of,
                                         .plan = plan};
