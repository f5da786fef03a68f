// Linear attention, one head of one sentence at a time, by products of chunks of its rows:
//
//   within a chunk    A = mask(phi(Q) phi(K)^T),  numerators A V,  denominators the sums of the rows of A
//   of chunks before  numerators phi(Q) S,  denominators phi(Q) . z;  behind the chunk S += phi(K)^T V, z += sum phi(K)
//
// Attention that is not causal first sums up S and z over all rows and has nothing within chunks; but a sentence of one
// chunk that is short beside its features takes its pairs of rows, without a mask, whichever it is. What a sentence
// does depends on its own length alone. Sums are fp32; factors of products are in the activations' type.
#include <omp.h>
#include <stdatomic.h>
#include <string.h>

#include "device/cpu/cpu_kernels.h"
#include "device/cpu/gemm.h"
#include "device/cpu/isa.h"
#include "device/cpu/linear_attention_kernels.h"
#include "graph/tangents.h"
#include "ops/linear_attention.h"

enum {
  CHUNK = 128,  // rows
  ROWS = 16     // steps in which the scratch of products with fewer of them is looked at
};

// A thread's work on one head of one sentence.
typedef struct work {
  const tarn__node *node;
  const tarn__linear_attention_spec *spec;
  const tarn__linear_attention_kernels *kernels;
  tarn__dtype dtype;
  int64_t row, rows, head;  // first row and number of rows of the sentence
  bool pairs;               // it is computed by the pairs of its rows alone
  // Scratch. In fp32 the narrow copies are what they copy.
  float *scores, *out, *state, *turned, *shifts, *sums;
  float *fixed;  // of tangents: weights of a chunk of the forward pass
  void *weights, *gradients, *narrow;
  char *product;
  size_t product_bytes;
  size_t bytes;  // of all
  bool overrun;
} work;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

// --- products

// C [m, n] (+)= A B of chunks and states.
typedef struct factors {
  int64_t m, n, k;
  tarn__band a, b;
  float *c;
  bool transpose_a, transpose_b, add;
} factors;

static tarn__gemm gemm_of(const tarn__node *node, const factors *f) {
  return (tarn__gemm){.m = f->m,
                      .n = f->n,
                      .k = f->k,
                      .a = f->a.data,
                      .b = f->b.data,
                      .c = f->c,
                      .lda = f->a.step,
                      .ldb = f->b.step,
                      .ldc = f->n,
                      .dtype = f->a.dtype,
                      .c_dtype = TARN__F32,
                      .fp32 = node->fp32,
                      .transpose_a = f->transpose_a,
                      .transpose_b = f->transpose_b,
                      .accumulate = f->add};
}

static void multiply(work *w, factors f) {
  const tarn__gemm g = gemm_of(w->node, &f);
  if (tarn__gemm_scratch(&g, 1) > w->product_bytes)
    w->overrun = true;
  else
    tarn__gemm_run(&g, 1, w->product);
}

// The scratch of all products with chunks of `rows` rows.
static size_t product_bytes(const tarn__node *node, const tarn__linear_attention_spec *spec, int64_t rows) {
  const int64_t m = spec->features, width = spec->width;
  const tarn__dtype dtype = node->in[TARN__LINEAR_ATTENTION_PHI]->dtype;
  const tarn__band phi = {NULL, dtype, 2 * spec->heads * m, rows, m},
                   values = {NULL, dtype, node->in[TARN__LINEAR_ATTENTION_VALUES]->cols, rows, width},
                   weights = {NULL, dtype, CHUNK, rows, rows}, gradients = {NULL, dtype, width, rows, width},
                   state = {NULL, dtype, width, m, width};
  const factors all[] = {{.m = rows, .n = rows, .k = m, .a = phi, .b = phi, .transpose_b = true},
                         {.m = rows, .n = rows, .k = width, .a = gradients, .b = values, .transpose_b = true},
                         {.m = rows, .n = width, .k = rows, .a = weights, .b = values},
                         {.m = rows, .n = width, .k = rows, .a = weights, .b = gradients, .transpose_a = true},
                         {.m = rows, .n = m, .k = rows, .a = weights, .b = phi},
                         {.m = rows, .n = m, .k = rows, .a = weights, .b = phi, .transpose_a = true},
                         {.m = rows, .n = width, .k = m, .a = phi, .b = state},
                         {.m = rows, .n = m, .k = width, .a = gradients, .b = state, .transpose_b = true},
                         {.m = rows, .n = m, .k = width, .a = values, .b = state, .transpose_b = true},
                         {.m = m, .n = width, .k = rows, .a = phi, .b = values, .transpose_a = true},
                         {.m = m, .n = width, .k = rows, .a = phi, .b = gradients, .transpose_a = true}};
  size_t most = 0;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    const tarn__gemm g = gemm_of(node, &all[i]);
    const size_t bytes = tarn__gemm_scratch(&g, 1);
    if (bytes > most) most = bytes;
  }
  return most;
}

