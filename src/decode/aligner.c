#include "decode/aligner.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "model/shows.h"
#include "task/task.h"

enum { SOURCE, TARGET };

// A translation to read: of an item, its hypothesis.
typedef struct tarn__align_pair {
  const tarn__item *item;
  tarn__hypothesis *hypothesis;
} pair;

// The tokens of a side. The target's are those that are read: the start, the prefix, the translation without its end.
static int64_t tokens_of(const pair *p, int side) {
  return side == SOURCE ? p->item->length : p->item->prefix_length + p->hypothesis->length;
}

static void copy_tokens(const tarn__aligner *a, int32_t *ids, const pair *p, int side) {
  const tarn__item *item = p->item;
  if (side == SOURCE) {
    memcpy(ids, item->ids, (size_t)item->length * sizeof *ids);
    return;
  }
  const int64_t told = a->model->config->model.decoder_start;
  *ids++ = told >= 0 ? (int32_t)told : a->eos;
  if (item->prefix_length > 0) memcpy(ids, item->prefix, (size_t)item->prefix_length * sizeof *ids);
  memcpy(ids + item->prefix_length, p->hypothesis->ids, (size_t)(p->hypothesis->length - 1) * sizeof *ids);
}

static tarn_status pack_side(tarn__aligner *a, tarn__packed *packed, const pair *pairs, int64_t count, int side) {
  int64_t rows = 0, longest = 0;
  for (int64_t i = 0; i < count; i++) rows += tokens_of(&pairs[i], side);
  TARN_TRY(tarn__grow(&a->ids[side], &a->ids_room[side], (size_t)rows, sizeof(int32_t)));
  TARN_TRY(tarn__grow(&a->positions[side], &a->positions_room[side], (size_t)rows, sizeof(int32_t)));
  TARN_TRY(tarn__grow(&a->offsets[side], &a->offsets_room[side], (size_t)count + 1, sizeof(int32_t)));
  int32_t *offsets = a->offsets[side];
  offsets[0] = 0;
  for (int64_t i = 0; i < count; i++) {
    const int64_t tokens = tokens_of(&pairs[i], side);
    copy_tokens(a, a->ids[side] + offsets[i], &pairs[i], side);
    offsets[i + 1] = offsets[i] + (int32_t)tokens;
    if (tokens > longest) longest = tokens;
  }
  tarn__packed_positions(a->positions[side], offsets, count);
  *packed = (tarn__packed){.sentences = count,
                           .rows = rows,
                           .longest = longest,
                           .ids = a->ids[side],
                           .positions = a->positions[side],
                           .offsets = offsets};
  return TARN_STATUS_OK;
}

// Builds the graph that shows what `layers` [decoder layers + 1] ask for.
static void build(tarn__aligner *a, const tarn__batch *batch) {
  const tarn__task *task = tarn__config_task(a->model->config);
  tarn__model_shows shows = {.layers = {[TARN__STACK_DECODER] = a->shows}};
  tarn__model_begin(a->model, &a->graph, false, a->threads);
  tarn__model_build_shows(a->model, &a->graph, batch, task->stack_count, &shows);
}

// Finds the last layer with weights of attention to the source: it shows them in a graph of one token a side.
static tarn_status find_layer(tarn__aligner *a) {
  const int count = a->model->decoder.count;
  const tarn__packed packed = {.sentences = 1, .rows = 1, .longest = 1};
  const tarn__batch batch = {.source = packed, .target = packed, .predictions = 1};
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)count + 1, sizeof *a->shows));
  a->shows = memory;
  if (tarn__config_task(a->model->config)->stack_count == 2) {
    for (int i = 1; i <= count; i++) a->shows[i].wanted = 1u << TARN__SHOW_CROSS_ATTENTION;
    build(a, &batch);
    TARN_TRY(a->graph.status);
  }
  for (int i = 1; i <= count; i++)
    if (a->shows[i].shown[TARN__SHOW_CROSS_ATTENTION].tensor) a->layer = i;
  TARN_REQUIRE(a->layer > 0, USAGE,
               "coverage penalty and alignment are for models whose decoder attends to an encoder");
  memset(a->shows, 0, ((size_t)count + 1) * sizeof *a->shows);
  a->shows[a->layer].wanted = 1u << TARN__SHOW_CROSS_ATTENTION;
  return TARN_STATUS_OK;
}

tarn_status tarn__aligner_open(tarn__aligner *a, const tarn__model *model, int32_t eos, int64_t together, int threads) {
  *a = (tarn__aligner){.model = model, .eos = eos, .together = together, .threads = threads};
  a->region = tarn__workspace_region(model->device);
  return find_layer(a);
}

void tarn__aligner_close(tarn__aligner *a) {
  if (!a->model) return;
  for (int side = SOURCE; side <= TARGET; side++) {
    tarn__free(a->ids[side]);
    tarn__free(a->positions[side]);
    tarn__free(a->offsets[side]);
  }
  tarn__free(a->pairs);
  tarn__free(a->weights);
  tarn__free(a->shows);
  tarn__shown_values_close(&a->values);
  tarn__graph_close(&a->graph);
  tarn__workspace_free(&a->workspace, &a->region);
  tarn__region_close(&a->region);
  tarn__arena_close(&a->results);
  *a = (tarn__aligner){0};
}

// mean [rows][sources] of the heads' weights [heads][rows][sources], all of which it checks.
static tarn_status average(float *mean, const float *weights, int heads, int64_t rows, int64_t sources) {
  for (int64_t i = 0; i < rows * sources; i++) {
    double sum = 0.0;
    for (int h = 0; h < heads; h++) sum += (double)weights[h * rows * sources + i];
    TARN_REQUIRE(isfinite(sum), NUMERIC, "a weight of attention is not a finite number");
    mean[i] = (float)(sum / heads);
  }
  return TARN_STATUS_OK;
}

