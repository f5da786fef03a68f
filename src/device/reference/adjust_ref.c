#include "ops/adjust.h"

#include "device/reference/reference_kernels.h"
#include "ops/ops.h"

tarn_status TARN__REF(tarn__adjust_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *logits = node->in[TARN__ADJUST_LOGITS];
  const int32_t *offsets = node->in[TARN__ADJUST_EDITS]->data, *words = offsets + logits->rows + 1;
  TARN_REAL *out = node->out[0]->data;
  memcpy(out, logits->data, (size_t)(logits->rows * logits->cols) * sizeof *out);
  for (int64_t r = 0; r < logits->rows; r++, out += logits->cols)
    for (int32_t i = offsets[r]; i < offsets[r + 1]; i++) {
      const int32_t *edit = words + (int64_t)i * TARN__EDIT_WORDS;
      out[edit[0]] = (TARN_REAL)tarn__adjusted((double)out[edit[0]], edit);
    }
  return TARN_STATUS_OK;
}
