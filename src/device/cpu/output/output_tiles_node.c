// The output layer's loss by tiles: chunks of rows, whose weights are kept in BF16 for the gradient of the table, and
// in each chunk blocks of rows, for which a thread processes all words. dx is complete after a block, the gradient of
// the table after the last chunk, one pair of words at a time.
#include <math.h>
#include <omp.h>
#include <string.h>

#include "device/cpu/isa/isa.h"
#include "device/cpu/output/output_tiles.h"
#include "ops/output.h"

#ifdef TARN_WITH_AMX

enum {
  PAIR = TARN__OUTPUT_PAIR,
  NUMBERS = TARN__OUTPUT_PAIR_NUMBERS,
  VISIT_WORDS = TARN__OUTPUT_VISIT * PAIR,
  CHUNK_BYTES = 24 << 20,  // maximum of weights, but at least CHUNK_ROWS
  CHUNK_ROWS = 256,
  BLOCK_BYTES = 1280 << 10,  // size of a block of rows in the L2 cache
  MOST_BLOCK_PAIRS = 16,
  WORD_PAIRS = 4,  // pairs of words whose gradients a thread computes at a time
  SUM_ROWS = 256   // rows whose sum over a column is one fp32 number
};

static const float MOST_SUM = 1e18f;  // beyond it the weights are taken relative to the largest logit

// The arrays of a thread for a block of rows; those of the node.
typedef struct own_places {
  size_t x, own, dx, lanes, shift, sum, most, factor, targets, words, bytes;
} own_places;

typedef struct layout {
  int64_t words, d, rows, width, word_pairs, visits;
  int64_t chunk_pairs, chunks, block_pairs;
  bool wants_dx, wants_words;
  size_t table, table_dx, weights, scaled, losses, table_sums, row_sums, partial, threads, bytes;
  own_places own;
} layout;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t parts(int64_t n, int64_t of) { return (n + of - 1) / of; }

static size_t after(size_t *offset, int64_t count, size_t size) {
  size_t at = *offset;
  *offset = (at + (size_t)count * size + 63) & ~(size_t)63;
  return at;
}

static own_places own_of(const layout *l) {
  own_places o = {0};
  const int64_t rows = l->block_pairs * PAIR, numbers = l->block_pairs * l->width * NUMBERS;
  size_t end = 0;
  o.x = after(&end, numbers, sizeof(uint16_t));
  o.own = after(&end, l->wants_dx ? l->block_pairs * TARN__OUTPUT_VISIT * NUMBERS : 0, sizeof(uint16_t));
  o.dx = after(&end, l->wants_dx ? numbers : 0, sizeof(float));
  o.lanes = after(&end, rows * 16, sizeof(float));
  o.shift = after(&end, rows, sizeof(float));
  o.sum = after(&end, rows, sizeof(float));
  o.most = after(&end, rows, sizeof(float));
  o.factor = after(&end, rows, sizeof(float));
  o.targets = after(&end, rows, sizeof(int32_t));
  o.words = after(&end, l->wants_words ? (l->width + 1) * WORD_PAIRS * NUMBERS : 0, sizeof(float));
  o.bytes = end;
  return o;
}

// Each chunk reads and writes the gradient of the table once: the weights may take half as much memory as the gradient.
static int64_t most_chunk_pairs(const layout *l) {
  const int64_t bytes = larger(CHUNK_BYTES, l->words * l->d * (int64_t)sizeof(float) / 2);
  return larger(bytes / (l->word_pairs * NUMBERS * (int64_t)sizeof(uint16_t)), CHUNK_ROWS / PAIR);
}

