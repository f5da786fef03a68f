// The output layer's loss in fp32. The words are divided into visits, whose part of the table is packed for both
// products with it: logits and dx. A few visits make a group. While one group is packed, the blocks of rows process the
// previous one, each by one thread: for every visit it computes the logits of its rows, converts them to weights, and
// adds their products with the words to dx, all in its L2 cache. Only weights leave it, for the gradient of the table,
// which needs each row's complete sum. They are kept for a chunk of rows, whose size is such that they fit into as much
// memory as the gradient takes. No element depends on the number of threads: a row's sums go over the visits in order.
//
// Smoothing, which is equal for all words, is a sum over the columns of the table for dx, and an additional row of unit
// weights for the gradient of the table.
#include <math.h>
#include <omp.h>
#include <string.h>

#include "device/cpu/gemm/gemm.h"
#include "device/cpu/gemm/gemm_cut.h"
#include "device/cpu/isa/isa.h"
#include "device/cpu/isa/row_cpu.h"
#include "device/cpu/output/output_blocks.h"
#include "ops/output.h"

enum {
  VISIT = 512,             // words
  GROUP = 4,               // visits; two groups exist at a time, unless
  PACK_BYTES = 64 << 20,   // suffices for all of them
  CHUNK_BYTES = 24 << 20,  // maximum of weights, but at least CHUNK_ROWS
  CHUNK_ROWS = 256,
  BLOCK_ROWS = 96,  // maximum, if all threads have some
  ROW_UNIT = 16     // all blocks and chunks but the last are multiples of this
};

// Beyond these limits weights are taken relative to the largest logit: the sum of weights, and the difference between
// the target's logit and its value from a sum in another order, which is large if logits are huge.
static const double MOST_SUM = 1e18, MOST_OFF = 1.0;

// The state of a row between visits.
typedef struct row_state {
  double sums[2];      // of the weights, and of the logits, of all words but the target
  float shift, logit;  // logit: the target's
} row_state;

typedef struct layout {
  int64_t words, d, rows, visits;
  int64_t group, groups;  // visits of a group
  int64_t chunk_rows, chunks;
  bool wants_dx, wants_words, has_ones;
  size_t table, table_dx;  // bytes of a visit's packed part
  size_t packed, states, losses, weights, dx, scaled, scaled_packed, factors, partial, table_sums, own, bytes;
  size_t own_weights, own_scratch, own_bytes;  // per thread
} layout;

typedef enum passing { WEIGH, LARGEST } passing;  // the use of logits

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t parts(int64_t n, int64_t of) { return (n + of - 1) / of; }
static int64_t round_up(int64_t n, int64_t unit) { return parts(n, unit) * unit; }

static size_t after(size_t *offset, size_t bytes) {
  size_t at = *offset;
  *offset = (at + bytes + 63) & ~(size_t)63;
  return at;
}

static int64_t visit_words(const layout *l, int64_t visit) { return smaller(VISIT, l->words - visit * VISIT); }

// The rows of a chunk, followed by the unit row if there is one.
static int64_t chunk_terms(const layout *l, int64_t rows) { return rows + (l->has_ones ? 1 : 0); }

static int64_t chunk_size(const layout *l, int64_t chunk) {
  return smaller(l->chunk_rows, l->rows - chunk * l->chunk_rows);
}

// --- products, without memory when scratch is measured; only the existence of a packed B matters then

static tarn__gemm logits_shape(const tarn__node *node, const layout *l, int64_t rows, int64_t words) {
  return (tarn__gemm){.m = rows,
                      .n = words,
                      .k = l->d,
                      .packed = l,
                      .lda = l->d,
                      .ldb = l->d,
                      .ldc = words,
                      .fp32 = node->fp32,
                      .transpose_b = true};
}

static tarn__gemm dx_shape(const tarn__node *node, const layout *l, int64_t rows, int64_t words) {
  return (tarn__gemm){
      .m = rows, .n = l->d, .k = words, .packed = l, .lda = words, .ldb = l->d, .ldc = l->d, .fp32 = node->fp32};
}

