#include "device/reference/best_words.h"
#include "device/reference/reference_kernels.h"

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

tarn_status TARN__REF(tarn__output_top_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__output_top_attr *attr = node->attr;
  const int64_t words = node->in[1]->rows, best = attr->best;
  for (int64_t r = 0; r < node->in[0]->rows; r++) {
    real *logits = node->scratch, *values = (real *)node->out[0]->data + r * (best + 1);
    int32_t *ids = (int32_t *)node->out[1]->data + r * best;
    logits_of(logits, node, r);
    tarn__ref_best_words(values, ids, logits, words, attr);
  }
  return TARN_STATUS_OK;
}

size_t TARN__REF(tarn__output_top_ref_scratch)(const tarn__node *node, int threads) {
  (void)threads;
  return (size_t)(node->in[1]->rows) * sizeof(real);
}
