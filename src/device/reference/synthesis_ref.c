// Plain C reference.
#include <math.h>

#include "device/reference/reference_kernels.h"
#include "ops/synthesis.h"

typedef TARN_REAL real;

// A token: its row of x and source, its position in its sentence, and the rows that it sees, from a list or
// consecutive.
typedef struct token {
  int64_t row, place, count, first;
  const int32_t *list;
} token;

// Keys and values.
typedef struct seen {
  const tarn__tensor *tensor;
  int64_t keys, values;  // columns
} seen;

// Arrays of `longest` numbers.
typedef struct room {
  real *weight, *logit, *score, *dweight;
} room;

static room room_of(const tarn__node *node) {
  const int64_t n = ((const tarn__synthesis_spec *)node->attr)->longest;
  real *at = node->scratch;
  return (room){at, at + n, at + 2 * n, at + 3 * n};
}

static int64_t row_seen(const token *t, int64_t j) { return t->list ? t->list[t->first + j] : t->first + j; }

static real dot(const real *a, const real *b, int64_t n) {
  real sum = 0;
  for (int64_t c = 0; c < n; c++) sum += a[c] * b[c];
  return sum;
}

// The columns of head h of a token's row of the source.
static real *source_of(const tarn__tensor *source, const tarn__node *node, const token *t, int64_t h) {
  return (real *)source->data + t->row * source->cols + h * tarn__synthesis_width(node);
}

static real logit_of(const tarn__node *node, const token *t, int64_t h, int64_t j) {
  const tarn__synthesis_spec *spec = node->attr;
  const tarn__tensor *source = node->in[TARN__SYNTHESIS_SOURCE], *weight = node->in[TARN__SYNTHESIS_WEIGHT];
  const tarn__tensor *bias = node->in[TARN__SYNTHESIS_BIAS];
  if (spec->form == TARN__SYNTHESIS_RANDOM)
    return ((const real *)weight->data)[(h * spec->places + t->place) * weight->cols + j];
  const real *own = source_of(source, node, t, h);
  if (spec->form == TARN__SYNTHESIS_FACTORISED) return own[j % spec->left] * own[spec->left + j / spec->left];
  const int64_t row = h * spec->places + j;
  return dot(own, (const real *)weight->data + row * weight->cols, weight->cols) +
         (bias ? ((const real *)bias->data)[row] : 0);
}

// The weights of logits and scores in the mixture.
static void shares_of(real share[2], const tarn__node *node) {
  const tarn__tensor *mix = node->in[TARN__SYNTHESIS_MIX];
  share[0] = 1;
  share[1] = 0;
  if (!mix) return;
  const real *m = mix->data;
  share[0] = (real)(1.0 / (1.0 + exp((double)(m[1] - m[0]))));
  share[1] = (real)(1.0 / (1.0 + exp((double)(m[0] - m[1]))));
}

// Weights of head h, and the logits and scores that they are computed from.
static void weigh(const room *r, const tarn__node *node, const seen *of, const token *t, int64_t h) {
  const tarn__synthesis_spec *spec = node->attr;
  const tarn__tensor *x = node->in[TARN__SYNTHESIS_X];
  const int64_t width = spec->d / spec->heads;
  const real scale = (real)(1.0 / sqrt((double)width)), *q = (const real *)x->data + t->row * x->cols + h * width;
  const bool scores = node->in[TARN__SYNTHESIS_MIX] != NULL;
  real share[2], most = 0, sum = 0;
  shares_of(share, node);
  for (int64_t j = 0; j < t->count; j++) {
    const real *k = (const real *)of->tensor->data + row_seen(t, j) * of->tensor->cols + of->keys + h * width;
    r->logit[j] = logit_of(node, t, h, j);
    r->score[j] = scores ? scale * dot(q, k, width) : 0;
    r->weight[j] = share[0] * r->logit[j] + share[1] * r->score[j];
    if (j == 0 || r->weight[j] > most) most = r->weight[j];
  }
  for (int64_t j = 0; j < t->count; j++) sum += r->weight[j] = (real)exp((double)(r->weight[j] - most));
  for (int64_t j = 0; j < t->count; j++) r->weight[j] /= sum;
}

static void mean_of(const tarn__node *node, const seen *of, const token *t) {
  const tarn__synthesis_spec *spec = node->attr;
  const int64_t width = spec->d / spec->heads;
  const room r = room_of(node);
  for (int64_t h = 0; h < spec->heads; h++) {
    real *y = (real *)node->out[0]->data + t->row * spec->d + h * width;
    weigh(&r, node, of, t, h);
    for (int64_t c = 0; c < width; c++) y[c] = 0;
    for (int64_t j = 0; j < t->count; j++) {
      const real *v = (const real *)of->tensor->data + row_seen(t, j) * of->tensor->cols + of->values + h * width;
      for (int64_t c = 0; c < width; c++) y[c] += r.weight[j] * v[c];
    }
  }
}

static seen whole(const tarn__node *node) {
  const int64_t d = ((const tarn__synthesis_spec *)node->attr)->d;
  const bool scores = node->in[TARN__SYNTHESIS_MIX] != NULL;
  return (seen){node->in[TARN__SYNTHESIS_X], scores ? d : 0, scores ? 2 * d : 0};
}

