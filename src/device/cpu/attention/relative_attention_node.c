// Attention with relative keys and values, one head of one sentence at a time. The vectors of the distances that occur
// in the sentence, T of them, precede its keys (and values), so that each product of attention has one longer factor,
// and no additional product is needed:
//
//   forward    S = Q [K_r K]^T,  P = softmax of S, spread by distance,  O = P [V_r V]
//   tangents   recompute S and P; each direction dS = dQ [K_r K]^T + Q [0 dK]^T, spread,  dP = P (dS - rowsum(P dS)),
//              dO = dP [V_r V] + P [0 dV]
//   backward   recompute S and P,  dP = dO [V_r V]^T, spread,  dS = P (dP - rowsum(P dP)),  dQ = dS [K_r K],
//              d[K_r K] += dS^T Q,  d[V_r V] += P^T dO
//
// The first T columns of P and dS are sums of the others by distance (relative_attention_cpu.c). Queries are processed
// in blocks of rows. Threads take heads of sentences in turn. If tables are trained, a thread takes several at once and
// sums their gradients; these sums are then added in order, so bits do not depend on the number of threads.
#include "device/cpu/attention/relative_attention_kernels.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "device/cpu/gemm/gemm.h"
#include "device/cpu/isa/isa.h"
#include "device/cpu/isa/row_cpu.h"
#include "ops/relative_attention.h"

enum {
  BLOCK = TARN__GEMM_FEW,  // rows of queries at a time
  SHARES = 32              // into which the work of a backward pass with trained tables is divided
};

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t padded(int64_t n) { return (int64_t)tarn__row_floats(n); }

static char *element(const tarn__tensor *tensor, int64_t at) {
  return (char *)tensor->data + at * (int64_t)tarn__dtype_size(tensor->dtype);
}

// State shared by the work on a node.
typedef struct work {
  const tarn__node *node;
  const tarn__exec *exec;
  const tarn__attention_attr *attr;
  const tarn__relative_kernels *kernels;
  const tarn__tensor *queries, *kv, *key_table, *value_table;  // value_table NULL: none
  bool backward, tangent, tables;                              // tables: that of keys or values is trained
  tarn__attention_backward b;
  tarn__distances most;  // of the longest sentence
  int64_t width, group;  // columns of a head, and heads that share keys
  int64_t ld;            // stride of rows of scores
  size_t product;        // bytes of scratch of a product
  float scale;
  tarn__dtype dtype;
} work;

static work work_of(const tarn__exec *exec, const tarn__node *node) {
  const tarn__attention_attr *attr = node->attr;
  work w = {.node = node,
            .exec = exec,
            .attr = attr,
            .kernels = TARN__TABLE_NOW(tarn__relative_kernels),
            .queries = node->in[TARN__ATTENTION_QUERIES],
            .kv = node->in[TARN__ATTENTION_KEYS_VALUES],
            .key_table = node->in[TARN__RELATIVE_KEYS],
            .value_table = node->in[TARN__RELATIVE_VALUES],
            .backward = node->op->id == TARN__OP_RELATIVE_ATTENTION_BACKWARD,
            .tangent = node->op->id == TARN__OP_RELATIVE_ATTENTION_TANGENT,
            .tables = node->dparam[TARN__RELATIVE_DKEYS] || node->dparam[TARN__RELATIVE_DVALUES],
            .most = tarn__distances_of(attr, attr->spec.longest),
            .width = attr->spec.d / attr->spec.heads,
            .group = attr->spec.heads / attr->kv_heads,
            .dtype = node->in[TARN__ATTENTION_QUERIES]->dtype};
  if (!w.kv) w.kv = w.queries;
  if (w.backward) w.b = tarn__attention_backward_of(node);
  w.ld = padded(w.most.count + attr->spec.longest);
  w.product = tarn__gemm_scratch_bound(w.dtype, node->fp32, w.width, w.most.count + attr->spec.longest);
  w.scale = (float)(1.0 / sqrt((double)w.width));
  return w;
}

// Scratch of a thread: vectors and keys, vectors and values [T + longest, width]; blocks of rows; sums of a sentence's
// gradients [T + longest, width]; dropout numbers; scratch of a product.
typedef struct room {
  void *keys, *values;
  float *score, *dweight;
  void *weight, *dscore;
  float *dkeys, *dvalues, *row;
  uint16_t *drop;
  void *product;
} room;

