// Linear attention, one head of one sentence at a time, by products of chunks of its rows:
//
//   within a chunk    A = mask(phi(Q) phi(K)^T),  numerators A V,  denominators the sums of the rows of A
//   of chunks before  numerators phi(Q) S,  denominators phi(Q) . z;  after the chunk S += phi(K)^T V, z += sum phi(K)
//
// Non-causal attention first sums S and z over all rows and computes nothing within chunks. But a sentence of a single
// chunk that is short relative to its features uses pairs of rows, without a mask in that case. The choice depends only
// on a sentence's own length. Sums are fp32; factors of products are in the activations' type.
//
// If phi holds exponents, features are computed from them chunk by chunk, relative to a level for each: the largest
// exponent of all keys, or, in causal attention, of the keys up to the first of the chunk. A key that rises far above
// it ends the chunk, so that a row does not depend on later ones; S is rescaled when levels rise, and U, which runs
// backward, when they fall.
#include <omp.h>
#include <stdatomic.h>
#include <string.h>

#include "device/cpu/attention/linear_attention_kernels.h"
#include "device/cpu/cpu_kernels.h"
#include "device/cpu/gemm/gemm.h"
#include "device/cpu/isa/isa.h"
#include "graph/tangents.h"
#include "ops/linear_attention.h"

enum {
  CHUNK = 128,  // rows
  ROWS = 16     // steps for measuring the scratch of products with fewer rows
};