// Calls a function for every token of every sentence.
static void each_token(const tarn__node *node, void (*call)(const tarn__node *, const seen *, const token *)) {
  const tarn__tensor *offsets = node->in[TARN__SYNTHESIS_OFFSETS];
  const bool causal = ((const tarn__synthesis_spec *)node->attr)->causal;
  const seen of = whole(node);
  for (int64_t s = 0; s + 1 < offsets->cols; s++) {
    const int64_t begin = ((const int32_t *)offsets->data)[s], n = ((const int32_t *)offsets->data)[s + 1] - begin;
    for (int64_t i = 0; i < n; i++)
      call(node, &of, &(token){.row = begin + i, .place = i, .count = causal ? i + 1 : n, .first = begin});
  }
}

tarn_status TARN__REF(tarn__synthesis_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  each_token(node, mean_of);
  return TARN_STATUS_OK;
}

tarn_status TARN__REF(tarn__synthesis_rows_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const bool scores = node->in[TARN__SYNTHESIS_MIX] != NULL;
  const seen of = {node->in[TARN__SYNTHESIS_CACHE], 0, scores ? ((const tarn__synthesis_spec *)node->attr)->d : 0};
  const int32_t *range = node->in[TARN__SYNTHESIS_RANGES]->data;
  for (int64_t i = 0; i < node->out[0]->rows; i++) {
    const int64_t count = range[2 * i + 1] - range[2 * i];
    mean_of(node, &of,
            &(token){.row = i,
                     .place = count - 1,
                     .count = count,
                     .first = range[2 * i],
                     .list = node->in[TARN__SYNTHESIS_LIST]->data});
  }
  return TARN_STATUS_OK;
}

// Propagates the gradient of logit j of a token.
static void logit_back(const tarn__node *node, const token *t, int64_t h, int64_t j, real g) {
  const tarn__synthesis_spec *spec = node->attr;
  const tarn__tensor *source = node->in[TARN__SYNTHESIS_SOURCE], *weight = node->in[TARN__SYNTHESIS_WEIGHT];
  const tarn__tensor *dsource = node->out[TARN__SYNTHESIS_DSOURCE];
  tarn__param *dweight = node->dparam[TARN__SYNTHESIS_DWEIGHT], *dbias = node->dparam[TARN__SYNTHESIS_DBIAS];
  if (spec->form == TARN__SYNTHESIS_RANDOM) {
    if (dweight) ((real *)dweight->training.grad)[(h * spec->places + t->place) * weight->cols + j] += g;
    return;
  }
  const real *own = source_of(source, node, t, h);
  real *down = dsource ? source_of(dsource, node, t, h) : NULL;
  if (spec->form == TARN__SYNTHESIS_FACTORISED) {
    if (down) down[j % spec->left] += g * own[spec->left + j / spec->left];
    if (down) down[spec->left + j / spec->left] += g * own[j % spec->left];
    return;
  }
  const int64_t row = h * spec->places + j, k = weight->cols;
  for (int64_t c = 0; c < k; c++) {
    if (down) down[c] += g * ((const real *)weight->data)[row * k + c];
    if (dweight) ((real *)dweight->training.grad)[row * k + c] += g * own[c];
  }
  if (dbias) ((real *)dbias->training.grad)[row] += g;
}

static void back_of(const tarn__node *node, const seen *of, const token *t) {
  const tarn__synthesis_spec *spec = node->attr;
  const tarn__tensor *x = node->in[TARN__SYNTHESIS_X], *dx = node->out[TARN__SYNTHESIS_DX];
  const tarn__tensor *dmix = node->out[TARN__SYNTHESIS_DMIX];
  const int64_t width = spec->d / spec->heads;
  const real scale = (real)(1.0 / sqrt((double)width));
  const room r = room_of(node);
  real share[2];
  shares_of(share, node);
  for (int64_t h = 0; h < spec->heads; h++) {
    const real *dy = (const real *)node->in[TARN__SYNTHESIS_DY]->data + t->row * spec->d + h * width;
    const int64_t q = t->row * x->cols + h * width;
    real mean = 0;
    weigh(&r, node, of, t, h);
    for (int64_t j = 0; j < t->count; j++) {
      const int64_t v = row_seen(t, j) * x->cols + of->values + h * width;
      r.dweight[j] = dot(dy, (const real *)x->data + v, width);
      mean += r.weight[j] * r.dweight[j];
      for (int64_t c = 0; dx && c < width; c++) ((real *)dx->data)[v + c] += r.weight[j] * dy[c];
    }
    for (int64_t j = 0; j < t->count; j++) {
      const real g = r.weight[j] * (r.dweight[j] - mean), gs = g * share[1] * scale;
      const int64_t k = row_seen(t, j) * x->cols + of->keys + h * width;
      logit_back(node, t, h, j, g * share[0]);
      if (dmix) ((real *)dmix->data)[0] += g * r.logit[j];
      if (dmix) ((real *)dmix->data)[1] += g * r.score[j];
      for (int64_t c = 0; dx && node->in[TARN__SYNTHESIS_MIX] && c < width; c++) {
        ((real *)dx->data)[q + c] += gs * ((const real *)x->data)[k + c];
        ((real *)dx->data)[k + c] += gs * ((const real *)x->data)[q + c];
      }
    }
  }
}