// Sets the arrays, or with NULL only counts their bytes.
static size_t lay_out(room *r, const work *w, char *at) {
  const int64_t longest = w->attr->spec.longest, all = w->most.count + longest;
  const size_t size = tarn__dtype_size(w->dtype), numbers = (size_t)(smaller(BLOCK, longest) * w->ld);
  const size_t list = (size_t)(all * w->width);
  size_t used = 0;
#define TAKE(field, wanted, bytes)                          \
  do {                                                      \
    r->field = (wanted) && at ? (void *)(at + used) : NULL; \
    used += (wanted) ? ((bytes) + 63) & ~(size_t)63 : 0;    \
  } while (0)
  TAKE(keys, true, list * size);
  TAKE(values, true, list * size);
  TAKE(score, true, numbers * sizeof(float));
  TAKE(weight, true, numbers * size);
  TAKE(dweight, w->backward || w->tangent, numbers * sizeof(float));
  TAKE(dscore, w->backward || w->tangent, numbers * size);
  TAKE(dkeys, w->backward, list * sizeof(float));
  TAKE(dvalues, w->backward, list * sizeof(float));
  TAKE(row, true, (size_t)w->ld * sizeof(float));
  TAKE(drop, w->attr->dropout.threshold > 0, tarn__dropout_room(longest) * sizeof(uint16_t));
  TAKE(product, true, w->product);
#undef TAKE
  return used;
}

// Sums of the gradients of both tables, for one share [most.count, width] each.
static size_t table_floats(const work *w) { return (size_t)padded(w->most.count * w->width); }

size_t tarn__cpu_relative_attention_scratch(const tarn__node *node, int threads) {
  const work w = work_of(NULL, node);
  room r;
  return lay_out(&r, &w, NULL) * (size_t)threads + (w.tables ? 2 * SHARES * table_floats(&w) * sizeof(float) : 0);
}

static room room_of(const work *w) {
  room r;
  const size_t bytes = lay_out(&r, w, NULL);
  lay_out(&r, w, (char *)w->node->scratch + bytes * (size_t)omp_get_thread_num());
  return r;
}

static float *share_of(const work *w, int64_t share, int table, int threads) {
  room r;
  char *sums = (char *)w->node->scratch + lay_out(&r, w, NULL) * (size_t)threads;
  return (float *)(void *)sums + (size_t)(2 * share + table) * table_floats(w);
}

// A sentence of n tokens from row `first` on, and head h of its queries.
typedef struct place {
  int64_t first, n, h;
  tarn__distances distances;
} place;

static place place_of(const work *w, int64_t sentence, int64_t h) {
  const int32_t *offset = (const int32_t *)w->node->in[TARN__ATTENTION_QUERY_OFFSETS]->data + sentence;
  const int64_t n = offset[1] - offset[0];
  return (place){offset[0], n, h, tarn__distances_of(w->attr, n)};
}

static void multiply(const work *w, const room *r, tarn__gemm g) {
  g.dtype = w->dtype;
  g.fp32 = w->node->fp32;
  if (g.m > 0) tarn__gemm_run(&g, 1, r->product);
}

// The first key of the sentence, `moved` rows after that of the forward pass.
static int64_t key_at(const work *w, const place *p, int64_t moved) {
  return (moved + p->first) * w->kv->cols + p->h / w->group * w->width;
}

// Fills in the vectors of the distances that occur, followed by the keys or values of the head.
static void fill(const work *w, const place *p, void *list, const tarn__tensor *table, int64_t column) {
  const size_t row = (size_t)w->width * tarn__dtype_size(w->dtype);
  char *to = list;
  if (table)
    memcpy(to, element(table, (w->attr->reach - p->distances.reach) * w->width), row * (size_t)p->distances.count);
  to += row * (size_t)p->distances.count;
  for (int64_t j = 0; j < p->n; j++) memcpy(to + row * (size_t)j, element(w->kv, key_at(w, p, j) + column), row);
}

static int64_t seen(const work *w, const place *p, int64_t i) { return w->attr->spec.causal ? i + 1 : p->n; }

static int64_t query_at(const work *w, const place *p, int64_t i) {
  return (p->first + i) * w->queries->cols + w->attr->spec.query_column + p->h * w->width;
}

