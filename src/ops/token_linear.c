#include "ops/token_linear.h"

#include "graph/tangents.h"
#include "ops/offsets.h"

// Fails with INTERNAL unless sentences cover all rows and none is longer than the weights allow.
static tarn_status check_sentences(const tarn__node *node, const tarn__tensor *offsets, const tarn__tensor *out,
                                   const tarn__tensor *in) {
  const tarn__token_attr *attr = node->attr;
  const tarn__tensor *tokens = attr->spec.form == TARN__TOKENS_IN ? in : out;
  TARN_TRY(tarn__offsets_check(offsets, tokens ? tokens->rows : offsets->host[offsets->cols - 1], "token_linear",
                               "sentences"));
  for (int64_t s = 0; s + 1 < offsets->cols; s++)
    TARN_REQUIRE(offsets->host[s + 1] - offsets->host[s] <= attr->spec.longest, INTERNAL,
                 "token_linear: sentence %lld has %d tokens; expected at most %lld", (long long)s,
                 (int)(offsets->host[s + 1] - offsets->host[s]), (long long)attr->spec.longest);
  return TARN_STATUS_OK;
}

static tarn_status check(const tarn__node *node) {
  return check_sentences(node, node->in[TARN__TOKENS_OFFSETS], node->out[TARN__TOKENS_Y], node->in[TARN__TOKENS_X]);
}

static tarn_status check_dx(const tarn__node *node) {
  return check_sentences(node, node->in[TARN__TOKENS_DX_OFFSETS], node->in[TARN__TOKENS_DX_DY],
                         node->out[TARN__TOKENS_DX]);
}

static tarn_status check_dweight(const tarn__node *node) {
  return check_sentences(node, node->in[TARN__TOKENS_DWEIGHT_OFFSETS], node->in[TARN__TOKENS_DWEIGHT_DZ],
                         node->in[TARN__TOKENS_DWEIGHT_X]);
}

static tarn_status check_rows(const tarn__node *node) {
  const tarn__tensor *ranges = node->in[TARN__TOKENS_RANGES];
  const int64_t most = node->in[TARN__TOKENS_WEIGHT]->rows;
  TARN_TRY(tarn__ranges_check(node->in[TARN__TOKENS_ROWS], ranges, node->out[0]->rows, node->in[TARN__TOKENS_X]->rows,
                              "token_linear_rows"));
  for (int64_t i = 0; i + 1 < ranges->cols; i += 2)
    TARN_REQUIRE(ranges->host[i + 1] - ranges->host[i] <= most, INTERNAL,
                 "token_linear_rows: row %lld sees %d tokens; expected at most %lld", (long long)(i / 2),
                 (int)(ranges->host[i + 1] - ranges->host[i]), (long long)most);
  return TARN_STATUS_OK;
}

// Weights used by all sentences together: exact if the offsets are known, else a bound.
static double weights_used(const tarn__token_attr *attr, const tarn__tensor *offsets, const tarn__tensor *tokens) {
  if (attr->spec.form != TARN__TOKENS_AMONG) {
    const int64_t rows = offsets->host ? offsets->host[offsets->cols - 1] : tokens->rows;
    return (double)rows * (double)attr->hidden;
  }
  if (!offsets->host) return (double)tokens->rows * (double)attr->spec.longest;
  double sum = 0.0;
  for (int64_t s = 0; s + 1 < offsets->cols; s++) {
    const double n = offsets->host[s + 1] - offsets->host[s];
    sum += attr->spec.causal ? n * (n + 1.0) / 2.0 : n * n;
  }
  return sum;
}

// The factor of a product with a row for each token.
static const tarn__tensor *tokens_of(const tarn__token_attr *attr, const tarn__tensor *out, const tarn__tensor *in) {
  return attr->spec.form == TARN__TOKENS_IN ? in : out;
}

