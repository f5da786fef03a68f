// Plain C reference: one query at a time, each pair with its two vectors.
#include "ops/relative_attention.h"

#include <math.h>
#include <string.h>

#include "device/reference/reference_kernels.h"
#include "graph/tangents.h"

typedef TARN_REAL real;

// One head of one sentence, `n` tokens from row `first` on: the first element of each factor, and the strides of rows.
typedef struct head {
  const tarn__attention_attr *attr;
  const tarn__exec *exec;
  int64_t first, n, h, width, q_step, k_step;
  const real *q, *k, *v, *key_table, *value_table;  // tables: at distance 0; value_table NULL: none
  real *p;                                          // [n]
} head;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// The offset in a table of the vector for keys `distance` after the query.
static int64_t vector_at(const head *a, int64_t distance) {
  const int64_t reach = a->attr->reach;
  return (distance < -reach ? -reach : smaller(distance, reach)) * a->width;
}

static const real *table_of(const tarn__tensor *table) {
  return table ? (const real *)table->data + table->rows / 2 * table->cols : NULL;
}

static head head_of(const tarn__exec *exec, const tarn__node *node, int64_t s, int64_t h) {
  const tarn__attention_attr *attr = node->attr;
  const tarn__attention_spec *spec = &attr->spec;
  const tarn__tensor *queries = node->in[TARN__ATTENTION_QUERIES], *kv = node->in[TARN__ATTENTION_KEYS_VALUES];
  const int32_t *offset = node->in[TARN__ATTENTION_QUERY_OFFSETS]->data;
  const int64_t width = spec->d / spec->heads, first = offset[s];
  if (!kv) kv = queries;
  const real *keys = (const real *)kv->data + first * kv->cols + h / (spec->heads / attr->kv_heads) * width;
  return (head){.attr = attr,
                .exec = exec,
                .first = first,
                .n = offset[s + 1] - first,
                .h = h,
                .width = width,
                .q_step = queries->cols,
                .k_step = kv->cols,
                .q = (const real *)queries->data + first * queries->cols + spec->query_column + h * width,
                .k = keys + spec->key_column,
                .v = keys + spec->value_column,
                .key_table = table_of(node->in[TARN__RELATIVE_KEYS]),
                .value_table = table_of(node->in[TARN__RELATIVE_VALUES]),
                .p = node->scratch};
}

static int64_t seen(const head *a, int64_t i) { return a->attr->spec.causal ? i + 1 : a->n; }

static real scale_of(const head *a) { return (real)(1.0 / sqrt((double)a->width)); }

static void probabilities(const head *a, int64_t i) {
  const real *q = a->q + i * a->q_step;
  real most = 0, sum = 0;
  for (int64_t j = 0; j < seen(a, i); j++) {
    const real *k = a->k + j * a->k_step, *vector = a->key_table + vector_at(a, j - i);
    a->p[j] = 0;
    for (int64_t c = 0; c < a->width; c++) a->p[j] += q[c] * (k[c] + vector[c]);
    a->p[j] *= scale_of(a);
    if (j == 0 || a->p[j] > most) most = a->p[j];
  }
  for (int64_t j = 0; j < seen(a, i); j++) sum += a->p[j] = (real)exp((double)(a->p[j] - most));
  for (int64_t j = 0; j < seen(a, i); j++) a->p[j] /= sum;
}

// The dropout factor of the weight of a pair: 0, or the scale.
static real kept(const head *a, int64_t i, int64_t j) {
  const tarn__dropout dropout = a->attr->dropout;
  if (!tarn__dropout_keeps(dropout, a->exec, a->first + i, tarn__attention_column(a->h, j))) return 0;
  return (real)tarn__dropout_scale(dropout);
}

static real value_of(const head *a, int64_t i, int64_t j, int64_t c) {
  return a->v[j * a->k_step + c] + (a->value_table ? a->value_table[vector_at(a, j - i) + c] : 0);
}

