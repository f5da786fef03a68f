// Fast kernels. Copies, and their gradients: a row's from the rows that have copied it, in order of their taps.
#include "ops/neighbours.h"

#include <string.h>

#include "device/cpu/isa/vec_cpu.h"
#include "device/cpu/node_tables.h"
#include "ops/offsets.h"

// Row r of a sentence [begin, end).
static void copy_row(const tarn__node *node, int64_t r, int64_t begin, int64_t end) {
  const tarn__tensor *x = node->in[TARN__NEIGHBOURS_X], *y = node->out[0];
  const tarn__taps *taps = node->attr;
  const size_t size = (size_t)x->cols * tarn__dtype_size(x->dtype);
  char *to = (char *)y->data + (size_t)(r * taps->width) * size;
  for (int64_t k = 0; k < taps->width; k++, to += size) {
    const int64_t from = r + k - taps->before;
    if (from >= begin && from < end)
      memcpy(to, (const char *)x->data + (size_t)from * size, size);
    else
      memset(to, 0, size);
  }
}

// The gradient of row j, which is tap k of row j + before - k.
TARN__VEC_INLINE void add_row(const tarn__node *node, int64_t j, int64_t begin, int64_t end, tarn__dtype dtype) {
  const tarn__tensor *dy = node->in[TARN__NEIGHBOURS_DY], *dx = node->out[0];
  const tarn__taps *taps = node->attr;
  const int64_t behind = j + taps->before;
#define STEP(i, n)                                                                                                \
  do {                                                                                                            \
    tarn__vec sum = {0};                                                                                          \
    for (int64_t k = 0; k < taps->width; k++)                                                                     \
      if (behind - k >= begin && behind - k < end)                                                                \
        sum += tarn__vec_read_first(dy->data, dtype, ((behind - k) * taps->width + k) * dx->cols + (i), n);       \
    if (node->in[TARN__NEIGHBOURS_PREVIOUS]) sum += tarn__vec_read_first(dx->data, dtype, j * dx->cols + (i), n); \
    tarn__vec_write_first(dx->data, dtype, j * dx->cols + (i), sum, n);                                           \
  } while (0)
  TARN__VEC_EACH(0, dx->cols, STEP);
#undef STEP
}

static void run_rows(const tarn__exec *exec, const tarn__node *node, bool gradient) {
  const tarn__tensor *offsets = node->in[TARN__NEIGHBOURS_OFFSETS], *y = node->out[0];
#pragma omp parallel for num_threads(exec->threads) schedule(static, 1)
  for (int which = 0; which < exec->threads; which++) {
    int64_t begin = 0, end = 0;
    for (int64_t r = y->rows * which / exec->threads; r < y->rows * (which + 1) / exec->threads; r++) {
      if (r >= end) {
        const int32_t *offset = (const int32_t *)offsets->data + tarn__offsets_find(offsets, r);
        begin = offset[0], end = offset[1];
      }
      if (!gradient)
        copy_row(node, r, begin, end);
      else if (y->dtype == TARN__BF16)
        add_row(node, r, begin, end, TARN__BF16);
      else
        add_row(node, r, begin, end, TARN__F32);
    }
  }
}

static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
  run_rows(exec, node, false);
  return TARN_STATUS_OK;
}

static tarn_status backward(const tarn__exec *exec, const tarn__node *node) {
  run_rows(exec, node, true);
  return TARN_STATUS_OK;
}

const tarn__neighbours_kernels TARN__FAST(tarn__neighbours_kernels) = {.forward = forward, .backward = backward};