static tarn__gemm dtable_shape(const tarn__node *node, const layout *l, int64_t rows, int64_t words) {
  return (tarn__gemm){.m = words,
                      .n = l->d,
                      .k = chunk_terms(l, rows),
                      .packed = l,
                      .lda = words,
                      .ldb = l->d,
                      .ldc = l->d,
                      .fp32 = node->fp32,
                      .transpose_a = true};
}

static size_t most_bytes(size_t most, const tarn__gemm *product) {
  const size_t bytes = tarn__gemm_scratch(product, 1);
  return bytes > most ? bytes : most;
}

// The blocks of a chunk of `rows` rows.
static tarn__cut blocks_of(int64_t rows, int threads) {
  return tarn__cut_into(rows, ROW_UNIT, round_up(parts(rows, BLOCK_ROWS), threads));
}

static size_t scratch_of(const tarn__node *node, const layout *l, int threads) {
  size_t most = 0;
  // All chunks but the last are equal, and so are all visits.
  for (int64_t c = l->chunks > 1 ? l->chunks - 2 : 0; c < l->chunks; c++)
    for (int64_t v = l->visits > 1 ? l->visits - 2 : 0; v < l->visits; v++) {
      const int64_t rows = chunk_size(l, c), words = visit_words(l, v);
      const tarn__cut blocks = blocks_of(rows, threads);
      const int64_t block = tarn__cut_largest(&blocks);
      const tarn__gemm logits = logits_shape(node, l, block, words), dx = dx_shape(node, l, block, words);
      const tarn__gemm dtable = dtable_shape(node, l, rows, words);
      most = most_bytes(most, &logits);
      if (l->wants_dx) most = most_bytes(most, &dx);
      if (l->wants_words) most = most_bytes(most, &dtable);
    }
  return most;
}

// --- memory

static void place_packed(layout *l, size_t *end, const tarn__node *node) {
  const int64_t most = smaller(VISIT, l->words);
  const tarn__gemm logits = logits_shape(node, l, 1, most), dx = dx_shape(node, l, 1, most);
  l->table = tarn__gemm_pack_bytes(&logits);
  l->table_dx = l->wants_dx ? tarn__gemm_pack_bytes(&dx) : 0;
  const bool whole = (l->table + l->table_dx) * (size_t)l->visits <= PACK_BYTES || l->visits <= 2 * GROUP;
  l->group = whole ? l->visits : GROUP;
  l->groups = parts(l->visits, l->group);
  l->packed = after(end, (l->table + l->table_dx) * (size_t)(whole ? l->visits : 2 * GROUP));
}

static void place_gradients(layout *l, size_t *end, const tarn__node *node) {
  const size_t rows = (size_t)l->chunk_rows, row = (size_t)l->d * sizeof(float);
  if (l->wants_dx) l->dx = after(end, rows * row);
  l->partial = after(end, l->has_ones ? (size_t)l->visits * row : 0);
  l->table_sums = after(end, l->has_ones ? row : 0);
  if (!l->wants_words) return;
  const size_t terms = (size_t)chunk_terms(l, l->chunk_rows);
  l->weights = after(end, terms * (size_t)l->words * sizeof(float));
  l->scaled = after(end, terms * row);
  l->factors = after(end, terms * sizeof(float));
  // The last chunk may be divided differently, and need more for that.
  size_t packed = 0;
  for (int64_t c = l->chunks > 1 ? l->chunks - 2 : 0; c < l->chunks; c++) {
    const tarn__gemm dtable = dtable_shape(node, l, chunk_size(l, c), 1);
    const size_t bytes = tarn__gemm_pack_bytes(&dtable);
    if (bytes > packed) packed = bytes;
  }
  l->scaled_packed = after(end, packed);
}

