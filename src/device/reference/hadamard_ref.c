#include <string.h>

#include "device/reference/reference_kernels.h"
#include "ops/hadamard_row.h"

typedef TARN_REAL real;

// dx += dz Q for one row.
static void row_transposed(real *dx, const real *dz, const real *signs, const tarn__hadamard_shape *shape, real *work) {
  int64_t n = shape->width;
  for (int64_t t = 0; t < shape->blocks * shape->parts; t++) {
    tarn__hadamard_ends ends = tarn__hadamard_ends_of(shape, t);
    for (int64_t i = 0; i < n; i++) work[i] = i < ends.out_count ? dz[ends.out_at + i] : 0;
    tarn__hadamard_rotate(work, signs + tarn__hadamard_signs_at(shape, t), shape, true);
    for (int64_t i = 0; i < ends.in_count; i++) dx[ends.in_at + i] += (real)shape->scale * work[i];
  }
}

tarn_status TARN__REF(tarn__hadamard_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__hadamard_attr *attr = node->attr;
  const tarn__tensor *x = node->in[0], *bias = node->in[2], *y = node->out[0];
  real *work = node->scratch;
  for (int64_t r = 0; r < x->rows; r++) {
    real *to = (real *)y->data + r * y->cols;
    tarn__hadamard_row(to, (const real *)x->data + r * x->cols, node->in[1]->data, &attr->shape, work);
    for (int64_t j = 0; bias != NULL && j < y->cols; j++) to[j] += ((const real *)bias->data)[j];
    for (int64_t j = 0; attr->relu && j < y->cols; j++) to[j] = to[j] < 0 ? 0 : to[j];
  }
  return TARN_STATUS_OK;
}

tarn_status TARN__REF(tarn__hadamard_dx_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__hadamard_attr *attr = node->attr;
  const tarn__tensor *dy = node->in[0], *y = node->in[2], *previous = node->in[3], *dx = node->out[0];
  real *work = node->scratch;
  real *dz = work + attr->shape.width;
  for (int64_t r = 0; r < dy->rows; r++) {
    real *to = (real *)dx->data + r * dx->cols;
    const real *from = (const real *)dy->data + r * dy->cols;
    const real *sign = y != NULL ? (const real *)y->data + r * y->cols : NULL;
    for (int64_t j = 0; j < dy->cols; j++) dz[j] = sign == NULL || sign[j] > 0 ? from[j] : 0;
    if (previous == NULL) memset(to, 0, (size_t)dx->cols * sizeof *to);
    row_transposed(to, dz, node->in[1]->data, &attr->shape, work);
  }
  return TARN_STATUS_OK;
}

size_t TARN__REF(tarn__hadamard_ref_scratch)(const tarn__node *node, int threads) {
  (void)threads;
  return (size_t)(((const tarn__hadamard_attr *)node->attr)->shape.width) * sizeof(real);
}

size_t TARN__REF(tarn__hadamard_dx_ref_scratch)(const tarn__node *node, int threads) {
  (void)threads;
  return (size_t)(((const tarn__hadamard_attr *)node->attr)->shape.width + node->in[0]->cols) * sizeof(real);
}
