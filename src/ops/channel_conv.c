#include "ops/channel_conv.h"

#include "graph/tangents.h"
#include "ops/offsets.h"

// Fails with INTERNAL unless sentences cover all rows, or single rows name rows of x.
static tarn_status check(const tarn__node *node) {
  const tarn__tensor *offsets = node->in[TARN__CC_OFFSETS];
  if (offsets) return tarn__offsets_check(offsets, node->out[0]->rows, "channel_conv", "sentences");
  return tarn__ranges_check(node->in[TARN__CC_ROWS], node->in[TARN__CC_RANGES], node->out[0]->rows,
                            node->in[TARN__CC_X]->rows, "channel_conv");
}

static tarn_status backward_check(const tarn__node *node) {
  return tarn__offsets_check(node->in[TARN__CC_OFFSETS], node->in[TARN__CC_DY]->rows, "channel_conv_backward",
                             "sentences");
}

// Two operations for each channel of each tap.
static double taps_flops(const tarn__node *node, const tarn__tensor *y) {
  const tarn__taps *taps = &((const tarn__channel_conv_attr *)node->attr)->taps;
  return 2.0 * (double)y->cols * tarn__offsets_taps(node->in[TARN__CC_OFFSETS], y->rows, taps->width, taps->before);
}

static double flops(const tarn__node *node) { return taps_flops(node, node->out[0]); }

static double backward_flops(const tarn__node *node) {
  return taps_flops(node, node->in[TARN__CC_DY]) * ((node->out[0] != NULL) + (node->dparam[0] != NULL));
}

static const tarn__op op_backward = {.id = TARN__OP_CHANNEL_CONV_BACKWARD,
                                     .name = "channel_conv_backward",
                                     .flops = backward_flops,
                                     .check = backward_check};

static void grad(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *x = node->in[TARN__CC_X], *kernel = node->in[TARN__CC_KERNEL];
  tarn__node *back = tarn__graph_node(graph, &op_backward, sizeof(tarn__channel_conv_attr));
  *(tarn__channel_conv_attr *)back->attr = *(const tarn__channel_conv_attr *)node->attr;
  back->in[TARN__CC_KERNEL] = kernel;
  back->in[TARN__CC_OFFSETS] = node->in[TARN__CC_OFFSETS];
  back->in[TARN__CC_DY] = node->out[0]->grad;
  if (tarn__param_learns(kernel->param)) {
    back->in[TARN__CC_X] = x;
    back->dparam[0] = kernel->param;
  }
  if (x->needs_grad) back->out[0] = tarn__grad_into(graph, x, &back->in[TARN__CC_PREVIOUS]);
  tarn__graph_emit(graph, back);
}

// Linear in x.
static void tangent(tarn__graph *graph, tarn__node *node) {
  node->out[0]->tangent =
      tarn__channel_conv(graph, node->in[TARN__CC_X]->tangent, tarn__tangent_offsets(graph, node->in[TARN__CC_OFFSETS]),
                         node->in[TARN__CC_KERNEL]->param, ((const tarn__channel_conv_attr *)node->attr)->taps);
}

static const tarn__op op_conv = {.id = TARN__OP_CHANNEL_CONV,
                                 .name = "channel_conv",
                                 .grad = grad,
                                 .tangent = tangent,
                                 .flops = flops,
                                 .cheap = true,
                                 .check = check};

// The named rows of x.
static double rows_bytes(const tarn__node *node) {
  const tarn__taps *taps = &((const tarn__channel_conv_attr *)node->attr)->taps;
  const tarn__tensor *y = node->out[0];
  const double rows = tarn__ranges_rows(node->in[TARN__CC_RANGES], taps->width);
  return rows * (double)y->cols * (double)tarn__dtype_size(y->dtype) + tarn__tensor_bytes(node->in[TARN__CC_KERNEL]) +
         tarn__tensor_bytes(y);
}

static const tarn__op op_conv_rows = {
    .id = TARN__OP_CHANNEL_CONV_ROWS, .name = "channel_conv_rows", .flops = flops, .bytes = rows_bytes, .check = check};

static tarn__node *new_node(tarn__graph *graph, const tarn__op *op, tarn__tensor *x, int64_t rows, int64_t channels,
                            tarn__param *kernel, tarn__channel_conv_attr attr) {
  const tarn__taps *taps = &attr.taps;
  const bool vector = kernel->dtype == (graph->dtype == TARN__F64 ? TARN__F64 : TARN__F32);
  const bool inside = taps->width > 0 && taps->before >= 0 && taps->before < taps->width;
  if (!vector || !inside || kernel->rows * kernel->cols != taps->width * channels || attr.column < 0 ||
      attr.column > x->cols - channels)
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "%s: its inputs do not fit together", op->name);
  tarn__node *node = tarn__graph_node(graph, op, sizeof attr);
  *(tarn__channel_conv_attr *)node->attr = attr;
  node->in[TARN__CC_X] = x;
  node->in[TARN__CC_KERNEL] = tarn__graph_param(graph, kernel);
  node->out[0] = tarn__graph_tensor(graph, x->dtype, rows, channels, "convolution");
  return node;
}

tarn__tensor *tarn__channel_conv(tarn__graph *graph, tarn__tensor *x, tarn__tensor *offsets, tarn__param *kernel,
                                 tarn__taps taps) {
  tarn__node *node = new_node(graph, &op_conv, x, x->rows, x->cols, kernel, (tarn__channel_conv_attr){.taps = taps});
  node->in[TARN__CC_OFFSETS] = offsets;
  tarn__graph_emit(graph, node);
  return node->out[0];
}

tarn__tensor *tarn__channel_conv_rows(tarn__graph *graph, tarn__tensor *x, int64_t column, tarn__tensor *rows,
                                      tarn__tensor *ranges, tarn__param *kernel, int64_t width) {
  const tarn__channel_conv_attr attr = {{.width = width, .before = width - 1}, column};
  const int64_t channels = width > 0 ? kernel->rows * kernel->cols / width : 0;
  tarn__node *node = new_node(graph, &op_conv_rows, x, ranges->cols / 2, channels, kernel, attr);
  node->in[TARN__CC_ROWS] = rows;
  node->in[TARN__CC_RANGES] = ranges;
  tarn__graph_emit(graph, node);
  return node->out[0];
}
