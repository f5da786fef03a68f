// Synthetic attention: the logits, scores and weights of a head of a sentence are computed a block of rows at a time,
// in scratch, by gemm.h and row kernels (synthesis_kernels.h), and nothing of the size of all pairs is written to
// memory. Threads take sentences and heads in turn. If weights by position are trained, a thread takes whole heads and
// processes their sentences in order, because their gradients are summed over sentences; so no result depends on the
// number of threads.
#include <math.h>
#include <omp.h>
#include <string.h>

#include "device/cpu/cpu_kernels.h"
#include "device/cpu/gemm/gemm.h"
#include "device/cpu/isa/isa.h"
#include "device/cpu/isa/row_cpu.h"
#include "device/cpu/mixing/synthesis_kernels.h"
#include "ops/synthesis.h"

enum { BLOCK = TARN__GEMM_FEW };  // rows of weights at a time

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t padded(int64_t n) { return (int64_t)tarn__row_floats(n); }

static void *element(const tarn__tensor *tensor, int64_t at) {
  return (char *)tensor->data + at * (int64_t)tarn__dtype_size(tensor->dtype);
}

// State shared by the work on a node.
typedef struct work {
  const tarn__node *node;
  const tarn__synthesis_spec *spec;
  const tarn__synthesis_kernels *kernels;
  const tarn__tensor *x, *source, *weight;
  const float *bias;
  bool scores, backward, tangent;
  int64_t head, width;    // columns of a head: of values, of the source
  int64_t keys, values;   // columns of x
  float scale, share[2];  // of scores; of logits and scores
  tarn__dtype dtype;
} work;

static work work_of(const tarn__node *node) {
  const tarn__synthesis_spec *spec = node->attr;
  const tarn__tensor *bias = node->in[TARN__SYNTHESIS_BIAS], *mix = node->in[TARN__SYNTHESIS_MIX];
  const tarn__tensor *x = node->in[TARN__SYNTHESIS_X];
  work w = {.node = node,
            .spec = spec,
            .kernels = TARN__TABLE_NOW(tarn__synthesis_kernels),
            .x = x,
            .source = node->in[TARN__SYNTHESIS_SOURCE],
            .weight = node->in[TARN__SYNTHESIS_WEIGHT],
            .bias = bias ? bias->data : NULL,
            .scores = mix != NULL,
            .backward = node->op->id == TARN__OP_SYNTHESIS_BACKWARD,
            .tangent = node->op->id == TARN__OP_SYNTHESIS_TANGENT,
            .head = spec->d / spec->heads,
            .width = tarn__synthesis_width(node),
            .keys = mix ? spec->d : 0,
            .values = mix ? 2 * spec->d : 0,
            .share = {1.0f, 0.0f},
            .dtype = x->dtype};
  w.scale = (float)(1.0 / sqrt((double)w.head));
  return w;
}

// The same with the values of the mix, which only a kernel may read.
static work running_work_of(const tarn__node *node) {
  work w = work_of(node);
  const tarn__tensor *mix = node->in[TARN__SYNTHESIS_MIX];
  if (!mix) return w;
  const float *m = mix->data;
  w.share[0] = (float)(1.0 / (1.0 + exp((double)m[1] - (double)m[0])));
  w.share[1] = (float)(1.0 / (1.0 + exp((double)m[0] - (double)m[1])));
  return w;
}

// Scratch of a thread: blocks [rows, columns] of floats, and of the same size those not needed in every arithmetic;
// sums of keys and values [longest, head]; a row; the scratch of a product.
typedef struct room {
  float *logit, *score, *weight, *dweight, *dlogit;
  void *rounded, *dlogit_rounded, *dscore;  // weight and dlogit in the type of products
  float *dkeys, *dvalues, *row;
  void *product;
} room;