static layout layout_of(const tarn__node *node, int threads) {
  const tarn__tensor *x = node->in[0], *table = node->in[1];
  layout l = {.words = table->rows, .d = table->cols, .rows = x->rows};
  l.wants_dx = node->out[1] != NULL;
  l.wants_words = node->dparam[0] != NULL || node->dparam[1] != NULL;
  l.width = parts(l.d, PAIR);
  l.word_pairs = parts(l.words, PAIR);
  l.visits = parts(l.words, VISIT_WORDS);
  const int64_t pairs = parts(l.rows, PAIR);
  l.chunks = parts(pairs, l.wants_words ? most_chunk_pairs(&l) : pairs);
  l.chunk_pairs = parts(pairs, l.chunks);
  l.chunks = parts(pairs, l.chunk_pairs);
  const int64_t pair_bytes = l.width * NUMBERS * (l.wants_dx ? 6 : 2) + (l.wants_dx ? VISIT_WORDS * PAIR * 2 : 0);
  const int64_t most = larger(smaller(BLOCK_BYTES / pair_bytes, MOST_BLOCK_PAIRS), 1);
  const int64_t blocks = parts(parts(l.chunk_pairs, most), threads) * threads;
  l.block_pairs = parts(l.chunk_pairs, blocks);
  const int64_t table_numbers = l.word_pairs * l.width * NUMBERS;
  size_t end = 0;
  l.table = after(&end, table_numbers, sizeof(uint16_t));
  l.table_dx = after(&end, l.wants_dx ? table_numbers : 0, sizeof(uint16_t));
  l.weights = after(&end, l.wants_words ? l.word_pairs * l.chunk_pairs * NUMBERS : 0, sizeof(uint16_t));
  l.scaled = after(&end, l.wants_words ? (l.width + 1) * l.chunk_pairs * NUMBERS : 0, sizeof(uint16_t));
  l.losses = after(&end, l.rows * 2, sizeof(double));
  l.table_sums = after(&end, l.d, sizeof(float));
  l.row_sums = after(&end, l.d, sizeof(float));
  l.partial = after(&end, larger(l.visits, parts(l.rows, SUM_ROWS)) * l.d, sizeof(float));
  l.own = own_of(&l);
  l.threads = after(&end, (int64_t)l.own.bytes * threads, 1);
  l.bytes = end;
  return l;
}

bool tarn__output_tiles_fit(const tarn__node *node) {
  return node->in[0]->dtype == TARN__BF16 && node->in[0]->rows > 0 && tarn__isa_now() == TARN__ISA_AMX;
}

size_t tarn__output_tiles_scratch(const tarn__node *node, int threads) { return layout_of(node, threads).bytes; }

// State of a run shared by all threads.
typedef struct work {
  const tarn__node *node;
  layout l;
  char *memory;
  int threads;
  float scale;  // of the gradient
  double smoothing, bias_sum;
} work;

static void *at(const work *w, size_t offset) { return w->memory + offset; }

static const uint16_t *row_of(const work *w, int64_t row) {
  return (const uint16_t *)w->node->in[0]->data + row * w->l.d;
}

static const uint16_t *word_of(const work *w, int64_t word) {
  return (const uint16_t *)w->node->in[1]->data + word * w->l.d;
}

static const float *bias_of(const work *w) { return w->node->in[2] != NULL ? w->node->in[2]->data : NULL; }

// Sums of `count` partial sums of the columns, in order.
static void add_partial(const work *w, float *sums, int64_t count) {
  const float *partial = at(w, w->l.partial);
  for (int64_t j = 0; j < w->l.d; j++) {
    double sum = 0.0;
    for (int64_t p = 0; p < count; p++) sum += (double)partial[p * w->l.d + j];
    sums[j] = (float)sum;
  }
}

static void pack_table(work *w) {
  const layout *l = &w->l;
  const int64_t visit = VISIT_WORDS * l->width * PAIR;
  uint16_t *table = at(w, l->table), *dx = at(w, l->table_dx);
  float *partial = at(w, l->partial);
#pragma omp parallel for schedule(static) num_threads(w->threads)
  for (int64_t v = 0; v < l->visits; v++) {
    const int64_t first = v * VISIT_WORDS, count = smaller(VISIT_WORDS, l->words - first);
    tarn__output_amx_pack_words(table + v * visit, l->wants_dx ? dx + v * visit : NULL, word_of(w, first), count, l->d);
    if (w->smoothing > 0.0) tarn__output_amx_column_sums(partial + v * l->d, word_of(w, first), count, l->d);
  }
  // Only label smoothing needs these sums, which take another pass over the table.
  if (w->smoothing > 0.0)
    add_partial(w, at(w, l->table_sums), l->visits);
  else
    memset(at(w, l->table_sums), 0, (size_t)l->d * sizeof(float));
  for (int64_t i = 0; bias_of(w) && i < l->words; i++) w->bias_sum += (double)bias_of(w)[i];
}

