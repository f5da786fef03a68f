#include "device/reference/reference_kernels.h"
#include "ops/embedding.h"

#include <math.h>

typedef TARN_REAL real;

static double position_value(int64_t position, int64_t c, int64_t d, double steps) {
  const int64_t half = d / 2;
  if (c >= 2 * half) return 0.0;  // the last column of an odd width
  const double angle = (double)position * tarn__embedding_turns(c % half, steps) * 6.283185307179586476925;
  return c < half ? sin(angle) : cos(angle);
}

tarn_status TARN__REF(tarn__embedding_ref)(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *y = node->out[0], *positions = node->in[TARN__EMBEDDING_POSITIONS];
  const tarn__embedding_attr *attr = node->attr;
  const real *table = node->in[TARN__EMBEDDING_TABLE]->data;
  const int32_t *ids = node->in[TARN__EMBEDDING_IDS]->data;
  const real keep = (real)tarn__dropout_scale(attr->dropout);
  const real *learned = node->in[TARN__EMBEDDING_LEARNED] ? node->in[TARN__EMBEDDING_LEARNED]->data : NULL;
  const int64_t d = y->cols;
  const bool lookup = node->in[TARN__EMBEDDING_TABLE]->rows > 0;
  for (int64_t r = 0; r < y->rows; r++)
    for (int64_t c = 0; c < d; c++) {
      real value = lookup ? (real)attr->scale * table[ids[r] * d + c] : 0;
      const int64_t place = positions ? ((const int32_t *)positions->data)[r] : 0;
      if (learned)
        value += learned[place * d + c];
      else if (positions)
        value +=
            (real)position_value(place + attr->first + tarn__embedding_shift(attr, exec, r - place), c, d, attr->steps);
      ((real *)y->data)[r * d + c] = tarn__dropout_keeps(attr->dropout, exec, r, c) ? keep * value : 0;
    }
  return TARN_STATUS_OK;
}

tarn_status TARN__REF(tarn__embedding_backward_ref)(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *dy = node->in[TARN__EMBEDDING_BACKWARD_DY];
  const tarn__embedding_attr *attr = node->attr;
  const int32_t *ids = node->in[TARN__EMBEDDING_BACKWARD_IDS]->data;
  tarn__param *table = node->dparam[0];
  real *grad = table->training.grad;
  const real scale = (real)(attr->scale * tarn__dropout_scale(attr->dropout));
  const int64_t d = dy->cols;
  if (!tarn__param_accumulate(table))
    for (int64_t i = 0; i < table->rows * d; i++) grad[i] = 0;
  for (int64_t r = 0; table->training.used_rows && r < dy->rows; r++) table->training.used_rows[ids[r]] = 1;
  for (int64_t r = 0; r < dy->rows; r++)
    for (int64_t c = 0; c < d; c++)
      if (tarn__dropout_keeps(attr->dropout, exec, r, c))
        grad[ids[r] * d + c] += scale * ((const real *)dy->data)[r * d + c];
  return TARN_STATUS_OK;
}