static tarn__relative_row row_of(const work *w, const room *r, const place *p, int64_t from, int64_t i,
                                 int64_t columns) {
  const int64_t at = i * w->ld;
  const size_t size = tarn__dtype_size(w->dtype);
  const tarn__dropout dropout = w->attr->dropout;
  tarn__relative_row row = {.place = from + i,
                            .count = seen(w, p, from + i),
                            .reach = p->distances.reach,
                            .distances = p->distances.count,
                            .columns = columns,
                            .scale = w->scale,
                            .score = r->score + at,
                            .weight = (char *)r->weight + (size_t)at * size,
                            .room = r->row,
                            .dtype = w->dtype};
  if (w->backward || w->tangent) row.dweight = r->dweight + at, row.dscore = (char *)r->dscore + (size_t)at * size;
  if (dropout.threshold == 0) return row;
  w->kernels->numbers(r->drop, w->exec, dropout.site, p->first + from + i,
                      tarn__attention_column(p->h, 0) / TARN__DROPOUT_BLOCK, row.count);
  row.drop = r->drop;
  row.threshold = dropout.threshold;
  row.keep_scale = (float)tarn__dropout_scale(dropout);
  return row;
}

// c [rows, T + columns] = rows of queries, or of gradients, from element `at` of a tensor on, times a list.
static void compare(const work *w, const room *r, const place *p, const tarn__tensor *tensor, int64_t at,
                    const void *list, bool vectors, float *c, int64_t rows, int64_t columns) {
  const int64_t skip = vectors ? 0 : p->distances.count;
  multiply(w, r,
           (tarn__gemm){.m = rows,
                        .n = p->distances.count - skip + columns,
                        .k = w->width,
                        .a = element(tensor, at),
                        .b = (const char *)list + (size_t)(skip * w->width) * tarn__dtype_size(w->dtype),
                        .c = c + skip,
                        .lda = tensor->cols,
                        .ldb = w->width,
                        .ldc = w->ld,
                        .transpose_b = true});
}

// rows of a tensor from element `at` on (+)= weights, or dS, times a list.
static void mean(const work *w, const room *r, const place *p, const void *weights, const void *list, bool vectors,
                 const tarn__tensor *tensor, int64_t at, int64_t rows, int64_t columns, bool add) {
  const int64_t skip = vectors ? 0 : p->distances.count;
  const size_t size = tarn__dtype_size(w->dtype);
  multiply(w, r,
           (tarn__gemm){.m = rows,
                        .n = w->width,
                        .k = p->distances.count - skip + columns,
                        .a = (const char *)weights + (size_t)skip * size,
                        .b = (const char *)list + (size_t)(skip * w->width) * size,
                        .c = element(tensor, at),
                        .lda = w->ld,
                        .ldb = w->width,
                        .ldc = tensor->cols,
                        .c_dtype = w->dtype,
                        .accumulate = add});
}

// sums [T + columns, width] += weights, or dS, transposed, times rows of a tensor; for vectors and keys as requested.
static void sum_up(const work *w, const room *r, const place *p, const void *weights, const tarn__tensor *tensor,
                   int64_t at, float *sums, int64_t rows, int64_t columns, bool vectors, bool keys) {
  const int64_t skip = vectors ? 0 : p->distances.count;
  multiply(w, r,
           (tarn__gemm){.m = p->distances.count - skip + (keys ? columns : 0),
                        .n = w->width,
                        .k = rows,
                        .a = (const char *)weights + (size_t)skip * tarn__dtype_size(w->dtype),
                        .b = element(tensor, at),
                        .c = sums + skip * w->width,
                        .lda = w->ld,
                        .ldb = tensor->cols,
                        .ldc = w->width,
                        .transpose_a = true,
                        .accumulate = true});
}

static void fill_lists(const work *w, const room *r, const place *p) {
  fill(w, p, r->keys, w->key_table, w->attr->spec.key_column);
  fill(w, p, r->values, w->value_table, w->attr->spec.value_column);
}

// The weights of a block of rows.
static void weigh_block(const work *w, const room *r, const place *p, int64_t from, int64_t rows, int64_t columns) {
  compare(w, r, p, w->queries, query_at(w, p, from), r->keys, true, r->score, rows, columns);
  for (int64_t i = 0; i < rows; i++) {
    const tarn__relative_row row = row_of(w, r, p, from, i, columns);
    w->kernels->weigh(&row);
  }
}

static void run_forward(const work *w, const room *r, const place *p) {
  const tarn__tensor *y = w->node->out[0];
  fill_lists(w, r, p);
  for (int64_t from = 0; from < p->n; from += BLOCK) {
    const int64_t rows = smaller(BLOCK, p->n - from), columns = seen(w, p, from + rows - 1);
    weigh_block(w, r, p, from, rows, columns);
    mean(w, r, p, r->weight, r->values, w->value_table != NULL, y, (p->first + from) * y->cols + p->h * w->width, rows,
         columns, false);
  }
}

