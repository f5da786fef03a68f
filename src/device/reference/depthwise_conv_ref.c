// Plain C reference.
#include "device/reference/reference_kernels.h"
#include "ops/depthwise_conv.h"

#include <math.h>

#include "ops/offsets.h"

typedef TARN_REAL real;

static const real *values(const tarn__tensor *tensor) { return tensor->data; }

// The kernels of row r: softmax in p, and with dropout in w; both [heads * width].
static void kernel_of_row(real *p, real *w, const tarn__exec *exec, const tarn__node *node, int64_t r) {
  const tarn__conv_attr *attr = node->attr;
  const tarn__tensor *logits = node->in[TARN__CONV_LOGITS];
  const int64_t width = attr->spec.width;
  const real scale = (real)tarn__dropout_scale(attr->dropout);
  for (int64_t h = 0; h < attr->spec.heads; h++) {
    const real *x = values(logits) + (logits->rows == 1 ? 0 : r * logits->cols) + h * width;
    real most = x[0], sum = 0;
    for (int64_t k = 1; k < width; k++)
      if (x[k] > most) most = x[k];
    for (int64_t k = 0; k < width; k++) sum += p[h * width + k] = (real)exp((double)(x[k] - most));
    for (int64_t k = 0; k < width; k++) {
      p[h * width + k] /= sum;
      const bool kept = tarn__dropout_keeps(attr->dropout, exec, r, h * width + k);
      w[h * width + k] = kept ? scale * p[h * width + k] : 0;
    }
  }
}

// The row of x at tap k of row r, or -1.
static int64_t tap(const tarn__node *node, int64_t r, int64_t k) {
  const tarn__conv_spec *spec = &((const tarn__conv_attr *)node->attr)->spec;
  const tarn__tensor *offsets = node->in[TARN__CONV_OFFSETS];
  if (!offsets) {
    const int32_t *range = node->in[TARN__CONV_RANGES]->data, *list = node->in[TARN__CONV_ROWS]->data;
    const int64_t at = range[2 * r + 1] - spec->width + k;
    return at < range[2 * r] ? -1 : list[at];
  }
  const int64_t s = tarn__offsets_find(offsets, r), at = r + k - spec->before;
  const int32_t *offset = offsets->data;
  return at < offset[s] || at >= offset[s + 1] ? -1 : at;
}

tarn_status TARN__REF(tarn__conv_ref)(const tarn__exec *exec, const tarn__node *node) {
  const tarn__conv_spec *spec = &((const tarn__conv_attr *)node->attr)->spec;
  const tarn__tensor *x = node->in[TARN__CONV_X], *y = node->out[0];
  const int64_t d = x->cols, channels = d / spec->heads;
  real *p = node->scratch, *w = p + spec->heads * spec->width;
  for (int64_t r = 0; r < y->rows; r++) {
    real *out = (real *)y->data + r * d;
    kernel_of_row(p, w, exec, node, r);
    for (int64_t c = 0; c < d; c++) out[c] = 0;
    for (int64_t k = 0; k < spec->width; k++) {
      const int64_t from = tap(node, r, k);
      for (int64_t c = 0; from >= 0 && c < d; c++)
        out[c] += w[c / channels * spec->width + k] * values(x)[from * d + c];
    }
  }
  return TARN_STATUS_OK;
}

// Adds the gradient of the logits of row r to `to` [heads * width]: the gradient of each weight times the weight, minus
// the softmax's correction. Overwrites w.
static void logits_of_row(real *to, const real *p, real *w, const tarn__node *node, int64_t r) {
  const tarn__conv_spec *spec = &((const tarn__conv_attr *)node->attr)->spec;
  const tarn__tensor *x = node->in[TARN__CONV_X], *dy = node->in[TARN__CONV_DY];
  const int64_t d = dy->cols, channels = d / spec->heads;
  for (int64_t h = 0; h < spec->heads; h++) {
    real sum = 0;
    for (int64_t k = 0; k < spec->width; k++) {
      const int64_t from = tap(node, r, k);
      real g = 0;
      for (int64_t c = h * channels; from >= 0 && c < (h + 1) * channels; c++)
        g += values(dy)[r * d + c] * values(x)[from * d + c];
      sum += w[h * spec->width + k] *= g;
    }
    for (int64_t k = h * spec->width; k < (h + 1) * spec->width; k++) to[k] += w[k] - p[k] * sum;
  }
}

