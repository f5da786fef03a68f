#include "task/bands.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ops/adaptive.h"
#include "ops/linear_transposed.h"

tarn__cutoffs tarn__input_cutoffs(const tarn_config_model *model) {
  return (tarn__cutoffs){"model.adaptive_input_cutoff", model->adaptive_input_cutoff, model->adaptive_input_cutoffs,
                         model->adaptive_input_factor};
}

tarn__cutoffs tarn__output_cutoffs(const tarn_config_model *model) {
  return (tarn__cutoffs){"model.adaptive_softmax_cutoff", model->adaptive_softmax_cutoff,
                         model->adaptive_softmax_cutoffs, model->adaptive_softmax_factor};
}

int64_t tarn__band_width(const tarn__cutoffs *cutoffs, int64_t d_model, int64_t b) {
  return (int64_t)floor((double)d_model / pow(cutoffs->factor, (double)b));
}

static tarn_status find_bands(tarn__bands *bands, const tarn__cutoffs *cutoffs, int64_t vocab) {
  const int64_t last = cutoffs->values[cutoffs->count - 1];
  TARN_REQUIRE(last < vocab, USAGE, "%s: %lld is not below the vocabulary, which has %lld tokens", cutoffs->key,
               (long long)last, (long long)vocab);
  *bands = (tarn__bands){.count = (int)cutoffs->count + 1};
  for (int b = 1; b < bands->count; b++) bands->first[b] = cutoffs->values[b - 1];
  bands->first[bands->count] = vocab;
  return TARN_STATUS_OK;
}

static int64_t words_of(const tarn__bands *bands, int b) { return bands->first[b + 1] - bands->first[b]; }

// Rows of an output table: the first one also has those of the classes.
static int64_t outputs_of(const tarn__bands *bands, int b) {
  return words_of(bands, b) + (b == 0 ? bands->count - 1 : 0);
}

// Declares NAME.band1.weight for the table NAME.weight, or band1.weight for the table weight.
static tarn__param *declare(const tarn__task_site *site, const char *name, int b, const char *what, int64_t rows,
                            int64_t cols, bool trained, tarn__init init) {
  char own[80];
  snprintf(own, sizeof own, "%.*sband%d.%s", (int)(strlen(name) - strlen("weight")), name, b + 1, what);
  return tarn__declare_param(site->declare, own, rows, cols, trained, init);
}

// Initial vectors have the same length in all bands; projections are initialised as in fairseq.
tarn_status tarn__bands_declare_input(tarn__bands *bands, const tarn__task_site *site, const char *name, int64_t vocab,
                                      bool trained, bool shared) {
  const tarn__cutoffs cutoffs = tarn__input_cutoffs(site->model);
  const int64_t d = site->declare->d_model;
  TARN_TRY(find_bands(bands, &cutoffs, vocab));
  for (int b = 0; b < bands->count; b++) {
    const int64_t width = tarn__band_width(&cutoffs, d, b);
    const tarn__init normal = {TARN__INIT_NORMAL, site->model->embedding_std * sqrt((double)d / (double)width), 1};
    const tarn__init xavier = {TARN__INIT_XAVIER, 1.0, 1};
    const int64_t rows = shared ? outputs_of(bands, b) : words_of(bands, b);
    bands->table[b] = declare(site, name, b, "weight", rows, width, trained, normal);
    bands->projection[b] = declare(site, name, b, "projection.weight", d, width, trained, xavier);
  }
  return site->declare->status;
}

// Initialised like an output with one table, so that initial logits are near 0.
tarn_status tarn__bands_declare_tables(tarn__bands *bands, const tarn__task_site *site) {
  const tarn__cutoffs cutoffs = tarn__output_cutoffs(site->model);
  TARN_TRY(find_bands(bands, &cutoffs, site->target_vocab));
  site->declare->role = TARN__ROLE_OUTPUT_TABLE;
  for (int b = 0; b < bands->count; b++) {
    const int64_t width = tarn__band_width(&cutoffs, site->model->d_model, b);
    const tarn__init init = {TARN__INIT_NORMAL, 1.0 / sqrt((double)width), 1};
    bands->table[b] = declare(site, "output.weight", b, "weight", outputs_of(bands, b), width, true, init);
  }
  site->declare->role = TARN__ROLE_EMBEDDINGS;
  return site->declare->status;
}