// Queries are read before their gradient, which may overwrite them.
static void block_back(const work *w, const room *r, const place *p, int64_t from, int64_t rows) {
  const int64_t columns = seen(w, p, from + rows - 1), dy = (p->first + from) * w->b.dout->cols + p->h * w->width;
  const bool keys = w->b.dkeys_values != NULL, values = w->value_table != NULL;
  const int64_t q = query_at(w, p, from);
  compare(w, r, p, w->queries, q, r->keys, true, r->score, rows, columns);
  compare(w, r, p, w->b.dout, dy, r->values, values, r->dweight, rows, columns);
  for (int64_t i = 0; i < rows; i++) {
    const tarn__relative_row row = row_of(w, r, p, from, i, columns);
    if (!values) memset(r->dweight + i * w->ld, 0, (size_t)p->distances.count * sizeof(float));
    w->kernels->weigh(&row);
    w->kernels->back(&row);
  }
  sum_up(w, r, p, r->weight, w->b.dout, dy, r->dvalues, rows, columns, w->node->dparam[TARN__RELATIVE_DVALUES] != NULL,
         keys);
  sum_up(w, r, p, r->dscore, w->queries, q, r->dkeys, rows, columns, w->node->dparam[TARN__RELATIVE_DKEYS] != NULL,
         keys);
  if (w->b.dqueries) mean(w, r, p, r->dscore, r->keys, true, w->b.dqueries, q, rows, columns, w->b.add_queries);
}

// Heads of a sentence that share keys and values, whose gradients are summed in scratch.
static void run_backward(const work *w, const room *r, int64_t item) {
  const int64_t sentence = item / w->attr->kv_heads, kv_head = item % w->attr->kv_heads;
  place p = place_of(w, sentence, kv_head * w->group);
  const size_t sums = (size_t)((p.distances.count + p.n) * w->width) * sizeof(float);
  const tarn__tensor *out = w->b.dkeys_values;
  memset(r->dkeys, 0, sums);
  memset(r->dvalues, 0, sums);
  fill_lists(w, r, &p);
  for (; p.h < (kv_head + 1) * w->group; p.h++)
    for (int64_t from = 0; from < p.n; from += BLOCK) block_back(w, r, &p, from, smaller(BLOCK, p.n - from));
  for (int64_t j = 0; out && j < p.n; j++) {
    const int64_t at = (p.first + j) * out->cols + kv_head * w->width, of = (p.distances.count + j) * w->width;
    w->kernels->put(out->data, w->dtype, at + w->attr->spec.key_column, r->dkeys + of, w->width, w->b.add_keys_values);
    w->kernels->put(out->data, w->dtype, at + w->attr->spec.value_column, r->dvalues + of, w->width,
                    w->b.add_keys_values);
  }
}

static int64_t sentences_of(const tarn__node *node) { return node->in[TARN__ATTENTION_QUERY_OFFSETS]->cols - 1; }