// --- scratch

static void *take(work *w, char *base, int64_t count, size_t size) {
  void *at = base ? base + w->bytes : NULL;
  w->bytes += ((size_t)count * size + 63) & ~(size_t)63;
  return at;
}

// The scratch of one thread, at `base`, or NULL to know its size.
static work lay_out(const tarn__node *node, char *base, size_t of_products) {
  const tarn__linear_attention_spec *spec = node->attr;
  work w = {.node = node, .spec = spec, .dtype = node->in[TARN__LINEAR_ATTENTION_PHI]->dtype};
  const size_t size = tarn__dtype_size(w.dtype);
  const int64_t m = spec->features, width = spec->width;
  w.kernels = TARN__TABLE_NOW(tarn__linear_attention_kernels);
  w.scores = take(&w, base, CHUNK * CHUNK, sizeof(float));
  w.out = take(&w, base, CHUNK * larger(m, width), sizeof(float));
  w.state = take(&w, base, m * (width + 1), sizeof(float));
  w.turned = take(&w, base, m * (width + 1), sizeof(float));
  w.shifts = take(&w, base, CHUNK, sizeof(float));
  w.sums = take(&w, base, CHUNK, sizeof(float));
  w.gradients = take(&w, base, CHUNK * width, size);
  w.weights = w.dtype == TARN__F32 ? w.scores : take(&w, base, CHUNK * CHUNK, size);
  w.narrow = w.dtype == TARN__F32 ? NULL : take(&w, base, m * width, size);
  if (node->op->id == TARN__OP_LINEAR_ATTENTION_TANGENT) w.fixed = take(&w, base, CHUNK * CHUNK, sizeof(float));
  w.product_bytes = of_products;
  w.product = take(&w, base, (int64_t)of_products, 1);
  return w;
}

// The last chunk may have any number of rows; multiply() checks what is planned here.
static size_t products_of(const tarn__node *node) {
  size_t most = 0;
  for (int64_t rows = ROWS; rows <= CHUNK; rows += ROWS) {
    const size_t bytes = product_bytes(node, node->attr, rows);
    if (bytes > most) most = bytes;
  }
  return most + most / 4;
}

size_t tarn__cpu_linear_attention_scratch(const tarn__node *node, int threads) {
  return lay_out(node, NULL, products_of(node)).bytes * (size_t)threads;
}

// --- what a head reads and writes

static tarn__band band_of(const tarn__tensor *tensor, int64_t row, int64_t count, int64_t column, int64_t n) {
  char *at = (char *)tensor->data + (size_t)(row * tensor->cols + column) * tarn__dtype_size(tensor->dtype);
  return (tarn__band){at, tensor->dtype, tensor->cols, count, n};
}

static tarn__band queries(const work *w, const tarn__tensor *phi, int64_t first, int64_t rows) {
  return band_of(phi, w->row + first, rows, w->head * w->spec->features, w->spec->features);
}

static tarn__band keys(const work *w, const tarn__tensor *phi, int64_t first, int64_t rows) {
  return band_of(phi, w->row + first, rows, (w->spec->heads + w->head) * w->spec->features, w->spec->features);
}

