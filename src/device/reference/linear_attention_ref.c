// Plain C reference: row by row, with the state after each.
#include "device/reference/reference_kernels.h"
#include "graph/tangents.h"
#include "ops/linear_attention.h"

#include <math.h>
#include <string.h>

typedef TARN_REAL real;

// One head, with the strides between rows of features or their exponents, of values, and of results.
typedef struct head {
  const tarn__linear_attention_spec *spec;
  const real *q, *k, *v;
  int64_t phi_step, v_step;
} head;

// Head h, from row `row` on.
static head head_of(const tarn__node *node, const tarn__linear_attention_spec *spec, int64_t row, int64_t h) {
  const tarn__tensor *phi = node->in[TARN__LINEAR_ATTENTION_PHI], *values = node->in[TARN__LINEAR_ATTENTION_VALUES];
  const real *q = (const real *)phi->data + row * phi->cols + h * spec->features;
  const real *v = (const real *)values->data + row * values->cols + spec->value_column + h * spec->width;
  return (head){spec, q, q + spec->heads * spec->features, v, phi->cols, values->cols};
}

static int64_t state_size(const tarn__linear_attention_spec *spec) { return tarn__linear_attention_head_state(spec); }

static real exp_of(real x) { return (real)exp((double)x); }

// The largest exponents of the keys in a state.
static const real *levels_of(const real *state, const tarn__linear_attention_spec *spec) {
  return state + spec->features * (spec->width + 1);
}

// Feature f of row j, relative to a state that includes it.
static real key_of(const head *h, const real *state, int64_t j, int64_t f) {
  const real k = h->k[j * h->phi_step + f];
  return h->spec->exponents ? exp_of(k - levels_of(state, h->spec)[f]) : k;
}

// The maximum subtracted from the exponents of the query of row i.
static real query_top(const head *h, const real *state, int64_t i) {
  real top = -INFINITY;
  for (int64_t f = 0; h->spec->exponents && f < h->spec->features; f++)
    top = (real)fmax((double)top, (double)(h->q[i * h->phi_step + f] + levels_of(state, h->spec)[f]));
  return top;
}

static real query_of(const head *h, const real *state, int64_t i, int64_t f, real top) {
  const real q = h->q[i * h->phi_step + f];
  return h->spec->exponents ? exp_of(q + levels_of(state, h->spec)[f] - top) : q;
}

// Multiplies feature f of a state by a factor.
static void scale_feature(real *state, const tarn__linear_attention_spec *spec, int64_t f, real factor) {
  for (int64_t c = 0; c < spec->width; c++) state[f * spec->width + c] *= factor;
  state[spec->features * spec->width + f] *= factor;
}

// Raises the levels of a state to include row j; `moved`, a tangent or NULL, is scaled in the same way.
static void rise(real *state, real *moved, const head *h, int64_t j) {
  const int64_t m = h->spec->features, width = h->spec->width;
  real *levels = state + m * (width + 1);
  for (int64_t f = 0; f < m; f++) {
    const real k = h->k[j * h->phi_step + f];
    const bool empty = state[m * width + f] == 0;
    const real level = empty || k > levels[f] ? k : levels[f];
    const real factor = empty ? 0 : exp_of(levels[f] - level);
    scale_feature(state, h->spec, f, factor);
    if (moved) scale_feature(moved, h->spec, f, factor);
    levels[f] = level;
  }
}

// Adds row j to the state S [features, width], which is followed by z [features].
static void take_in(real *state, real *moved, const head *h, int64_t j) {
  const int64_t m = h->spec->features, width = h->spec->width;
  if (h->spec->exponents) rise(state, moved, h, j);
  for (int64_t f = 0; f < m; f++) {
    const real k = key_of(h, state, j, f);
    for (int64_t c = 0; c < width; c++) state[f * width + c] += k * h->v[j * h->v_step + c];
    state[m * width + f] += k;
  }
}

// Computes the result of row i; returns its denominator.
static real put_out(real *y, const real *state, const head *h, int64_t i) {
  const int64_t m = h->spec->features, width = h->spec->width;
  const real top = query_top(h, state, i);
  real sum = 0;
  for (int64_t c = 0; c < width; c++) y[c] = 0;
  for (int64_t f = 0; f < m; f++) {
    const real q = query_of(h, state, i, f, top);
    sum += q * state[m * width + f];
    for (int64_t c = 0; c < width; c++) y[c] += q * state[f * width + c];
  }
  if (sum < (real)TARN__LINEAR_ATTENTION_LEAST) sum = (real)TARN__LINEAR_ATTENTION_LEAST;
  for (int64_t c = 0; c < width; c++) y[c] /= sum;
  return sum;
}

