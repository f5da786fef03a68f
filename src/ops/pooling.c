#include "ops/pooling.h"

#include "graph/tangents.h"
#include "ops/offsets.h"

// Fails with INTERNAL unless sentences cover all rows, or single rows name rows of x.
static tarn_status check(const tarn__node *node) {
  const tarn__tensor *x = node->in[TARN__POOLING_X], *offsets = node->in[TARN__POOLING_OFFSETS];
  if (offsets) return tarn__offsets_check(offsets, x->rows, "pooling", "sentences");
  return tarn__ranges_check(node->in[TARN__POOLING_ROWS], node->in[TARN__POOLING_RANGES], node->out[0]->rows, x->rows,
                            "pooling");
}

static double flops(const tarn__node *node) {
  const tarn__pooling_spec *spec = node->attr;
  const tarn__tensor *y = node->out[0];
  return 2.0 * (double)y->cols *
         tarn__offsets_taps(node->in[TARN__POOLING_OFFSETS], y->rows, spec->width, spec->before);
}

static const tarn__op op_backward = {
    .id = TARN__OP_POOLING_BACKWARD, .name = "pooling_backward", .flops = flops, .check = check};

static void grad(tarn__graph *graph, tarn__node *node) {
  tarn__node *back = tarn__graph_node(graph, &op_backward, sizeof(tarn__pooling_spec));
  *(tarn__pooling_spec *)back->attr = *(const tarn__pooling_spec *)node->attr;
  back->in[TARN__POOLING_DY] = node->out[0]->grad;
  back->in[TARN__POOLING_OFFSETS] = node->in[TARN__POOLING_OFFSETS];
  back->out[0] = tarn__grad_into(graph, node->in[TARN__POOLING_X], &back->in[TARN__POOLING_PREVIOUS]);
  tarn__graph_emit(graph, back);
}

static void tangent(tarn__graph *graph, tarn__node *node) {
  node->out[0]->tangent = tarn__pooling(graph, node->in[TARN__POOLING_X]->tangent,
                                        tarn__tangent_offsets(graph, node->in[TARN__POOLING_OFFSETS]),
                                        *(const tarn__pooling_spec *)node->attr);
}

static const tarn__op op_pooling = {.id = TARN__OP_POOLING,
                                    .name = "pooling",
                                    .grad = grad,
                                    .tangent = tangent,
                                    .flops = flops,
                                    .cheap = true,
                                    .check = check};

// The named rows of x.
static double rows_bytes(const tarn__node *node) {
  const tarn__pooling_spec *spec = node->attr;
  const tarn__tensor *y = node->out[0];
  const double rows = tarn__ranges_rows(node->in[TARN__POOLING_RANGES], spec->width);
  return rows * (double)y->cols * (double)tarn__dtype_size(y->dtype) + tarn__tensor_bytes(y);
}

static const tarn__op op_pooling_rows = {
    .id = TARN__OP_POOLING_ROWS, .name = "pooling_rows", .flops = flops, .bytes = rows_bytes, .check = check};

static tarn__node *new_node(tarn__graph *graph, const tarn__op *op, tarn__tensor *x, int64_t rows,
                            tarn__pooling_spec spec) {
  if (spec.width < 1 || spec.before < 0 || spec.before >= spec.width)
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "%s: a row sees %lld rows from %lld before itself on", op->name,
                     (long long)spec.width, (long long)spec.before);
  tarn__node *node = tarn__graph_node(graph, op, sizeof spec);
  *(tarn__pooling_spec *)node->attr = spec;
  node->in[TARN__POOLING_X] = x;
  node->out[0] = tarn__graph_tensor(graph, x->dtype, rows, x->cols, "pooling");
  return node;
}

tarn__tensor *tarn__pooling(tarn__graph *graph, tarn__tensor *x, tarn__tensor *offsets, tarn__pooling_spec spec) {
  tarn__node *node = new_node(graph, &op_pooling, x, x->rows, spec);
  node->in[TARN__POOLING_OFFSETS] = offsets;
  tarn__graph_emit(graph, node);
  return node->out[0];
}

tarn__tensor *tarn__pooling_rows(tarn__graph *graph, tarn__tensor *x, tarn__tensor *rows, tarn__tensor *ranges,
                                 int64_t width) {
  tarn__node *node =
      new_node(graph, &op_pooling_rows, x, ranges->cols / 2, (tarn__pooling_spec){.width = width, .before = width - 1});
  node->in[TARN__POOLING_ROWS] = rows;
  node->in[TARN__POOLING_RANGES] = ranges;
  tarn__graph_emit(graph, node);
  return node->out[0];
}
