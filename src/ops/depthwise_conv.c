#include "ops/depthwise_conv.h"

#include "graph/tangents.h"
#include "ops/offsets.h"

// Fails with INTERNAL unless sentences cover all rows, or single rows name rows of x.
static tarn_status check(const tarn__node *node) {
  const tarn__tensor *offsets = node->in[TARN__CONV_OFFSETS];
  if (offsets) {
    const tarn__tensor *any = node->in[TARN__CONV_X] ? node->in[TARN__CONV_X] : node->in[TARN__CONV_DY];
    return tarn__offsets_check(offsets, any->rows, "depthwise_conv", "sentences");
  }
  return tarn__ranges_check(node->in[TARN__CONV_ROWS], node->in[TARN__CONV_RANGES], node->out[0]->rows,
                            node->in[TARN__CONV_X]->rows, "depthwise_conv");
}

// Taps of one head over all rows.
static double taps(const tarn__node *node, int64_t rows) {
  const tarn__conv_spec *spec = &((const tarn__conv_attr *)node->attr)->spec;
  return tarn__offsets_taps(node->in[TARN__CONV_OFFSETS], rows, spec->width, spec->before);
}

static double flops(const tarn__node *node) {
  return 2.0 * taps(node, node->out[0]->rows) * (double)node->in[TARN__CONV_X]->cols;
}

static double backward_flops(const tarn__node *node) {
  const tarn__tensor *dy = node->in[TARN__CONV_DY];
  const int products = (node->out[TARN__CONV_DX] != NULL) + (node->in[TARN__CONV_X] != NULL);
  return products * 2.0 * taps(node, dy->rows) * (double)dy->cols;
}

static const tarn__op op_backward = {
    .id = TARN__OP_DEPTHWISE_CONV_BACKWARD, .name = "depthwise_conv_backward", .flops = backward_flops, .check = check};

static void grad(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *x = node->in[TARN__CONV_X], *logits = node->in[TARN__CONV_LOGITS];
  tarn__node *back = tarn__graph_node(graph, &op_backward, sizeof(tarn__conv_attr));
  *(tarn__conv_attr *)back->attr = *(const tarn__conv_attr *)node->attr;
  back->in[TARN__CONV_LOGITS] = logits;
  back->in[TARN__CONV_OFFSETS] = node->in[TARN__CONV_OFFSETS];
  back->in[TARN__CONV_DY] = node->out[0]->grad;
  if (logits->needs_grad) {
    back->in[TARN__CONV_X] = x;
    if (logits->param)
      back->dparam[0] = logits->param;
    else
      back->out[TARN__CONV_DLOGITS] = tarn__grad_into(graph, logits, &back->in[TARN__CONV_PREVIOUS_LOGITS]);
  }
  if (x->needs_grad) back->out[TARN__CONV_DX] = tarn__grad_into(graph, x, &back->in[TARN__CONV_PREVIOUS]);
  tarn__graph_emit(graph, back);
}

// Both products of each direction.
static double tangent_flops(const tarn__node *node) {
  const tarn__tensor *x = node->in[TARN__CONV_X], *dy = node->out[0];
  const int products = (node->in[TARN__CONV_TANGENT_X] != NULL) + (node->in[TARN__CONV_TANGENT_LOGITS] != NULL);
  return products * 2.0 * taps(node, x->rows) * (double)x->cols * (double)tarn__tangent_directions(dy, x->rows);
}

static const tarn__op op_tangent = {
    .id = TARN__OP_DEPTHWISE_CONV_TANGENT, .name = "depthwise_conv_tangent", .flops = tangent_flops, .check = check};

