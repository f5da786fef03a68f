#include <math.h>
#include <string.h>

#include "device/reference/reference_kernels.h"
#include "graph/tangents.h"
#include "ops/gated_conv.h"

typedef TARN_REAL real;

// The inputs of both passes.
typedef struct view {
  const real *x, *u, *v, *kernel;
  const int32_t *offsets;
  int64_t cols, sentences;
} view;

static view view_of(tarn__tensor *const *in) {
  return (view){.x = in[TARN__GC_X]->data,
                .u = in[TARN__GC_U]->data,
                .v = in[TARN__GC_V]->data,
                .kernel = in[TARN__GC_KERNEL]->data,
                .offsets = in[TARN__GC_OFFSETS]->data,
                .cols = in[TARN__GC_X]->cols,
                .sentences = in[TARN__GC_OFFSETS]->cols - 1};
}

static real gate_of(const view *w, int64_t t, int64_t c) {
  return (real)1 / ((real)1 + (real)exp(-(double)(w->u[t * w->cols + c] + w->v[t * w->cols + c])));
}

// The convolution of x at row t of a sentence of rows [first, end).
static real conv_of(const view *w, const real *x, int64_t t, int64_t c, int64_t first, int64_t end) {
  real sum = 0;
  for (int64_t j = -1; j <= 1; j++)
    if (t + j >= first && t + j < end) sum += w->kernel[(j + 1) * w->cols + c] * x[(t + j) * w->cols + c];
  return sum;
}

tarn_status TARN__REF(tarn__gated_conv_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const view w = view_of(node->in);
  real *y = node->out[0]->data;
  for (int64_t s = 0; s < w.sentences; s++)
    for (int64_t t = w.offsets[s]; t < w.offsets[s + 1]; t++)
      for (int64_t c = 0; c < w.cols; c++)
        y[t * w.cols + c] = gate_of(&w, t, c) * conv_of(&w, w.x, t, c, w.offsets[s], w.offsets[s + 1]);
  return TARN_STATUS_OK;
}

// Adds the gradients due to element (t, c) of y.
static void spread(const view *w, const real *dy, real *const d[3], real *dkernel, int64_t t, int64_t c, int64_t first,
                   int64_t end) {
  int64_t at = t * w->cols + c;
  real gate = gate_of(w, t, c);
  real du = dy[at] * conv_of(w, w->x, t, c, first, end) * gate * ((real)1 - gate);
  if (d[TARN__GC_DU]) d[TARN__GC_DU][at] = du;
  if (d[TARN__GC_DV]) d[TARN__GC_DV][at] = du;
  for (int64_t j = -1; j <= 1; j++) {
    if (t + j < first || t + j >= end) continue;
    int64_t from = (t + j) * w->cols + c, k = (j + 1) * w->cols + c;
    if (d[TARN__GC_DX]) d[TARN__GC_DX][from] += dy[at] * gate * w->kernel[k];
    if (dkernel) dkernel[k] += dy[at] * gate * w->x[from];
  }
}

tarn_status TARN__REF(tarn__gated_conv_backward_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const view w = view_of(node->in + 1);
  const real *dy = node->in[TARN__GC_DY]->data;
  real *d[3];
  for (int k = 0; k < 3; k++) d[k] = node->out[k] ? node->out[k]->data : NULL;
  tarn__param *kernel = node->dparam[0];
  real *dkernel = kernel ? kernel->training.grad : NULL;
  if (kernel && !tarn__param_accumulate(kernel)) memset(dkernel, 0, 3 * (size_t)w.cols * sizeof *dkernel);
  if (d[TARN__GC_DX]) memset(d[TARN__GC_DX], 0, (size_t)(node->out[0]->rows * w.cols) * sizeof(real));
  for (int64_t s = 0; s < w.sentences; s++)
    for (int64_t t = w.offsets[s]; t < w.offsets[s + 1]; t++)
      for (int64_t c = 0; c < w.cols; c++) spread(&w, dy, d, dkernel, t, c, w.offsets[s], w.offsets[s + 1]);
  return TARN_STATUS_OK;
}

// One direction, with the tangents of x, u and v, each NULL if zero.
static void tangent(real *dy, const view *w, const real *const d[3]) {
  for (int64_t s = 0; s < w->sentences; s++)
    for (int64_t i = w->offsets[s] * w->cols; i < w->offsets[s + 1] * w->cols; i++) {
      const int64_t t = i / w->cols, c = i % w->cols, first = w->offsets[s], end = w->offsets[s + 1];
      const real gate = gate_of(w, t, c), moved = (d[1] ? d[1][i] : 0) + (d[2] ? d[2][i] : 0);
      dy[i] = gate * ((real)1 - gate) * moved * conv_of(w, w->x, t, c, first, end);
      if (d[0]) dy[i] += gate * conv_of(w, d[0], t, c, first, end);
    }
}

tarn_status TARN__REF(tarn__gated_conv_tangent_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const view w = view_of(node->in);
  const tarn__tensor *y = node->out[0], *x = node->in[TARN__GC_X];
  const int64_t size = x->rows * x->cols;
  for (int64_t k = 0; k < tarn__tangent_directions(y, x->rows); k++) {
    const real *d[3];
    for (int i = 0; i < 3; i++) {
      const tarn__tensor *moved = node->in[TARN__GC_TANGENTS + i];
      d[i] = moved ? (const real *)moved->data + k * size : NULL;
    }
    tangent((real *)y->data + k * size, &w, d);
  }
  return TARN_STATUS_OK;
}
