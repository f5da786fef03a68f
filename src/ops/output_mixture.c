#include "ops/output_mixture.h"

#include "ops/offsets.h"

static double product_flops(const tarn__node *node) {
  const tarn__tensor *h = node->in[TARN__MIXTURE_H], *table = node->in[TARN__MIXTURE_TABLE];
  return 2.0 * (double)h->rows * (double)h->cols * (double)table->rows;
}

static double loss_gradient_flops(const tarn__node *node) {
  return product_flops(node) * ((node->out[TARN__MIXTURE_DH] != NULL) + (node->dparam[0] != NULL));
}

// A gradient computed by the forward node.
static tarn__tensor *own_gradient(tarn__graph *graph, tarn__tensor *of, const char *name) {
  if (!of->needs_grad) return NULL;
  tarn__tensor *gradient = tarn__graph_tensor(graph, of->dtype, of->rows, of->cols, name);
  tarn__grad_add(graph, of, gradient);
  return gradient;
}

static void loss_gradient(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *table = node->in[TARN__MIXTURE_TABLE], *bias = node->in[TARN__MIXTURE_BIAS];
  if (table->needs_grad) node->dparam[0] = table->param;
  if (bias && bias->needs_grad) node->dparam[1] = bias->param;
  node->out[TARN__MIXTURE_DH] = own_gradient(graph, node->in[TARN__MIXTURE_H], "mixture_dh");
  node->out[TARN__MIXTURE_DPRIOR] = own_gradient(graph, node->in[TARN__MIXTURE_PRIOR], "mixture_dprior");
}

static tarn_status check(const tarn__node *node) {
  return tarn__numbers_check(node->in[TARN__MIXTURE_TARGETS], node->in[TARN__MIXTURE_TABLE]->rows, "mixture_loss",
                             "target");
}

static const tarn__op loss_op = {.id = TARN__OP_OUTPUT_MIXTURE,
                                 .name = "mixture_loss",
                                 .grad = loss_gradient,
                                 .flops = product_flops,
                                 .gradient_flops = loss_gradient_flops,
                                 .check = check};

static const tarn__op log_op = {
    .id = TARN__OP_OUTPUT_MIXTURE, .name = "mixture_log_probabilities", .flops = product_flops};

static const tarn__op top_op = {.id = TARN__OP_OUTPUT_MIXTURE, .name = "mixture_top", .flops = product_flops};

static tarn__node *mixture_node(tarn__graph *graph, const tarn__op *op, const tarn__mixture *m,
                                tarn__mixture_attr attr) {
  const int64_t mixtures = m->prior->cols;
  if (m->h->cols != mixtures * m->table->cols || m->h->rows != m->prior->rows || m->h->dtype != m->table->dtype ||
      m->prior->dtype != m->h->dtype || mixtures > TARN__MIXTURES_MOST || (m->bias && m->bias->cols != m->table->rows))
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "mixture: %s [%lld, %lld] does not fit its vectors, prior or bias",
                     m->table->name, (long long)m->table->rows, (long long)m->table->cols);
  tarn__node *node = tarn__graph_node(graph, op, sizeof attr);
  *(tarn__mixture_attr *)node->attr = attr;
  node->in[TARN__MIXTURE_H] = m->h;
  node->in[TARN__MIXTURE_PRIOR] = m->prior;
  node->in[TARN__MIXTURE_TABLE] = tarn__graph_param(graph, m->table);
  node->in[TARN__MIXTURE_BIAS] = m->bias ? tarn__graph_param(graph, m->bias) : NULL;
  return node;
}

tarn__tensor *tarn__mixture_loss(tarn__graph *graph, const tarn__mixture *mixture, tarn__tensor *targets,
                                 double smoothing, double grad_scale) {
  if (targets->cols != mixture->h->rows || targets->dtype != TARN__I32)
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "mixture loss: there must be one target for every row");
  tarn__node *node =
      mixture_node(graph, &loss_op, mixture,
                   (tarn__mixture_attr){.mode = TARN__MIXTURE_LOSS, .smoothing = smoothing, .grad_scale = grad_scale});
  node->in[TARN__MIXTURE_TARGETS] = targets;
  tarn__tensor *loss = node->out[TARN__MIXTURE_SUMS] = tarn__graph_tensor(graph, TARN__F64, 1, 2, "loss");
  tarn__graph_emit(graph, node);
  return loss;
}

tarn__tensor *tarn__mixture_token_loss(tarn__graph *graph, const tarn__mixture *mixture, tarn__tensor *targets) {
  tarn__tensor *loss = tarn__mixture_loss(graph, mixture, targets, 0.0, 0.0);
  tarn__tensor *rows = tarn__graph_tensor(graph, TARN__F64, mixture->h->rows, 2, "token_losses");
  rows->source = loss->source;
  if (loss->source) loss->source->out[TARN__MIXTURE_ROWS] = rows;
  return rows;
}

static tarn__dtype answers_dtype(const tarn__mixture *mixture) {
  return mixture->h->dtype == TARN__F64 ? TARN__F64 : TARN__F32;
}

tarn__tensor *tarn__mixture_log_probabilities(tarn__graph *graph, const tarn__mixture *mixture) {
  tarn__node *node = mixture_node(graph, &log_op, mixture, (tarn__mixture_attr){.mode = TARN__MIXTURE_LOG});
  tarn__tensor *out = node->out[0] =
      tarn__graph_tensor(graph, answers_dtype(mixture), mixture->h->rows, mixture->table->rows, "log_probabilities");
  tarn__graph_emit(graph, node);
  return out;
}

tarn__top tarn__mixture_top(tarn__graph *graph, const tarn__mixture *mixture, int64_t best, int32_t always) {
  if (best < 1 || always < 0 || always >= mixture->table->rows)
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "mixture_top: there are no such words");
  tarn__node *node =
      mixture_node(graph, &top_op, mixture, (tarn__mixture_attr){.mode = TARN__MIXTURE_TOP, .top = {best, always}});
  const int64_t rows = mixture->h->rows;
  tarn__top top = {tarn__graph_tensor(graph, answers_dtype(mixture), rows, best + 1, "best_log_probabilities"),
                   tarn__graph_tensor(graph, TARN__I32, rows, best, "best_ids")};
  node->out[0] = top.values;
  node->out[1] = top.ids;
  tarn__graph_emit(graph, node);
  return top;
}