static double coverage_of(const float *mean, int64_t rows, int64_t sources) {
  double penalty = 0.0;
  for (int64_t x = 0; x < sources; x++) {
    double sum = 0.0;
    for (int64_t y = 0; y < rows; y++) sum += (double)mean[y * sources + x];
    if (sum > 0.0 && sum < 1.0) penalty += log(sum);
  }
  return penalty;
}

// Completes a hypothesis of the batch, whose tokens begin in these rows of the two sides.
static tarn_status complete(tarn__aligner *a, const pair *p, int64_t from, int64_t to,
                            const tarn__align_options *options) {
  const int64_t rows = tokens_of(p, TARGET), sources = tokens_of(p, SOURCE);
  const int heads = a->values.shown.spec.heads;
  TARN_TRY(tarn__grow(&a->weights, &a->weights_room, (size_t)((heads + 1) * rows * sources), sizeof *a->weights));
  TARN_TRY(tarn__shown_attention(a->weights, &a->values, to, rows, from, sources, a->threads));
  void *memory = a->weights + heads * rows * sources;
  if (options->weights) TARN_TRY(tarn__arena_alloc(&a->results, &memory, (size_t)(rows * sources), sizeof(float)));
  float *mean = memory;
  TARN_TRY(average(mean, a->weights, heads, rows, sources));
  if (options->coverage != 0.0) p->hypothesis->score += options->coverage * coverage_of(mean, rows, sources);
  if (options->weights) p->hypothesis->attention = mean + p->item->prefix_length * sources;
  return TARN_STATUS_OK;
}

static tarn_status run_batch(tarn__aligner *a, const pair *pairs, int64_t count, const tarn__align_options *options) {
  tarn__batch batch = {.predictions = count};
  TARN_TRY(pack_side(a, &batch.source, pairs, count, SOURCE));
  TARN_TRY(pack_side(a, &batch.target, pairs, count, TARGET));
  build(a, &batch);
  TARN_TRY(tarn__workspace_run(&a->workspace, &a->region, &a->graph, &(tarn__exec){.threads = a->threads}, 0.0));
  const tarn__shown *shown = &a->shows[a->layer].shown[TARN__SHOW_CROSS_ATTENTION];
  TARN_TRY(tarn__shown_read(&a->values, &a->graph, shown));
  TARN_REQUIRE(shown->keys->rows == batch.source.rows, INTERNAL, "%lld keys of %lld source tokens",
               (long long)shown->keys->rows, (long long)batch.source.rows);
  for (int64_t i = 0; i < count; i++)
    TARN_TRY(complete(a, &pairs[i], batch.source.offsets[i], batch.target.offsets[i], options));
  return TARN_STATUS_OK;
}

// Copies of the hypotheses of all items, as pairs. Returns their number.
static tarn_status list_pairs(tarn__aligner *a, tarn__translation *translations, const tarn__item *items, int64_t count,
                              int64_t *pairs) {
  size_t all = 0;
  *pairs = 0;
  for (int64_t i = 0; i < count; i++) all += (size_t)translations[items[i].index].count;
  TARN_TRY(tarn__grow(&a->pairs, &a->pairs_room, all, sizeof *a->pairs));
  for (int64_t i = 0; i < count; i++) {
    tarn__translation *t = &translations[items[i].index];
    void *memory;
    TARN_TRY(tarn__arena_alloc(&a->results, &memory, (size_t)t->count, sizeof(tarn__hypothesis)));
    tarn__hypothesis *copies = memory;
    for (int64_t n = 0; n < t->count; n++) {
      copies[n] = t->hypotheses[n];
      a->pairs[(*pairs)++] = (pair){&items[i], &copies[n]};
    }
    t->hypotheses = copies;
  }
  return TARN_STATUS_OK;
}

// Insertion sort: equal scores keep their order.
static void sort_hypotheses(tarn__hypothesis *hypotheses, int64_t count) {
  for (int64_t i = 1; i < count; i++) {
    const tarn__hypothesis item = hypotheses[i];
    int64_t at = i;
    for (; at > 0 && hypotheses[at - 1].score < item.score; at--) hypotheses[at] = hypotheses[at - 1];
    hypotheses[at] = item;
  }
}

tarn_status tarn__aligner_run(tarn__aligner *a, tarn__translation *translations, const tarn__item *items, int64_t count,
                              int64_t keep, const tarn__align_options *options) {
  int64_t pairs;
  tarn__arena_reset(&a->results);
  TARN_TRY(list_pairs(a, translations, items, count, &pairs));
  for (int64_t first = 0, last; first < pairs; first = last) {
    int64_t tokens[2] = {0};
    for (last = first; last < pairs; last++) {
      for (int side = SOURCE; side <= TARGET; side++) tokens[side] += tokens_of(&a->pairs[last], side);
      if (last > first && (tokens[SOURCE] > a->together || tokens[TARGET] > a->together)) break;
    }
    TARN_TRY(run_batch(a, a->pairs + first, last - first, options));
  }
  for (int64_t i = 0, at = 0; i < count; i++) {
    tarn__translation *t = &translations[items[i].index];
    if (options->coverage != 0.0) sort_hypotheses(a->pairs[at].hypothesis, t->count);
    at += t->count;
    if (t->count > keep) t->count = keep;
  }
  return TARN_STATUS_OK;
}