static tarn__band values(const work *w, const tarn__tensor *tensor, int64_t first, int64_t rows) {
  return band_of(tensor, w->row + first, rows, w->spec->value_column + w->head * w->spec->width, w->spec->width);
}

// Of y, or its gradient.
static tarn__band results(const work *w, const tarn__tensor *y, int64_t first, int64_t rows) {
  return band_of(y, w->row + first, rows, w->head * w->spec->width, w->spec->width);
}

static float *denominators(const work *w, const tarn__tensor *tensor, int64_t first) {
  return (float *)tensor->data + (w->row + first) * w->spec->heads + w->head;
}

static tarn__band floats(float *data, int64_t count, int64_t n) { return (tarn__band){data, TARN__F32, n, count, n}; }

// The scores of a chunk become weights: rows that are CHUNK apart.
static tarn__band weigh(const work *w, int64_t rows, const float *shifts, float *sums) {
  const tarn__band from = floats(w->scores, rows, rows), to = {w->weights, w->dtype, rows, rows, rows};
  w->kernels->mask(to, from, shifts, w->spec->causal, sums);
  return to;
}

// S or U as a factor of products.
static tarn__band narrow(const work *w, float *state) {
  const int64_t m = w->spec->features, width = w->spec->width;
  tarn__band to = {state, w->dtype, width, m, width};
  if (w->dtype == TARN__F32) return to;
  to.data = w->narrow;
  w->kernels->finish(to, floats(state, m, width), NULL, NULL, false);
  return to;
}

// state += rows^T columns, and behind it the sum of the rows, each times its factor.
static void take_in(work *w, float *state, tarn__band rows, tarn__band columns, const float *shifts, bool add) {
  const int64_t m = w->spec->features, width = w->spec->width;
  multiply(
      w,
      (factors){
          .m = m, .n = width, .k = rows.count, .a = rows, .b = columns, .c = state, .transpose_a = true, .add = add});
  w->kernels->sum(state + m * width, rows, shifts, add);
}

// c = scores of the rows of a and of b.
static void score(work *w, tarn__band a, tarn__band b) {
  multiply(w, (factors){.m = a.count, .n = b.count, .k = a.n, .a = a, .b = b, .c = w->scores, .transpose_b = true});
}

// out = weights times rows of b, or their transpose.
static void apply(work *w, tarn__band weights, tarn__band b, bool transposed) {
  multiply(w, (factors){.m = weights.count,
                        .n = b.n,
                        .k = weights.count,
                        .a = weights,
                        .b = b,
                        .c = w->out,
                        .transpose_a = transposed});
}

// out (+)= a S, or a S^T.
static void apply_state(work *w, tarn__band a, tarn__band state, bool transposed, bool add) {
  multiply(w, (factors){.m = a.count,
                        .n = transposed ? state.count : state.n,
                        .k = a.n,
                        .a = a,
                        .b = state,
                        .c = w->out,
                        .transpose_b = transposed,
                        .add = add});
}

// The state that the sentence begins with; false: zeros, which are not written.
static bool begin_state(const work *w, int64_t sentence) {
  const tarn__tensor *start = w->node->in[TARN__LINEAR_ATTENTION_START];
  const int64_t size = w->spec->features * (w->spec->width + 1);
  if (!start) return false;
  memcpy(w->state, (const float *)start->data + sentence * start->cols + w->head * size, (size_t)size * sizeof(float));
  return true;
}

static void end_state(const work *w, int64_t sentence, bool held) {
  const tarn__tensor *end = w->node->in[TARN__LINEAR_ATTENTION_END];
  const int64_t size = w->spec->features * (w->spec->width + 1);
  float *to = (float *)end->data + sentence * end->cols + w->head * size;
  if (held)
    memcpy(to, w->state, (size_t)size * sizeof(float));
  else
    memset(to, 0, (size_t)size * sizeof(float));
}

// --- forward

