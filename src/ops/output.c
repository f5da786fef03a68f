// The output layer: losses of the next token and log-probabilities of all words.
#include "ops/output.h"

#include "ops/offsets.h"
#include "ops/ops.h"
#include "ops/output_tangent.h"

static double product_flops(const tarn__node *node) {
  return 2.0 * (double)node->in[0]->rows * (double)node->in[1]->rows * (double)node->in[1]->cols;
}

static double loss_gradient_flops(const tarn__node *node) {
  return product_flops(node) * ((node->out[1] != NULL) + (node->dparam[0] != NULL));
}

// The forward node itself computes the gradients, for which it gets additional outputs.
static void loss_gradient(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *x = node->in[0], *table = node->in[1], *bias = node->in[2];
  if (table->needs_grad) node->dparam[0] = table->param;
  if (bias != NULL && bias->needs_grad) node->dparam[1] = bias->param;
  if (!x->needs_grad) return;
  node->out[1] = tarn__graph_tensor(graph, x->dtype, x->rows, x->cols, "output_dx");
  tarn__grad_add(graph, x, node->out[1]);
}

// The logits of all directions, from which the tangents of log-probabilities and losses follow.
static tarn__tensor *logit_tangent(tarn__graph *graph, const tarn__node *node) {
  return tarn__linear(graph, node->in[0]->tangent, node->in[1]->param, NULL, TARN__IDENTITY);
}

// Also needs the log-probabilities of all words, which the loss itself never stores: for checks and small models.
static void loss_tangent(tarn__graph *graph, tarn__node *node) {
  const tarn__output_tangent_attr attr = {.smoothing = ((const tarn__output_attr *)node->attr)->smoothing,
                                          .form = TARN__OUTPUT_TANGENT_LOSS};
  tarn__param *bias = node->in[2] ? node->in[2]->param : NULL;
  tarn__tensor *saved = tarn__output_log_probabilities(graph, node->in[0], node->in[1]->param, bias);
  tarn__output_tangent(graph, attr, logit_tangent(graph, node), saved, node->in[3], node->out[0], node->out[2]);
}

static void log_tangent(tarn__graph *graph, tarn__node *node) {
  const tarn__output_tangent_attr attr = {.form = TARN__OUTPUT_TANGENT_LOG_PROBABILITIES};
  tarn__output_tangent(graph, attr, logit_tangent(graph, node), node->out[0], NULL, node->out[0], NULL);
}

static tarn_status loss_check(const tarn__node *node) {
  return tarn__numbers_check(node->in[3], node->in[1]->rows, "output_loss", "target");
}

static const tarn__op loss_op = {.id = TARN__OP_OUTPUT_LOSS,
                                 .name = "output_loss",
                                 .grad = loss_gradient,
                                 .tangent = loss_tangent,
                                 .flops = product_flops,
                                 .gradient_flops = loss_gradient_flops,
                                 .in_place = true,
                                 .inplace_out = 1,
                                 .inplace_in = 0,
                                 .check = loss_check};

static const tarn__op log_op = {.id = TARN__OP_OUTPUT_LOG_PROBABILITIES,
                                .name = "output_log_probabilities",
                                .tangent = log_tangent,
                                .flops = product_flops};

static tarn__node *output_node(tarn__graph *graph, const tarn__op *op, size_t attr_size, tarn__tensor *x,
                               tarn__param *table, tarn__param *bias) {
  if (x->cols != table->cols || x->dtype != table->dtype || (bias != NULL && bias->cols != table->rows))
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "output layer: %s [%lld, %lld] does not fit its input or bias",
                     table->name, (long long)table->rows, (long long)table->cols);
  tarn__node *node = tarn__graph_node(graph, op, attr_size);
  node->in[0] = x;
  node->in[1] = tarn__graph_param(graph, table);
  node->in[2] = bias != NULL ? tarn__graph_param(graph, bias) : NULL;
  return node;
}

tarn__tensor *tarn__output_loss(tarn__graph *graph, tarn__tensor *x, tarn__param *table, tarn__param *bias,
                                tarn__tensor *targets, double smoothing, double grad_scale) {
  if (targets->cols != x->rows || targets->dtype != TARN__I32)
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "output loss: there must be one target for every row");
  tarn__node *node = output_node(graph, &loss_op, sizeof(tarn__output_attr), x, table, bias);
  *(tarn__output_attr *)node->attr = (tarn__output_attr){.smoothing = smoothing, .grad_scale = grad_scale};
  node->in[3] = targets;
  tarn__tensor *loss = node->out[0] = tarn__graph_tensor(graph, TARN__F64, 1, 2, "loss");
  tarn__graph_emit(graph, node);
  return loss;
}

tarn__tensor *tarn__output_token_loss(tarn__graph *graph, tarn__tensor *x, tarn__param *table, tarn__param *bias,
                                      tarn__tensor *targets) {
  tarn__tensor *loss = tarn__output_loss(graph, x, table, bias, targets, 0.0, 0.0);
  tarn__tensor *rows = tarn__graph_tensor(graph, TARN__F64, x->rows, 2, "token_losses");
  rows->source = loss->source;
  if (loss->source) loss->source->out[2] = rows;
  return rows;
}

static tarn__tensor *all_words(tarn__graph *graph, tarn__tensor *x, tarn__param *table, tarn__param *bias, bool raw) {
  tarn__node *node = output_node(graph, &log_op, sizeof(tarn__output_log_attr), x, table, bias);
  *(tarn__output_log_attr *)node->attr = (tarn__output_log_attr){raw};
  tarn__dtype dtype = x->dtype == TARN__F64 ? TARN__F64 : TARN__F32;
  tarn__tensor *out = node->out[0] =
      tarn__graph_tensor(graph, dtype, x->rows, table->rows, raw ? "logits" : "log_probabilities");
  tarn__graph_emit(graph, node);
  return out;
}

tarn__tensor *tarn__output_log_probabilities(tarn__graph *graph, tarn__tensor *x, tarn__param *table,
                                             tarn__param *bias) {
  return all_words(graph, x, table, bias, false);
}

tarn__tensor *tarn__output_logits(tarn__graph *graph, tarn__tensor *x, tarn__param *table, tarn__param *bias) {
  return all_words(graph, x, table, bias, true);
}