static double flops(const tarn__node *node) {
  const tarn__tensor *x = node->in[TARN__TOKENS_X], *y = node->out[TARN__TOKENS_Y];
  return 2.0 * (double)y->cols * weights_used(node->attr, node->in[TARN__TOKENS_OFFSETS], tokens_of(node->attr, y, x));
}

static double dx_flops(const tarn__node *node) {
  const tarn__tensor *dy = node->in[TARN__TOKENS_DX_DY], *dx = node->out[TARN__TOKENS_DX];
  if (!dx) return 0.0;
  return 2.0 * (double)dy->cols *
         weights_used(node->attr, node->in[TARN__TOKENS_DX_OFFSETS], tokens_of(node->attr, dy, dx));
}

static double dweight_flops(const tarn__node *node) {
  const tarn__tensor *dz = node->in[TARN__TOKENS_DWEIGHT_DZ], *x = node->in[TARN__TOKENS_DWEIGHT_X];
  if (!x) return 0.0;
  return 2.0 * (double)dz->cols *
         weights_used(node->attr, node->in[TARN__TOKENS_DWEIGHT_OFFSETS], tokens_of(node->attr, dz, x));
}

static double rows_flops(const tarn__node *node) {
  const double taps = tarn__ranges_rows(node->in[TARN__TOKENS_RANGES], node->in[TARN__TOKENS_WEIGHT]->rows);
  return 2.0 * taps * (double)node->out[0]->cols;
}

// Reads of single rows: the named rows of the cache and as many weights for each.
static double rows_bytes(const tarn__node *node) {
  const tarn__tensor *y = node->out[0];
  const double taps = tarn__ranges_rows(node->in[TARN__TOKENS_RANGES], node->in[TARN__TOKENS_WEIGHT]->rows);
  return taps * (double)(y->cols + 1) * (double)tarn__dtype_size(y->dtype) +
         tarn__tensor_bytes(node->in[TARN__TOKENS_GATE]) + tarn__tensor_bytes(node->in[TARN__TOKENS_ADDED]) +
         tarn__tensor_bytes(y);
}

static const tarn__op op_dx = {
    .id = TARN__OP_TOKEN_LINEAR_DX, .name = "token_linear_dx", .flops = dx_flops, .check = check_dx};

static const tarn__op op_dweight = {.id = TARN__OP_TOKEN_LINEAR_DWEIGHT,
                                    .name = "token_linear_dweight",
                                    .flops = dweight_flops,
                                    .check = check_dweight};

static tarn__node *back_node(tarn__graph *graph, const tarn__op *op, const tarn__node *node) {
  tarn__node *back = tarn__graph_node(graph, op, sizeof(tarn__token_attr));
  *(tarn__token_attr *)back->attr = *(const tarn__token_attr *)node->attr;
  return back;
}

static void emit_dweight(tarn__graph *graph, const tarn__node *node, tarn__tensor *dz) {
  const tarn__tensor *weight = node->in[TARN__TOKENS_WEIGHT], *bias = node->in[TARN__TOKENS_BIAS];
  const bool learns_bias = bias && bias->needs_grad;
  if (!weight->needs_grad && !learns_bias) return;
  tarn__node *back = back_node(graph, &op_dweight, node);
  back->in[TARN__TOKENS_DWEIGHT_DZ] = dz;
  back->in[TARN__TOKENS_DWEIGHT_OFFSETS] = node->in[TARN__TOKENS_OFFSETS];
  if (weight->needs_grad) {
    back->in[TARN__TOKENS_DWEIGHT_X] = node->in[TARN__TOKENS_X];
    back->dparam[0] = weight->param;
  }
  if (learns_bias) back->dparam[1] = bias->param;
  tarn__graph_emit(graph, back);
}

