#include <math.h>

#include "device/reference/reference_kernels.h"
#include "ops/output_top.h"

typedef TARN_REAL real;

static void logits_of(real *logits, const tarn__node *node, int64_t r) {
  const tarn__tensor *x = node->in[0], *table = node->in[1], *bias = node->in[2];
  for (int64_t v = 0; v < table->rows; v++) {
    real sum = bias ? ((const real *)bias->data)[v] : 0;
    for (int64_t c = 0; c < x->cols; c++)
      sum += ((const real *)x->data)[r * x->cols + c] * ((const real *)table->data)[v * x->cols + c];
    logits[v] = sum;
  }
}

// The word that follows `before` in the order of decreasing logits, ties broken by increasing id; -1: none.
static int64_t next_word(const real *logits, int64_t words, int64_t before) {
  int64_t next = -1;
  for (int64_t v = 0; v < words; v++) {
    bool behind = before < 0 || logits[v] < logits[before] || (logits[v] == logits[before] && v > before);
    if (behind && logits[v] > -INFINITY && (next < 0 || logits[v] > logits[next])) next = v;
  }
  return next;
}

tarn_status TARN__REF(tarn__output_top_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__output_top_attr *attr = node->attr;
  const int64_t words = node->in[1]->rows, best = attr->best;
  for (int64_t r = 0; r < node->in[0]->rows; r++) {
    real *logits = node->scratch, *values = (real *)node->out[0]->data + r * (best + 1);
    int32_t *ids = (int32_t *)node->out[1]->data + r * best;
    logits_of(logits, node, r);
    real most = -INFINITY;
    for (int64_t v = 0; v < words; v++)
      if (logits[v] > most) most = logits[v];
    double sum = 0.0;
    for (int64_t v = 0; v < words; v++) sum += exp((double)(logits[v] - most));
    const real shift = most + (real)log(sum);
    bool more = true;
    for (int64_t i = 0; i < best; i++) {
      const int64_t word = more ? next_word(logits, words, i > 0 ? ids[i - 1] : -1) : -1;
      more = word >= 0;
      ids[i] = (int32_t)word;
      values[i] = more ? logits[word] - shift : -(real)INFINITY;
    }
    values[best] = logits[attr->always] - shift;
  }
  return TARN_STATUS_OK;
}

size_t TARN__REF(tarn__output_top_ref_scratch)(const tarn__node *node, int threads) {
  (void)threads;
  return (size_t)(node->in[1]->rows) * sizeof(real);
}