// Sets the arrays, or with NULL only counts their bytes.
static size_t lay_out(room *r, const work *w, char *at) {
  const int64_t longest = w->spec->longest, columns = padded(longest), rows = smaller(BLOCK, longest);
  const size_t block = (size_t)(rows * columns) * sizeof(float), sums = (size_t)(longest * padded(w->head)) * 4;
  const bool bf16 = w->dtype == TARN__BF16;
  size_t used = 0;
#define TAKE(field, wanted, bytes)                          \
  do {                                                      \
    r->field = (wanted) && at ? (void *)(at + used) : NULL; \
    used += (wanted) ? (bytes) : 0;                         \
  } while (0)
  TAKE(logit, true, block);
  TAKE(weight, true, block);
  TAKE(score, w->scores, block);
  TAKE(rounded, bf16, block);
  TAKE(dweight, w->backward || w->tangent, block);
  TAKE(dlogit, w->backward || w->tangent, block);
  TAKE(dlogit_rounded, w->backward && bf16, block);
  TAKE(dscore, w->backward && w->scores, block);
  TAKE(dkeys, w->backward && w->scores, sums);
  TAKE(dvalues, w->backward, sums);
  TAKE(row, true, (size_t)padded(w->width + w->head) * sizeof(float));
#undef TAKE
  r->product = at ? at + used : NULL;
  if (!bf16) r->rounded = r->weight, r->dlogit_rounded = r->dlogit;
  const int64_t narrow = w->head > w->width ? w->head : w->width;
  return used + tarn__gemm_scratch_bound(w->dtype, w->node->fp32, narrow, longest);
}

// A head of a sentence.
typedef struct place {
  int64_t first, n, h;
} place;

static void multiply(const work *w, const room *r, tarn__gemm g) {
  g.dtype = w->dtype;
  g.fp32 = w->node->fp32;
  tarn__gemm_run(&g, 1, r->product);
}

// Logits of rows [from, from + rows) of the place, and of its first `columns` columns.
static void make_logits(const work *w, const room *r, const place *p, int64_t from, int64_t rows, int64_t columns) {
  const tarn__synthesis_spec *spec = w->spec;
  const int64_t ld = padded(spec->longest), first = p->h * spec->places;
  if (spec->form == TARN__SYNTHESIS_DENSE) {
    multiply(w, r,
             (tarn__gemm){.m = rows,
                          .n = columns,
                          .k = w->width,
                          .a = element(w->source, (p->first + from) * w->source->cols + p->h * w->width),
                          .b = element(w->weight, first * w->width),
                          .c = r->logit,
                          .bias = w->bias ? w->bias + first : NULL,
                          .lda = w->source->cols,
                          .ldb = w->width,
                          .ldc = ld,
                          .transpose_b = true});
    return;
  }
  for (int64_t i = 0; i < rows; i++)
    if (spec->form == TARN__SYNTHESIS_RANDOM)
      w->kernels->copy(r->logit + i * ld, w->weight->data, w->weight->dtype, (first + from + i) * spec->places,
                       columns);
    else
      w->kernels->factorised(r->logit + i * ld, w->source->data, w->dtype,
                             (p->first + from + i) * w->source->cols + p->h * w->width, spec->left, columns);
}

static void make_scores(const work *w, const room *r, const place *p, int64_t from, int64_t rows, int64_t columns) {
  const int64_t ld = padded(w->spec->longest), at = p->h * w->head;
  multiply(w, r,
           (tarn__gemm){.m = rows,
                        .n = columns,
                        .k = w->head,
                        .a = element(w->x, (p->first + from) * w->x->cols + at),
                        .b = element(w->x, p->first * w->x->cols + w->keys + at),
                        .c = r->score,
                        .lda = w->x->cols,
                        .ldb = w->x->cols,
                        .ldc = ld,
                        .transpose_b = true});
  for (int64_t i = 0; i < rows; i++) w->kernels->scale(r->score + i * ld, w->scale, columns);
}

static tarn__synthesis_row row_of(const work *w, const room *r, int64_t i, int64_t count, int64_t columns) {
  const int64_t at = i * padded(w->spec->longest);
  return (tarn__synthesis_row){.weight = r->weight + at,
                               .rounded = w->dtype == TARN__BF16 ? (uint16_t *)r->rounded + at : NULL,
                               .logit = r->logit + at,
                               .score = w->scores ? r->score + at : NULL,
                               .share = {w->share[0], w->share[1]},
                               .count = count,
                               .width = padded(columns)};
}

static int64_t seen_by(const work *w, const place *p, int64_t i) { return w->spec->causal ? i + 1 : p->n; }