static layout layout_of(const tarn__node *node, int threads) {
  const tarn__output_attr *attr = node->attr;
  const tarn__tensor *x = node->in[0];
  layout l = {.words = node->in[1]->rows, .d = node->in[1]->cols, .rows = x->rows};
  l.wants_dx = node->out[1] != NULL;
  l.wants_words = node->dparam[0] != NULL || node->dparam[1] != NULL;
  l.has_ones = attr->smoothing > 0.0 && (l.wants_dx || l.wants_words);
  l.visits = parts(l.words, VISIT);
  int64_t most = l.rows;
  if (l.wants_words) {
    const int64_t bytes = larger(CHUNK_BYTES, l.words * l.d * (int64_t)sizeof(float));
    most = larger(bytes / (l.words * (int64_t)sizeof(float)), CHUNK_ROWS);
  }
  // Without rows there is one empty chunk: its product clears the gradient of the table.
  l.chunks = larger(parts(l.rows, larger(most, 1)), 1);
  l.chunk_rows = larger(smaller(round_up(parts(l.rows, l.chunks), ROW_UNIT), l.rows), 1);
  l.chunks = larger(parts(l.rows, l.chunk_rows), 1);
  size_t end = 0;
  place_packed(&l, &end, node);
  l.states = after(&end, (size_t)l.chunk_rows * sizeof(row_state));
  l.losses = after(&end, (size_t)l.rows * 2 * sizeof(double));
  place_gradients(&l, &end, node);
  const tarn__cut blocks = blocks_of(l.chunk_rows, threads);
  size_t own = 0;
  l.own_weights = after(&own, (size_t)(tarn__cut_largest(&blocks) * VISIT) * sizeof(float));
  l.own_scratch = after(&own, scratch_of(node, &l, threads));
  l.own_bytes = own;
  l.own = after(&end, own * (size_t)threads);
  l.bytes = end;
  return l;
}

bool tarn__output_blocks_fit(const tarn__node *node) { return node->in[0]->dtype == TARN__F32; }

size_t tarn__output_blocks_scratch(const tarn__node *node, int threads) { return layout_of(node, threads).bytes; }

// --- a run

// State shared by all threads.
typedef struct work {
  const tarn__node *node;
  const tarn__output_blocks_kernels *kernels;
  layout l;
  char *memory;
  int threads;
  double smoothing, scale;  // scale: of the gradient
  bool table_accumulate, bias_accumulate;
} work;

static float *at(const work *w, size_t offset) { return (float *)(void *)(w->memory + offset); }
static void *own_of(const work *w, size_t offset) {
  return w->memory + w->l.own + w->l.own_bytes * (size_t)omp_get_thread_num() + offset;
}
static row_state *state_of(const work *w, int64_t row) { return (row_state *)(void *)(w->memory + w->l.states) + row; }
static const float *row_of(const work *w, int64_t row) { return (const float *)w->node->in[0]->data + row * w->l.d; }
static const float *word_of(const work *w, int64_t word) { return (const float *)w->node->in[1]->data + word * w->l.d; }
static const float *bias_of(const work *w) { return w->node->in[2] != NULL ? w->node->in[2]->data : NULL; }
static int64_t target_of(const work *w, int64_t row) { return ((const int32_t *)w->node->in[3]->data)[row]; }

// The packed part of a visit: of the table, followed by that for dx.
static char *packed_of(const work *w, int64_t visit) {
  const layout *l = &w->l;
  const int64_t place = l->groups == 1 ? visit : visit % (2 * l->group);
  return w->memory + l->packed + (l->table + l->table_dx) * (size_t)place;
}

// Weights of a visit: [chunk_terms][visit_words].
static float *weights_of(const work *w, int64_t visit, int64_t rows) {
  return at(w, w->l.weights) + visit * VISIT * chunk_terms(&w->l, rows);
}

static void pack_visit(const work *w, int64_t visit, bool first) {
  const layout *l = &w->l;
  const int64_t words = visit_words(l, visit);
  char *packed = packed_of(w, visit);
  tarn__gemm logits = logits_shape(w->node, l, 1, words), dx = dx_shape(w->node, l, 1, words);
  logits.b = dx.b = word_of(w, visit * VISIT);
  tarn__gemm_pack(packed, &logits, 1);
  if (l->wants_dx) tarn__gemm_pack(packed + l->table, &dx, 1);
  if (l->has_ones && first)
    w->kernels->add_rows(at(w, l->partial) + visit * l->d, word_of(w, visit * VISIT), NULL, words, l->d);
}