tarn_status TARN__REF(tarn__relative_attention_ref)(const tarn__exec *exec, const tarn__node *node) {
  const tarn__attention_spec *spec = node->attr;
  for (int64_t s = 0; s + 1 < node->in[TARN__ATTENTION_QUERY_OFFSETS]->cols; s++)
    for (int64_t h = 0; h < spec->heads; h++) {
      const head a = head_of(exec, node, s, h);
      for (int64_t i = 0; i < a.n; i++) {
        real *y = (real *)node->out[0]->data + (a.first + i) * spec->d + h * a.width;
        probabilities(&a, i);
        for (int64_t c = 0; c < a.width; c++) y[c] = 0;
        for (int64_t j = 0; j < seen(&a, i); j++) {
          const real weight = kept(&a, i, j) * a.p[j];
          for (int64_t c = 0; c < a.width; c++) y[c] += weight * value_of(&a, i, j, c);
        }
      }
    }
  return TARN_STATUS_OK;
}

// Gradients: of a query [width], of the head's keys and values [n, width], and of the tables, at distance 0; NULL: not
// wanted.
typedef struct gradients {
  real *ds, *dq, *dk, *dv, *dkeys, *dvalues;
} gradients;

static void backward_query(const head *a, const gradients *g, const real *dy, int64_t i) {
  const real *q = a->q + i * a->q_step;
  real sum = 0;
  probabilities(a, i);
  for (int64_t j = 0; j < seen(a, i); j++) {
    g->ds[j] = 0;
    for (int64_t c = 0; c < a->width; c++) g->ds[j] += kept(a, i, j) * dy[c] * value_of(a, i, j, c);
    sum += a->p[j] * g->ds[j];
  }
  for (int64_t c = 0; c < a->width; c++) g->dq[c] = 0;
  for (int64_t j = 0; j < seen(a, i); j++) {
    const real ds = scale_of(a) * a->p[j] * (g->ds[j] - sum), weight = kept(a, i, j) * a->p[j];
    const int64_t at = vector_at(a, j - i);
    for (int64_t c = 0; c < a->width; c++) {
      g->dq[c] += ds * (a->k[j * a->k_step + c] + a->key_table[at + c]);
      g->dk[j * a->width + c] += ds * q[c];
      g->dv[j * a->width + c] += weight * dy[c];
      if (g->dkeys) g->dkeys[at + c] += ds * q[c];
      if (g->dvalues) g->dvalues[at + c] += weight * dy[c];
    }
  }
}

static void put(const tarn__tensor *tensor, int64_t row, int64_t column, const real *values, int64_t width, bool add) {
  real *out = (real *)tensor->data + row * tensor->cols + column;
  for (int64_t c = 0; c < width; c++) out[c] = add ? out[c] + values[c] : values[c];
}

// The gradient of a table at distance 0, cleared if this node is the first to add to it.
static real *table_gradient(tarn__param *table) {
  if (!table) return NULL;
  real *grad = table->training.grad;
  if (!tarn__param_accumulate(table)) memset(grad, 0, (size_t)(table->rows * table->cols) * sizeof *grad);
  return grad + table->rows / 2 * table->cols;
}

tarn_status TARN__REF(tarn__relative_attention_backward_ref)(const tarn__exec *exec, const tarn__node *node) {
  const tarn__attention_attr *attr = node->attr;
  const tarn__attention_spec *spec = &attr->spec;
  const tarn__attention_backward b = tarn__attention_backward_of(node);
  const int64_t width = spec->d / spec->heads, longest = spec->longest, group = spec->heads / attr->kv_heads;
  real *memory = node->scratch;
  const gradients g = {.ds = memory + longest,
                       .dq = memory + 2 * longest,
                       .dk = memory + 2 * longest + width,
                       .dv = memory + 2 * longest + width + longest * width,
                       .dkeys = table_gradient(node->dparam[TARN__RELATIVE_DKEYS]),
                       .dvalues = table_gradient(node->dparam[TARN__RELATIVE_DVALUES])};
  for (int64_t s = 0; s < b.sequences; s++)
    for (int64_t h = 0; h < spec->heads; h++) {
      const head a = head_of(exec, node, s, h);
      const int64_t kv = h / group * width;
      if (h % group == 0) memset(g.dk, 0, (size_t)(2 * longest * width) * sizeof(real));
      for (int64_t i = 0; i < a.n; i++) {
        backward_query(&a, &g, (const real *)b.dout->data + (a.first + i) * spec->d + h * width, i);
        if (b.dqueries) put(b.dqueries, a.first + i, spec->query_column + h * width, g.dq, width, b.add_queries);
      }
      for (int64_t j = 0; b.dkeys_values && h % group == group - 1 && j < a.n; j++) {
        put(b.dkeys_values, a.first + j, spec->key_column + kv, g.dk + j * width, width, b.add_keys_values);
        put(b.dkeys_values, a.first + j, spec->value_column + kv, g.dv + j * width, width, b.add_keys_values);
      }
    }
  TARN__REF(tarn__attention_zero_unwritten)(attr, &b);
  return TARN_STATUS_OK;
}

