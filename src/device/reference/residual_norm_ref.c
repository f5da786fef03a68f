// Plain C reference. Outputs may overwrite inputs, so every row is read before it is written.
#include "device/reference/reference_kernels.h"
#include "ops/residual_norm.h"

#include <math.h>

typedef TARN_REAL real;

static real value_or_zero(const tarn__tensor *tensor, int64_t i) {
  return tensor ? ((const real *)tensor->data)[i] : 0;
}

// The gain of a column; with SCALE, one number divided by sqrt(d).
static real gain_at(const tarn__node *node, const tarn__tensor *gain, int64_t c, int64_t d) {
  const bool scalar = ((const tarn__residual_norm_attr *)node->attr)->form == TARN__NORM_SCALE;
  return scalar ? ((const real *)gain->data)[0] / (real)sqrt((double)d) : ((const real *)gain->data)[c];
}

tarn_status TARN__REF(tarn__residual_norm_ref)(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *x = node->in[TARN__RN_X], *branch = node->in[TARN__RN_BRANCH];
  const tarn__tensor *sum = node->out[TARN__RN_SUM], *y = node->out[TARN__RN_Y], *stats = node->out[TARN__RN_STATS];
  const tarn__residual_norm_attr *attr = node->attr;
  const real scale = (real)tarn__dropout_scale(attr->dropout);
  const bool centred = attr->form == TARN__NORM_LAYER;
  const int64_t d = x->cols;
  real *row = node->scratch;
  for (int64_t r = 0; r < x->rows; r++) {
    real mean = 0, variance = 0;  // RMS: about zero
    for (int64_t c = 0; c < d; c++) {
      row[c] = (real)attr->skip * ((const real *)x->data)[r * d + c];
      if (branch && tarn__dropout_keeps(attr->dropout, exec, r, c))
        row[c] += scale * ((const real *)branch->data)[r * d + c];
      if (centred) mean += row[c] / (real)d;
    }
    for (int64_t c = 0; sum && c < d; c++) ((real *)sum->data)[r * d + c] = row[c];
    if (!y) continue;
    for (int64_t c = 0; c < d; c++) variance += (row[c] - mean) * (row[c] - mean) / (real)d;
    real rstd = 1 / (real)sqrt((double)(variance + (real)attr->epsilon));
    for (int64_t c = 0; c < d; c++)
      ((real *)y->data)[r * d + c] = (row[c] - mean) * rstd * gain_at(node, node->in[TARN__RN_GAIN], c, d) +
                                     value_or_zero(node->in[TARN__RN_BIAS], c);
    if (stats && centred) ((real *)stats->data)[2 * r] = mean;
    if (stats) ((real *)stats->data)[stats->cols * (r + 1) - 1] = rstd;
  }
  return TARN_STATUS_OK;
}

// Computes dsum of one row in row[]; adds to the gradients of gain and bias.
static void norm_row(real *row, const tarn__node *node, int64_t r, int64_t d) {
  const real *dy = (const real *)node->in[TARN__RN_DY]->data + r * d;
  const real *saved = (const real *)node->in[TARN__RN_SAVED]->data + r * d;
  const tarn__tensor *stats = node->in[TARN__RN_SAVED_STATS];
  const real *stat = (const real *)stats->data + stats->cols * r;
  const tarn__tensor *gain = node->in[TARN__RN_SAVED_GAIN];
  const tarn__norm_form form = ((const tarn__residual_norm_attr *)node->attr)->form;
  const bool centred = form == TARN__NORM_LAYER;
  const tarn__param *dgain = node->dparam[TARN__RN_DGAIN];
  const real mean = centred ? stat[0] : 0, rstd = stat[stats->cols - 1];
  real mean_g = 0, mean_gx = 0;
  for (int64_t c = 0; c < d; c++) {
    real normal = (saved[c] - mean) * rstd;
    const real g = gain_at(node, gain, c, d) * dy[c];
    if (centred) mean_g += g / (real)d;
    mean_gx += g * normal / (real)d;
    if (dgain && form == TARN__NORM_SCALE)
      ((real *)dgain->training.grad)[0] += dy[c] * normal / (real)sqrt((double)d);
    else if (dgain)
      ((real *)dgain->training.grad)[c] += dy[c] * normal;
    if (node->dparam[TARN__RN_DBIAS]) ((real *)node->dparam[TARN__RN_DBIAS]->training.grad)[c] += dy[c];
  }
  for (int64_t c = 0; c < d; c++) {
    real normal = (saved[c] - mean) * rstd;
    row[c] = rstd * (gain_at(node, gain, c, d) * dy[c] - mean_g - normal * mean_gx) +
             value_or_zero(node->in[TARN__RN_DSUM], r * d + c);
  }
}

