#include "ops/product_keys.h"

#include <math.h>
#include <string.h>

#include "device/reference/reference_kernels.h"

typedef TARN_REAL real;

// The products of the n keys of group `group` (head and half) with a query.
static void group_scores(real *scores, const tarn__node *node, int64_t r, int64_t group, int64_t n) {
  const tarn__tensor *queries = node->in[TARN__PRODUCT_KEYS_QUERIES], *keys = node->in[TARN__PRODUCT_KEYS_KEYS];
  const int64_t w = keys->cols;
  const real *query = (const real *)queries->data + r * queries->cols + group * w;
  for (int64_t i = 0; i < n; i++) {
    const real *key = (const real *)keys->data + (group * n + i) * w;
    scores[i] = 0;
    for (int64_t c = 0; c < w; c++) scores[i] += query[c] * key[c];
  }
}

// The pair with the largest sum that is not yet among the `count` ids.
static int64_t next_pair(const real *s, const real *t, int64_t n, const int32_t *ids, int64_t count) {
  int64_t best = -1;
  for (int64_t pair = 0; pair < n * n; pair++) {
    bool taken = false;
    for (int64_t j = 0; j < count; j++) taken = taken || ids[j] == pair;
    if (!taken && (best < 0 || s[pair / n] + t[pair % n] > s[best / n] + t[best % n])) best = pair;
  }
  return best;
}

tarn_status TARN__REF(tarn__product_keys_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__product_keys_spec *spec = node->attr;
  const int64_t k = spec->nearest, n = node->in[TARN__PRODUCT_KEYS_KEYS]->rows / (2 * spec->heads);
  real *s = node->scratch, *t = s + n;
  for (int64_t r = 0; r < node->in[TARN__PRODUCT_KEYS_QUERIES]->rows; r++)
    for (int64_t h = 0; h < spec->heads; h++) {
      const int64_t first = (r * spec->heads + h) * k;
      real *gates = (real *)node->out[TARN__PRODUCT_KEYS_GATES]->data + first, sum = 0;
      int32_t *ids = (int32_t *)node->out[TARN__PRODUCT_KEYS_IDS]->data + first;
      group_scores(s, node, r, 2 * h, n);
      group_scores(t, node, r, 2 * h + 1, n);
      for (int64_t j = 0; j < k; j++) {
        ids[j] = (int32_t)next_pair(s, t, n, ids, j);
        gates[j] = s[ids[j] / n] + t[ids[j] % n];
      }
      const real most = gates[0];
      for (int64_t j = 0; j < k; j++) sum += gates[j] = (real)exp((double)(gates[j] - most));
      for (int64_t j = 0; j < k; j++) gates[j] /= sum;
    }
  return TARN_STATUS_OK;
}

size_t TARN__REF(tarn__product_keys_ref_scratch)(const tarn__node *node, int threads) {
  (void)threads;
  return 2 * (size_t)node->in[TARN__PRODUCT_KEYS_KEYS]->rows * sizeof(real);
}

tarn_status TARN__REF(tarn__product_keys_tangent_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *queries = node->in[TARN__PRODUCT_KEYS_DQUERIES], *keys = node->in[TARN__PRODUCT_KEYS_KEYS];
  const tarn__tensor *gates = node->in[TARN__PRODUCT_KEYS_G];
  const tarn__product_keys_spec *spec = node->attr;
  const int64_t k = spec->nearest, n = keys->rows / (2 * spec->heads), w = keys->cols, size = gates->rows * gates->cols;
  real *dgates = node->out[0]->data;
  for (int64_t at = 0; at < queries->rows * spec->heads * k; at += k) {
    const int32_t *ids = (const int32_t *)node->in[TARN__PRODUCT_KEYS_CHOSEN]->data + at % size;
    const real *g = (const real *)gates->data + at % size;
    real mean = 0;
    for (int64_t j = 0; j < k; j++) {
      dgates[at + j] = 0;
      for (int half = 0; half < 2; half++) {
        const int64_t group = at / k % spec->heads * 2 + half;
        const real *key = (const real *)keys->data + (group * n + (half ? ids[j] % n : ids[j] / n)) * w;
        const real *moved = (const real *)queries->data + at / k / spec->heads * queries->cols + group * w;
        for (int64_t c = 0; c < w; c++) dgates[at + j] += moved[c] * key[c];
      }
      mean += g[j] * dgates[at + j];
    }
    for (int64_t j = 0; j < k; j++) dgates[at + j] = g[j] * (dgates[at + j] - mean);
  }
  return TARN_STATUS_OK;
}

tarn_status TARN__REF(tarn__product_keys_backward_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *queries = node->in[TARN__PRODUCT_KEYS_QUERIES], *keys = node->in[TARN__PRODUCT_KEYS_KEYS];
  const tarn__product_keys_spec *spec = node->attr;
  const int64_t k = spec->nearest, n = keys->rows / (2 * spec->heads), w = keys->cols;
  const int32_t *ids = node->in[TARN__PRODUCT_KEYS_CHOSEN]->data;
  const real *gates = node->in[TARN__PRODUCT_KEYS_G]->data, *dgates = node->in[TARN__PRODUCT_KEYS_DGATES]->data;
  real *dqueries = node->out[0] ? node->out[0]->data : NULL;
  tarn__param *param = node->dparam[0];
  real *dkeys = param ? param->training.grad : NULL;
  if (param && !tarn__param_accumulate(param)) memset(dkeys, 0, (size_t)(keys->rows * w) * sizeof(real));
  if (dqueries && !node->in[TARN__PRODUCT_KEYS_PREVIOUS])
    memset(dqueries, 0, (size_t)(queries->rows * queries->cols) * sizeof(real));
  for (int64_t at = 0; at < queries->rows * spec->heads * k; at += k) {
    real mean = 0;
    for (int64_t j = at; j < at + k; j++) mean += gates[j] * dgates[j];
    for (int64_t j = at; j < at + k; j++)
      for (int half = 0; half < 2; half++) {
        const int64_t group = at / k % spec->heads * 2 + half;
        const int64_t key = (group * n + (half ? ids[j] % n : ids[j] / n)) * w;
        const int64_t query = at / k / spec->heads * queries->cols + group * w;
        const real slope = gates[j] * (dgates[j] - mean);
        for (int64_t c = 0; c < w; c++) {
          if (dqueries) dqueries[query + c] += slope * ((const real *)keys->data)[key + c];
          if (dkeys) dkeys[key + c] += slope * ((const real *)queries->data)[query + c];
        }
      }
  }
  return TARN_STATUS_OK;
}