static void forward_head(work *w, int64_t sentence) {
  const tarn__tensor *phi = w->node->in[TARN__LINEAR_ATTENTION_PHI], *v = w->node->in[TARN__LINEAR_ATTENTION_VALUES];
  const tarn__tensor *y = w->node->out[TARN__LINEAR_ATTENTION_Y], *end = w->node->in[TARN__LINEAR_ATTENTION_END];
  const tarn__tensor *d = w->node->out[TARN__LINEAR_ATTENTION_DENOMINATORS];
  const int64_t heads = w->spec->heads, width = w->spec->width;
  const bool within = w->spec->causal || w->pairs;
  bool held = begin_state(w, sentence);
  for (int64_t first = 0; !within && first < w->rows; first += CHUNK) {
    const int64_t n = smaller(CHUNK, w->rows - first);
    take_in(w, w->state, keys(w, phi, first, n), values(w, v, first, n), NULL, held);
    held = true;
  }
  tarn__band state = {0};
  if (held && !within) state = narrow(w, w->state);
  for (int64_t first = 0; first < w->rows; first += CHUNK) {
    const int64_t n = smaller(CHUNK, w->rows - first);
    const tarn__band q = queries(w, phi, first, n), k = keys(w, phi, first, n), values_here = values(w, v, first, n);
    if (within) {
      score(w, q, k);
      apply(w, weigh(w, n, NULL, w->sums), values_here, false);
    }
    if (held) {
      if (within) state = narrow(w, w->state);
      apply_state(w, q, state, false, within);
      w->kernels->dot(w->sums, q, w->state + w->spec->features * width, within);
    }
    float *to = denominators(w, d, first);
    for (int64_t i = 0; i < n; i++)
      to[i * heads] = w->sums[i] > TARN__LINEAR_ATTENTION_LEAST ? w->sums[i] : TARN__LINEAR_ATTENTION_LEAST;
    w->kernels->divide(results(w, y, first, n), floats(w->out, n, width), to, heads);
    if (!within || (first + n == w->rows && !end)) continue;
    take_in(w, w->state, k, values_here, NULL, held);
    held = true;
  }
  if (end) end_state(w, sentence, held);
}

// --- backward

// gN and gD of a chunk.
static tarn__band load_gradients(const work *w, int64_t first, int64_t n) {
  const tarn__tensor *const *in = (const tarn__tensor *const *)w->node->in;
  const tarn__band dy = results(w, in[TARN__LINEAR_ATTENTION_BACK_DY], first, n);
  const float *sums = denominators(w, in[TARN__LINEAR_ATTENTION_BACK_DENOMINATORS], first);
  const tarn__band to = {w->gradients, w->dtype, w->spec->width, n, w->spec->width};
  w->kernels->divide(to, dy, sums, w->spec->heads);
  w->kernels->shift(w->shifts, dy, results(w, in[TARN__LINEAR_ATTENTION_BACK_Y], first, n), sums, w->spec->heads);
  return to;
}

// Gradients of the queries of a chunk. weights: P, or without data.
static void query_gradients(work *w, int64_t first, int64_t n, tarn__band g, tarn__band weights, bool held) {
  const tarn__tensor *phi = w->node->in[TARN__LINEAR_ATTENTION_PHI], *dphi = w->node->out[TARN__LINEAR_ATTENTION_DPHI];
  const int64_t m = w->spec->features;
  if (weights.data) apply(w, weights, keys(w, phi, first, n), false);
  if (held) apply_state(w, g, narrow(w, w->state), true, weights.data != NULL);
  w->kernels->finish(queries(w, dphi, first, n), floats(w->out, n, m), w->shifts,
                     held ? w->state + m * w->spec->width : NULL, false);
}