// The weights of a block of rows. Returns its number of columns.
static int64_t make_weights(const work *w, const room *r, const place *p, int64_t from, int64_t rows) {
  const int64_t columns = seen_by(w, p, from + rows - 1);
  make_logits(w, r, p, from, rows, columns);
  if (w->scores) make_scores(w, r, p, from, rows, columns);
  for (int64_t i = 0; i < rows; i++) {
    const tarn__synthesis_row row = row_of(w, r, i, seen_by(w, p, from + i), columns);
    w->kernels->softmax(&row);
  }
  return columns;
}

static void run_forward(const work *w, const room *r, const place *p) {
  const tarn__tensor *y = w->node->out[0];
  for (int64_t from = 0; from < p->n; from += BLOCK) {
    const int64_t rows = smaller(BLOCK, p->n - from), columns = make_weights(w, r, p, from, rows);
    multiply(w, r,
             (tarn__gemm){.m = rows,
                          .n = w->head,
                          .k = columns,
                          .a = r->rounded,
                          .b = element(w->x, p->first * w->x->cols + w->values + p->h * w->head),
                          .c = element(y, (p->first + from) * y->cols + p->h * w->head),
                          .lda = padded(w->spec->longest),
                          .ldb = w->x->cols,
                          .ldc = y->cols,
                          .c_dtype = w->dtype});
  }
}

// The products that propagate the gradients of a block's logits to source and weights.
static void logits_back(const work *w, const room *r, const place *p, int64_t from, int64_t rows, int64_t columns) {
  const tarn__synthesis_spec *spec = w->spec;
  const tarn__tensor *dsource = w->node->out[TARN__SYNTHESIS_DSOURCE];
  const tarn__param *dweight = w->node->dparam[TARN__SYNTHESIS_DWEIGHT];
  const tarn__param *dbias = w->node->dparam[TARN__SYNTHESIS_DBIAS];
  const bool add = w->node->in[TARN__SYNTHESIS_PREVIOUS_SOURCE] != NULL, dense = spec->form == TARN__SYNTHESIS_DENSE;
  const int64_t ld = padded(spec->longest), first = p->h * spec->places;
  const int64_t own = w->source ? (p->first + from) * w->source->cols + p->h * w->width : 0;
  for (int64_t i = 0; i < rows; i++) {
    const float *dlogit = r->dlogit + i * ld;
    const int64_t count = seen_by(w, p, from + i);
    if (dbias) w->kernels->add((float *)dbias->training.grad + first, dlogit, count);
    if (dweight && !dense)
      w->kernels->add((float *)dweight->training.grad + (first + from + i) * spec->places, dlogit, count);
    if (dsource && !dense)
      w->kernels->factorised_back(dsource->data, w->source->data, w->dtype, own + i * w->source->cols, spec->left,
                                  w->width, dlogit, count, add, r->row);
  }
  if (!dense) return;
  if (dsource)
    multiply(w, r,
             (tarn__gemm){.m = rows,
                          .n = w->width,
                          .k = columns,
                          .a = r->dlogit_rounded,
                          .b = element(w->weight, first * w->width),
                          .c = element(dsource, own),
                          .lda = ld,
                          .ldb = w->width,
                          .ldc = dsource->cols,
                          .c_dtype = w->dtype,
                          .accumulate = add});
  if (dweight)
    multiply(w, r,
             (tarn__gemm){.m = columns,
                          .n = w->width,
                          .k = rows,
                          .a = r->dlogit_rounded,
                          .b = element(w->source, own),
                          .c = (float *)dweight->training.grad + first * w->width,
                          .lda = ld,
                          .ldb = w->source->cols,
                          .ldc = w->width,
                          .transpose_a = true,
                          .accumulate = true});
}

// sums [columns, head] (+)= a^T b, a [rows, columns] and b rows of a tensor from element `at` on.
static void sum_up(const work *w, const room *r, float *sums, const void *a, const tarn__tensor *b, int64_t at,
                   int64_t rows, int64_t columns) {
  multiply(w, r,
           (tarn__gemm){.m = columns,
                        .n = w->head,
                        .k = rows,
                        .a = a,
                        .b = element(b, at),
                        .c = sums,
                        .lda = padded(w->spec->longest),
                        .ldb = b->cols,
                        .ldc = padded(w->head),
                        .transpose_a = true,
                        .accumulate = true});
}

