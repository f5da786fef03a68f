#include "ops/hadamard.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"

typedef TARN_REAL real;

// x = H x for n elements, n a power of two.
static void transform(real *x, int64_t n) {
  for (int64_t h = 1; h < n; h *= 2)
    for (int64_t i = 0; i < n; i++) {
      if (i & h) continue;
      real a = x[i], b = x[i + h];
      x[i] = a + b;
      x[i + h] = a - b;
    }
  real scale = (real)(1.0 / sqrt((double)n));
  for (int64_t i = 0; i < n; i++) x[i] *= scale;
}

// x = Q x, or transposed x = Q^T x.
static void rotate(real *x, const real *signs, const tarn__hadamard_shape *shape, bool transposed) {
  int64_t n = shape->width;
  for (int step = 0; step < shape->rounds; step++) {
    int round = transposed ? shape->rounds - 1 - step : step;
    const real *sign = signs + round * n;
    for (int64_t i = 0; i < n && !transposed; i++) x[i] *= sign[i];
    transform(x + tarn__hadamard_start(shape, round), shape->window);
    for (int64_t i = 0; i < n && transposed; i++) x[i] *= sign[i];
  }
}

void TARN__REF(tarn__hadamard_row)(real *y, const real *x, const real *signs, const tarn__hadamard_shape *shape,
                                   real *work) {
  int64_t n = shape->width;
  for (int64_t i = 0; i < shape->blocks * shape->out; i++) y[i] = 0;
  for (int64_t t = 0; t < shape->blocks * shape->parts; t++) {
    tarn__hadamard_ends ends = tarn__hadamard_ends_of(shape, t);
    for (int64_t i = 0; i < n; i++) work[i] = i < ends.in_count ? x[ends.in_at + i] : 0;
    rotate(work, signs + tarn__hadamard_signs_at(shape, t), shape, false);
    for (int64_t i = 0; i < ends.out_count; i++) y[ends.out_at + i] += (real)shape->scale * work[i];
  }
}

// dx += dz Q for one row.
static void row_transposed(real *dx, const real *dz, const real *signs, const tarn__hadamard_shape *shape, real *work) {
  int64_t n = shape->width;
  for (int64_t t = 0; t < shape->blocks * shape->parts; t++) {
    tarn__hadamard_ends ends = tarn__hadamard_ends_of(shape, t);
    for (int64_t i = 0; i < n; i++) work[i] = i < ends.out_count ? dz[ends.out_at + i] : 0;
    rotate(work, signs + tarn__hadamard_signs_at(shape, t), shape, true);
    for (int64_t i = 0; i < ends.in_count; i++) dx[ends.in_at + i] += (real)shape->scale * work[i];
  }
}

tarn_status TARN__REF(tarn__hadamard_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__hadamard_job *job = node->attr;
  const tarn__tensor *x = node->in[0], *bias = node->in[2], *y = node->out[0];
  real *work = node->scratch;
  for (int64_t r = 0; r < x->rows; r++) {
    real *to = (real *)y->data + r * y->cols;
    TARN__REF(tarn__hadamard_row)(to, (const real *)x->data + r * x->cols, node->in[1]->data, &job->shape, work);
    for (int64_t j = 0; bias != NULL && j < y->cols; j++) to[j] += ((const real *)bias->data)[j];
    for (int64_t j = 0; job->relu && j < y->cols; j++) to[j] = to[j] < 0 ? 0 : to[j];
  }
  return TARN_STATUS_OK;
}

tarn_status TARN__REF(tarn__hadamard_dx_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__hadamard_job *job = node->attr;
  const tarn__tensor *dy = node->in[0], *y = node->in[2], *previous = node->in[3], *dx = node->out[0];
  real *work = node->scratch;
  real *dz = work + job->shape.width;
  for (int64_t r = 0; r < dy->rows; r++) {
    real *to = (real *)dx->data + r * dx->cols;
    const real *from = (const real *)dy->data + r * dy->cols;
    const real *sign = y != NULL ? (const real *)y->data + r * y->cols : NULL;
    for (int64_t j = 0; j < dy->cols; j++) dz[j] = sign == NULL || sign[j] > 0 ? from[j] : 0;
    if (previous == NULL) memset(to, 0, (size_t)dx->cols * sizeof *to);
    row_transposed(to, dz, node->in[1]->data, &job->shape, work);
  }
  return TARN_STATUS_OK;
}
