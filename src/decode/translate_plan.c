// The memory that translation needs, from the graphs of a full batch.
#include "base/memory.h"
#include "decode/translate.h"

static size_t with_quarter(size_t bytes) { return bytes + bytes / 4; }  // as the translator allocates

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static tarn_status plan_encode(size_t *bytes, const tarn__model *model, const tarn__translator_options *options,
                               int64_t sentences, int64_t rows) {
  void *offsets;
  void *cross;
  TARN_TRY(tarn__alloc(&offsets, TARN__MEMORY_OTHER, (size_t)sentences + 1, sizeof(int32_t)));
  tarn_status status = tarn__alloc(&cross, TARN__MEMORY_OTHER, (size_t)model->decoder.count, sizeof(tarn__tensor *));
  int32_t *at = offsets;
  for (int64_t s = 0; s <= sentences; s++) at[s] = (int32_t)(rows * s / sentences);
  tarn__graph graph = {0};
  if (status == TARN_STATUS_OK) {
    tarn__packed source = {.sentences = sentences, .rows = rows, .longest = rows / sentences + 1, .offsets = at};
    tarn__model_begin(model, &graph, false, options->threads);
    tarn__model_build_encode(model, &graph, &source, cross);
    status = tarn__graph_plan(&graph);
    *bytes = graph.workspace_bytes;
  }
  tarn__graph_close(&graph);
  tarn__free(cross);
  tarn__free(offsets);
  return status;
}

static tarn_status plan_step(size_t *bytes, const tarn__model *model, const tarn__translator_options *options,
                             int64_t rows, int64_t longest, int64_t source_rows) {
  void *nothing;  // addresses of caches, unused by planning
  TARN_TRY(tarn__alloc(&nothing, TARN__MEMORY_OTHER, (size_t)model->decoder.count, sizeof(void *)));
  const int64_t near = smaller(longest, model->sights[TARN__NEAR]);
  tarn__model_step step = {.rows = rows,
                           .self_cache = nothing,
                           .histories = {{.count = rows * longest, .cache_rows = rows * longest},
                                         {.count = rows * near, .cache_rows = rows * near}},
                           .longest = longest,
                           .positions_end = longest,
                           .cross_cache = nothing,
                           .source_rows = source_rows,
                           .best = tarn__beam_choices(&(tarn__beam_options){.beam = options->beam})};
  tarn__graph graph = {0};
  tarn__model_begin(model, &graph, false, options->threads);
  tarn__model_build_step(model, &graph, &step);
  tarn_status status = tarn__graph_plan(&graph);
  *bytes = graph.workspace_bytes;
  tarn__graph_close(&graph);
  tarn__free(nothing);
  return status;
}

tarn_status tarn__translator_plan(size_t *bytes, const tarn__model *model, const tarn__translator_options *options,
                                  double length, int64_t all) {
  int64_t rows = smaller(options->max_tokens, TARN__DECODER_ROWS);
  int64_t sentences = rows > options->beam ? rows / options->beam : 1;
  sentences = smaller(sentences, (all + options->threads - 1) / options->threads);
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
  // Each thread has a decoder of its own.
  const tarn__translator_options alone = {.beam = options->beam, .threads = 1};
  size_t encode;
  size_t step;
  TARN_TRY(plan_encode(&encode, model, &alone, sentences, source_rows));
  TARN_TRY(plan_step(&step, model, &alone, joined ? rows + source_rows : rows, longest, source_rows));
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
  *bytes = tarn__model_pack_bytes(model, options->int8) +
           (size_t)options->threads * (with_quarter(encode) + with_quarter(step) + caches);
  return TARN_STATUS_OK;
}