// The gradients of the weights of a block, and of queries, keys and values.
static void block_back(const work *w, const room *r, const place *p, int64_t from, int64_t rows, double sums[2]) {
  const tarn__tensor *dy = w->node->in[TARN__SYNTHESIS_DY], *dx = w->node->out[TARN__SYNTHESIS_DX];
  const int64_t ld = padded(w->spec->longest), columns = make_weights(w, r, p, from, rows), at = p->h * w->head;
  const int64_t own_dy = (p->first + from) * dy->cols + at, own_x = (p->first + from) * w->x->cols + at;
  multiply(w, r,
           (tarn__gemm){.m = rows,
                        .n = columns,
                        .k = w->head,
                        .a = element(dy, own_dy),
                        .b = element(w->x, p->first * w->x->cols + w->values + at),
                        .c = r->dweight,
                        .lda = dy->cols,
                        .ldb = w->x->cols,
                        .ldc = ld,
                        .transpose_b = true});
  for (int64_t i = 0; i < rows; i++) {
    const tarn__synthesis_row row = row_of(w, r, i, seen_by(w, p, from + i), columns);
    tarn__synthesis_back back = {
        .dweight = r->dweight + i * ld, .dlogit = r->dlogit + i * ld, .dtype = w->dtype, .scale = w->scale};
    if (w->dtype == TARN__BF16) back.dlogit_rounded = (uint16_t *)r->dlogit_rounded + i * ld;
    if (w->scores) back.dscore = (char *)r->dscore + (size_t)(i * ld) * tarn__dtype_size(w->dtype);
    w->kernels->softmax_back(&back, &row);
    sums[0] += (double)back.sums[0];
    sums[1] += (double)back.sums[1];
  }
  logits_back(w, r, p, from, rows, columns);
  if (!dx) return;
  sum_up(w, r, r->dvalues, r->rounded, dy, own_dy, rows, columns);
  if (!w->scores) return;
  sum_up(w, r, r->dkeys, r->dscore, w->x, own_x, rows, columns);
  multiply(w, r,
           (tarn__gemm){.m = rows,
                        .n = w->head,
                        .k = columns,
                        .a = r->dscore,
                        .b = element(w->x, p->first * w->x->cols + w->keys + at),
                        .c = element(dx, own_x),
                        .lda = ld,
                        .ldb = w->x->cols,
                        .ldc = dx->cols,
                        .c_dtype = w->dtype,
                        .accumulate = w->node->in[TARN__SYNTHESIS_PREVIOUS_X] != NULL});
}

// Returns sums of the gradients of the shares of logits and scores of the place in `sums`.
static void run_backward(const work *w, const room *r, const place *p, double sums[2]) {
  const tarn__tensor *dx = w->node->out[TARN__SYNTHESIS_DX];
  const bool add = w->node->in[TARN__SYNTHESIS_PREVIOUS_X] != NULL;
  const int64_t ld = padded(w->head);
  memset(r->dvalues, 0, (size_t)(p->n * ld) * sizeof(float));
  if (w->scores) memset(r->dkeys, 0, (size_t)(p->n * ld) * sizeof(float));
  sums[0] = sums[1] = 0.0;
  for (int64_t from = 0; from < p->n; from += BLOCK) block_back(w, r, p, from, smaller(BLOCK, p->n - from), sums);
  for (int64_t i = 0; dx && i < p->n; i++) {
    const int64_t at = (p->first + i) * dx->cols + p->h * w->head;
    w->kernels->put(dx->data, w->dtype, at + w->values, r->dvalues + i * ld, w->head, add);
    if (w->scores) w->kernels->put(dx->data, w->dtype, at + w->keys, r->dkeys + i * ld, w->head, add);
  }
}

// --- tangents, in F32
//
// Each direction: l = share[0] dlogit + share[1] dscore,  dP = P (l - rowsum(P l)),  dy = dP V + P dV.

