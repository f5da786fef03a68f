#include "device/reference/reference_kernels.h"
#include "ops/attention.h"
#include "ops/attention_rows.h"

#include <math.h>

typedef TARN_REAL real;

// The relative vector of the key `before` positions before the last one; NULL: there is no table.
static const real *vector_of(const tarn__tensor *table, int64_t before) {
  if (!table) return NULL;
  const int64_t reach = table->rows / 2;
  return (const real *)table->data + (reach - (before < reach ? before : reach)) * table->cols;
}

tarn_status TARN__REF(tarn__attention_rows_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__attention_rows_attr *attr = node->attr;
  const tarn__attention_spec *spec = &attr->spec;
  const tarn__tensor *queries = node->in[TARN__ATTENTION_ROWS_QUERIES];
  const tarn__tensor *kv = node->in[TARN__ATTENTION_ROWS_KEYS_VALUES], *list = node->in[TARN__ATTENTION_ROWS_ROWS];
  const int32_t *range = node->in[TARN__ATTENTION_ROWS_RANGES]->data;
  const tarn__tensor *biases = node->in[TARN__ATTENTION_ROWS_BIASES];
  const tarn__tensor *key_table = node->in[TARN__ATTENTION_ROWS_RELATIVE_KEYS];
  const tarn__tensor *value_table = node->in[TARN__ATTENTION_ROWS_RELATIVE_VALUES];
  const int64_t width = spec->d / spec->heads, group = spec->heads / attr->kv_heads;
  const real scale = (real)(1.0 / sqrt((double)width));
  double slopes[TARN__ATTENTION_HEADS];
  tarn__attention_slopes(spec, slopes);
  for (int64_t i = 0; i < queries->rows; i++)
    for (int64_t h = 0; h < spec->heads; h++) {
      const real *q = (const real *)queries->data + i * queries->cols + spec->query_column + h * width;
      real *out = (real *)node->out[0]->data + i * spec->d + h * width;
      real *score = node->scratch, most = 0, sum = 0;
      const real *bias = biases ? (const real *)biases->data + h * biases->cols + attr->reach : NULL;
      const int64_t first = range[2 * i], count = range[2 * i + 1] - first, kv_column = h / group * width;
      for (int64_t c = 0; c < width; c++) out[c] = 0;
      for (int64_t j = 0; j < count; j++) {
        const int64_t row = list ? ((const int32_t *)list->data)[first + j] : first + j;
        const real *k = (const real *)kv->data + row * kv->cols + spec->key_column + kv_column;
        const real *near = vector_of(key_table, count - 1 - j);
        score[j] = 0;
        for (int64_t c = 0; c < width; c++) score[j] += scale * q[c] * (near ? k[c] + near[c] : k[c]);
        score[j] -= (real)slopes[h] * (real)(count - 1 - j);
        if (bias) score[j] += bias[count - 1 - j < attr->reach ? j - (count - 1) : -attr->reach];
        if (j == 0 || score[j] > most) most = score[j];
      }
      for (int64_t j = 0; j < count; j++) sum += score[j] = (real)exp((double)(score[j] - most));
      for (int64_t j = 0; j < count; j++) {
        const int64_t row = list ? ((const int32_t *)list->data)[first + j] : first + j;
        const real *v = (const real *)kv->data + row * kv->cols + spec->value_column + kv_column;
        const real *near = vector_of(value_table, count - 1 - j);
        for (int64_t c = 0; c < width; c++) out[c] += score[j] / sum * (near ? v[c] + near[c] : v[c]);
      }
    }
  return TARN_STATUS_OK;
}

size_t TARN__REF(tarn__attention_rows_ref_scratch)(const tarn__node *node, int threads) {
  (void)threads;
  return (size_t)(((const tarn__attention_spec *)node->attr)->longest) * sizeof(real);
}
