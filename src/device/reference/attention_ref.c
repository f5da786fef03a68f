// Plain C reference: one query at a time.
#include "device/reference/reference_kernels.h"
#include "ops/attention.h"

#include <math.h>
#include <string.h>

typedef TARN_REAL real;

// How scores are computed from the products of query i of a sequence and its keys.
typedef struct scores {
  real scale, slope;   // slope: subtracted for each step of distance
  const real *biases;  // at distance 0; NULL: none
  int64_t reach;       // of the biases
  int64_t i;
} scores;

// The index of the bias of key j.
static int64_t clipped(const scores *of, int64_t j) {
  const int64_t n = j - of->i;
  return n < -of->reach ? -of->reach : n > of->reach ? of->reach : n;
}

// Softmax of the scores of one query against keys k[0], k[step], ..., into p[0..count).
static void probabilities(real *p, const real *q, const real *k, int64_t step, int64_t count, int64_t width,
                          scores of) {
  real most = 0, sum = 0;
  for (int64_t j = 0; j < count; j++) {
    p[j] = 0;
    for (int64_t c = 0; c < width; c++) p[j] += of.scale * q[c] * k[j * step + c];
    p[j] -= of.slope * (real)(j < of.i ? of.i - j : j - of.i);
    if (of.biases) p[j] += of.biases[clipped(&of, j)];
    if (j == 0 || p[j] > most) most = p[j];
  }
  for (int64_t j = 0; j < count; j++) {
    p[j] = (real)exp((double)(p[j] - most));
    sum += p[j];
  }
  for (int64_t j = 0; j < count; j++) p[j] /= sum;
}

// Dropout of the weights of one head.
typedef struct mask {
  tarn__dropout dropout;
  const tarn__exec *exec;
  int64_t head;
} mask;

// Whether the weight of query row `row` and key j is kept.
static bool keeps(const mask *m, int64_t row, int64_t j) {
  return tarn__dropout_keeps(m->dropout, m->exec, row, tarn__attention_column(m->head, j));
}

tarn_status TARN__REF(tarn__attention_ref)(const tarn__exec *exec, const tarn__node *node) {
  const tarn__attention_attr *attr = node->attr;
  const tarn__attention_spec *spec = &attr->spec;
  const real keep_scale = (real)tarn__dropout_scale(attr->dropout);
  const tarn__tensor *queries = node->in[TARN__ATTENTION_QUERIES], *keys = node->in[TARN__ATTENTION_KEYS_VALUES];
  const int32_t *q_at = node->in[TARN__ATTENTION_QUERY_OFFSETS]->data;
  const int32_t *k_at = node->in[TARN__ATTENTION_KEY_OFFSETS]->data;
  const int64_t width = spec->d / spec->heads, step = keys->cols, group = spec->heads / attr->kv_heads;
  const real scale = (real)(1.0 / sqrt((double)width));
  const tarn__tensor *biases = node->in[TARN__ATTENTION_BIASES];
  real *p = node->scratch;
  double slopes[TARN__ATTENTION_HEADS];
  tarn__attention_slopes(spec, slopes);
  for (int64_t s = 0; s + 1 < node->in[TARN__ATTENTION_QUERY_OFFSETS]->cols; s++)
    for (int64_t i = q_at[s]; i < q_at[s + 1]; i++)
      for (int64_t h = 0; h < spec->heads; h++) {
        const real *q = (const real *)queries->data + i * queries->cols + spec->query_column + h * width;
        const real *k = (const real *)keys->data + k_at[s] * step + spec->key_column + h / group * width;
        const real *v = (const real *)keys->data + k_at[s] * step + spec->value_column + h / group * width;
        const real *bias = biases ? (const real *)biases->data + h * biases->cols + attr->reach : NULL;
        real *out = (real *)node->out[0]->data + i * spec->d + h * width;
        const int64_t count = spec->causal ? i - q_at[s] + 1 : k_at[s + 1] - k_at[s];
        probabilities(p, q, k, step, count, width, (scores){scale, (real)slopes[h], bias, attr->reach, i - q_at[s]});
        for (int64_t c = 0; c < width; c++) out[c] = 0;
        const mask m = {attr->dropout, exec, h};
        for (int64_t j = 0; j < count; j++) {
          const real weight = keeps(&m, i, j) ? keep_scale * p[j] : 0;
          for (int64_t c = 0; c < width; c++) out[c] += weight * v[j * step + c];
        }
      }
  return TARN_STATUS_OK;
}