tarn_status TARN__REF(tarn__conv_backward_ref)(const tarn__exec *exec, const tarn__node *node) {
  const tarn__conv_spec *spec = &((const tarn__conv_attr *)node->attr)->spec;
  const tarn__tensor *dy = node->in[TARN__CONV_DY];
  tarn__tensor *dx = node->out[TARN__CONV_DX], *dlogits = node->out[TARN__CONV_DLOGITS];
  const int64_t d = dy->cols, channels = d / spec->heads, size = spec->heads * spec->width;
  real *p = node->scratch, *w = p + size;
  real *dparam = node->dparam[0] ? node->dparam[0]->training.grad : NULL;
  if (dparam && !tarn__param_accumulate(node->dparam[0]))
    for (int64_t i = 0; i < size; i++) dparam[i] = 0;
  for (int64_t i = 0; dx && !node->in[TARN__CONV_PREVIOUS] && i < dy->rows * d; i++) ((real *)dx->data)[i] = 0;
  for (int64_t i = 0; dlogits && !node->in[TARN__CONV_PREVIOUS_LOGITS] && i < dy->rows * size; i++)
    ((real *)dlogits->data)[i] = 0;
  for (int64_t r = 0; r < dy->rows; r++) {
    kernel_of_row(p, w, exec, node, r);
    for (int64_t k = 0; dx && k < spec->width; k++) {
      const int64_t from = tap(node, r, k);
      for (int64_t c = 0; from >= 0 && c < d; c++)
        ((real *)dx->data)[from * d + c] += w[c / channels * spec->width + k] * values(dy)[r * d + c];
    }
    if (dlogits) logits_of_row((real *)dlogits->data + r * size, p, w, node, r);
    if (dparam) logits_of_row(dparam, p, w, node, r);
  }
  return TARN_STATUS_OK;
}

// Replaces the softmax p by the masked weights of row r, each times the tangent of its logit minus the mean tangent.
static void moved_weights(real *p, const real *w, const real *dlogits, const tarn__conv_spec *spec) {
  for (int64_t h = 0; h < spec->heads; h++) {
    real mean = 0;
    for (int64_t k = h * spec->width; k < (h + 1) * spec->width; k++) mean += p[k] * dlogits[k];
    for (int64_t k = h * spec->width; k < (h + 1) * spec->width; k++) p[k] = w[k] * (dlogits[k] - mean);
  }
}

tarn_status TARN__REF(tarn__conv_tangent_ref)(const tarn__exec *exec, const tarn__node *node) {
  const tarn__conv_spec *spec = &((const tarn__conv_attr *)node->attr)->spec;
  const tarn__tensor *x = node->in[TARN__CONV_X], *dx = node->in[TARN__CONV_TANGENT_X];
  const tarn__tensor *dlogits = node->in[TARN__CONV_TANGENT_LOGITS];
  const int64_t d = x->cols, channels = d / spec->heads, size = spec->heads * spec->width;
  real *p = node->scratch, *w = p + size;
  for (int64_t row = 0; row < node->out[0]->rows; row++) {
    const int64_t r = row % x->rows, block = row - r;
    real *out = (real *)node->out[0]->data + row * d;
    kernel_of_row(p, w, exec, node, r);
    if (dlogits) moved_weights(p, w, values(dlogits) + row * size, spec);
    for (int64_t c = 0; c < d; c++) out[c] = 0;
    for (int64_t k = 0; k < spec->width; k++) {
      const int64_t from = tap(node, r, k);
      for (int64_t c = 0; from >= 0 && c < d; c++) {
        const int64_t weight = c / channels * spec->width + k;
        if (dx) out[c] += w[weight] * values(dx)[(block + from) * d + c];
        if (dlogits) out[c] += p[weight] * values(x)[from * d + c];
      }
    }
  }
  return TARN_STATUS_OK;
}

size_t TARN__REF(tarn__conv_ref_scratch)(const tarn__node *node, int threads) {
  (void)threads;
  const tarn__conv_spec *spec = &((const tarn__conv_attr *)node->attr)->spec;
  return (size_t)(2 * spec->heads * spec->width) * sizeof(real);
}
