#include "device/cpu/isa/row_cpu.h"
#include "device/cpu/node_tables.h"
#include "ops/dropout.h"

enum { PIECE = 8 * TARN__DROPOUT_CHUNK };  // columns that stay in L1 with their numbers

static void piece(const tarn__exec *exec, const tarn__node *node, int64_t r, int64_t first, int64_t n) {
  TARN__ROW_ALIGNED float in_row[PIECE], out_row[PIECE];
  TARN__ROW_ALIGNED uint16_t numbers[PIECE];
  const tarn__tensor *x = node->in[0], *y = node->out[0];
  const int64_t masks = node->in[1] ? node->in[1]->rows : x->rows;
  const tarn__dropout dropout = *(const tarn__dropout *)node->attr;
  const uint32_t threshold = dropout.threshold;
  const float scale = (float)tarn__dropout_scale(dropout);
  const int64_t at = r * x->cols + first;
  tarn__dropout_numbers(numbers, exec, dropout.site, r % masks, first / TARN__DROPOUT_BLOCK, n);
  const float *in = tarn__row_read(x->data, x->dtype, at, n, in_row);
  float *out = tarn__row_target(y->data, y->dtype, at, out_row);
#pragma omp simd
  for (int64_t i = 0; i < n; i++) out[i] = numbers[i] >= threshold ? scale * in[i] : 0.0f;
  tarn__row_write(y->data, y->dtype, at, n, out);
}

static tarn_status apply(const tarn__exec *exec, const tarn__node *node) {
  const int64_t cols = node->in[0]->cols;
#pragma omp parallel for schedule(static) num_threads(exec->threads)
  for (int64_t r = 0; r < node->in[0]->rows; r++)
    for (int64_t c = 0; c < cols; c += PIECE) piece(exec, node, r, c, cols - c < PIECE ? cols - c : PIECE);
  return TARN_STATUS_OK;
}

const tarn__dropout_kernels TARN__FAST(tarn__dropout_kernels) = {.apply = apply};