// One head of one sequence. dk and dv are [keys, width]; in `dq` the gradient overwrites the query.
typedef struct head {
  const real *q, *k, *v, *dout;                                // first row of the sequence, first column of the head
  int64_t q_step, k_step, out_step, first, rows, keys, width;  // first: row of the first query
  bool causal;
  real slope;
  const real *biases;  // as in scores
  int64_t reach;
  real *dbiases;  // at distance 0; NULL: not wanted
  mask mask;
  real *p, *ds, *dq, *dk, *dv;
} head;

static void backward_query(const head *a, int64_t i, real scale) {
  const real *q = a->q + i * a->q_step, *dout = a->dout + i * a->out_step;
  const int64_t count = a->causal ? i + 1 : a->keys, width = a->width;
  const real keep_scale = (real)tarn__dropout_scale(a->mask.dropout);
  real sum = 0;
  const scores how = {scale, a->slope, a->biases, a->reach, i};
  probabilities(a->p, q, a->k, a->k_step, count, width, how);
  for (int64_t j = 0; j < count; j++) {
    a->ds[j] = 0;
    if (!keeps(&a->mask, a->first + i, j)) continue;
    for (int64_t c = 0; c < width; c++) a->ds[j] += keep_scale * dout[c] * a->v[j * a->k_step + c];
    sum += a->p[j] * a->ds[j];
  }
  for (int64_t c = 0; c < width; c++) a->dq[c] = 0;
  for (int64_t j = 0; j < count; j++) {
    const real ds = scale * a->p[j] * (a->ds[j] - sum);
    const real weight = keeps(&a->mask, a->first + i, j) ? keep_scale * a->p[j] : 0;
    if (a->dbiases) a->dbiases[clipped(&how, j)] += a->p[j] * (a->ds[j] - sum);
    for (int64_t c = 0; c < width; c++) {
      a->dq[c] += ds * a->k[j * a->k_step + c];
      a->dk[j * width + c] += ds * q[c];
      a->dv[j * width + c] += weight * dout[c];
    }
  }
}

static void put(const tarn__tensor *tensor, int64_t row, int64_t column, const real *values, int64_t width, bool add) {
  real *out = (real *)tensor->data + row * tensor->cols + column;
  for (int64_t c = 0; c < width; c++) out[c] = add ? out[c] + values[c] : values[c];
}

// Zeroes the columns of a gradient that attention does not write: the tensor holds more than q, k and v. `begin`: first
// columns of the `count` parts that are written; `width`: their numbers of columns.
static void zero_others(const tarn__tensor *tensor, const int64_t *begin, const int64_t *width, int count) {
  for (int64_t r = 0; r < tensor->rows; r++)
    for (int64_t c = 0; c < tensor->cols; c++) {
      bool written = false;
      for (int i = 0; i < count; i++) written |= c >= begin[i] && c < begin[i] + width[i];
      if (!written) ((real *)tensor->data)[r * tensor->cols + c] = 0;
    }
}

void TARN__REF(tarn__attention_zero_unwritten)(const tarn__attention_attr *attr, const tarn__attention_backward *b) {
  const tarn__attention_spec *spec = &attr->spec;
  const int64_t kv = tarn__attention_kv_width(attr);
  const int64_t begin[] = {spec->query_column, spec->key_column, spec->value_column}, width[] = {spec->d, kv, kv};
  const bool one = b->dqueries == b->dkeys_values;
  if (b->dqueries && !b->add_queries) zero_others(b->dqueries, begin, width, one ? 3 : 1);
  if (b->dkeys_values && !one && !b->add_keys_values) zero_others(b->dkeys_values, begin + 1, width + 1, 2);
}

