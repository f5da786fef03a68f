#include "ops/widen.h"

#include "graph/tangents.h"

static const tarn__op op_backward = {.id = TARN__OP_WIDEN_BACKWARD, .name = "widen_backward"};

static void grad(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *x = node->in[TARN__WIDEN_X], *base = node->in[TARN__WIDEN_BASE], *dy = node->out[0]->grad;
  if (x->needs_grad) {
    tarn__node *back = tarn__graph_node(graph, &op_backward, 0);
    back->in[TARN__WIDEN_DY] = dy;
    back->out[0] = tarn__grad_into(graph, x, &back->in[TARN__WIDEN_PREVIOUS]);
    tarn__graph_emit(graph, back);
  }
  if (base && base->needs_grad) tarn__grad_add(graph, base, dy);
}

// A tangent is NULL if zero.
static void tangent(tarn__graph *graph, tarn__node *node) {
  const tarn__tensor *base = node->in[TARN__WIDEN_BASE];
  tarn__tensor *y = node->out[0], *dx = node->in[TARN__WIDEN_X]->tangent, *dbase = base ? base->tangent : NULL;
  y->tangent = dx ? tarn__widen(graph, dbase, dx, y->cols) : dbase;
}

static const tarn__op op_widen = {.id = TARN__OP_WIDEN,
                                  .name = "widen",
                                  .grad = grad,
                                  .tangent = tangent,
                                  .in_place = true,
                                  .inplace_in = TARN__WIDEN_BASE,
                                  .cheap = true};

tarn__tensor *tarn__widen(tarn__graph *graph, tarn__tensor *base, tarn__tensor *x, int64_t cols) {
  if (x->cols > cols || (base && (base->rows != x->rows || base->cols != cols || base->dtype != x->dtype)))
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "widen: its inputs do not fit together");
  tarn__node *node = tarn__graph_node(graph, &op_widen, 0);
  node->in[TARN__WIDEN_X] = x;
  node->in[TARN__WIDEN_BASE] = base;
  node->out[0] = tarn__graph_tensor(graph, x->dtype, x->rows, cols, "widened");
  tarn__graph_emit(graph, node);
  return node->out[0];
}