// The state of a thread for one head of one sentence.
typedef struct work {
  const tarn__node *node;
  const tarn__linear_attention_spec *spec;
  const tarn__linear_attention_kernels *kernels;
  tarn__dtype dtype;
  int64_t row, rows, head;  // first row and number of rows of the sentence
  bool pairs;               // computed only by pairs of rows
  tarn__band q, k;          // features of the rows of a chunk
  bool exponents, rising;   // phi holds exponents; and levels vary along the sentence
  // Scratch. In fp32 the narrow copies are the originals.
  float *scores, *out, *state, *turned, *shifts, *sums;
  float *fixed;  // for tangents: weights of a chunk of the forward pass
  void *weights, *gradients, *narrow;
  // For exponents, in addition to those of the state and of U, which follow these: levels of the chunk; those before
  // each CHUNK of rows; factors of a state; features, and their tangents.
  float *levels, *marks, *factors, *moved_q, *moved_k;
  void *own_q, *own_k;
  char *product;
  size_t product_bytes;
  size_t bytes;  // total
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
  const tarn__dtype dtype = node->in[TARN__LINEAR_ATTENTION_VALUES]->dtype;
  const tarn__band phi = {NULL, dtype, spec->exponents ? m : 2 * spec->heads * m, rows, m},
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

// Lays out the scratch of one thread at `base`, or with NULL determines its size.
static work lay_out(const tarn__node *node, char *base, size_t of_products) {
  const tarn__linear_attention_spec *spec = node->attr;
  work w = {.node = node, .spec = spec, .dtype = node->in[TARN__LINEAR_ATTENTION_VALUES]->dtype};
  const size_t size = tarn__dtype_size(w.dtype);
  const bool push = node->op->id == TARN__OP_LINEAR_ATTENTION_TANGENT;
  const int64_t m = spec->features, width = spec->width, size_of_state = tarn__linear_attention_head_state(spec);
  w.kernels = TARN__TABLE_NOW(tarn__linear_attention_kernels);
  w.scores = take(&w, base, CHUNK * CHUNK, sizeof(float));
  w.out = take(&w, base, CHUNK * larger(m, width), sizeof(float));
  w.state = take(&w, base, size_of_state, sizeof(float));
  w.turned = take(&w, base, size_of_state, sizeof(float));
  w.shifts = take(&w, base, CHUNK, sizeof(float));
  w.sums = take(&w, base, CHUNK, sizeof(float));
  w.gradients = take(&w, base, CHUNK * width, size);
  w.weights = w.dtype == TARN__F32 ? w.scores : take(&w, base, CHUNK * CHUNK, size);
  w.narrow = w.dtype == TARN__F32 ? NULL : take(&w, base, m * width, size);
  if (push) w.fixed = take(&w, base, CHUNK * CHUNK, sizeof(float));
  w.exponents = spec->exponents;
  w.rising = spec->exponents && spec->causal;
  if (w.exponents) {
    w.levels = take(&w, base, m, sizeof(float));
    w.factors = take(&w, base, m, sizeof(float));
    w.own_q = take(&w, base, CHUNK * m, size);
    w.own_k = take(&w, base, CHUNK * m, size);
  }
  if (w.rising && node->op->id == TARN__OP_LINEAR_ATTENTION_BACKWARD)
    w.marks = take(&w, base, (node->in[TARN__LINEAR_ATTENTION_PHI]->rows / CHUNK + 1) * m, sizeof(float));
  if (w.exponents && push) {
    w.moved_q = take(&w, base, CHUNK * m, sizeof(float));
    w.moved_k = take(&w, base, CHUNK * m, sizeof(float));
  }
  w.product_bytes = of_products;
  w.product = take(&w, base, (int64_t)of_products, 1);
  return w;
}

// The last chunk may have any number of rows; multiply() checks the size planned here.
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

// --- inputs and outputs of a head

static tarn__band queries(const work *w, const tarn__tensor *phi, int64_t first, int64_t rows) {
  return tarn__band_of(phi, w->row + first, rows, w->head * w->spec->features, w->spec->features);
}

static tarn__band keys(const work *w, const tarn__tensor *phi, int64_t first, int64_t rows) {
  return tarn__band_of(phi, w->row + first, rows, (w->spec->heads + w->head) * w->spec->features, w->spec->features);
}

static tarn__band values(const work *w, const tarn__tensor *tensor, int64_t first, int64_t rows) {
  return tarn__band_of(tensor, w->row + first, rows, w->spec->value_column + w->head * w->spec->width, w->spec->width);
}

// Of y, or its gradient.
static tarn__band results(const work *w, const tarn__tensor *y, int64_t first, int64_t rows) {
  return tarn__band_of(y, w->row + first, rows, w->head * w->spec->width, w->spec->width);
}

static float *denominators(const work *w, const tarn__tensor *tensor, int64_t first) {
  return (float *)tensor->data + (w->row + first) * w->spec->heads + w->head;
}

static tarn__band floats(float *data, int64_t count, int64_t n) { return (tarn__band){data, TARN__F32, n, count, n}; }

// Converts the scores of a chunk to weights, in rows with a stride of CHUNK.
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

// state += rows^T columns, followed by the sum of the rows, each times its factor.
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

// --- levels

// Levels of a state, or of U.
static float *levels_of(const work *w, float *state) { return state + w->spec->features * (w->spec->width + 1); }

// Loads the initial state of the sentence; false: it is zero, which is not written. Sets levels to those of the state,
// or, if they do not vary along the sentence, to those of all its keys.
static bool begin_state(const work *w, int64_t sentence) {
  const tarn__tensor *start = w->node->in[TARN__LINEAR_ATTENTION_START], *phi = w->node->in[TARN__LINEAR_ATTENTION_PHI];
  const int64_t m = w->spec->features, size = tarn__linear_attention_head_state(w->spec);
  if (start)
    memcpy(w->state, (const float *)start->data + sentence * start->cols + w->head * size,
           (size_t)size * sizeof(float));
  float *own = levels_of(w, w->state);
  const float *z = own - m;
  for (int64_t f = 0; w->exponents && f < m; f++) {
    if (start && z[f] == 0.0f) own[f] = TARN__LEVEL_LOWEST;
    w->levels[f] = start ? own[f] : TARN__LEVEL_LOWEST;
  }
  if (w->exponents && !w->rising) w->kernels->highest(w->levels, keys(w, phi, 0, w->rows), false);
  return start != NULL;
}

// Rescales a state, or U, to the current levels.
static void bring(const work *w, float *state) {
  const int64_t m = w->spec->features, width = w->spec->width;
  float *own = levels_of(w, state);
  if (memcmp(own, w->levels, (size_t)m * sizeof(float)) == 0) return;
  w->kernels->lift(w->factors, w->levels, own, m);
  for (int64_t f = 0; f < m; f++) {
    for (int64_t c = 0; c < width; c++) state[f * width + c] *= w->factors[f];
    state[m * width + f] *= w->factors[f];
  }
  memcpy(own, w->levels, (size_t)m * sizeof(float));
}

static void end_state(work *w, int64_t sentence, bool held) {
  const tarn__tensor *end = w->node->in[TARN__LINEAR_ATTENTION_END];
  const int64_t size = tarn__linear_attention_head_state(w->spec);
  float *to = (float *)end->data + sentence * end->cols + w->head * size;
  if (held && w->rising) bring(w, w->state);
  if (held)
    memcpy(to, w->state, (size_t)size * sizeof(float));
  else
    memset(to, 0, (size_t)size * sizeof(float));
}

// Opens the chunk that begins at row `first`, where levels include all rows before; returns its number of rows.
static int64_t open_chunk(const work *w, int64_t first) {
  const tarn__tensor *phi = w->node->in[TARN__LINEAR_ATTENTION_PHI];
  const int64_t n = smaller(CHUNK - first % CHUNK, w->rows - first);
  if (!w->rising) return n;
  w->kernels->highest(w->levels, keys(w, phi, first, 1), true);
  return 1 + w->kernels->below(keys(w, phi, first + 1, n - 1), w->levels, TARN__LINEAR_ATTENTION_RISE);
}

// Features of the queries and of the keys of a chunk.
static void load_queries(work *w, int64_t first, int64_t n) {
  const int64_t m = w->spec->features;
  w->q = queries(w, w->node->in[TARN__LINEAR_ATTENTION_PHI], first, n);
  if (!w->exponents) return;
  const tarn__band to = {w->own_q, w->dtype, m, n, m};
  w->kernels->raise(to, w->q, w->levels, true);
  w->q = to;
}

static void load_keys(work *w, int64_t first, int64_t n) {
  const int64_t m = w->spec->features;
  w->k = keys(w, w->node->in[TARN__LINEAR_ATTENTION_PHI], first, n);
  if (!w->exponents) return;
  const tarn__band to = {w->own_k, w->dtype, m, n, m};
  w->kernels->raise(to, w->k, w->levels, false);
  w->k = to;
}

// Adds the keys of a chunk to S and z.
static void take_in_keys(work *w, int64_t first, int64_t n, bool held) {
  const tarn__tensor *v = w->node->in[TARN__LINEAR_ATTENTION_VALUES];
  take_in(w, w->state, w->k, values(w, v, first, n), NULL, held);
  if (w->exponents && !held) memcpy(levels_of(w, w->state), w->levels, (size_t)w->spec->features * sizeof(float));
}

// After a chunk, adds its keys to the levels.
static void close_chunk(const work *w, int64_t first, int64_t n) {
  if (w->rising) w->kernels->highest(w->levels, keys(w, w->node->in[TARN__LINEAR_ATTENTION_PHI], first, n), true);
}

// S and z of all rows; false: there are none.
static bool take_in_all(work *w, bool held) {
  for (int64_t first = 0; first < w->rows; first += CHUNK) {
    const int64_t n = smaller(CHUNK, w->rows - first);
    load_keys(w, first, n);
    take_in_keys(w, first, n, held);
    held = true;
  }
  return held;
}

// --- forward

// Numerators and denominators of a chunk.
static void weigh_values(work *w, int64_t first, int64_t n, bool within, bool held) {
  if (within) {
    load_keys(w, first, n);
    score(w, w->q, w->k);
    apply(w, weigh(w, n, NULL, w->sums), values(w, w->node->in[TARN__LINEAR_ATTENTION_VALUES], first, n), false);
  }
  if (!held) return;
  if (w->rising) bring(w, w->state);
  apply_state(w, w->q, narrow(w, w->state), false, within);
  w->kernels->dot(w->sums, w->q, w->state + w->spec->features * w->spec->width, within);
}

static void forward_head(work *w, int64_t sentence) {
  const tarn__tensor *y = w->node->out[TARN__LINEAR_ATTENTION_Y], *end = w->node->in[TARN__LINEAR_ATTENTION_END];
  const tarn__tensor *d = w->node->out[TARN__LINEAR_ATTENTION_DENOMINATORS];
  const int64_t heads = w->spec->heads;
  const bool within = w->spec->causal || w->pairs;
  bool held = begin_state(w, sentence);
  if (!within) held = take_in_all(w, held);
  for (int64_t first = 0, n; first < w->rows; first += n) {
    n = open_chunk(w, first);
    load_queries(w, first, n);
    weigh_values(w, first, n, within, held);
    float *to = denominators(w, d, first);
    for (int64_t i = 0; i < n; i++)
      to[i * heads] = w->sums[i] > TARN__LINEAR_ATTENTION_LEAST ? w->sums[i] : TARN__LINEAR_ATTENTION_LEAST;
    w->kernels->divide(results(w, y, first, n), floats(w->out, n, w->spec->width), to, heads);
    if (!within || (first + n == w->rows && !end)) continue;
    take_in_keys(w, first, n, held);
    close_chunk(w, first, n);
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

// Stores a gradient of features, which is out + by row (NULL: 0), or of their exponents.
static void finish_features(work *w, tarn__band to, const float *by, const float *row, tarn__band features) {
  const tarn__band from = floats(w->out, to.count, to.n);
  if (w->exponents)
    w->kernels->weigh(to, from, by, row, features);
  else
    w->kernels->finish(to, from, by, row, false);
}

// Gradients of the queries of a chunk. weights: P, or without data.
static void query_gradients(work *w, int64_t first, int64_t n, tarn__band g, tarn__band weights, bool held) {
  if (weights.data) apply(w, weights, w->k, false);
  if (held) apply_state(w, g, narrow(w, w->state), true, weights.data != NULL);
  finish_features(w, queries(w, w->node->out[TARN__LINEAR_ATTENTION_DPHI], first, n), w->shifts,
                  held ? w->state + w->spec->features * w->spec->width : NULL, w->q);
}

// Gradients of the keys of a chunk.
static void key_gradients(work *w, int64_t first, int64_t n, tarn__band weights, bool held) {
  if (weights.data) apply(w, weights, w->q, true);
  if (held)
    apply_state(w, values(w, w->node->in[TARN__LINEAR_ATTENTION_VALUES], first, n), narrow(w, w->turned), true,
                weights.data != NULL);
  finish_features(w, keys(w, w->node->out[TARN__LINEAR_ATTENTION_DPHI], first, n), NULL,
                  held ? w->turned + w->spec->features * w->spec->width : NULL, w->k);
}

// Gradients of the values of a chunk; A overwrites P.
static void value_gradients(work *w, int64_t first, int64_t n, tarn__band g, bool within, bool held) {
  const tarn__tensor *dv = w->node->out[TARN__LINEAR_ATTENTION_DVALUES];
  if (within) {
    score(w, w->q, w->k);
    apply(w, weigh(w, n, NULL, NULL), g, true);
  }
  if (held) apply_state(w, w->k, narrow(w, w->turned), false, within);
  w->kernels->finish(values(w, dv, first, n), floats(w->out, n, w->spec->width), NULL, NULL,
                     w->node->in[TARN__LINEAR_ATTENTION_BACK_PREVIOUS] != NULL);
}

// P of a chunk whose gN is g.
static tarn__band chunk_weights(work *w, int64_t first, int64_t n, tarn__band g) {
  score(w, g, values(w, w->node->in[TARN__LINEAR_ATTENTION_VALUES], first, n));
  return weigh(w, n, w->shifts, NULL);
}

// From the first chunk on: the gradients of the queries, and, for a single chunk, all gradients.
static void run_queries(work *w, int64_t sentence, bool within, bool single) {
  const bool wanted = w->node->out[TARN__LINEAR_ATTENTION_DPHI] != NULL;
  bool held = begin_state(w, sentence);
  if (!within && wanted) held = take_in_all(w, held);
  for (int64_t first = 0, n; first < w->rows && (wanted || single); first += n) {
    n = open_chunk(w, first);
    load_queries(w, first, n);
    if (within) load_keys(w, first, n);
    if (held && w->rising) bring(w, w->state);
    const tarn__band g = load_gradients(w, first, n);
    tarn__band weights = {0};
    if (within && wanted) weights = chunk_weights(w, first, n, g);
    if (wanted) query_gradients(w, first, n, g, weights, held);
    if (single && wanted) key_gradients(w, first, n, weights, false);
    if (single && w->node->out[TARN__LINEAR_ATTENTION_DVALUES]) value_gradients(w, first, n, g, true, false);
    if (!within || first + n == w->rows) continue;
    take_in_keys(w, first, n, held);
    close_chunk(w, first, n);
    held = true;
  }
}

// Adds the queries of a chunk to U and u.
static void take_in_queries(work *w, tarn__band g, bool held) {
  take_in(w, w->turned, w->q, g, w->shifts, held);
  if (w->exponents && !held) memcpy(levels_of(w, w->turned), w->levels, (size_t)w->spec->features * sizeof(float));
}

// The gradients of keys and values of a chunk, then its contribution to U and u; held: U contains the later chunks.
static void run_key_chunk(work *w, int64_t first, int64_t n, bool within, bool held) {
  tarn__band g = {0}, weights = {0};
  load_keys(w, first, n);
  if (within) {
    load_queries(w, first, n);
    g = load_gradients(w, first, n);
  }
  if (held && w->rising) bring(w, w->turned);
  if (w->node->out[TARN__LINEAR_ATTENTION_DPHI]) {
    if (within) weights = chunk_weights(w, first, n, g);
    key_gradients(w, first, n, weights, held);
  }
  if (w->node->out[TARN__LINEAR_ATTENTION_DVALUES]) value_gradients(w, first, n, g, within, held);
  if (within && first > 0) take_in_queries(w, g, held);
}

// Stores the levels before each CHUNK of rows.
static void mark_levels(work *w, int64_t sentence) {
  const int64_t m = w->spec->features;
  begin_state(w, sentence);
  for (int64_t first = 0; w->rising && first < w->rows; first += CHUNK) {
    memcpy(w->marks + first / CHUNK * m, w->levels, (size_t)m * sizeof(float));
    close_chunk(w, first, smaller(CHUNK, w->rows - first));
  }
}

// Returns to the levels of the chunk at row `first`, which is within the CHUNK that begins at row `begin`.
static void go_back(work *w, int64_t begin, int64_t first) {
  const int64_t m = w->spec->features;
  if (!w->rising) return;
  memcpy(w->levels, w->marks + begin / CHUNK * m, (size_t)m * sizeof(float));
  close_chunk(w, begin, first + 1 - begin);
}

// From the last chunk on: the gradients of keys and values.
static void run_keys(work *w, int64_t sentence, bool within) {
  bool held = false;
  mark_levels(w, sentence);
  for (int64_t first = 0; !within && first < w->rows; first += CHUNK) {
    const int64_t n = smaller(CHUNK, w->rows - first);
    load_queries(w, first, n);
    take_in_queries(w, load_gradients(w, first, n), held);
    held = true;
  }
  for (int64_t last = w->rows; last > 0;) {
    const int64_t begin = (last - 1) / CHUNK * CHUNK;
    int64_t starts[CHUNK], count = 0;
    for (int64_t first = begin; first < last; count++) {
      go_back(w, begin, first);
      starts[count] = first;
      first += open_chunk(w, first);
    }
    for (int64_t end = last; count-- > 0; end = starts[count]) {
      go_back(w, begin, starts[count]);
      run_key_chunk(w, starts[count], end - starts[count], within, held);
      if (within) held = true;
    }
    last = begin;
  }
}

// Zeroes the other columns of the gradient tensor of the values.
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

// Whether one chunk has all rows.
static bool is_single(const work *w, int64_t sentence) {
  if (w->rows == 0 || w->rows > CHUNK || !w->rising) return w->rows <= CHUNK;
  begin_state(w, sentence);
  return open_chunk(w, 0) == w->rows;
}

static void backward_head(work *w, int64_t sentence) {
  const bool within = w->spec->causal || w->pairs;
  const bool single = within && is_single(w, sentence);
  clear_others(w);
  run_queries(w, sentence, within, single);
  if (!single) run_keys(w, sentence, within);
}

// --- tangents, in F32, one direction after another
//
//   within a chunk    dA = mask(dphi(Q) phi(K)^T + phi(Q) dphi(K)^T),  dN = dA V + A dV,  dD the sums of the rows of dA
//   of chunks before  dN += dphi(Q) S + phi(Q) dS,  dD += dphi(Q) . z + phi(Q) . dz
//   result            dy = (dN - y dD) / D;  after the chunk dS += dphi(K)^T V + phi(K)^T dV,  dz += sum dphi(K)

// The tangents of a chunk in the rows of a direction; without data: constant.
typedef struct moving {
  tarn__band q, k, v;
} moving;

// The tangents of features are those of exponents times the features.
static tarn__band moved_features(const work *w, tarn__band moved, tarn__band features, float *own) {
  if (!w->exponents) return moved;
  const tarn__band to = floats(own, moved.count, moved.n);
  w->kernels->weigh(to, moved, NULL, NULL, features);
  return to;
}

// Call after load_queries() and load_keys(), as requested.
static moving moving_of(const work *w, int64_t direction, int64_t first, int64_t n, bool of_queries, bool of_keys) {
  const tarn__tensor *dphi = w->node->in[TARN__LINEAR_ATTENTION_TANGENT_PHI];
  const tarn__tensor *dv = w->node->in[TARN__LINEAR_ATTENTION_TANGENT_VALUES];
  const int64_t at = direction * w->node->in[TARN__LINEAR_ATTENTION_PHI]->rows + first;
  moving m = {0};
  if (dphi && of_queries) m.q = moved_features(w, queries(w, dphi, at, n), w->q, w->moved_q);
  if (dphi && of_keys) m.k = moved_features(w, keys(w, dphi, at, n), w->k, w->moved_k);
  if (dv) m.v = values(w, dv, at, n);
  return m;
}

// Adds the rows of a chunk to dS and dz.
static void take_in_tangent(work *w, const moving *m, int64_t first, int64_t n, bool add) {
  const tarn__tensor *v = w->node->in[TARN__LINEAR_ATTENTION_VALUES];
  const int64_t features = w->spec->features, width = w->spec->width;
  if (m->k.data)
    take_in(w, w->turned, m->k, values(w, v, first, n), NULL, add);
  else if (!add)
    memset(w->turned + features * width, 0, (size_t)features * sizeof(float));
  if (w->exponents && !add) memcpy(levels_of(w, w->turned), w->levels, (size_t)features * sizeof(float));
  if (!m->v.data) return;
  multiply(w, (factors){.m = features,
                        .n = width,
                        .k = n,
                        .a = w->k,
                        .b = m->v,
                        .c = w->turned,
                        .transpose_a = true,
                        .add = add || m->k.data});
}

// Computes A of a chunk, in separate scratch.
static void fix_weights(work *w) {
  const int64_t n = w->q.count;
  score(w, w->q, w->k);
  w->kernels->mask(floats(w->fixed, n, n), floats(w->scores, n, n), NULL, w->spec->causal, NULL);
}

// out = dN and sums = dD, from within a chunk.
static void push_within(work *w, const moving *m, tarn__band v) {
  const int64_t n = w->q.count;
  if (m->q.data) {
    score(w, m->q, w->k);
    multiply(
        w,
        (factors){.m = n, .n = n, .k = w->q.n, .a = w->q, .b = m->k, .c = w->scores, .transpose_b = true, .add = true});
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

// The same from chunks before, or from all; `add`: added to the results. moved: whether there is a dS.
static void push_state(work *w, const moving *m, bool moved, bool add) {
  const int64_t features = w->spec->features, width = w->spec->width;
  const float *z = w->state + features * width, *dz = w->turned + features * width;
  if (w->rising) bring(w, w->state);
  if (m->q.data) {
    apply_state(w, m->q, narrow(w, w->state), false, add);
    w->kernels->dot(w->sums, m->q, z, add);
    add = true;
  }
  if (!moved) return;
  if (w->rising) bring(w, w->turned);
  apply_state(w, w->q, narrow(w, w->turned), false, add);
  w->kernels->dot(w->sums, w->q, dz, add);
}

// dS and dz of all rows; false: there are none.
static bool take_in_all_tangents(work *w, int64_t direction) {
  bool moved = false;
  for (int64_t first = 0; first < w->rows; first += CHUNK) {
    const int64_t n = smaller(CHUNK, w->rows - first);
    load_keys(w, first, n);
    const moving m = moving_of(w, direction, first, n, false, true);
    take_in_tangent(w, &m, first, n, moved);
    moved = true;
  }
  return moved;
}

// held: for a sentence that is not processed chunk by chunk, S is available.
static void push_direction(work *w, int64_t sentence, int64_t direction, bool within, bool single) {
  const tarn__tensor *phi = w->node->in[TARN__LINEAR_ATTENTION_PHI], *v = w->node->in[TARN__LINEAR_ATTENTION_VALUES];
  const tarn__tensor *d = w->node->in[TARN__LINEAR_ATTENTION_TANGENT_DENOMINATORS];
  const int64_t rows = phi->rows, width = w->spec->width;
  bool held = !within || begin_state(w, sentence), moved = !within && take_in_all_tangents(w, direction);
  for (int64_t first = 0, n; first < w->rows; first += n) {
    n = open_chunk(w, first);
    if (!single) load_queries(w, first, n);
    if (!single && within) load_keys(w, first, n);
    const moving m = moving_of(w, direction, first, n, true, within);
    if (within) {
      if (!single) fix_weights(w);
      push_within(w, &m, values(w, v, first, n));
    }
    if (held) push_state(w, &m, moved, within);
    w->kernels->divide_moved(results(w, w->node->out[0], direction * rows + first, n), floats(w->out, n, width),
                             results(w, w->node->in[TARN__LINEAR_ATTENTION_TANGENT_Y], first, n), w->sums,
                             denominators(w, d, first), w->spec->heads);
    if (!within || first + n == w->rows) continue;
    take_in_keys(w, first, n, held);
    take_in_tangent(w, &m, first, n, moved);
    close_chunk(w, first, n);
    held = moved = true;
  }
}

// Computes what all directions share once: S if it is that of all rows, and the features and A of a single chunk.
static void tangent_head(work *w, int64_t sentence) {
  const tarn__tensor *phi = w->node->in[TARN__LINEAR_ATTENTION_PHI];
  const bool within = w->spec->causal || w->pairs, single = within && w->rows > 0 && is_single(w, sentence);
  if (!single) {
    const bool held = begin_state(w, sentence);
    if (!within) take_in_all(w, held);
  } else {
    begin_state(w, sentence);
    open_chunk(w, 0);
    load_queries(w, 0, w->rows);
    load_keys(w, 0, w->rows);
    fix_weights(w);
  }
  for (int64_t k = 0; k < tarn__tangent_directions(w->node->out[0], phi->rows); k++)
    push_direction(w, sentence, k, within, single);
}

// --- running

// A sentence of n rows has n (features + width) terms by pairs, and 2 features * width by its state.
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