// The contribution of smoothing to the gradient of every word, without its factor.
static void sum_rows(const work *w) {
  const layout *l = &w->l;
  const int64_t count = parts(l->rows, SUM_ROWS);
  float *partial = at(w, l->partial);
#pragma omp parallel for schedule(static) num_threads(w->threads)
  for (int64_t p = 0; p < count; p++)
    tarn__output_amx_column_sums(partial + p * l->d, row_of(w, p * SUM_ROWS), smaller(SUM_ROWS, l->rows - p * SUM_ROWS),
                                 l->d);
  float *sums = at(w, l->row_sums);
  add_partial(w, sums, count);
  const float part = (float)(-w->smoothing * (double)w->scale / (double)l->words);
  for (int64_t j = 0; j < l->d; j++) sums[j] *= part;
}

// --- a block of rows

typedef struct block_rows {
  tarn__output_block block;
  int64_t first, rows, pair;  // first row of the whole; pair of rows in its chunk
  float *factor;
} block_rows;

static block_rows block_of(const work *w, int64_t chunk, int64_t number, int thread) {
  const layout *l = &w->l;
  char *own = (char *)at(w, l->threads) + l->own.bytes * (size_t)thread;
  const int64_t pair = number * l->block_pairs, first = (chunk * l->chunk_pairs + pair) * PAIR;
  const int64_t end =
      smaller(smaller(pair + l->block_pairs, l->chunk_pairs) * PAIR + chunk * l->chunk_pairs * PAIR, l->rows);
  block_rows b = {.first = first, .rows = end - first, .pair = pair, .factor = (float *)(void *)(own + l->own.factor)};
  b.block = (tarn__output_block){.pairs = parts(larger(b.rows, 0), PAIR),
                                 .words = l->words,
                                 .width_pairs = l->width,
                                 .x = (uint16_t *)(void *)(own + l->own.x),
                                 .table = at(w, l->table),
                                 .table_dx = l->wants_dx ? at(w, l->table_dx) : NULL,
                                 .bias = bias_of(w),
                                 .targets = (int32_t *)(void *)(own + l->own.targets),
                                 .shift = (float *)(void *)(own + l->own.shift),
                                 .sum = (float *)(void *)(own + l->own.sum),
                                 .weights = l->wants_words ? (uint16_t *)at(w, l->weights) + pair * NUMBERS : NULL,
                                 .weights_pairs = l->chunk_pairs,
                                 .own = (uint16_t *)(void *)(own + l->own.own),
                                 .dx = (float *)(void *)(own + l->own.dx),
                                 .lanes = (float *)(void *)(own + l->own.lanes)};
  return b;
}

static float target_logit(const work *w, int64_t row, int32_t target) {
  const float bias = bias_of(w) ? bias_of(w)[target] : 0.0f;
  return tarn__output_amx_dot(row_of(w, row), word_of(w, target), w->l.d) + bias;
}

// Every logit is so far below this that its weight is exactly 0, whatever the bias.
static const float NO_ROW = 1e30f;