tarn_status TARN__REF(tarn__attention_backward_ref)(const tarn__exec *exec, const tarn__node *node) {
  const tarn__attention_attr *attr = node->attr;
  const tarn__attention_spec *spec = &attr->spec;
  const tarn__attention_backward b = tarn__attention_backward_of(node);
  const int64_t width = spec->d / spec->heads, longest = spec->longest, group = spec->heads / attr->kv_heads;
  const real scale = (real)(1.0 / sqrt((double)width));
  real *memory = node->scratch;
  double slopes[TARN__ATTENTION_HEADS];
  tarn__attention_slopes(spec, slopes);
  const int64_t cols = 2 * attr->reach + 1;
  if (b.dbiases) memset(b.dbiases->data, 0, (size_t)(spec->heads * cols) * sizeof(real));
  for (int64_t s = 0; s < b.sequences; s++)
    for (int64_t h = 0; h < spec->heads; h++) {
      const int64_t kv = h / group * width;
      const int64_t q0 = b.query_offsets[s], k0 = b.key_offsets[s];
      head a = {.q = (const real *)b.queries->data + q0 * b.queries->cols + spec->query_column + h * width,
                .k = (const real *)b.keys_values->data + k0 * b.keys_values->cols + spec->key_column + kv,
                .v = (const real *)b.keys_values->data + k0 * b.keys_values->cols + spec->value_column + kv,
                .dout = (const real *)b.dout->data + q0 * spec->d + h * width,
                .q_step = b.queries->cols,
                .k_step = b.keys_values->cols,
                .out_step = spec->d,
                .first = q0,
                .rows = b.query_offsets[s + 1] - q0,
                .keys = b.key_offsets[s + 1] - k0,
                .width = width,
                .causal = spec->causal,
                .slope = (real)slopes[h],
                .biases = b.biases ? (const real *)b.biases->data + h * cols + attr->reach : NULL,
                .reach = attr->reach,
                .dbiases = b.dbiases ? (real *)b.dbiases->data + h * cols + attr->reach : NULL,
                .mask = {attr->dropout, exec, h},
                .p = memory,
                .ds = memory + longest,
                .dq = memory + 2 * longest,
                .dk = memory + 2 * longest + width,
                .dv = memory + 2 * longest + width + longest * width};
      if (h % group == 0) memset(a.dk, 0, (size_t)(2 * longest * width) * sizeof(real));
      for (int64_t i = 0; i < a.rows; i++) {
        backward_query(&a, i, scale);
        if (b.dqueries) put(b.dqueries, q0 + i, spec->query_column + h * width, a.dq, width, b.add_queries);
      }
      for (int64_t j = 0; b.dkeys_values && h % group == group - 1 && j < a.keys; j++) {
        put(b.dkeys_values, k0 + j, spec->key_column + kv, a.dk + j * width, width, b.add_keys_values);
        put(b.dkeys_values, k0 + j, spec->value_column + kv, a.dv + j * width, width, b.add_keys_values);
      }
    }
  TARN__REF(tarn__attention_zero_unwritten)(attr, &b);
  return TARN_STATUS_OK;
}

size_t TARN__REF(tarn__attention_ref_scratch)(const tarn__node *node, int threads) {
  (void)threads;
  return (size_t)((const tarn__attention_spec *)node->attr)->longest * sizeof(real);
}

size_t TARN__REF(tarn__attention_backward_ref_scratch)(const tarn__node *node, int threads) {
  (void)threads;
  const tarn__attention_spec *spec = node->attr;
  const int64_t width = spec->d / spec->heads;
  return (size_t)(2 * spec->longest + width + 2 * spec->longest * width) * sizeof(real);
}