static tarn_status each_head(const tarn__exec *exec, const tarn__node *node,
                             void (*run)(const work *w, const room *r, const place *p)) {
  const work w = work_of(exec, node);
  const int64_t heads = w.attr->spec.heads, items = sentences_of(node) * heads;
#pragma omp parallel for schedule(dynamic, 1) num_threads(exec->threads)
  for (int64_t i = 0; i < items; i++) {
    const room r = room_of(&w);
    const place p = place_of(&w, i / heads, i % heads);
    run(&w, &r, &p);
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__cpu_relative_attention(const tarn__exec *exec, const tarn__node *node) {
  return each_head(exec, node, run_forward);
}

// Adds a sentence's gradients of both tables to those of its share.
static void keep_tables(const work *w, const room *r, int64_t item, int64_t share) {
  const place p = place_of(w, item / w->attr->kv_heads, 0);
  const int64_t at = (w->most.reach - p.distances.reach) * w->width, n = p.distances.count * w->width;
  if (p.n == 0) return;
  w->kernels->add(share_of(w, share, 0, w->exec->threads) + at, r->dkeys, n);
  w->kernels->add(share_of(w, share, 1, w->exec->threads) + at, r->dvalues, n);
}

// The gradient of a table: the sums of all shares, in order. Rows beyond those of the distances get nothing.
static void add_shares(const work *w, tarn__param *table, int number, int64_t shares) {
  if (!table) return;
  float *grad = table->training.grad;
  if (!tarn__param_accumulate(table)) memset(grad, 0, (size_t)(table->rows * table->cols) * sizeof *grad);
  grad += (w->attr->reach - w->most.reach) * w->width;
  for (int64_t s = 0; s < shares; s++)
    w->kernels->add(grad, share_of(w, s, number, w->exec->threads), w->most.count * w->width);
}

// --- tangents

// dS of a block of a direction. Rows of tangents begin `moved` after those of the forward pass.
static void push_scores(const work *w, const room *r, const place *p, int64_t from, int64_t rows, int64_t columns,
                        int64_t moved) {
  const tarn__tensor *dq = w->node->in[TARN__RELATIVE_MOVED_QUERIES];
  const tarn__tensor *dkv = w->node->in[TARN__RELATIVE_MOVED_KEYS_VALUES];
  if (dq)
    compare(w, r, p, dq, query_at(w, p, from) + moved * dq->cols, r->keys, true, r->dweight, rows, columns);
  else
    for (int64_t i = 0; i < rows; i++) memset(r->dweight + i * w->ld, 0, (size_t)p->distances.count * sizeof(float));
  if (!dkv) return;
  multiply(w, r,
           (tarn__gemm){.m = rows,
                        .n = columns,
                        .k = w->width,
                        .a = element(w->queries, query_at(w, p, from)),
                        .b = element(dkv, key_at(w, p, moved) + w->attr->spec.key_column),
                        .c = r->dweight + p->distances.count,
                        .lda = w->queries->cols,
                        .ldb = dkv->cols,
                        .ldc = w->ld,
                        .transpose_b = true,
                        .accumulate = dq != NULL});
}

static void push_block(const work *w, const room *r, const place *p, int64_t from, int64_t rows, int64_t moved) {
  const tarn__tensor *y = w->node->out[0], *dkv = w->node->in[TARN__RELATIVE_MOVED_KEYS_VALUES];
  const int64_t columns = seen(w, p, from + rows - 1), at = (moved + p->first + from) * y->cols + p->h * w->width;
  push_scores(w, r, p, from, rows, columns, moved);
  for (int64_t i = 0; i < rows; i++) {
    const tarn__relative_row row = row_of(w, r, p, from, i, columns);
    w->kernels->push(&row);
  }
  mean(w, r, p, r->dscore, r->values, w->value_table != NULL, y, at, rows, columns, false);
  if (!dkv) return;
  multiply(w, r,
           (tarn__gemm){.m = rows,
                        .n = w->width,
                        .k = columns,
                        .a = (const float *)r->weight + p->distances.count,
                        .b = element(dkv, key_at(w, p, moved) + w->attr->spec.value_column),
                        .c = element(y, at),
                        .lda = w->ld,
                        .ldb = dkv->cols,
                        .ldc = y->cols,
                        .accumulate = true});
}

static void run_tangents(const work *w, const room *r, const place *p) {
  fill_lists(w, r, p);
  for (int64_t from = 0; from < p->n; from += BLOCK) {
    const int64_t rows = smaller(BLOCK, p->n - from);
    weigh_block(w, r, p, from, rows, seen(w, p, from + rows - 1));
    for (int64_t moved = 0; moved < w->node->out[0]->rows; moved += w->queries->rows)
      push_block(w, r, p, from, rows, moved);
  }
}

tarn_status tarn__cpu_relative_attention_tangent(const tarn__exec *exec, const tarn__node *node) {
  return each_head(exec, node, run_tangents);
}

tarn_status tarn__cpu_relative_attention_backward(const tarn__exec *exec, const tarn__node *node) {
  const work w = work_of(exec, node);
  const int64_t items = sentences_of(node) * w.attr->kv_heads, shares = w.tables ? smaller(SHARES, items) : items;
#pragma omp parallel for schedule(dynamic, 1) num_threads(exec->threads)
  for (int64_t s = 0; s < shares; s++) {
    const room r = room_of(&w);
    if (w.tables) memset(share_of(&w, s, 0, exec->threads), 0, 2 * table_floats(&w) * sizeof(float));
    for (int64_t item = items * s / shares; item < items * (s + 1) / shares; item++) {
      run_backward(&w, &r, item);
      if (w.tables) keep_tables(&w, &r, item, s);
    }
  }
  add_shares(&w, node->dparam[TARN__RELATIVE_DKEYS], TARN__RELATIVE_DKEYS, shares);
  add_shares(&w, node->dparam[TARN__RELATIVE_DVALUES], TARN__RELATIVE_DVALUES, shares);
  tarn__cpu_attention_zero_unwritten(node);
  return TARN_STATUS_OK;
}