// Gradients of the features of the keys of a chunk.
static void key_gradients(work *w, int64_t first, int64_t n, tarn__band weights, bool held) {
  const tarn__tensor *phi = w->node->in[TARN__LINEAR_ATTENTION_PHI], *dphi = w->node->out[TARN__LINEAR_ATTENTION_DPHI];
  const int64_t m = w->spec->features;
  if (weights.data) apply(w, weights, queries(w, phi, first, n), true);
  if (held)
    apply_state(w, values(w, w->node->in[TARN__LINEAR_ATTENTION_VALUES], first, n), narrow(w, w->turned), true,
                weights.data != NULL);
  w->kernels->finish(keys(w, dphi, first, n), floats(w->out, n, m), NULL, held ? w->turned + m * w->spec->width : NULL,
                     false);
}

// Gradients of the values of a chunk; A takes the place of P.
static void value_gradients(work *w, int64_t first, int64_t n, tarn__band g, bool within, bool held) {
  const tarn__tensor *phi = w->node->in[TARN__LINEAR_ATTENTION_PHI];
  const tarn__tensor *dv = w->node->out[TARN__LINEAR_ATTENTION_DVALUES];
  const tarn__band k = keys(w, phi, first, n);
  if (within) {
    score(w, queries(w, phi, first, n), k);
    apply(w, weigh(w, n, NULL, NULL), g, true);
  }
  if (held) apply_state(w, k, narrow(w, w->turned), false, within);
  w->kernels->finish(values(w, dv, first, n), floats(w->out, n, w->spec->width), NULL, NULL,
                     w->node->in[TARN__LINEAR_ATTENTION_BACK_PREVIOUS] != NULL);
}

// P of a chunk, whose gN is g.
static tarn__band chunk_weights(work *w, int64_t first, int64_t n, tarn__band g) {
  score(w, g, values(w, w->node->in[TARN__LINEAR_ATTENTION_VALUES], first, n));
  return weigh(w, n, w->shifts, NULL);
}

// From the first chunk on: the gradients of the queries, and of a single chunk all.
static void run_queries(work *w, int64_t sentence, bool within, bool single) {
  const tarn__tensor *phi = w->node->in[TARN__LINEAR_ATTENTION_PHI], *v = w->node->in[TARN__LINEAR_ATTENTION_VALUES];
  const bool wanted = w->node->out[TARN__LINEAR_ATTENTION_DPHI] != NULL;
  bool held = begin_state(w, sentence);
  for (int64_t first = 0; !within && wanted && first < w->rows; first += CHUNK) {
    const int64_t n = smaller(CHUNK, w->rows - first);
    take_in(w, w->state, keys(w, phi, first, n), values(w, v, first, n), NULL, held);
    held = true;
  }
  for (int64_t first = 0; first < w->rows && (wanted || single); first += CHUNK) {
    const int64_t n = smaller(CHUNK, w->rows - first);
    const tarn__band g = load_gradients(w, first, n);
    tarn__band weights = {0};
    if (within && wanted) weights = chunk_weights(w, first, n, g);
    if (wanted) query_gradients(w, first, n, g, weights, held);
    if (single && wanted) key_gradients(w, first, n, weights, false);
    if (single && w->node->out[TARN__LINEAR_ATTENTION_DVALUES]) value_gradients(w, first, n, g, true, false);
    if (!within || first + n == w->rows) continue;
    take_in(w, w->state, keys(w, phi, first, n), values(w, v, first, n), NULL, held);
    held = true;
  }
}

// From the last chunk on: the gradients of keys and values.
static void run_keys(work *w, bool within) {
  const tarn__tensor *phi = w->node->in[TARN__LINEAR_ATTENTION_PHI];
  bool held = false;
  for (int64_t first = 0; !within && first < w->rows; first += CHUNK) {
    const int64_t n = smaller(CHUNK, w->rows - first);
    const tarn__band g = load_gradients(w, first, n);
    take_in(w, w->turned, queries(w, phi, first, n), g, w->shifts, held);
    held = true;
  }
  for (int64_t last = w->rows; last > 0;) {
    const int64_t first = (last - 1) / CHUNK * CHUNK, n = last - first;
    tarn__band g = {0}, weights = {0};
    if (within) g = load_gradients(w, first, n);
    if (w->node->out[TARN__LINEAR_ATTENTION_DPHI]) {
      if (within) weights = chunk_weights(w, first, n, g);
      key_gradients(w, first, n, weights, held);
    }
    if (w->node->out[TARN__LINEAR_ATTENTION_DVALUES]) value_gradients(w, first, n, g, within, held);
    last = first;
    if (!within || last == 0) continue;
    take_in(w, w->turned, queries(w, phi, first, n), g, w->shifts, held);
    held = true;
  }
}

