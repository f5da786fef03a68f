#include "device/reference/reference_kernels.h"
#include "ops/sample.h"

size_t TARN__REF(tarn__sample_ref_scratch)(const tarn__node *node, int threads) {
  (void)threads;
  const size_t cols = (size_t)node->in[TARN__SAMPLE_VALUES]->cols;
  return cols * (sizeof(tarn__candidate) + sizeof(float));
}

// Draws are always made in fp32.
tarn_status TARN__REF(tarn__sample_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *values = node->in[TARN__SAMPLE_VALUES];
  const int32_t *draws = node->in[TARN__SAMPLE_DRAWS]->data;
  tarn__candidate *room = node->scratch;
  float *row = (float *)(void *)(room + values->cols);
  for (int64_t i = 0; i < node->out[0]->rows; i++) {
    const TARN_REAL *from =
        (const TARN_REAL *)values->data + draws[i * TARN__DRAW_WORDS + TARN__DRAW_ROW] * values->cols;
    for (int64_t c = 0; c < values->cols; c++) row[c] = (float)from[c];
    tarn__sample_draw(node, i, row, room, (int32_t *)node->out[1]->data + i, (float *)node->out[0]->data + 2 * i);
  }
  return TARN_STATUS_OK;
}