// dlogit of a block of rows of a direction, whose rows are `moved` after those of the forward pass.
static void push_logits(const work *w, const room *r, const place *p, int64_t from, int64_t rows, int64_t columns,
                        int64_t moved) {
  const tarn__tensor *dsource = w->node->in[TARN__SYNTHESIS_TANGENT_SOURCE];
  const int64_t ld = padded(w->spec->longest), own = (p->first + from) * w->source->cols + p->h * w->width;
  const int64_t there = own + moved * dsource->cols;
  if (w->spec->form == TARN__SYNTHESIS_DENSE) {
    multiply(w, r,
             (tarn__gemm){.m = rows,
                          .n = columns,
                          .k = w->width,
                          .a = element(dsource, there),
                          .b = element(w->weight, p->h * w->spec->places * w->width),
                          .c = r->dlogit,
                          .lda = dsource->cols,
                          .ldb = w->width,
                          .ldc = ld,
                          .transpose_b = true});
    return;
  }
  for (int64_t i = 0; i < rows; i++)
    w->kernels->factorised_push(r->dlogit + i * ld, w->source->data, own + i * w->source->cols, dsource->data,
                                there + i * dsource->cols, w->spec->left, columns);
}

// dweight = share[1] dscore, or zeros.
static void push_scores(const work *w, const room *r, const place *p, int64_t from, int64_t rows, int64_t columns,
                        int64_t moved) {
  const tarn__tensor *dx = w->node->in[TARN__SYNTHESIS_TANGENT_X];
  const int64_t ld = padded(w->spec->longest), cols = w->x->cols, at = p->h * w->head;
  const int64_t q = (p->first + from) * cols + at, k = p->first * cols + w->keys + at;
  if (!w->scores || !dx) {
    for (int64_t i = 0; i < rows; i++) memset(r->dweight + i * ld, 0, (size_t)columns * sizeof(float));
    return;
  }
  tarn__gemm g = {.m = rows,
                  .n = columns,
                  .k = w->head,
                  .a = element(dx, q + moved * cols),
                  .b = element(w->x, k),
                  .c = r->dweight,
                  .lda = cols,
                  .ldb = cols,
                  .ldc = ld,
                  .transpose_b = true};
  multiply(w, r, g);
  g.a = element(w->x, q);
  g.b = element(dx, k + moved * cols);
  g.accumulate = true;
  multiply(w, r, g);
  for (int64_t i = 0; i < rows; i++) w->kernels->scale(r->dweight + i * ld, w->scale * w->share[1], columns);
}

static void push_block(const work *w, const room *r, const place *p, int64_t from, int64_t rows, int64_t columns,
                       int64_t moved) {
  const tarn__tensor *dx = w->node->in[TARN__SYNTHESIS_TANGENT_X], *y = w->node->out[0];
  const bool logits = w->node->in[TARN__SYNTHESIS_TANGENT_SOURCE] != NULL;
  const int64_t ld = padded(w->spec->longest), values = p->first * w->x->cols + w->values + p->h * w->head;
  if (logits) push_logits(w, r, p, from, rows, columns, moved);
  push_scores(w, r, p, from, rows, columns, moved);
  for (int64_t i = 0; i < rows; i++) {
    float *l = r->dweight + i * ld;
    if (logits) {
      w->kernels->scale(r->dlogit + i * ld, w->share[0], columns);
      w->kernels->add(l, r->dlogit + i * ld, columns);
    }
    // Treats the weights as the softmax of l alone, whose gradient has the form of its tangent.
    tarn__synthesis_row row = row_of(w, r, i, seen_by(w, p, from + i), columns);
    row.score = NULL;
    row.share[0] = 1.0f;
    tarn__synthesis_back back = {.dweight = l, .dlogit = r->dlogit + i * ld, .dtype = w->dtype};
    w->kernels->softmax_back(&back, &row);
  }
  tarn__gemm g = {.m = rows,
                  .n = w->head,
                  .k = columns,
                  .a = r->dlogit,
                  .b = element(w->x, values),
                  .c = element(y, (moved + p->first + from) * y->cols + p->h * w->head),
                  .lda = ld,
                  .ldb = w->x->cols,
                  .ldc = y->cols};
  multiply(w, r, g);
  if (!dx) return;
  g.a = r->weight;
  g.b = element(dx, values + moved * w->x->cols);
  g.accumulate = true;
  multiply(w, r, g);
}