// The initial state of sentence s.
static void begin_state(real *state, const tarn__node *node, const tarn__linear_attention_spec *spec, int64_t s,
                        int64_t h) {
  const tarn__tensor *start = node->in[TARN__LINEAR_ATTENTION_START];
  const int64_t size = state_size(spec);
  if (start)
    memcpy(state, (const real *)start->data + s * start->cols + h * size, (size_t)size * sizeof *state);
  else
    memset(state, 0, (size_t)size * sizeof *state);
}

size_t TARN__REF(tarn__linear_attention_ref_scratch)(const tarn__node *node, int threads) {
  (void)threads;
  return (size_t)(2 * state_size(node->attr) + node->in[TARN__LINEAR_ATTENTION_PHI]->rows) * sizeof(real);
}

tarn_status TARN__REF(tarn__linear_attention_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__linear_attention_spec *spec = node->attr;
  const tarn__tensor *offsets = node->in[TARN__LINEAR_ATTENTION_OFFSETS], *end = node->in[TARN__LINEAR_ATTENTION_END];
  const int32_t *offset = offsets->data;
  const int64_t d = spec->heads * spec->width, size = state_size(spec);
  real *y = node->out[TARN__LINEAR_ATTENTION_Y]->data, *sums = node->out[TARN__LINEAR_ATTENTION_DENOMINATORS]->data;
  real *state = node->scratch;
  for (int64_t s = 0; s + 1 < offsets->cols; s++)
    for (int64_t h = 0; h < spec->heads; h++) {
      const head at = head_of(node, spec, offset[s], h);
      const int64_t rows = offset[s + 1] - offset[s];
      begin_state(state, node, spec, s, h);
      for (int64_t j = 0; !spec->causal && j < rows; j++) take_in(state, NULL, &at, j);
      for (int64_t i = 0; i < rows; i++) {
        const int64_t row = offset[s] + i;
        if (spec->causal) take_in(state, NULL, &at, i);
        sums[row * spec->heads + h] = put_out(y + row * d + h * spec->width, state, &at, i);
      }
      if (end) memcpy((real *)end->data + s * end->cols + h * size, state, (size_t)size * sizeof *state);
    }
  return TARN_STATUS_OK;
}

// Gradients of one head of one sentence. Row i of dy, y and D is relative to the sentence.
typedef struct back {
  head at;
  const real *dy, *y, *sums;
  real *dq, *dk, *dv;  // NULL: not wanted
  real *tops;          // of the exponents of the queries
  int64_t rows, d;
} back;

// gD of row i.
static real sum_gradient(const back *b, int64_t i) {
  const tarn__linear_attention_spec *spec = b->at.spec;
  real dot = 0;
  for (int64_t c = 0; c < spec->width; c++) dot += b->dy[i * b->d + c] * b->y[i * b->d + c];
  return -dot / b->sums[i * spec->heads];
}

static void query_gradient(const back *b, const real *state, int64_t i) {
  const int64_t m = b->at.spec->features, width = b->at.spec->width;
  const real sum = b->sums[i * b->at.spec->heads], g = sum_gradient(b, i);
  for (int64_t f = 0; f < m; f++) {
    real d = g * state[m * width + f];
    for (int64_t c = 0; c < width; c++) d += state[f * width + c] * b->dy[i * b->d + c] / sum;
    b->dq[i * b->at.phi_step + f] = b->at.spec->exponents ? d * query_of(&b->at, state, i, f, b->tops[i]) : d;
  }
}

// Adds row i to U and u. With exponents they also have levels: the largest exponents of the queries so far.
static void take_in_gradient(real *turned, const back *b, int64_t i) {
  const int64_t m = b->at.spec->features, width = b->at.spec->width;
  const real sum = b->sums[i * b->at.spec->heads], g = sum_gradient(b, i);
  real *levels = turned + m * (width + 1);
  for (int64_t f = 0; f < m; f++) {
    real q = b->at.q[i * b->at.phi_step + f];
    if (b->at.spec->exponents) {
      const real e = q - b->tops[i], level = e > levels[f] ? e : levels[f];
      scale_feature(turned, b->at.spec, f, exp_of(levels[f] - level));
      levels[f] = level;
      q = exp_of(e - level);
    }
    for (int64_t c = 0; c < width; c++) turned[f * width + c] += q * b->dy[i * b->d + c] / sum;
    turned[m * width + f] += g * q;
  }
}