tarn_status TARN__REF(tarn__residual_norm_backward_ref)(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *dy = node->in[TARN__RN_DY], *dsum = node->in[TARN__RN_DSUM];
  const tarn__tensor *dx = node->out[TARN__RN_DX], *dbranch = node->out[TARN__RN_DBRANCH];
  const tarn__residual_norm_attr *attr = node->attr;
  const real scale = (real)tarn__dropout_scale(attr->dropout);
  const int64_t rows = dy ? dy->rows : dsum->rows, d = dy ? dy->cols : dsum->cols;
  real *row = node->scratch;
  for (int p = 0; p < TARN__MAX_PARAM_GRADS; p++)
    if (node->dparam[p] && !tarn__param_accumulate(node->dparam[p]))
      for (int64_t c = 0; c < node->dparam[p]->cols; c++) ((real *)node->dparam[p]->training.grad)[c] = 0;
  for (int64_t r = 0; r < rows; r++) {
    if (dy)
      norm_row(row, node, r, d);
    else
      for (int64_t c = 0; c < d; c++) row[c] = value_or_zero(dsum, r * d + c);
    for (int64_t c = 0; dx && c < d; c++)
      ((real *)dx->data)[r * d + c] = (real)attr->skip * row[c] + value_or_zero(node->in[TARN__RN_PREVIOUS], r * d + c);
    for (int64_t c = 0; dbranch && c < d; c++)
      ((real *)dbranch->data)[r * d + c] = tarn__dropout_keeps(attr->dropout, exec, r, c) ? scale * row[c] : 0;
  }
  return TARN_STATUS_OK;
}

tarn_status TARN__REF(tarn__residual_norm_tangent_ref)(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *dx = node->in[TARN__RN_TANGENT_X], *dbranch = node->in[TARN__RN_TANGENT_BRANCH];
  const tarn__tensor *saved = node->in[TARN__RN_TANGENT_SAVED], *stats = node->in[TARN__RN_TANGENT_STATS];
  const tarn__tensor *dsum = node->out[TARN__RN_TANGENT_SUM], *dy = node->out[TARN__RN_TANGENT_Y];
  const tarn__residual_norm_attr *attr = node->attr;
  const real scale = (real)tarn__dropout_scale(attr->dropout);
  const bool centred = attr->form == TARN__NORM_LAYER;
  const int64_t rows = (dx ? dx : dbranch)->rows, d = saved->cols;
  real *t = node->scratch;
  for (int64_t r = 0; r < rows; r++) {
    const int64_t row = r % saved->rows;
    for (int64_t c = 0; c < d; c++) {
      t[c] = (real)attr->skip * value_or_zero(dx, r * d + c);
      if (dbranch && tarn__dropout_keeps(attr->dropout, exec, row, c))
        t[c] += scale * ((const real *)dbranch->data)[r * d + c];
    }
    for (int64_t c = 0; dsum && c < d; c++) ((real *)dsum->data)[r * d + c] = t[c];
    if (!dy) continue;
    const real *x = (const real *)saved->data + row * d, *stat = (const real *)stats->data + stats->cols * row;
    const real mean = centred ? stat[0] : 0, rstd = stat[stats->cols - 1];
    real mean_t = 0, mean_nt = 0;
    for (int64_t c = 0; c < d; c++) {
      if (centred) mean_t += t[c] / (real)d;
      mean_nt += (x[c] - mean) * rstd * t[c] / (real)d;
    }
    for (int64_t c = 0; c < d; c++)
      ((real *)dy->data)[r * d + c] = gain_at(node, node->in[TARN__RN_TANGENT_GAIN], c, d) * rstd *
                                      (t[c] - mean_t - (x[c] - mean) * rstd * mean_nt);
  }
  return TARN_STATUS_OK;
}

size_t TARN__REF(tarn__residual_norm_tangent_ref_scratch)(const tarn__node *node, int threads) {
  (void)threads;
  return (size_t)node->in[TARN__RN_TANGENT_SAVED]->cols * sizeof(real);
}

size_t TARN__REF(tarn__residual_norm_ref_scratch)(const tarn__node *node, int threads) {
  (void)threads;
  return (size_t)((node->in[0] ? node->in[0] : node->in[1])->cols) * sizeof(real);
}