static void run_tangents(const work *w, const room *r, const place *p) {
  for (int64_t from = 0; from < p->n; from += BLOCK) {
    const int64_t rows = smaller(BLOCK, p->n - from), columns = make_weights(w, r, p, from, rows);
    for (int64_t moved = 0; moved < w->node->out[0]->rows; moved += w->x->rows)
      push_block(w, r, p, from, rows, columns, moved);
  }
}

// --- nodes

static int64_t sentences_of(const tarn__node *node) { return node->in[TARN__SYNTHESIS_OFFSETS]->cols - 1; }

static place place_of(const tarn__node *node, int64_t sentence, int64_t h) {
  const int32_t *offset = (const int32_t *)node->in[TARN__SYNTHESIS_OFFSETS]->data + sentence;
  return (place){offset[0], offset[1] - offset[0], h};
}

static size_t aligned(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

// Per thread.
static size_t room_bytes(const work *w) {
  room r;
  return aligned(lay_out(&r, w, NULL));
}

// After the scratch of the threads: two sums for each sentence and head.
size_t tarn__cpu_synthesis_scratch(const tarn__node *node, int threads) {
  const work w = work_of(node);
  const size_t sums = w.backward ? (size_t)(sentences_of(node) * w.spec->heads) * 2 * sizeof(double) : 0;
  return room_bytes(&w) * (size_t)threads + sums;
}

static room room_of(const work *w) {
  room r;
  lay_out(&r, w, (char *)w->node->scratch + room_bytes(w) * (size_t)omp_get_thread_num());
  return r;
}

static tarn_status each_place(const tarn__exec *exec, const tarn__node *node,
                              void (*run)(const work *w, const room *r, const place *p)) {
  const work w = running_work_of(node);
  const int64_t places = sentences_of(node) * w.spec->heads;
#pragma omp parallel for schedule(dynamic, 1) num_threads(exec->threads)
  for (int64_t i = 0; i < places; i++) {
    const room r = room_of(&w);
    const place p = place_of(node, i / w.spec->heads, i % w.spec->heads);
    run(&w, &r, &p);
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__cpu_synthesis(const tarn__exec *exec, const tarn__node *node) {
  return each_place(exec, node, run_forward);
}

tarn_status tarn__cpu_synthesis_tangent(const tarn__exec *exec, const tarn__node *node) {
  return each_place(exec, node, run_tangents);
}

// Converts the sums of all places to the gradient of the mix.
static void finish_mix(const work *w, const double *sums, int64_t places) {
  double g[2] = {0.0, 0.0};
  for (int64_t i = 0; i < places; i++) g[0] += sums[2 * i], g[1] += sums[2 * i + 1];
  const double mean = (double)w->share[0] * g[0] + (double)w->share[1] * g[1];
  float *out = w->node->out[TARN__SYNTHESIS_DMIX]->data;
  for (int i = 0; i < 2; i++) out[i] = (float)((double)w->share[i] * (g[i] - mean));
}

tarn_status tarn__cpu_synthesis_backward(const tarn__exec *exec, const tarn__node *node) {
  const work w = running_work_of(node);
  const int64_t heads = w.spec->heads, sentences = sentences_of(node);
  double *sums = (double *)(void *)((char *)node->scratch + room_bytes(&w) * (size_t)exec->threads);
  bool summed = false;
  for (int i = 0; i < 2; i++) {
    tarn__param *param = node->dparam[i];
    if (param && !tarn__param_accumulate(param))
      memset(param->training.grad, 0, (size_t)(param->rows * param->cols) * sizeof(float));
    summed = summed || param;
  }
  // A task is a head with all sentences, or with one.
  const int64_t each = summed ? sentences : 1, tasks = summed ? heads : heads * sentences;
#pragma omp parallel for schedule(dynamic, 1) num_threads(exec->threads)
  for (int64_t i = 0; i < tasks; i++) {
    const room r = room_of(&w);
    for (int64_t j = 0; j < each; j++) {
      const int64_t s = summed ? j : i / heads, h = summed ? i : i % heads;
      const place p = place_of(node, s, h);
      run_backward(&w, &r, &p, sums + 2 * (s * heads + h));
    }
  }
  if (node->out[TARN__SYNTHESIS_DMIX]) finish_mix(&w, sums, heads * sentences);
  return TARN_STATUS_OK;
}