void tarn__bands_share(tarn__task_weights *weights) {
  const tarn__param *table = weights->output_table;
  const tarn__bands *input = table == weights->target_table ? &weights->target_bands : &weights->source_bands;
  const bool shares = table && (table == weights->target_table || table == weights->source_table);
  if (shares) weights->output_bands = *input;
  memset(weights->output_bands.projection, 0, sizeof weights->output_bands.projection);
}

tarn_status tarn__bands_declare_output(tarn__task_weights *weights, const tarn__task_site *site, bool biased) {
  tarn__bands *bands = &weights->output_bands;
  const tarn__bands *input =
      weights->output_table == weights->target_table ? &weights->target_bands : &weights->source_bands;
  const tarn__init xavier = {TARN__INIT_XAVIER, 1.0, 1}, zero = {TARN__INIT_ZERO, 0.0, 1};
  bands->transposed = site->model->tie_adaptive_proj;
  bands->dropout = site->model->adaptive_softmax_dropout;
  for (int b = 0; b < bands->count; b++) {
    if (b > 0 && bands->transposed) {
      bands->projection[b] = input->projection[b];
      bands->projection[b]->uses++;
    } else if (b > 0) {
      bands->projection[b] =
          declare(site, "weight", b, "projection.weight", bands->table[b]->cols, site->model->d_model, true, xavier);
    }
    if (biased) bands->bias[b] = declare(site, "weight", b, "bias", 1, outputs_of(bands, b), true, zero);
  }
  return site->declare->status;
}

tarn__param *tarn__bands_param(const tarn__bands *bands, int i) {
  tarn__param *const *const of[] = {bands->table, bands->projection, bands->bias};
  return of[i / TARN__BANDS][i % TARN__BANDS];
}

static bool has_table(const tarn__bands *bands, const tarn__param *param) {
  for (int b = 0; b < bands->count; b++)
    if (bands->table[b] == param) return true;
  return false;
}

bool tarn__weights_look_up(const tarn__task_weights *weights, const tarn__param *param) {
  return param == weights->source_table || param == weights->target_table || has_table(&weights->source_bands, param) ||
         has_table(&weights->target_bands, param);
}

bool tarn__weights_predict(const tarn__task_weights *weights, const tarn__param *param) {
  return param == weights->output_table || has_table(&weights->output_bands, param);
}

// Ids sorted by band: their rows, and the ids relative to the first of the band, band after band. Both arrays are NULL
// if the graph is only planned.
typedef struct sorted {
  int64_t begin[TARN__BANDS + 1];  // band b is at begin[b] .. begin[b + 1] - 1
  int32_t *rows, *ids;
} sorted;

static int band_of(const tarn__bands *bands, int32_t id) {
  int b = 0;
  while (b + 1 < bands->count && id >= bands->first[b + 1]) b++;
  return b;
}

// Zipf's law (Zipf 1949): the word of rank n of V has a share of 1 / (n ln V) of all occurrences.
static void plan_sorted(sorted *s, const tarn__bands *bands, int64_t rows) {
  const double all = log(2.0 * (double)bands->first[bands->count] + 1.0);
  for (int b = 1; b <= bands->count; b++)
    s->begin[b] = llround((double)rows * log(2.0 * (double)bands->first[b] + 1.0) / all);
}

