#include "ops/rotary.h"

#include "graph/tangents.h"

static const tarn__op op_backward = {.id = TARN__OP_ROTARY_BACKWARD,
                                     .name = "rotary_backward",
                                     .in_place = true,
                                     .inplace_out = 0,
                                     .inplace_in = TARN__ROTARY_X};

// A rotation is orthogonal: its gradient is the rotation back.
static void grad(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *x = node->in[TARN__ROTARY_X];
  tarn__node *back = tarn__graph_node(graph, &op_backward, sizeof(tarn__rotary_attr));
  *(tarn__rotary_attr *)back->attr = (tarn__rotary_attr){((const tarn__rotary_attr *)node->attr)->spec, true};
  back->in[TARN__ROTARY_X] = node->out[0]->grad;
  back->in[TARN__ROTARY_POSITIONS] = node->in[TARN__ROTARY_POSITIONS];
  tarn__tensor *dx = back->out[0] = tarn__graph_tensor(graph, x->dtype, x->rows, x->cols, "gradient");
  tarn__graph_emit(graph, back);
  tarn__grad_add(graph, x, dx);
}

static void tangent(tarn__graph *graph, tarn__node *node) {
  node->out[0]->tangent = tarn__rotary(graph, node->in[TARN__ROTARY_X]->tangent,
                                       tarn__tangent_positions(graph, node->in[TARN__ROTARY_POSITIONS]),
                                       ((const tarn__rotary_attr *)node->attr)->spec);
}

static const tarn__op op_rotary = {.id = TARN__OP_ROTARY,
                                   .name = "rotary",
                                   .grad = grad,
                                   .tangent = tangent,
                                   .in_place = true,
                                   .inplace_out = 0,
                                   .inplace_in = TARN__ROTARY_X,
                                   .cheap = true};

static bool fits(const tarn__tensor *x, const tarn__tensor *positions, const tarn__rotary_spec *spec) {
  return spec->heads > 0 && spec->width > 0 && spec->column >= 0 &&
         spec->column + spec->heads * spec->width <= x->cols && spec->rotated > 0 && spec->rotated <= spec->width &&
         spec->rotated % 2 == 0 && spec->base > 1.0 &&
         (spec->scaling.original <= 0.0 || spec->scaling.high > spec->scaling.low) && positions->dtype == TARN__I32 &&
         positions->rows == 1 && positions->cols == x->rows;
}

tarn__tensor *tarn__rotary(tarn__graph *graph, tarn__tensor *x, tarn__tensor *positions, tarn__rotary_spec spec) {
  if (!fits(x, positions, &spec))
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "rotary: its inputs do not fit together");
  tarn__node *node = tarn__graph_node(graph, &op_rotary, sizeof(tarn__rotary_attr));
  *(tarn__rotary_attr *)node->attr = (tarn__rotary_attr){spec, false};
  node->in[TARN__ROTARY_X] = x;
  node->in[TARN__ROTARY_POSITIONS] = positions;
  tarn__tensor *y = node->out[0] = tarn__graph_tensor(graph, x->dtype, x->rows, x->cols, "rotary");
  tarn__graph_emit(graph, node);
  return y;
}
