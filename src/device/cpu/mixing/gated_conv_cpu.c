// Sentences are divided among the threads in equal numbers, so the rows of each sum depend only on the number of
// threads.
#include "device/cpu/isa/row_cpu.h"
#include "device/cpu/node_tables.h"
#include "ops/gated_conv.h"

typedef struct view {
  const tarn__tensor *x, *u, *v;
  const float *kernel;
  const int32_t *offsets;
  int64_t cols, sentences;
  size_t width;  // floats of a row of scratch
} view;

static view view_of(tarn__tensor *const *in) {
  return (view){.x = in[TARN__GC_X],
                .u = in[TARN__GC_U],
                .v = in[TARN__GC_V],
                .kernel = in[TARN__GC_KERNEL]->data,
                .offsets = in[TARN__GC_OFFSETS]->data,
                .cols = in[TARN__GC_X]->cols,
                .sentences = in[TARN__GC_OFFSETS]->cols - 1,
                .width = tarn__row_floats(in[TARN__GC_X]->cols)};
}

static void gate_row(float *gate, const view *w, int64_t t, float *scratch) {
  const float *u = tarn__row_read(w->u->data, w->u->dtype, t * w->cols, w->cols, gate);
  const float *v = tarn__row_read(w->v->data, w->v->dtype, t * w->cols, w->cols, scratch);
#pragma omp simd
  for (int64_t c = 0; c < w->cols; c++) gate[c] = 1.0f / (1.0f + tarn__row_exp(-(u[c] + v[c])));
}

// The convolution of x, or of rows of its tangents, in which case `t`, `first` and `end` are rows of these.
static void conv_row(float *conv, const view *w, const tarn__tensor *of, int64_t t, int64_t first, int64_t end,
                     float *scratch) {
  memset(conv, 0, (size_t)w->cols * sizeof *conv);
  for (int64_t j = -1; j <= 1; j++) {
    if (t + j < first || t + j >= end) continue;
    const float *x = tarn__row_read(of->data, of->dtype, (t + j) * w->cols, w->cols, scratch);
    const float *kernel = w->kernel + (j + 1) * w->cols;
#pragma omp simd
    for (int64_t c = 0; c < w->cols; c++) conv[c] = tarn__fma(kernel[c], x[c], conv[c]);
  }
}

static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
  const view w = view_of(node->in);
  const tarn__tensor *out = node->out[0];
#pragma omp parallel for schedule(static) num_threads(exec->threads)
  for (int part = 0; part < exec->threads; part++) {
    float *gate = (float *)node->scratch + (size_t)part * TARN__GC_FORWARD_ROWS * w.width;
    float *conv = gate + w.width, *row = conv + w.width, *other = row + w.width;
    for (int64_t s = w.sentences * part / exec->threads; s < w.sentences * (part + 1) / exec->threads; s++)
      for (int64_t t = w.offsets[s]; t < w.offsets[s + 1]; t++) {
        gate_row(gate, &w, t, other);
        conv_row(conv, &w, w.x, t, w.offsets[s], w.offsets[s + 1], other);
        float *y = tarn__row_target(out->data, out->dtype, t * w.cols, row);
#pragma omp simd
        for (int64_t c = 0; c < w.cols; c++) y[c] = gate[c] * conv[c];
        tarn__row_write(out->data, out->dtype, t * w.cols, w.cols, y);
      }
  }
  return TARN_STATUS_OK;
}

// Rows of scratch of the backward pass. PAST, NOW and NEXT rotate as a ring: the gradients of three rows of x.
enum { GATE, CONV, DY, OUT, OTHER, PAST, NOW, NEXT, DKERNEL, DKERNEL_END = DKERNEL + 3 };
_Static_assert((int)DKERNEL_END <= (int)TARN__GC_BACKWARD_ROWS, "scratch");

static void store(const tarn__tensor *out, int64_t t, const float *row, int64_t cols) {
  if (out) tarn__row_write(out->data, out->dtype, t * cols, cols, row);
}

// Row t: the gradients of u and v, and its contributions to those of x (ring[j + 1] is row t + j) and of the kernel.
static void backward_row(const view *w, const tarn__node *node, float *scratch, float *const ring[3], int64_t t,
                         int64_t first, int64_t end) {
  const tarn__tensor *dy_tensor = node->in[TARN__GC_DY];
  float *gate = scratch + GATE * w->width, *conv = scratch + CONV * w->width, *out = scratch + OUT * w->width;
  float *dkernel = scratch + DKERNEL * w->width, *other = scratch + OTHER * w->width;
  const float *dy = tarn__row_read(dy_tensor->data, dy_tensor->dtype, t * w->cols, w->cols, scratch + DY * w->width);
  gate_row(gate, w, t, other);
  conv_row(conv, w, w->x, t, first, end, other);
#pragma omp simd
  for (int64_t c = 0; c < w->cols; c++) {
    out[c] = dy[c] * conv[c] * gate[c] * (1.0f - gate[c]);
    gate[c] *= dy[c];
  }
  store(node->out[TARN__GC_DU], t, out, w->cols);
  store(node->out[TARN__GC_DV], t, out, w->cols);
  for (int64_t j = -1; j <= 1; j++) {
    if (t + j < first || t + j >= end) continue;
    const float *x = tarn__row_read(w->x->data, w->x->dtype, (t + j) * w->cols, w->cols, other);
    const float *kernel = w->kernel + (j + 1) * w->cols;
    float *dx = ring[j + 1], *dk = dkernel + (size_t)(j + 1) * w->width;
#pragma omp simd
    for (int64_t c = 0; c < w->cols; c++) {
      dx[c] = tarn__fma(gate[c], kernel[c], dx[c]);
      dk[c] = tarn__fma(gate[c], x[c], dk[c]);
    }
  }
}

