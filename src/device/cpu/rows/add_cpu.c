#include "device/cpu/isa/row_cpu.h"
#include "device/cpu/node_tables.h"

// Three pieces fit into L1.
enum { PIECE = 1024 };

static tarn_status add(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *a = node->in[0], *b = node->in[1], *out = node->out[0];
  int64_t n = out->rows * out->cols, pieces = (n + PIECE - 1) / PIECE;
#pragma omp parallel for schedule(static) num_threads(exec->threads)
  for (int64_t piece = 0; piece < pieces; piece++) {
    TARN__ROW_ALIGNED float a_row[PIECE], b_row[PIECE], out_row[PIECE];
    int64_t first = piece * PIECE, count = n - first < PIECE ? n - first : PIECE;
    const float *x = tarn__row_read(a->data, a->dtype, first, count, a_row);
    const float *y = tarn__row_read(b->data, b->dtype, first, count, b_row);
    float *sum = tarn__row_target(out->data, out->dtype, first, out_row);
#pragma omp simd
    for (int64_t i = 0; i < count; i++) sum[i] = x[i] + y[i];
    tarn__row_write(out->data, out->dtype, first, count, sum);
  }
  return TARN_STATUS_OK;
}

const tarn__add_kernels TARN__FAST(tarn__add_kernels) = {.add = add};
