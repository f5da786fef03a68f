#include "device/cpu/cpu_kernels.h"
#include "device/cpu/isa/isa.h"
#include "device/cpu/rows/activation_kernels.h"

void tarn__activation_block(void *y, const void *x, tarn__dtype dtype, tarn__activation form, int64_t ld, int64_t row,
                            int64_t rows, int64_t column, int64_t columns) {
  const tarn__activation_kernels *kernels = TARN__TABLE_NOW(tarn__activation_kernels);
  for (int64_t r = row; r < row + rows; r++)
    kernels->forward(y, x, dtype, form, r * ld + column, r * ld + column + columns);
}

tarn_status tarn__cpu_activation(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *x = node->in[0], *y = node->out[0];
  const tarn__activation form = *(const tarn__activation *)node->attr;
#pragma omp parallel for schedule(static) num_threads(exec->threads)
  for (int part = 0; part < exec->threads; part++) {
    const int64_t first = x->rows * part / exec->threads, last = x->rows * (part + 1) / exec->threads;
    tarn__activation_block(y->data, x->data, x->dtype, form, x->cols, first, last - first, 0, x->cols);
  }
  return TARN_STATUS_OK;
}