// The tangent of logit j of a token; `row` is the token's row in the tangent of the source.
static real logit_tangent(const tarn__node *node, const token *t, int64_t row, int64_t h, int64_t j) {
  const tarn__synthesis_spec *spec = node->attr;
  const tarn__tensor *weight = node->in[TARN__SYNTHESIS_WEIGHT], *moved = node->in[TARN__SYNTHESIS_TANGENT_SOURCE];
  if (!moved) return 0;
  const token there = {.row = row};
  const real *own = source_of(node->in[TARN__SYNTHESIS_SOURCE], node, t, h), *d = source_of(moved, node, &there, h);
  if (spec->form == TARN__SYNTHESIS_FACTORISED) {
    const int64_t left = j % spec->left, right = spec->left + j / spec->left;
    return d[left] * own[right] + own[left] * d[right];
  }
  return dot(d, (const real *)weight->data + (h * spec->places + j) * weight->cols, weight->cols);
}

// One token of one direction, whose rows of tangents are `block` rows after those of the forward pass.
static void push_head(const tarn__node *node, const seen *of, const token *t, int64_t block, int64_t h) {
  const tarn__synthesis_spec *spec = node->attr;
  const tarn__tensor *tensor = node->in[TARN__SYNTHESIS_X], *moved = node->in[TARN__SYNTHESIS_TANGENT_X];
  const int64_t width = spec->d / spec->heads, cols = tensor->cols, at = h * width;
  const bool scores = node->in[TARN__SYNTHESIS_MIX] && moved;
  const real scale = (real)(1.0 / sqrt((double)width)), *x = tensor->data;
  const real *dx = moved ? (const real *)moved->data + block * cols : NULL;
  const room r = room_of(node);
  real share[2], mean = 0, *y = (real *)node->out[0]->data + (block + t->row) * spec->d + at;
  shares_of(share, node);
  weigh(&r, node, of, t, h);
  for (int64_t j = 0; j < t->count; j++) {
    const int64_t q = t->row * cols + at, k = row_seen(t, j) * cols + of->keys + at;
    r.dweight[j] = share[0] * logit_tangent(node, t, block + t->row, h, j);
    if (scores) r.dweight[j] += share[1] * scale * (dot(dx + q, x + k, width) + dot(x + q, dx + k, width));
    mean += r.weight[j] * r.dweight[j];
  }
  for (int64_t c = 0; c < width; c++) y[c] = 0;
  for (int64_t j = 0; j < t->count; j++) {
    const int64_t v = row_seen(t, j) * cols + of->values + at;
    for (int64_t c = 0; c < width; c++) y[c] += r.weight[j] * ((r.dweight[j] - mean) * x[v + c] + (dx ? dx[v + c] : 0));
  }
}

static void push_of(const tarn__node *node, const seen *of, const token *t) {
  const tarn__synthesis_spec *spec = node->attr;
  const int64_t rows = node->in[TARN__SYNTHESIS_X]->rows;
  for (int64_t block = 0; block < node->out[0]->rows; block += rows)
    for (int64_t h = 0; h < spec->heads; h++) push_head(node, of, t, block, h);
}

tarn_status TARN__REF(tarn__synthesis_tangent_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  each_token(node, push_of);
  return TARN_STATUS_OK;
}

static void clear(real *values, int64_t n) {
  for (int64_t i = 0; i < n; i++) values[i] = 0;
}

tarn_status TARN__REF(tarn__synthesis_backward_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *dx = node->out[TARN__SYNTHESIS_DX], *dsource = node->out[TARN__SYNTHESIS_DSOURCE];
  const tarn__tensor *dmix = node->out[TARN__SYNTHESIS_DMIX];
  if (dx && !node->in[TARN__SYNTHESIS_PREVIOUS_X]) clear(dx->data, dx->rows * dx->cols);
  if (dsource && !node->in[TARN__SYNTHESIS_PREVIOUS_SOURCE]) clear(dsource->data, dsource->rows * dsource->cols);
  if (dmix) clear(dmix->data, 2);
  for (int i = 0; i < 2; i++) {
    tarn__param *param = node->dparam[i];
    if (param && !tarn__param_accumulate(param)) clear(param->training.grad, param->rows * param->cols);
  }
  each_token(node, back_of);
  if (!dmix) return TARN_STATUS_OK;
  // So far the gradients of both shares; now through their softmax.
  real share[2], *g = dmix->data;
  shares_of(share, node);
  const real mean = share[0] * g[0] + share[1] * g[1];
  for (int i = 0; i < 2; i++) g[i] = share[i] * (g[i] - mean);
  return TARN_STATUS_OK;
}

size_t TARN__REF(tarn__synthesis_ref_scratch)(const tarn__node *node, int threads) {
  (void)threads;
  return 4 * (size_t)((const tarn__synthesis_spec *)node->attr)->longest * sizeof(real);
}
