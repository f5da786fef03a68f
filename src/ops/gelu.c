#include "ops/gelu.h"

#include "device/cpu/isa.h"
#include "ops/linear.h"

void tarn__gelu_block(void *y, const void *x, tarn__dtype dtype, tarn__activation form, int64_t ld, int64_t row,
                      int64_t rows, int64_t column, int64_t columns) {
  const tarn__gelu_kernels *kernels = TARN__TABLE_NOW(tarn__gelu_kernels);
  for (int64_t r = row; r < row + rows; r++)
    kernels->forward(y, x, dtype, form, r * ld + column, r * ld + column + columns);
}

static tarn_status forward_cpu(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *x = node->in[0], *y = node->out[0];
  const tarn__activation form = *(const tarn__activation *)node->attr;
#pragma omp parallel for schedule(static) num_threads(exec->threads)
  for (int part = 0; part < exec->threads; part++) {
    const int64_t first = x->rows * part / exec->threads, last = x->rows * (part + 1) / exec->threads;
    tarn__gelu_block(y->data, x->data, x->dtype, form, x->cols, first, last - first, 0, x->cols);
  }
  return TARN_STATUS_OK;
}

static void gradient(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *x = node->in[0], *dy = node->out[0]->grad;
  if (!x->needs_grad) return;
  tarn__grad_add(graph, x, tarn__linear_dz(graph, dy, x, NULL, *(const tarn__activation *)node->attr));
}

static const tarn__op gelu_op = {.name = "gelu",
                                 .grad = gradient,
                                 .in_place = true,
                                 .cheap = true,
                                 .reference_f32 = tarn__gelu_ref_f32,
                                 .reference_f64 = tarn__gelu_ref_f64,
                                 .cpu = forward_cpu};

tarn__tensor *tarn__gelu(tarn__graph *graph, tarn__tensor *x, tarn__activation form) {
  if (!tarn__is_gelu(form)) tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "gelu: the activation is another one");
  tarn__node *node = tarn__graph_node(graph, &gelu_op, sizeof form);
  *(tarn__activation *)node->attr = form;
  node->in[0] = x;
  tarn__tensor *y = node->out[0] = tarn__graph_tensor(graph, x->dtype, x->rows, x->cols, "gelu");
  tarn__graph_emit(graph, node);
  return y;
}