static void key_gradients(const back *b, const real *turned, int64_t j) {
  const tarn__linear_attention_spec *spec = b->at.spec;
  const int64_t m = spec->features, width = spec->width;
  const real *v = b->at.v + j * b->at.v_step;
  for (int64_t f = 0; f < m; f++) {
    real k = b->at.k[j * b->at.phi_step + f], d = turned[m * width + f];
    if (spec->exponents) k = exp_of(k + levels_of(turned, spec)[f]);
    for (int64_t c = 0; c < width; c++) d += turned[f * width + c] * v[c];
    if (b->dk) b->dk[j * b->at.phi_step + f] = spec->exponents ? d * k : d;
    for (int64_t c = 0; b->dv && c < width; c++) b->dv[j * b->at.v_step + c] += turned[f * width + c] * k;
  }
}

// state and turned: for queries, S and z; for keys, U and u.
static void run_back(const back *b, real *state, real *turned) {
  const tarn__linear_attention_spec *spec = b->at.spec;
  const int64_t plain = spec->features * (spec->width + 1);
  for (int64_t i = 0; i < state_size(spec); i++) turned[i] = i < plain ? 0 : -INFINITY;
  for (int64_t j = 0; !spec->causal && j < b->rows; j++) take_in(state, NULL, &b->at, j);
  for (int64_t i = 0; i < b->rows; i++) {
    if (spec->causal) take_in(state, NULL, &b->at, i);
    b->tops[i] = query_top(&b->at, state, i);
    if (b->dq) query_gradient(b, state, i);
  }
  for (int64_t i = 0; !spec->causal && i < b->rows; i++) take_in_gradient(turned, b, i);
  for (int64_t j = b->rows - 1; j >= 0; j--) {
    if (spec->causal) take_in_gradient(turned, b, j);
    key_gradients(b, turned, j);
  }
}

tarn_status TARN__REF(tarn__linear_attention_backward_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__linear_attention_spec *spec = node->attr;
  const tarn__tensor *offsets = node->in[TARN__LINEAR_ATTENTION_OFFSETS];
  const tarn__tensor *dphi = node->out[TARN__LINEAR_ATTENTION_DPHI];
  const tarn__tensor *dvalues = node->out[TARN__LINEAR_ATTENTION_DVALUES];
  const int32_t *offset = offsets->data;
  const int64_t d = spec->heads * spec->width;
  real *state = node->scratch;
  if (dvalues && !node->in[TARN__LINEAR_ATTENTION_BACK_PREVIOUS])
    memset(dvalues->data, 0, (size_t)(dvalues->rows * dvalues->cols) * sizeof(real));
  for (int64_t s = 0; s + 1 < offsets->cols; s++)
    for (int64_t h = 0; h < spec->heads; h++) {
      const int64_t row = offset[s], at = row * d + h * spec->width;
      back b = {.at = head_of(node, spec, row, h), .rows = offset[s + 1] - row, .d = d};
      b.dy = (const real *)node->in[TARN__LINEAR_ATTENTION_BACK_DY]->data + at;
      b.y = (const real *)node->in[TARN__LINEAR_ATTENTION_BACK_Y]->data + at;
      b.sums = (const real *)node->in[TARN__LINEAR_ATTENTION_BACK_DENOMINATORS]->data + row * spec->heads + h;
      if (dphi) {
        b.dq = (real *)dphi->data + row * dphi->cols + h * spec->features;
        b.dk = b.dq + spec->heads * spec->features;
      }
      if (dvalues) b.dv = (real *)dvalues->data + row * dvalues->cols + spec->value_column + h * spec->width;
      b.tops = state + 2 * state_size(spec);
      begin_state(state, node, spec, s, h);
      run_back(&b, state, state + state_size(spec));
    }
  return TARN_STATUS_OK;
}

// One head of one sentence and one direction. Row i of y, D and dy is relative to the sentence.
typedef struct push {
  head at;
  const real *dq, *dk, *dv;  // NULL: zero
  const real *y, *sums;
  real *dy;
  int64_t rows, d;
} push;

// Adds row j to the tangents of S and z.
static void take_in_tangent(real *moved, const real *state, const push *p, int64_t j) {
  const int64_t m = p->at.spec->features, width = p->at.spec->width;
  const real *v = p->at.v + j * p->at.v_step;
  for (int64_t f = 0; f < m; f++) {
    const real k = key_of(&p->at, state, j, f);
    real dk = p->dk ? p->dk[j * p->at.phi_step + f] : 0;
    if (p->at.spec->exponents) dk *= k;
    for (int64_t c = 0; c < width; c++)
      moved[f * width + c] += dk * v[c] + (p->dv ? k * p->dv[j * p->at.v_step + c] : 0);
    moved[m * width + f] += dk;
  }
}

