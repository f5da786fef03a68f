#include "ops/pick.h"

#include "device/reference/best_words.h"
#include "device/reference/reference_kernels.h"

typedef TARN_REAL real;

tarn_status TARN__REF(tarn__best_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__output_top_attr *attr = node->attr;
  const tarn__tensor *logits = node->in[TARN__PICK_LOGITS];
  for (int64_t r = 0; r < logits->rows; r++)
    tarn__ref_best_words((real *)node->out[0]->data + r * (attr->best + 1),
                         (int32_t *)node->out[1]->data + r * attr->best, (const real *)logits->data + r * logits->cols,
                         logits->cols, attr);
  return TARN_STATUS_OK;
}

tarn_status TARN__REF(tarn__pick_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const int32_t always = ((const tarn__pick_attr *)node->attr)->always;
  const tarn__tensor *logits = node->in[TARN__PICK_LOGITS], *wanted = node->in[TARN__PICK_IDS];
  const int32_t *numbers = node->in[TARN__PICK_NUMBERS]->data;
  for (int64_t r = 0; r < wanted->rows; r++) {
    const real *row = (const real *)logits->data + numbers[r] * logits->cols;
    const real shift = tarn__ref_log_sum(row, logits->cols);
    const int32_t *ids = (const int32_t *)wanted->data + r * wanted->cols;
    real *values = (real *)node->out[0]->data + r * (wanted->cols + 1);
    for (int64_t i = 0; i < wanted->cols; i++)
      values[i] = ids[i] < 0 || ids[i] >= logits->cols ? -(real)INFINITY : row[ids[i]] - shift;
    values[wanted->cols] = row[always] - shift;
  }
  return TARN_STATUS_OK;
}