// Rows [first, first + rows) of a chunk of `all` rows that begins with row `from` of the whole.
typedef struct block {
  int64_t from, first, rows, all;
} block;

// Converts a row's logits in a visit to weights, except the target's, which is kept.
static void weigh_row(const work *w, row_state *s, float *logits, int64_t words, int64_t target) {
  if (target < 0 || target >= words) {
    w->kernels->weigh(logits, words, s->shift, s->sums);
    return;
  }
  s->logit = logits[target];
  w->kernels->weigh(logits, target, s->shift, s->sums);
  w->kernels->weigh(logits + target + 1, words - target - 1, s->shift, s->sums);
  logits[target] = 0.0f;
}

static void run_visit(const work *w, const block *b, int64_t visit, passing mode) {
  const layout *l = &w->l;
  const int64_t words = visit_words(l, visit), row = b->from + b->first;
  float *weights = own_of(w, l->own_weights);
  if (mode == WEIGH && l->wants_words) weights = weights_of(w, visit, b->all) + b->first * words;
  tarn__gemm logits = logits_shape(w->node, l, b->rows, words);
  logits.a = row_of(w, row);
  logits.packed = packed_of(w, visit);
  logits.c = weights;
  logits.bias = bias_of(w) != NULL ? bias_of(w) + visit * VISIT : NULL;
  tarn__gemm_run(&logits, 1, own_of(w, l->own_scratch));
  for (int64_t r = 0; r < b->rows; r++) {
    row_state *s = state_of(w, b->first + r);
    if (mode == WEIGH) {
      weigh_row(w, s, weights + r * words, words, target_of(w, row + r) - visit * VISIT);
    } else {
      const float most = w->kernels->largest(weights + r * words, words);
      s->logit = visit == 0 || most > s->logit ? most : s->logit;
    }
  }
  if (mode != WEIGH || !l->wants_dx) return;
  tarn__gemm dx = dx_shape(w->node, l, b->rows, words);
  dx.a = weights;
  dx.packed = packed_of(w, visit) + l->table;
  dx.c = at(w, l->dx) + b->first * l->d;
  dx.accumulate = visit > 0;
  tarn__gemm_run(&dx, 1, own_of(w, l->own_scratch));
}

// Processes all words for the rows of a chunk. `fresh`: nothing has been packed yet.
static void run_words(const work *w, int64_t from, int64_t rows, passing mode, bool fresh) {
  const layout *l = &w->l;
  const tarn__cut blocks = blocks_of(rows, w->threads);
  const bool packs = fresh || l->groups > 1;
#pragma omp parallel num_threads(w->threads)
  {
#pragma omp for schedule(dynamic, 1)
    for (int64_t v = 0; v < (packs ? smaller(l->group, l->visits) : 0); v++) pack_visit(w, v, fresh);
    for (int64_t g = 0; g < l->groups; g++) {
      const int64_t first = g * l->group, end = smaller(first + l->group, l->visits);
      const int64_t next = smaller(end + l->group, l->visits) - end;
#pragma omp for schedule(dynamic, 1)
      for (int64_t t = 0; t < blocks.pieces + next; t++) {
        if (t >= blocks.pieces) {
          pack_visit(w, end + t - blocks.pieces, fresh);
          continue;
        }
        const block b = {from, tarn__cut_start(&blocks, t), tarn__cut_size(&blocks, t), rows};
        for (int64_t v = first; v < end; v++) run_visit(w, &b, v, mode);
      }
    }
  }
}

static void start_row(const work *w, int64_t from, int64_t r) {
  const int64_t target = target_of(w, from + r);
  const float bias = bias_of(w) != NULL ? bias_of(w)[target] : 0.0f;
  *state_of(w, r) = (row_state){.shift = w->kernels->dot(row_of(w, from + r), word_of(w, target), w->l.d) + bias};
}