static void backward_sentence(const view *w, const tarn__node *node, float *scratch, int64_t first, int64_t end) {
  float *ring[3] = {scratch + PAST * w->width, scratch + NOW * w->width, scratch + NEXT * w->width};
  for (int k = 0; k < 3; k++) memset(ring[k], 0, (size_t)w->cols * sizeof(float));
  for (int64_t t = first; t < end; t++) {
    backward_row(w, node, scratch, ring, t, first, end);
    if (t > first) store(node->out[TARN__GC_DX], t - 1, ring[0], w->cols);
    float *free_row = ring[0];
    ring[0] = ring[1];
    ring[1] = ring[2];
    ring[2] = free_row;
    memset(free_row, 0, (size_t)w->cols * sizeof(float));
  }
  if (end > first) store(node->out[TARN__GC_DX], end - 1, ring[0], w->cols);
}

static tarn_status backward(const tarn__exec *exec, const tarn__node *node) {
  const view w = view_of(node->in + 1);
  const size_t each = TARN__GC_BACKWARD_ROWS * w.width;
  float *scratch = node->scratch;
#pragma omp parallel for schedule(static) num_threads(exec->threads)
  for (int part = 0; part < exec->threads; part++) {
    float *own = scratch + (size_t)part * each;
    memset(own + DKERNEL * w.width, 0, 3 * w.width * sizeof *own);
    for (int64_t s = w.sentences * part / exec->threads; s < w.sentences * (part + 1) / exec->threads; s++)
      backward_sentence(&w, node, own, w.offsets[s], w.offsets[s + 1]);
  }
  tarn__param *kernel = node->dparam[0];
  if (!kernel) return TARN_STATUS_OK;
  float *dkernel = kernel->training.grad;
  if (!tarn__param_accumulate(kernel)) memset(dkernel, 0, 3 * (size_t)w.cols * sizeof *dkernel);
  for (int part = 0; part < exec->threads; part++)
    for (int k = 0; k < 3; k++)
      tarn__row_add(dkernel + k * w.cols, scratch + (size_t)part * each + (size_t)(DKERNEL + k) * w.width, w.cols);
  return TARN_STATUS_OK;
}

// Row t of all directions. scratch: four rows: the gate, the convolution, that of the tangents, and a part of it.
static void tangent_row(const view *w, const tarn__node *node, float *scratch, int64_t t, int64_t first, int64_t end) {
  const tarn__tensor *const *d = (const tarn__tensor *const *)node->in + TARN__GC_TANGENTS;
  float *gate = scratch, *conv = gate + w->width, *moved = conv + w->width, *other = moved + w->width;
  gate_row(gate, w, t, other);
  conv_row(conv, w, w->x, t, first, end, other);
  for (int64_t c = 0; c < w->cols; c++) conv[c] *= gate[c] * (1.0f - gate[c]);
  for (int64_t block = 0; block < node->out[0]->rows; block += w->x->rows) {
    float *dy = (float *)node->out[0]->data + (block + t) * w->cols;
    if (d[TARN__GC_X])
      conv_row(moved, w, d[TARN__GC_X], block + t, block + first, block + end, other);
    else
      memset(moved, 0, (size_t)w->cols * sizeof *moved);
    for (int64_t c = 0; c < w->cols; c++) dy[c] = gate[c] * moved[c];
    for (int k = TARN__GC_U; k <= TARN__GC_V; k++) {
      const float *du = d[k] ? (const float *)d[k]->data + (block + t) * w->cols : NULL;
      for (int64_t c = 0; du && c < w->cols; c++) dy[c] = tarn__fma(conv[c], du[c], dy[c]);
    }
  }
}

static tarn_status tangent(const tarn__exec *exec, const tarn__node *node) {
  const view w = view_of(node->in);
#pragma omp parallel for schedule(static) num_threads(exec->threads)
  for (int part = 0; part < exec->threads; part++) {
    float *own = (float *)node->scratch + (size_t)part * TARN__GC_FORWARD_ROWS * w.width;
    for (int64_t s = w.sentences * part / exec->threads; s < w.sentences * (part + 1) / exec->threads; s++)
      for (int64_t t = w.offsets[s]; t < w.offsets[s + 1]; t++)
        tangent_row(&w, node, own, t, w.offsets[s], w.offsets[s + 1]);
  }
  return TARN_STATUS_OK;
}

const tarn__gated_conv_kernels TARN__FAST(tarn__gated_conv_kernels) = {
    .forward = forward, .backward = backward, .tangent = tangent};