static void tangent(tarn__graph *graph, tarn__node *node) {
  const tarn__conv_attr *attr = node->attr;
  tarn__tensor *x = node->in[TARN__CONV_X], *logits = node->in[TARN__CONV_LOGITS], *y = node->out[0];
  // The same kernel for all rows: linear in x.
  if (logits->param && attr->dropout.threshold == 0) {
    y->tangent = tarn__depthwise_conv(graph, x->tangent, logits,
                                      tarn__tangent_offsets(graph, node->in[TARN__CONV_OFFSETS]), attr->spec, 0.0);
    return;
  }
  tarn__node *push = tarn__graph_node(graph, &op_tangent, sizeof *attr);
  *(tarn__conv_attr *)push->attr = *attr;
  push->in[TARN__CONV_X] = x;
  push->in[TARN__CONV_LOGITS] = logits;
  push->in[TARN__CONV_OFFSETS] = node->in[TARN__CONV_OFFSETS];
  push->in[TARN__CONV_TANGENT_X] = x->tangent;
  push->in[TARN__CONV_TANGENT_LOGITS] = logits->tangent;
  push->out[0] = y->tangent = tarn__tangent_new(graph, y, "tangent of convolution");
  tarn__graph_emit(graph, push);
}

static const tarn__op op_conv = {.id = TARN__OP_DEPTHWISE_CONV,
                                 .name = "depthwise_conv",
                                 .grad = grad,
                                 .tangent = tangent,
                                 .flops = flops,
                                 .cheap = true,
                                 .check = check};

// The named rows of x.
static double rows_bytes(const tarn__node *node) {
  const tarn__conv_spec *spec = &((const tarn__conv_attr *)node->attr)->spec;
  const tarn__tensor *y = node->out[0];
  const double rows = tarn__ranges_rows(node->in[TARN__CONV_RANGES], spec->width);
  return rows * (double)y->cols * (double)tarn__dtype_size(y->dtype) + tarn__tensor_bytes(node->in[TARN__CONV_LOGITS]) +
         tarn__tensor_bytes(y);
}

static const tarn__op op_conv_rows = {.id = TARN__OP_DEPTHWISE_CONV_ROWS,
                                      .name = "depthwise_conv_rows",
                                      .flops = flops,
                                      .bytes = rows_bytes,
                                      .check = check};

static bool fits(const tarn__tensor *x, const tarn__tensor *logits, int64_t rows, const tarn__conv_spec *spec) {
  return spec->heads > 0 && spec->width > 0 && spec->before >= 0 && spec->before < spec->width &&
         x->cols % spec->heads == 0 && logits->cols == spec->heads * spec->width &&
         logits->rows == (logits->param ? 1 : rows) && (logits->param || logits->dtype == x->dtype);
}

static tarn__node *new_node(tarn__graph *graph, const tarn__op *op, tarn__tensor *x, tarn__tensor *logits, int64_t rows,
                            tarn__conv_spec spec, double dropout) {
  if (!fits(x, logits, rows, &spec))
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "%s: its inputs do not fit together", op->name);
  tarn__node *node = tarn__graph_node(graph, op, sizeof(tarn__conv_attr));
  *(tarn__conv_attr *)node->attr = (tarn__conv_attr){spec, tarn__dropout_make(graph, dropout)};
  node->in[TARN__CONV_X] = x;
  node->in[TARN__CONV_LOGITS] = logits;
  node->out[0] = tarn__graph_tensor(graph, x->dtype, rows, x->cols, "convolution");
  return node;
}

tarn__tensor *tarn__depthwise_conv(tarn__graph *graph, tarn__tensor *x, tarn__tensor *logits, tarn__tensor *offsets,
                                   tarn__conv_spec spec, double dropout) {
  tarn__node *node = new_node(graph, &op_conv, x, logits, x->rows, spec, dropout);
  node->in[TARN__CONV_OFFSETS] = offsets;
  tarn__graph_emit(graph, node);
  return node->out[0];
}

tarn__tensor *tarn__depthwise_conv_rows(tarn__graph *graph, tarn__tensor *x, tarn__tensor *logits, tarn__tensor *rows,
                                        tarn__tensor *ranges, tarn__conv_spec spec) {
  spec.before = spec.width - 1;
  tarn__node *node = new_node(graph, &op_conv_rows, x, logits, ranges->cols / 2, spec, 0.0);
  node->in[TARN__CONV_ROWS] = rows;
  node->in[TARN__CONV_RANGES] = ranges;
  tarn__graph_emit(graph, node);
  return node->out[0];
}