static bool fits(const row_state *s) {
  return s->sums[0] < MOST_SUM && fabs((double)s->logit - (double)s->shift) < MOST_OFF;
}

// Weights of all words, relative to the target's logit; if that fails for a row, the chunk is processed again.
static void weigh(const work *w, int64_t from, int64_t rows, bool fresh) {
  for (int64_t r = 0; r < rows; r++) start_row(w, from, r);
  run_words(w, from, rows, WEIGH, fresh);
  bool again = false;
  for (int64_t r = 0; r < rows; r++) {
    row_state *s = state_of(w, r);
    if (fits(s)) continue;
    s->sums[0] = INFINITY;
    again = true;
  }
  if (!again) return;
  // The largest logits temporarily replace the targets' logits, which are restored.
  run_words(w, from, rows, LARGEST, false);
  for (int64_t r = 0; r < rows; r++) {
    row_state *s = state_of(w, r);
    *s = (row_state){.shift = s->sums[0] < MOST_SUM ? s->shift : s->logit};
  }
  run_words(w, from, rows, WEIGH, false);
}

// Computes the loss of a row with complete sums, and the factors for the gradients: {of the weights, of the target's
// row of the table, of the sums of the table}.
static void finish_row(const work *w, const row_state *s, double loss[2], double *own, float factors[3]) {
  const double logit = (double)s->logit, shift = (double)s->shift, others = s->sums[0];
  *own = exp(logit - shift);
  const double total = others + *own, words = (double)w->l.words;
  loss[1] = *own > 0.5 ? log1p(others / *own) : log(total) + (shift - logit);
  loss[0] = (1.0 - w->smoothing) * loss[1];
  if (w->smoothing > 0.0) loss[0] += w->smoothing * (loss[1] + logit - (s->sums[1] + logit) / words);
  factors[0] = (float)(w->scale / total);
  factors[1] = (float)(w->scale * (*own / total - (1.0 - w->smoothing)));
  factors[2] = (float)(w->scale * w->smoothing / words);
}

// Computes loss, the target's weight, the row of x for the gradient of the table, and dx, which may overwrite x.
static void finish_rows(const work *w, int64_t from, int64_t rows, double *losses) {
  const layout *l = &w->l;
#pragma omp parallel for schedule(static) num_threads(w->threads)
  for (int64_t r = 0; r < rows; r++) {
    const int64_t row = from + r, target = target_of(w, row);
    row_state *s = state_of(w, r);
    float factors[3];
    double own;
    finish_row(w, s, losses + 2 * row, &own, factors);
    if (l->wants_words) {
      const int64_t visit = target / VISIT;
      weights_of(w, visit, rows)[r * visit_words(l, visit) + target % VISIT] =
          (float)(own - (1.0 - w->smoothing) * (s->sums[0] + own));
      at(w, l->factors)[r] = factors[0];
      float *scaled = at(w, l->scaled) + r * l->d;
      memcpy(scaled, row_of(w, row), (size_t)l->d * sizeof *scaled);
      tarn__row_scale(scaled, factors[0], l->d);
    }
    if (l->wants_dx)
      w->kernels->finish_dx((float *)w->node->out[1]->data + row * l->d, at(w, l->dx) + r * l->d, word_of(w, target),
                            l->has_ones ? at(w, l->table_sums) : NULL, factors, l->d);
  }
}

// Sums of the table over its words, from those of the visits in order.
static void sum_table(const work *w) {
  const layout *l = &w->l;
  for (int64_t j = 0; j < l->d; j++) {
    double sum = 0.0;
    for (int64_t v = 0; v < l->visits; v++) sum += (double)at(w, l->partial)[v * l->d + j];
    at(w, l->table_sums)[j] = (float)sum;
  }
}

