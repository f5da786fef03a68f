// Plain C reference: one head of one row at a time.
#include "device/reference/reference_kernels.h"
#include "ops/feature_map.h"

#include <math.h>

typedef TARN_REAL real;

static const real *projection_of(const tarn__node *node) {
  const tarn__tensor *w = node->in[TARN__FEATURE_MAP_PROJECTION];
  return w ? w->data : NULL;
}

// The exponents of softmax features.
static void exponents(real *phi, const real *x, const real *w, const tarn__feature_map_spec *spec, bool query) {
  const real scale = (real)(1.0 / sqrt(sqrt((double)spec->width)));
  real square = 0;
  for (int64_t c = 0; !query && c < spec->width; c++) square += scale * scale * x[c] * x[c];
  for (int64_t j = 0; j < spec->features; j++) {
    phi[j] = -square / 2;
    for (int64_t c = 0; c < spec->width; c++) phi[j] += w[j * spec->width + c] * scale * x[c];
  }
}

tarn_status TARN__REF(tarn__feature_map_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__feature_map_spec *spec = node->attr;
  const tarn__tensor *x = node->in[TARN__FEATURE_MAP_X], *phi = node->out[0];
  const real *w = projection_of(node);
  for (int64_t r = 0; r < x->rows; r++)
    for (int64_t h = 0; h < 2 * spec->heads; h++) {
      const real *from = (const real *)x->data + r * x->cols + tarn__features_column(spec, h);
      real *to = (real *)phi->data + r * phi->cols + h * spec->features;
      if (w) exponents(to, from, w, spec, h < spec->heads);
      for (int64_t c = 0; !w && c < spec->width; c++) to[c] = from[c] > 0 ? from[c] + 1 : (real)exp((double)from[c]);
    }
  return TARN_STATUS_OK;
}

tarn_status TARN__REF(tarn__feature_map_tangent_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__feature_map_spec *spec = node->attr;
  const tarn__tensor *x = node->in[TARN__FEATURE_MAP_X], *phi = node->in[TARN__FEATURE_MAP_PHI];
  const tarn__tensor *dx = node->in[TARN__FEATURE_MAP_DX];
  const real *w = projection_of(node);
  const real scale = (real)(1.0 / sqrt(sqrt((double)spec->width)));
  for (int64_t i = 0; i < dx->rows * 2 * spec->heads; i++) {
    const int64_t row = i / (2 * spec->heads), h = i % (2 * spec->heads), r = row % x->rows;
    const real *own = (const real *)x->data + r * x->cols + tarn__features_column(spec, h);
    const real *moved = (const real *)dx->data + row * x->cols + tarn__features_column(spec, h);
    const real *p = (const real *)phi->data + r * phi->cols + h * spec->features;
    real *to = (real *)node->out[0]->data + row * phi->cols + h * spec->features;
    for (int64_t j = 0; j < spec->features; j++) {
      to[j] = w ? 0 : moved[j] * (p[j] > 1 ? 1 : p[j]);
      for (int64_t c = 0; w && c < spec->width; c++)
        to[j] += scale * moved[c] * (w[j * spec->width + c] - (h < spec->heads ? 0 : scale * own[c]));
    }
  }
  return TARN_STATUS_OK;
}

tarn_status TARN__REF(tarn__feature_map_backward_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__feature_map_spec *spec = node->attr;
  const tarn__tensor *x = node->in[TARN__FEATURE_MAP_X], *phi = node->in[TARN__FEATURE_MAP_PHI];
  const tarn__tensor *dphi = node->in[TARN__FEATURE_MAP_DPHI];
  const real *w = projection_of(node);
  const real scale = (real)(1.0 / sqrt(sqrt((double)spec->width)));
  real *dx = node->out[0]->data;
  for (int64_t i = 0; !node->in[TARN__FEATURE_MAP_PREVIOUS] && i < x->rows * x->cols; i++) dx[i] = 0;
  for (int64_t r = 0; r < x->rows; r++)
    for (int64_t h = 0; h < 2 * spec->heads; h++) {
      const int64_t at = r * x->cols + tarn__features_column(spec, h), features = r * phi->cols + h * spec->features;
      const real *p = (const real *)phi->data + features, *dp = (const real *)dphi->data + features;
      for (int64_t c = 0; c < spec->width; c++) {
        if (!w) {
          dx[at + c] += dp[c] * (p[c] > 1 ? 1 : p[c]);
          continue;
        }
        const real u = h < spec->heads ? 0 : scale * ((const real *)x->data)[at + c];
        real sum = 0;
        for (int64_t j = 0; j < spec->features; j++) sum += dp[j] * (w[j * spec->width + c] - u);
        dx[at + c] += scale * sum;
      }
    }
  return TARN_STATUS_OK;
}