// Emits dx and its companions; returns dz.
static tarn__tensor *emit_dx(tarn__graph *graph, const tarn__node *node) {
  tarn__tensor *x = node->in[TARN__TOKENS_X], *gate = node->in[TARN__TOKENS_GATE];
  tarn__tensor *dy = node->out[TARN__TOKENS_Y]->grad;
  if (!gate && !x->needs_grad) return dy;
  tarn__node *back = back_node(graph, &op_dx, node);
  back->in[TARN__TOKENS_DX_DY] = dy;
  back->in[TARN__TOKENS_DX_WEIGHT] = node->in[TARN__TOKENS_WEIGHT];
  back->in[TARN__TOKENS_DX_OFFSETS] = node->in[TARN__TOKENS_OFFSETS];
  if (gate) {
    back->in[TARN__TOKENS_DX_GATE] = gate;
    back->out[TARN__TOKENS_DZ] = tarn__graph_tensor(graph, dy->dtype, dy->rows, dy->cols, "dz");
    if (gate->needs_grad) {
      back->in[TARN__TOKENS_DX_Z] = node->out[TARN__TOKENS_Z];
      back->out[TARN__TOKENS_DGATE] = tarn__grad_into(graph, gate, &back->in[TARN__TOKENS_DX_PREVIOUS_GATE]);
    }
  }
  if (x->needs_grad) back->out[TARN__TOKENS_DX] = tarn__grad_into(graph, x, &back->in[TARN__TOKENS_DX_PREVIOUS]);
  tarn__graph_emit(graph, back);
  return gate ? back->out[TARN__TOKENS_DZ] : dy;
}

static void grad(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *added = node->in[TARN__TOKENS_ADDED];
  if (!node->in[TARN__TOKENS_GATE]) {
    // The weight's gradient first: x may die before the memory of dx is taken.
    emit_dweight(graph, node, node->out[TARN__TOKENS_Y]->grad);
    emit_dx(graph, node);
    return;
  }
  tarn__tensor *dz = emit_dx(graph, node);
  emit_dweight(graph, node, dz);
  if (added && added->needs_grad) tarn__grad_add(graph, added, dz);
}

static const tarn__op op_tangent = {.id = TARN__OP_TOKEN_LINEAR_TANGENT,
                                    .name = "token_linear_tangent",
                                    .in_place = true,
                                    .inplace_in = TARN__TOKENS_TANGENT_DZ};

// The product of all directions without the bias, then through the gate, if any.
static void tangent(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *x = node->in[TARN__TOKENS_X], *gate = node->in[TARN__TOKENS_GATE];
  const tarn__tensor *added = node->in[TARN__TOKENS_ADDED];
  tarn__tensor *y = node->out[TARN__TOKENS_Y], *dz = NULL;
  tarn__token_spec spec = ((const tarn__token_attr *)node->attr)->spec;
  spec.rows *= graph->directions;
  if (x->tangent)
    dz = tarn__token_linear(graph, x->tangent, tarn__tangent_offsets(graph, node->in[TARN__TOKENS_OFFSETS]),
                            node->in[TARN__TOKENS_WEIGHT]->param, NULL, (tarn__token_gate){0}, spec);
  y->tangent = dz;
  if (!gate) return;
  tarn__node *push = tarn__graph_node(graph, &op_tangent, 0);
  push->in[TARN__TOKENS_TANGENT_DZ] = dz;
  push->in[TARN__TOKENS_TANGENT_DADDED] = added ? added->tangent : NULL;
  push->in[TARN__TOKENS_TANGENT_GATE] = gate;
  push->in[TARN__TOKENS_TANGENT_DGATE] = gate->tangent;
  if (gate->tangent)
    push->in[TARN__TOKENS_TANGENT_Z] =
        tarn__tangent_keep(graph, node, TARN__TOKENS_Z, y->dtype, y->rows, y->cols, "before gate");
  push->out[0] = y->tangent = tarn__tangent_new(graph, y, "tangent of gate");
  tarn__graph_emit(graph, push);
}

static const tarn__op op_token_linear = {.id = TARN__OP_TOKEN_LINEAR,
                                         .name = "token_linear",
                                         .grad = grad,
                                         .tangent = tangent,
                                         .flops = flops,
                                         .check = check};