// What the gradient of the values' tensor has in other columns becomes zero.
static void clear_others(const work *w) {
  const tarn__tensor *dv = w->node->out[TARN__LINEAR_ATTENTION_DVALUES];
  if (w->head > 0 || !dv || w->node->in[TARN__LINEAR_ATTENTION_BACK_PREVIOUS]) return;
  const size_t size = tarn__dtype_size(dv->dtype);
  const int64_t begin = w->spec->value_column, end = begin + w->spec->heads * w->spec->width;
  for (int64_t r = w->row; r < w->row + w->rows; r++) {
    char *row = (char *)dv->data + (size_t)(r * dv->cols) * size;
    memset(row, 0, (size_t)begin * size);
    memset(row + (size_t)end * size, 0, (size_t)(dv->cols - end) * size);
  }
}

static void backward_head(work *w, int64_t sentence) {
  const bool within = w->spec->causal || w->pairs;
  const bool single = within && w->rows <= CHUNK;
  clear_others(w);
  run_queries(w, sentence, within, single);
  if (!single) run_keys(w, within);
}

// --- tangents, in F32, one direction after the other
//
//   within a chunk    dA = mask(dphi(Q) phi(K)^T + phi(Q) dphi(K)^T),  dN = dA V + A dV,  dD the sums of the rows of dA
//   of chunks before  dN += dphi(Q) S + phi(Q) dS,  dD += dphi(Q) . z + phi(Q) . dz
//   result            dy = (dN - y dD) / D;  behind the chunk dS += dphi(K)^T V + phi(K)^T dV,  dz += sum dphi(K)

// What moves, in the rows of a direction; without data: it does not.
typedef struct moving {
  tarn__band q, k, v;
} moving;

static moving moving_of(const work *w, int64_t direction, int64_t first, int64_t n) {
  const tarn__tensor *dphi = w->node->in[TARN__LINEAR_ATTENTION_TANGENT_PHI];
  const tarn__tensor *dv = w->node->in[TARN__LINEAR_ATTENTION_TANGENT_VALUES];
  const int64_t at = direction * w->node->in[TARN__LINEAR_ATTENTION_PHI]->rows + first;
  moving m = {0};
  if (dphi) m.q = queries(w, dphi, at, n), m.k = keys(w, dphi, at, n);
  if (dv) m.v = values(w, dv, at, n);
  return m;
}

// dS and dz, with the rows of a chunk.
static void take_in_tangent(work *w, const moving *m, int64_t first, int64_t n, bool add) {
  const tarn__tensor *phi = w->node->in[TARN__LINEAR_ATTENTION_PHI], *v = w->node->in[TARN__LINEAR_ATTENTION_VALUES];
  const int64_t features = w->spec->features, width = w->spec->width;
  if (m->k.data)
    take_in(w, w->turned, m->k, values(w, v, first, n), NULL, add);
  else if (!add)
    memset(w->turned + features * width, 0, (size_t)features * sizeof(float));
  if (!m->v.data) return;
  multiply(w, (factors){.m = features,
                        .n = width,
                        .k = n,
                        .a = keys(w, phi, first, n),
                        .b = m->v,
                        .c = w->turned,
                        .transpose_a = true,
                        .add = add || m->k.data});
}

// A of a chunk, in scratch of its own.
static void fix_weights(work *w, tarn__band q, tarn__band k) {
  const int64_t n = q.count;
  score(w, q, k);
  w->kernels->mask(floats(w->fixed, n, n), floats(w->scores, n, n), NULL, w->spec->causal, NULL);
}

