#include "ops/adjust.h"

#include "device/cpu/cpu_kernels.h"
#include "ops/ops.h"

tarn_status tarn__cpu_adjust(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *logits = node->in[TARN__ADJUST_LOGITS];
  const int32_t *offsets = node->in[TARN__ADJUST_EDITS]->data, *words = offsets + logits->rows + 1;
#pragma omp parallel for schedule(static) num_threads(exec->threads)
  for (int64_t r = 0; r < logits->rows; r++) {
    float *row = (float *)node->out[0]->data + r * logits->cols;
    memcpy(row, (const float *)logits->data + r * logits->cols, (size_t)logits->cols * sizeof *row);
    for (int32_t i = offsets[r]; i < offsets[r + 1]; i++) {
      const int32_t *edit = words + (int64_t)i * TARN__EDIT_WORDS;
      row[edit[0]] = (float)tarn__adjusted((double)row[edit[0]], edit);
    }
  }
  return TARN_STATUS_OK;
}