// The contribution of smoothing to the gradient of every word, as a row of x with unit weights; before x is
// overwritten.
static void add_ones(const work *w, int64_t from, int64_t rows) {
  const layout *l = &w->l;
  const float part = (float)(-w->scale * w->smoothing / (double)l->words);
  float *sums = at(w, l->scaled) + rows * l->d;
  w->kernels->add_rows(sums, row_of(w, from), NULL, rows, l->d);
  tarn__row_scale(sums, part, l->d);
  at(w, l->factors)[rows] = part * (float)rows;
  for (int64_t v = 0; v < l->visits; v++) {
    const int64_t words = visit_words(l, v);
    float *ones = weights_of(w, v, rows) + rows * words;
    for (int64_t i = 0; i < words; i++) ones[i] = 1.0f;
  }
}

static void add_bias_gradient(const work *w, int64_t visit, int64_t rows, bool accumulate) {
  const int64_t words = visit_words(&w->l, visit);
  float sums[VISIT], *grad = (float *)w->node->dparam[1]->training.grad + visit * VISIT;
  w->kernels->add_rows(sums, weights_of(w, visit, rows), at(w, w->l.factors), chunk_terms(&w->l, rows), words);
  if (accumulate)
    tarn__row_add(grad, sums, words);
  else
    memcpy(grad, sums, (size_t)words * sizeof *grad);
}

static void add_gradients(const work *w, int64_t rows, bool first) {
  const layout *l = &w->l;
  tarn__gemm shape = dtable_shape(w->node, l, rows, 1);
  shape.b = at(w, l->scaled);
  if (w->node->dparam[0] != NULL) tarn__gemm_pack(at(w, l->scaled_packed), &shape, w->threads);
#pragma omp parallel for schedule(dynamic, 1) num_threads(w->threads)
  for (int64_t v = 0; v < l->visits; v++) {
    if (w->node->dparam[1] != NULL) add_bias_gradient(w, v, rows, w->bias_accumulate || !first);
    if (w->node->dparam[0] == NULL) continue;
    tarn__gemm product = dtable_shape(w->node, l, rows, visit_words(l, v));
    product.a = weights_of(w, v, rows);
    product.packed = at(w, l->scaled_packed);
    product.c = (float *)w->node->dparam[0]->training.grad + v * VISIT * l->d;
    product.accumulate = w->table_accumulate || !first;
    tarn__gemm_run(&product, 1, own_of(w, l->own_scratch));
  }
}

void tarn__output_blocks_run(const tarn__exec *exec, const tarn__node *node) {
  const tarn__output_attr *attr = node->attr;
  work w = {.node = node,
            .kernels = TARN__TABLE_NOW(tarn__output_blocks_kernels),
            .l = layout_of(node, exec->threads),
            .memory = node->scratch,
            .threads = exec->threads,
            .smoothing = attr->smoothing};
  if (w.l.wants_dx || w.l.wants_words) w.scale = attr->grad_scale;
  w.table_accumulate = node->dparam[0] != NULL && tarn__param_accumulate(node->dparam[0]);
  w.bias_accumulate = node->dparam[1] != NULL && tarn__param_accumulate(node->dparam[1]);
  double *losses = node->out[2] != NULL ? node->out[2]->data : (void *)at(&w, w.l.losses);
  for (int64_t chunk = 0; chunk < w.l.chunks; chunk++) {
    const int64_t from = chunk * w.l.chunk_rows, rows = chunk_size(&w.l, chunk);
    weigh(&w, from, rows, chunk == 0);
    if (w.l.has_ones && chunk == 0) sum_table(&w);
    if (w.l.has_ones && w.l.wants_words) add_ones(&w, from, rows);
    finish_rows(&w, from, rows, losses);
    if (w.l.wants_words) add_gradients(&w, rows, chunk == 0);
  }
  // In the order of the rows, for any number of threads.
  double *loss = node->out[0]->data;
  loss[0] = loss[1] = 0.0;
  for (int64_t r = 0; r < w.l.rows; r++) {
    loss[0] += losses[2 * r];
    loss[1] += losses[2 * r + 1];
  }
}