// out = dN and sums = dD, from within a chunk.
static void push_within(work *w, const moving *m, tarn__band q, tarn__band k, tarn__band v) {
  const int64_t n = q.count;
  if (m->q.data) {
    score(w, m->q, k);
    multiply(w,
             (factors){.m = n, .n = n, .k = q.n, .a = q, .b = m->k, .c = w->scores, .transpose_b = true, .add = true});
    apply(w, weigh(w, n, NULL, w->sums), v, false);
  } else {
    memset(w->sums, 0, (size_t)n * sizeof(float));
  }
  if (m->v.data)
    multiply(w, (factors){.m = n,
                          .n = m->v.n,
                          .k = n,
                          .a = floats(w->fixed, n, n),
                          .b = m->v,
                          .c = w->out,
                          .add = m->q.data != NULL});
}

// The same from chunks before, or of all; `add`: to what is there. moved: dS holds anything.
static void push_state(work *w, const moving *m, tarn__band q, bool moved, bool add) {
  const int64_t features = w->spec->features, width = w->spec->width;
  const float *z = w->state + features * width, *dz = w->turned + features * width;
  if (m->q.data) {
    apply_state(w, m->q, narrow(w, w->state), false, add);
    w->kernels->dot(w->sums, m->q, z, add);
    add = true;
  }
  if (!moved) return;
  apply_state(w, q, narrow(w, w->turned), false, add);
  w->kernels->dot(w->sums, q, dz, add);
}

// held: of a sentence that is not taken chunk by chunk, S is there.
static void push_direction(work *w, int64_t sentence, int64_t direction, bool within, bool single) {
  const tarn__tensor *phi = w->node->in[TARN__LINEAR_ATTENTION_PHI], *v = w->node->in[TARN__LINEAR_ATTENTION_VALUES];
  const tarn__tensor *d = w->node->in[TARN__LINEAR_ATTENTION_TANGENT_DENOMINATORS];
  const int64_t rows = phi->rows, width = w->spec->width;
  bool held = !within || begin_state(w, sentence), moved = false;
  for (int64_t first = 0; !within && first < w->rows; first += CHUNK) {
    const int64_t n = smaller(CHUNK, w->rows - first);
    const moving m = moving_of(w, direction, first, n);
    take_in_tangent(w, &m, first, n, moved);
    moved = true;
  }
  for (int64_t first = 0; first < w->rows; first += CHUNK) {
    const int64_t n = smaller(CHUNK, w->rows - first);
    const tarn__band q = queries(w, phi, first, n), k = keys(w, phi, first, n), values_here = values(w, v, first, n);
    const moving m = moving_of(w, direction, first, n);
    if (within) {
      if (!single) fix_weights(w, q, k);
      push_within(w, &m, q, k, values_here);
    }
    if (held) push_state(w, &m, q, moved, within);
    w->kernels->divide_moved(results(w, w->node->out[0], direction * rows + first, n), floats(w->out, n, width),
                             results(w, w->node->in[TARN__LINEAR_ATTENTION_TANGENT_Y], first, n), w->sums,
                             denominators(w, d, first), w->spec->heads);
    if (!within || first + n == w->rows) continue;
    take_in(w, w->state, k, values_here, NULL, held);
    take_in_tangent(w, &m, first, n, moved);
    held = moved = true;
  }
}

// What all directions share is computed once: S where it is that of all rows, A of a single chunk.
static void tangent_head(work *w, int64_t sentence) {
  const tarn__tensor *phi = w->node->in[TARN__LINEAR_ATTENTION_PHI], *v = w->node->in[TARN__LINEAR_ATTENTION_VALUES];
  const bool within = w->spec->causal || w->pairs, single = within && w->rows <= CHUNK;
  bool held = begin_state(w, sentence);
  for (int64_t first = 0; !within && first < w->rows; first += CHUNK) {
    const int64_t n = smaller(CHUNK, w->rows - first);
    take_in(w, w->state, keys(w, phi, first, n), values(w, v, first, n), NULL, held);
    held = true;
  }
  if (single && w->rows > 0) fix_weights(w, queries(w, phi, 0, w->rows), keys(w, phi, 0, w->rows));
  for (int64_t k = 0; k < tarn__tangent_directions(w->node->out[0], phi->rows); k++)
    push_direction(w, sentence, k, within, single);
}

