#include "device/cpu/cpu_kernels.h"
#include "ops/sample.h"

size_t tarn__cpu_sample_scratch(const tarn__node *node, int threads) {
  return (size_t)(tarn__sample_width(node) * threads) * sizeof(tarn__candidate);
}

tarn_status tarn__cpu_sample(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *values = node->in[TARN__SAMPLE_VALUES];
  const int32_t *draws = node->in[TARN__SAMPLE_DRAWS]->data;
  const int64_t count = node->out[0]->rows, width = tarn__sample_width(node);
  const int threads = exec->threads;
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int thread = 0; thread < threads; thread++) {
    tarn__candidate *room = (tarn__candidate *)node->scratch + thread * width;
    for (int64_t i = count * thread / threads; i < count * (thread + 1) / threads; i++) {
      const float *row = (const float *)values->data + draws[i * TARN__DRAW_WORDS + TARN__DRAW_ROW] * values->cols;
      tarn__sample_draw(node, i, row, room, (int32_t *)node->out[1]->data + i, (float *)node->out[0]->data + 2 * i);
    }
  }
  return TARN_STATUS_OK;
}