// The arrays are not NULL for 0 ids either.
static sorted sort_ids(tarn__graph *graph, const tarn__bands *bands, const int32_t *ids, int64_t rows) {
  sorted s = {.rows = NULL};
  int64_t next[TARN__BANDS];
  void *memory = NULL;
  if (!ids) {
    plan_sorted(&s, bands, rows);
    return s;
  }
  for (int64_t r = 0; r < rows; r++) s.begin[band_of(bands, ids[r]) + 1]++;
  for (int b = 0; b < bands->count; b++) {
    next[b] = s.begin[b];
    s.begin[b + 1] += s.begin[b];
  }
  if (graph->status == TARN_STATUS_OK)
    graph->status = tarn__arena_alloc(&graph->arena, &memory, 2 * (size_t)rows + 1, sizeof(int32_t));
  if (graph->status != TARN_STATUS_OK) return (sorted){.rows = NULL};
  s.rows = memory;
  s.ids = s.rows + rows;
  for (int64_t r = 0; r < rows; r++) {
    const int b = band_of(bands, ids[r]);
    s.rows[next[b]] = (int32_t)r;
    s.ids[next[b]++] = (int32_t)(ids[r] - bands->first[b]);
  }
  return s;
}

static tarn__tensor *list_of(tarn__graph *graph, const sorted *s, const int32_t *list, int b, const char *name) {
  return tarn__graph_input(graph, s->begin[b + 1] - s->begin[b], list ? list + s->begin[b] : NULL, name);
}

// In training every band has its nodes, so that a band without words gets zero gradients.
static bool is_there(const tarn__graph *graph, const sorted *s, int b) {
  return graph->training || s->begin[b + 1] > s->begin[b];
}

tarn__tensor *tarn__bands_embed(tarn__graph *graph, const tarn__bands *bands, const int32_t *ids, int64_t rows,
                                double scale) {
  tarn__tensor *parts[TARN__BANDS];
  const sorted s = sort_ids(graph, bands, ids, rows);
  int count = 0;
  for (int b = 0; b < bands->count; b++) {
    if (!is_there(graph, &s, b) && !(rows == 0 && b == 0)) continue;
    tarn__tensor *own =
        tarn__embedding(graph, list_of(graph, &s, s.ids, b, "ids of a band"), NULL, bands->table[b], NULL, scale, 0.0);
    parts[count++] = tarn__linear(graph, own, bands->projection[b], NULL, TARN__IDENTITY);
  }
  if (graph->status != TARN_STATUS_OK) return &graph->spare_tensor;
  return tarn__adaptive_rows(graph, parts, count, tarn__graph_input(graph, rows, s.rows, "rows of bands"));
}

// The input of a band's table, from rows of the states.
static tarn__tensor *project(tarn__graph *graph, const tarn__bands *bands, int b, tarn__tensor *x) {
  x = bands->transposed ? tarn__linear_transposed(graph, x, bands->projection[b])
                        : tarn__linear(graph, x, bands->projection[b], NULL, TARN__IDENTITY);
  return tarn__dropout_apply(graph, x, bands->dropout);
}

// The targets of the head: words of the first band, and classes.
static tarn__tensor *head_targets(tarn__graph *graph, const tarn__bands *bands, const tarn__tensor *targets) {
  void *memory = NULL;
  if (targets->host && graph->status == TARN_STATUS_OK)
    graph->status = tarn__arena_alloc(&graph->arena, &memory, (size_t)targets->cols + 1, sizeof(int32_t));
  int32_t *own = memory;
  for (int64_t r = 0; own && r < targets->cols; r++) {
    const int b = band_of(bands, targets->host[r]);
    own[r] = b > 0 ? (int32_t)(bands->first[1] + b - 1) : targets->host[r];
  }
  return tarn__graph_input(graph, targets->cols, own, "words and classes");
}