// --- running

// A sentence of n rows has n (features + width) terms by its pairs, and 2 features * width by its state.
static bool by_pairs(const tarn__linear_attention_spec *spec, int64_t n) {
  return n <= CHUNK && n * (spec->features + spec->width) <= 2 * spec->features * spec->width;
}

static tarn_status run_all(const tarn__exec *exec, const tarn__node *node, void (*head)(work *w, int64_t sentence)) {
  const tarn__linear_attention_spec *spec = node->attr;
  const tarn__tensor *offsets = node->in[TARN__LINEAR_ATTENTION_OFFSETS];
  const int32_t *offset = offsets->data;
  const int64_t items = (offsets->cols - 1) * spec->heads;
  const size_t of_products = products_of(node);
  atomic_bool overrun = false;
#pragma omp parallel num_threads(exec->threads)
  {
    const size_t bytes = lay_out(node, NULL, of_products).bytes;
    work w = lay_out(node, (char *)node->scratch + bytes * (size_t)omp_get_thread_num(), of_products);
#pragma omp for schedule(dynamic, 1)
    for (int64_t item = 0; item < items; item++) {
      const int64_t s = item / spec->heads;
      w.head = item % spec->heads;
      w.row = offset[s];
      w.rows = offset[s + 1] - offset[s];
      w.pairs = by_pairs(spec, w.rows);
      head(&w, s);
    }
    if (w.overrun) atomic_store(&overrun, true);
  }
  TARN_REQUIRE(!atomic_load(&overrun), INTERNAL, "%s: a product needs more scratch than was planned", node->op->name);
  return TARN_STATUS_OK;
}

tarn_status tarn__cpu_linear_attention(const tarn__exec *exec, const tarn__node *node) {
  return run_all(exec, node, forward_head);
}

tarn_status tarn__cpu_linear_attention_backward(const tarn__exec *exec, const tarn__node *node) {
  return run_all(exec, node, backward_head);
}

tarn_status tarn__cpu_linear_attention_tangent(const tarn__exec *exec, const tarn__node *node) {
  return run_all(exec, node, tangent_head);
}

// A head of a row reads and writes all of its state, so that memory is what a step takes.
tarn_status tarn__cpu_linear_attention_rows(const tarn__exec *exec, const tarn__node *node) {
  const tarn__linear_attention_rows_attr *attr = node->attr;
  const tarn__linear_attention_spec *spec = &attr->spec;
  const tarn__tensor *phi = node->in[TARN__LINEAR_ATTENTION_PHI], *v = node->in[TARN__LINEAR_ATTENTION_VALUES];
  const tarn__tensor *cache = node->in[TARN__LINEAR_ATTENTION_CACHE], *y = node->out[0];
  const int64_t m = spec->features, width = spec->width, size = m * (width + 1);
  float *states = cache->data;
#pragma omp parallel for num_threads(exec->threads) schedule(static)
  for (int64_t item = 0; item < y->rows * spec->heads; item++) {
    const int64_t i = item / spec->heads, h = item % spec->heads, before = tarn__linear_attention_before(node, i);
    TARN__TABLE_NOW(tarn__linear_attention_kernels)
        ->step(band_of(y, i, 1, h * width, width).data, band_of(phi, i, 1, h * m, m).data,
               band_of(phi, i, 1, (spec->heads + h) * m, m).data,
               band_of(v, i, 1, spec->value_column + h * width, width).data, phi->dtype,
               before < 0 ? NULL : states + before * cache->cols + h * size,
               states + (attr->first_row + i) * cache->cols + h * size, m, width);
  }
  return TARN_STATUS_OK;
}