// Tangents of a head, from its first row and column on; NULL: constant.
typedef struct moves {
  const real *q, *k, *v;
  real *ds;  // [n]
} moves;

// y' of query i: the tangents of its weights, P (dS - rowsum(P dS)), times the values, plus the weights times the
// tangents of the values.
static void push_query(const head *a, const moves *m, real *y, int64_t i) {
  const real *q = a->q + i * a->q_step;
  real sum = 0;
  probabilities(a, i);
  for (int64_t j = 0; j < seen(a, i); j++) {
    const real *k = a->k + j * a->k_step, *vector = a->key_table + vector_at(a, j - i);
    m->ds[j] = 0;
    for (int64_t c = 0; c < a->width; c++) {
      if (m->q) m->ds[j] += m->q[i * a->q_step + c] * (k[c] + vector[c]);
      if (m->k) m->ds[j] += q[c] * m->k[j * a->k_step + c];
    }
    m->ds[j] *= scale_of(a);
    sum += a->p[j] * m->ds[j];
  }
  for (int64_t c = 0; c < a->width; c++) y[c] = 0;
  for (int64_t j = 0; j < seen(a, i); j++) {
    const real moved = kept(a, i, j) * a->p[j] * (m->ds[j] - sum), weight = kept(a, i, j) * a->p[j];
    for (int64_t c = 0; c < a->width; c++)
      y[c] += moved * value_of(a, i, j, c) + (m->v ? weight * m->v[j * a->k_step + c] : 0);
  }
}

tarn_status TARN__REF(tarn__relative_attention_tangent_ref)(const tarn__exec *exec, const tarn__node *node) {
  const tarn__attention_spec *spec = node->attr;
  const tarn__tensor *queries = node->in[TARN__ATTENTION_QUERIES], *kv = node->in[TARN__ATTENTION_KEYS_VALUES];
  const tarn__tensor *dq = node->in[TARN__RELATIVE_MOVED_QUERIES], *dkv = node->in[TARN__RELATIVE_MOVED_KEYS_VALUES];
  const int64_t rows = queries->rows, directions = tarn__tangent_directions(node->out[0], rows);
  for (int64_t s = 0; s + 1 < node->in[TARN__ATTENTION_QUERY_OFFSETS]->cols; s++)
    for (int64_t h = 0; h < spec->heads; h++) {
      const head a = head_of(exec, node, s, h);
      for (int64_t d = 0; d < directions; d++) {
        // At the same offset in its block of rows as the operand in its tensor.
        const real *q = dq ? (const real *)dq->data + d * rows * dq->cols : NULL;
        const real *both = dkv ? (const real *)dkv->data + d * rows * dkv->cols : NULL;
        const moves m = {.q = q ? q + (a.q - (const real *)queries->data) : NULL,
                         .k = both ? both + (a.k - (const real *)kv->data) : NULL,
                         .v = both ? both + (a.v - (const real *)kv->data) : NULL,
                         .ds = a.p + spec->longest};
        for (int64_t i = 0; i < a.n; i++)
          push_query(&a, &m, (real *)node->out[0]->data + (d * rows + a.first + i) * spec->d + h * a.width, i);
      }
    }
  return TARN_STATUS_OK;
}