// Weights of all words, relative to the target's logit; a block with rows for which that fails is processed again.
// Padding rows of the last pair have weight zero: an infinite weight times their zeros of x would be NaN.
static void weigh(const work *w, block_rows *b, float *shift, int32_t *targets, float *most) {
  const int32_t *wanted = (const int32_t *)w->node->in[3]->data + b->first;
  for (int64_t r = 0; r < b->block.pairs * PAIR; r++) {
    targets[r] = r < b->rows ? wanted[r] : -1;
    shift[r] = r < b->rows ? target_logit(w, b->first + r, wanted[r]) : NO_ROW;
  }
  tarn__output_amx_pack_rows((uint16_t *)(uintptr_t)b->block.x, row_of(w, b->first), b->rows, w->l.d);
  tarn__output_amx_block(&b->block);
  bool again = false;
  for (int64_t r = 0; r < b->rows; r++) again |= !(b->block.sum[r] < MOST_SUM);
  if (!again) return;
  b->block.most = most;
  tarn__output_amx_block(&b->block);
  b->block.most = NULL;
  for (int64_t r = 0; r < b->rows; r++)
    if (!(b->block.sum[r] < MOST_SUM)) shift[r] = most[r];
  tarn__output_amx_block(&b->block);
}

// Computes losses and the factors of the gradients when a row's sum is known.
static void finish_row(const work *w, block_rows *b, int64_t r, double loss[2]) {
  const layout *l = &w->l;
  const int64_t row = b->first + r, target = b->block.targets[r];
  const double logit = (double)target_logit(w, row, (int32_t)target), shift = (double)b->block.shift[r];
  const double others = (double)b->block.sum[r], own = exp(logit - shift), total = others + own;
  loss[1] = logit == shift ? log1p(others) : log(total) + (shift - logit);
  loss[0] = (1.0 - w->smoothing) * loss[1];
  if (w->smoothing > 0.0) {
    const double all = (double)tarn__output_amx_dot_floats(row_of(w, row), at(w, l->table_sums), l->d) + w->bias_sum;
    loss[0] += w->smoothing * (loss[1] + logit - all / (double)l->words);
  }
  if (!l->wants_dx && !l->wants_words) return;
  const double factor = (double)w->scale / total, wanted = own - (1.0 - w->smoothing) * total;
  b->factor[r] = (float)factor;
  if (l->wants_words) {
    uint16_t *pair = b->block.weights + (target / PAIR * l->chunk_pairs + r / PAIR) * NUMBERS;
    pair[tarn__output_weight_place(r % PAIR, target % PAIR)] = tarn__bf16_from_f32((float)wanted);
  }
}

static void finish_dx(const work *w, const block_rows *b, int64_t r) {
  const layout *l = &w->l;
  const float offset = (float)(w->smoothing * (double)w->scale / (double)l->words);
  const int32_t target = b->block.targets[r];
  const double shift = (double)b->block.shift[r], own = exp((double)target_logit(w, b->first + r, target) - shift);
  const double total = (double)b->block.sum[r] + own;
  const float wanted = (float)((double)w->scale * (own / total - (1.0 - w->smoothing)));
  tarn__output_amx_finish_dx((uint16_t *)w->node->out[1]->data + (b->first + r) * l->d, &b->block, r, l->d,
                             b->factor[r], wanted, word_of(w, target), offset, at(w, l->table_sums));
}

// The rows of x are read for the last time before their dx is written, which may overwrite them.
static void run_block(const work *w, int64_t chunk, int64_t number, double *losses) {
  const layout *l = &w->l;
  block_rows b = block_of(w, chunk, number, omp_get_thread_num());
  if (b.rows <= 0) return;
  char *own = (char *)at(w, l->threads) + l->own.bytes * (size_t)omp_get_thread_num();
  weigh(w, &b, (float *)(void *)(own + l->own.shift), (int32_t *)(void *)(own + l->own.targets),
        (float *)(void *)(own + l->own.most));
  for (int64_t r = 0; r < b.rows; r++) finish_row(w, &b, r, losses + 2 * (b.first + r));
  if (l->wants_words)
    tarn__output_amx_pack_scaled((uint16_t *)at(w, l->scaled) + b.pair * NUMBERS, row_of(w, b.first), b.factor, b.rows,
                                 l->d, l->chunk_pairs, true);
  for (int64_t r = 0; l->wants_dx && r < b.rows; r++) finish_dx(w, &b, r);
}