static const tarn__op op_rows = {.id = TARN__OP_TOKEN_LINEAR_ROWS,
                                 .name = "token_linear_rows",
                                 .flops = rows_flops,
                                 .bytes = rows_bytes,
                                 .check = check_rows};

static bool same_shape(const tarn__tensor *a, const tarn__tensor *b) {
  return !a || (a->rows == b->rows && a->cols == b->cols && a->dtype == b->dtype);
}

static tarn__node *new_node(tarn__graph *graph, const tarn__op *op, tarn__tensor *x, int64_t rows, int64_t d,
                            tarn__param *weight, tarn__param *bias, tarn__token_gate with) {
  tarn__node *node = tarn__graph_node(graph, op, sizeof(tarn__token_attr));
  node->in[TARN__TOKENS_X] = x;
  node->in[TARN__TOKENS_WEIGHT] = tarn__graph_param(graph, weight);
  node->in[TARN__TOKENS_BIAS] = bias ? tarn__graph_param(graph, bias) : NULL;
  node->in[TARN__TOKENS_GATE] = with.gate;
  node->in[TARN__TOKENS_ADDED] = with.added;
  tarn__tensor *y = node->out[TARN__TOKENS_Y] = tarn__graph_tensor(graph, x->dtype, rows, d, op->name);
  if (weight->dtype != x->dtype || (bias && bias->cols != weight->rows) || (with.added && !with.gate) ||
      !same_shape(with.gate, y) || !same_shape(with.added, y))
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "%s: weight %s [%lld, %lld] does not fit its input or bias", op->name,
                     weight->name, (long long)weight->rows, (long long)weight->cols);
  return node;
}

tarn__tensor *tarn__token_linear(tarn__graph *graph, tarn__tensor *x, tarn__tensor *offsets, tarn__param *weight,
                                 tarn__param *bias, tarn__token_gate with, tarn__token_spec spec) {
  const bool in = spec.form == TARN__TOKENS_IN, out = spec.form == TARN__TOKENS_OUT;
  const int64_t hidden = in ? weight->rows : out ? weight->cols : 0, tokens = in ? weight->cols : weight->rows;
  const int64_t rows = in ? (offsets->cols - 1) * hidden : out ? spec.rows : x->rows;
  if (spec.longest > tokens) spec.longest = tokens;
  tarn__node *node = new_node(graph, &op_token_linear, x, rows, x->cols, weight, bias, with);
  if (offsets->cols < 1 || spec.longest < 0 || (out && x->rows != (offsets->cols - 1) * hidden) ||
      (!in && !out && weight->rows != weight->cols) || ((in || out) && (with.gate || spec.causal)))
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "token_linear: its inputs do not fit together");
  *(tarn__token_attr *)node->attr = (tarn__token_attr){spec, hidden, 0};
  node->in[TARN__TOKENS_OFFSETS] = offsets;
  if (with.gate && with.gate->needs_grad && graph->training)
    node->out[TARN__TOKENS_Z] = tarn__graph_tensor(graph, x->dtype, rows, x->cols, "before gate");
  tarn__graph_emit(graph, node);
  return node->out[TARN__TOKENS_Y];
}

tarn__tensor *tarn__token_linear_rows(tarn__graph *graph, tarn__tensor *x, int64_t column, int64_t d,
                                      tarn__tensor *rows, tarn__tensor *ranges, tarn__param *weight, tarn__param *bias,
                                      tarn__token_gate with) {
  tarn__node *node = new_node(graph, &op_rows, x, ranges->cols / 2, d, weight, bias, with);
  if (weight->rows != weight->cols || column < 0 || column > x->cols - d)
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "token_linear_rows: its inputs do not fit together");
  ((tarn__token_attr *)node->attr)->column = column;
  node->in[TARN__TOKENS_ROWS] = rows;
  node->in[TARN__TOKENS_RANGES] = ranges;
  tarn__graph_emit(graph, node);
  return node->out[TARN__TOKENS_Y];
}