static void put_out_tangent(const push *p, const real *state, const real *moved, int64_t i) {
  const int64_t m = p->at.spec->features, width = p->at.spec->width;
  const real *y = p->y + i * p->d;
  const real sum = p->sums[i * p->at.spec->heads], top = query_top(&p->at, state, i);
  real of_sum = 0, *dy = p->dy + i * p->d;
  for (int64_t c = 0; c < width; c++) dy[c] = 0;
  for (int64_t f = 0; f < m; f++) {
    const real q = query_of(&p->at, state, i, f, top);
    real dq = p->dq ? p->dq[i * p->at.phi_step + f] : 0;
    if (p->at.spec->exponents) dq *= q;
    of_sum += dq * state[m * width + f] + q * moved[m * width + f];
    for (int64_t c = 0; c < width; c++) dy[c] += dq * state[f * width + c] + q * moved[f * width + c];
  }
  for (int64_t c = 0; c < width; c++) dy[c] = (dy[c] - y[c] * of_sum) / sum;
}

static void run_push(const push *p, real *state, real *moved) {
  const bool causal = p->at.spec->causal;
  memset(moved, 0, (size_t)state_size(p->at.spec) * sizeof *moved);
  for (int64_t j = 0; !causal && j < p->rows; j++)
    take_in(state, moved, &p->at, j), take_in_tangent(moved, state, p, j);
  for (int64_t i = 0; i < p->rows; i++) {
    if (causal) take_in(state, moved, &p->at, i), take_in_tangent(moved, state, p, i);
    put_out_tangent(p, state, moved, i);
  }
}

tarn_status TARN__REF(tarn__linear_attention_tangent_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__linear_attention_spec *spec = node->attr;
  const tarn__tensor *offsets = node->in[TARN__LINEAR_ATTENTION_OFFSETS];
  const tarn__tensor *y = node->in[TARN__LINEAR_ATTENTION_TANGENT_Y];
  const tarn__tensor *dphi = node->in[TARN__LINEAR_ATTENTION_TANGENT_PHI];
  const tarn__tensor *dvalues = node->in[TARN__LINEAR_ATTENTION_TANGENT_VALUES];
  const int32_t *offset = offsets->data;
  const int64_t d = spec->heads * spec->width, sentences = offsets->cols - 1;
  const int64_t directions = tarn__tangent_directions(node->out[0], y->rows);
  real *state = node->scratch;
  for (int64_t n = 0; n < directions * sentences * spec->heads; n++) {
    const int64_t h = n % spec->heads, s = n / spec->heads % sentences, k = n / spec->heads / sentences;
    const int64_t row = offset[s], moved = k * y->rows + row;
    push p = {.at = head_of(node, spec, row, h), .rows = offset[s + 1] - row, .d = d};
    p.y = (const real *)y->data + row * d + h * spec->width;
    p.dy = (real *)node->out[0]->data + moved * d + h * spec->width;
    p.sums = (const real *)node->in[TARN__LINEAR_ATTENTION_TANGENT_DENOMINATORS]->data + row * spec->heads + h;
    if (dphi) {
      p.dq = (const real *)dphi->data + moved * dphi->cols + h * spec->features;
      p.dk = p.dq + spec->heads * spec->features;
    }
    if (dvalues) p.dv = (const real *)dvalues->data + moved * dvalues->cols + spec->value_column + h * spec->width;
    begin_state(state, node, spec, s, h);
    run_push(&p, state, state + state_size(spec));
  }
  return TARN_STATUS_OK;
}

tarn_status TARN__REF(tarn__linear_attention_rows_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__linear_attention_rows_attr *attr = node->attr;
  const tarn__linear_attention_spec *spec = &attr->spec;
  const tarn__tensor *cache = node->in[TARN__LINEAR_ATTENTION_CACHE], *y = node->out[0];
  const int64_t size = state_size(spec);
  for (int64_t i = 0; i < y->rows; i++) {
    const int64_t before = tarn__linear_attention_before(node, i);
    real *state = (real *)cache->data + (attr->first_row + i) * cache->cols;
    if (before >= 0)
      memcpy(state, (const real *)cache->data + before * cache->cols, (size_t)cache->cols * sizeof *state);
    else
      memset(state, 0, (size_t)cache->cols * sizeof *state);
    for (int64_t h = 0; h < spec->heads; h++) {
      const head at = head_of(node, spec, i, h);
      take_in(state + h * size, NULL, &at, 0);
      put_out((real *)y->data + i * y->cols + h * spec->width, state + h * size, &at, 0);
    }
  }
  return TARN_STATUS_OK;
}