// --- chunks

static void run_words(const work *w, int64_t chunk, int64_t number, bool table_accumulate, bool bias_accumulate) {
  const layout *l = &w->l;
  const int64_t pairs = smaller(l->chunk_pairs, parts(l->rows, PAIR) - chunk * l->chunk_pairs);
  const int64_t pair = number * WORD_PAIRS;
  const bool first = chunk == 0;
  const double all = -w->smoothing * (double)w->scale / (double)l->words * (double)l->rows;
  tarn__output_words g = {.first = pair * PAIR,
                          .count = smaller(WORD_PAIRS, l->word_pairs - pair),
                          .words = l->words,
                          .d = l->d,
                          .pairs = pairs,
                          .x_pairs = l->chunk_pairs,
                          .weights = (const uint16_t *)at(w, l->weights) + pair * l->chunk_pairs * NUMBERS,
                          .x = at(w, l->scaled),
                          .offset = first && w->smoothing > 0.0 ? at(w, l->row_sums) : NULL,
                          .table = w->node->dparam[0] ? w->node->dparam[0]->training.grad : NULL,
                          .bias = w->node->dparam[1] ? w->node->dparam[1]->training.grad : NULL,
                          .table_accumulate = table_accumulate || !first,
                          .bias_accumulate = bias_accumulate || !first,
                          .bias_offset = first ? (float)all : 0.0f,
                          .sums = (float *)(void *)((char *)at(w, l->threads) +
                                                    l->own.bytes * (size_t)omp_get_thread_num() + l->own.words)};
  tarn__output_amx_words(&g);
}

static void run_chunks(const work *w, double *losses, bool table_accumulate, bool bias_accumulate) {
  const layout *l = &w->l;
  const int64_t blocks = parts(l->chunk_pairs, l->block_pairs);
#pragma omp parallel num_threads(w->threads)
  for (int64_t chunk = 0; chunk < l->chunks; chunk++) {
#pragma omp for schedule(dynamic, 1)
    for (int64_t b = 0; b < blocks; b++) run_block(w, chunk, b, losses);
    if (!l->wants_words) continue;
#pragma omp for schedule(dynamic, 1)
    for (int64_t p = 0; p < parts(l->word_pairs, WORD_PAIRS); p++)
      run_words(w, chunk, p, table_accumulate, bias_accumulate);
  }
}

void tarn__output_tiles_run(const tarn__exec *exec, const tarn__node *node) {
  const tarn__output_attr *attr = node->attr;
  work w = {.node = node,
            .l = layout_of(node, exec->threads),
            .memory = node->scratch,
            .threads = exec->threads,
            .smoothing = attr->smoothing};
  if (w.l.wants_dx || w.l.wants_words) w.scale = (float)attr->grad_scale;
  const bool table_accumulate = node->dparam[0] != NULL && tarn__param_accumulate(node->dparam[0]);
  const bool bias_accumulate = node->dparam[1] != NULL && tarn__param_accumulate(node->dparam[1]);
  pack_table(&w);
  if (w.l.wants_words && w.smoothing > 0.0) sum_rows(&w);
  double *losses = node->out[2] != NULL ? node->out[2]->data : at(&w, w.l.losses);
  run_chunks(&w, losses, table_accumulate, bias_accumulate);
  // In the order of the rows, for any number of threads.
  double *loss = node->out[0]->data;
  loss[0] = loss[1] = 0.0;
  for (int64_t r = 0; r < w.l.rows; r++) {
    loss[0] += losses[2 * r];
    loss[1] += losses[2 * r + 1];
  }
}
#else
bool tarn__output_tiles_fit(const tarn__node *node) {
  (void)node;
  return false;
}

size_t tarn__output_tiles_scratch(const tarn__node *node, int threads) {
  (void)node, (void)threads;
  return 0;
}
void tarn__output_tiles_run(const tarn__exec *exec, const tarn__node *node) { (void)exec, (void)node; }
#endif
