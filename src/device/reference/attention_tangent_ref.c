// Plain C reference: one query and one direction at a time, heads on several threads.
#include "device/reference/reference_kernels.h"
#include "graph/tangents.h"
#include "ops/attention.h"

#include <math.h>
#include <omp.h>

typedef TARN_REAL real;

// One head of one sequence and one direction.
typedef struct head {
  const real *q, *k, *v;     // first row of the sequence, first column of the head
  const real *dq, *dk, *dv;  // the same of the direction; NULL: constant
  int64_t q_step, k_step, width;
  bool causal;
  int64_t keys;
  real scale, slope;
  const real *biases;  // at distance 0; NULL: none
  int64_t reach;
  tarn__dropout dropout;
  const tarn__exec *exec;
  int64_t row, head;  // of the first query, for the mask of dropout
  real *p, *dp;
} head;

static real bias_of(const head *a, int64_t i, int64_t j) {
  const int64_t n = j - i;
  if (!a->biases) return 0;
  return a->biases[n < -a->reach ? -a->reach : n > a->reach ? a->reach : n];
}

static real product(const real *x, const real *y, int64_t n) {
  real sum = 0;
  for (int64_t c = 0; c < n; c++) sum += x[c] * y[c];
  return sum;
}

// p and dp of query i over its `count` keys.
static void weights(const head *a, int64_t i, int64_t count) {
  const real *q = a->q + i * a->q_step;
  real most = 0, sum = 0, mean = 0;
  for (int64_t j = 0; j < count; j++) {
    const real *k = a->k + j * a->k_step;
    a->p[j] = a->scale * product(q, k, a->width) - a->slope * (real)(j < i ? i - j : j - i) + bias_of(a, i, j);
    a->dp[j] = 0;
    if (a->dq) a->dp[j] += a->scale * product(a->dq + i * a->q_step, k, a->width);
    if (a->dk) a->dp[j] += a->scale * product(q, a->dk + j * a->k_step, a->width);
    if (j == 0 || a->p[j] > most) most = a->p[j];
  }
  for (int64_t j = 0; j < count; j++) sum += a->p[j] = (real)exp((double)(a->p[j] - most));
  for (int64_t j = 0; j < count; j++) a->p[j] /= sum;
  for (int64_t j = 0; j < count; j++) mean += a->p[j] * a->dp[j];
  for (int64_t j = 0; j < count; j++) a->dp[j] = a->p[j] * (a->dp[j] - mean);
}

static void query(const head *a, int64_t i, real *out) {
  const int64_t count = a->causal ? i + 1 : a->keys;
  const real keep_scale = (real)tarn__dropout_scale(a->dropout);
  weights(a, i, count);
  for (int64_t c = 0; c < a->width; c++) out[c] = 0;
  for (int64_t j = 0; j < count; j++) {
    if (!tarn__dropout_keeps(a->dropout, a->exec, a->row + i, tarn__attention_column(a->head, j))) continue;
    for (int64_t c = 0; c < a->width; c++) {
      out[c] += keep_scale * a->dp[j] * a->v[j * a->k_step + c];
      if (a->dv) out[c] += keep_scale * a->p[j] * a->dv[j * a->k_step + c];
    }
  }
}

// The first element of a head in one of the inputs.
static const real *place(const tarn__tensor *tensor, int64_t row, int64_t column) {
  return tensor ? (const real *)tensor->data + row * tensor->cols + column : NULL;
}

tarn_status TARN__REF(tarn__attention_tangent_ref)(const tarn__exec *exec, const tarn__node *node) {
  const tarn__attention_attr *attr = node->attr;
  const tarn__attention_spec *spec = &attr->spec;
  const tarn__tensor *queries = node->in[TARN__ATTENTION_QUERIES], *keys = node->in[TARN__ATTENTION_KEYS_VALUES];
  const tarn__tensor *dqueries = node->in[TARN__ATTENTION_TANGENT_QUERIES], *biases = node->in[TARN__ATTENTION_BIASES];
  const tarn__tensor *dkeys = node->in[TARN__ATTENTION_TANGENT_KEYS_VALUES];
  const int32_t *q_at = node->in[TARN__ATTENTION_QUERY_OFFSETS]->data;
  const int32_t *k_at = node->in[TARN__ATTENTION_KEY_OFFSETS]->data;
  const int64_t width = spec->d / spec->heads, group = spec->heads / attr->kv_heads;
  const int64_t directions = tarn__tangent_directions(node->out[0], queries->rows);
  const int64_t sequences = node->in[TARN__ATTENTION_QUERY_OFFSETS]->cols - 1;
  double slopes[TARN__ATTENTION_HEADS];
  tarn__attention_slopes(spec, slopes);
#pragma omp parallel for schedule(static) num_threads(exec->threads) if (node->out[0]->rows * spec->d > 1 << 16)
  for (int64_t n = 0; n < directions * sequences * spec->heads; n++) {
    const int64_t h = n % spec->heads, s = n / spec->heads % sequences, direction = n / spec->heads / sequences;
    const int64_t q0 = q_at[s], k0 = k_at[s], dq0 = direction * queries->rows + q0, dk0 = direction * keys->rows + k0;
    const int64_t q_column = spec->query_column + h * width, kv = h / group * width;
    const head a = {.q = place(queries, q0, q_column),
                    .k = place(keys, k0, spec->key_column + kv),
                    .v = place(keys, k0, spec->value_column + kv),
                    .dq = place(dqueries, dq0, q_column),
                    .dk = place(dkeys, dk0, spec->key_column + kv),
                    .dv = place(dkeys, dk0, spec->value_column + kv),
                    .q_step = queries->cols,
                    .k_step = keys->cols,
                    .width = width,
                    .causal = spec->causal,
                    .keys = k_at[s + 1] - k0,
                    .scale = (real)(1.0 / sqrt((double)width)),
                    .slope = (real)slopes[h],
                    .biases = place(biases, h, attr->reach),
                    .reach = attr->reach,
                    .dropout = attr->dropout,
                    .exec = exec,
                    .row = q0,
                    .head = h,
                    .p = (real *)node->scratch + 2 * omp_get_thread_num() * spec->longest,
                    .dp = (real *)node->scratch + (2 * omp_get_thread_num() + 1) * spec->longest};
    for (int64_t i = 0; i < q_at[s + 1] - q0; i++)
      query(&a, i, (real *)node->out[0]->data + (dq0 + i) * spec->d + h * width);
  }
  return TARN_STATUS_OK;
}

size_t TARN__REF(tarn__attention_tangent_ref_scratch)(const tarn__node *node, int threads) {
  return (size_t)(2 * threads * ((const tarn__attention_spec *)node->attr)->longest) * sizeof(real);
}