// Losses of the bands after the first that are present, per row or summed. Returns their number.
static int tail_losses(tarn__tensor *losses[TARN__BANDS], tarn__graph *graph, const tarn__bands *bands, const sorted *s,
                       tarn__tensor *x, bool of_rows, double grad_scale) {
  int count = 0;
  for (int b = 1; b < bands->count; b++) {
    if (!is_there(graph, s, b)) continue;
    tarn__tensor *own = tarn__select_rows(graph, x, list_of(graph, s, s->rows, b, "rows of a band"));
    tarn__tensor *ids = list_of(graph, s, s->ids, b, "targets of a band");
    own = project(graph, bands, b, own);
    losses[count++] = of_rows ? tarn__output_token_loss(graph, own, bands->table[b], bands->bias[b], ids)
                              : tarn__output_loss(graph, own, bands->table[b], bands->bias[b], ids, 0.0, grad_scale);
  }
  return count;
}

// The head comes last, because its gradient may overwrite x.
tarn__tensor *tarn__bands_loss(tarn__graph *graph, const tarn__head *head, tarn__tensor *targets, double grad_scale) {
  const tarn__bands *bands = &head->weights->output_bands;
  const sorted s = sort_ids(graph, bands, targets->host, targets->cols);
  tarn__tensor *losses[TARN__BANDS + 1], *x = tarn__dropout_apply(graph, head->x, bands->dropout);
  int count = tail_losses(losses, graph, bands, &s, x, false, grad_scale);
  losses[count++] = tarn__output_loss(graph, x, bands->table[0], bands->bias[0], head_targets(graph, bands, targets),
                                      0.0, grad_scale);
  return tarn__loss_sum(graph, losses, count);
}

tarn__tensor *tarn__bands_token_loss(tarn__graph *graph, const tarn__head *head, tarn__tensor *targets) {
  const tarn__bands *bands = &head->weights->output_bands;
  const sorted s = sort_ids(graph, bands, targets->host, targets->cols);
  tarn__tensor *tails[TARN__BANDS];
  const int count = tail_losses(tails, graph, bands, &s, head->x, true, 0.0);
  tarn__tensor *first =
      tarn__output_token_loss(graph, head->x, bands->table[0], bands->bias[0], head_targets(graph, bands, targets));
  if (count == 0) return first;
  const int64_t behind = s.begin[1];
  return tarn__adaptive_row_losses(
      graph, first, tails, count,
      tarn__graph_input(graph, targets->cols - behind, s.rows ? s.rows + behind : NULL, "rows of bands"));
}

tarn__tensor *tarn__bands_log_probabilities(tarn__graph *graph, const tarn__head *head) {
  const tarn__bands *bands = &head->weights->output_bands;
  tarn__tensor *tails[TARN__BANDS];
  for (int b = 1; b < bands->count; b++)
    tails[b - 1] =
        tarn__output_log_probabilities(graph, project(graph, bands, b, head->x), bands->table[b], bands->bias[b]);
  tarn__tensor *first = tarn__output_log_probabilities(graph, head->x, bands->table[0], bands->bias[0]);
  return tarn__adaptive_log_probabilities(graph, first, tails, bands->count - 1);
}

tarn__top tarn__bands_top(tarn__graph *graph, const tarn__head *head, int64_t best, int32_t always) {
  const tarn__bands *bands = &head->weights->output_bands;
  const int tails = bands->count - 1, of = band_of(bands, always);
  const int32_t shown = of > 0 ? (int32_t)(bands->first[1] + of - 1) : always;
  tarn__top top = tarn__output_top(graph, head->x, bands->table[0], bands->bias[0], best + tails, shown);
  for (int b = 1; b < bands->count; b++) {
    const int64_t words = words_of(bands, b);
    const tarn__top own =
        tarn__output_top(graph, project(graph, bands, b, head->x), bands->table[b], bands->bias[b],
                         words < best ? words : best, of == b ? (int32_t)(always - bands->first[b]) : 0);
    top = tarn__adaptive_top(graph, top, own,
                             (tarn__adaptive_merge){.shortlist = b == 1 ? bands->first[1] : 0,
                                                    .words = bands->first[bands->count],
                                                    .first = bands->first[b],
                                                    .tail = b - 1,
                                                    .always = of == b});
  }
  return top;
}
