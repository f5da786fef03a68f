#include "task/head.h"

#include "ops/output_mixture.h"
#include "task/bands.h"

tarn__head tarn__head_of(tarn__graph *graph, tarn__tensor *states, tarn__tensor *x, const tarn__task_weights *weights) {
  tarn__tensor *prior = weights->prior ? tarn__linear(graph, states, weights->prior, NULL, TARN__IDENTITY) : NULL;
  return (tarn__head){x, prior, weights};
}

static bool in_bands(const tarn__head *head) { return head->weights->output_bands.count > 0; }

static tarn__mixture mixture_of(const tarn__head *head) {
  return (tarn__mixture){head->x, head->prior, head->weights->output_table, head->weights->output_bias};
}

tarn__tensor *tarn__head_loss(tarn__graph *graph, const tarn__head *head, tarn__tensor *targets, double smoothing,
                              double grad_scale) {
  if (in_bands(head)) return tarn__bands_loss(graph, head, targets, grad_scale);
  const tarn__mixture mixture = mixture_of(head);
  if (head->prior) return tarn__mixture_loss(graph, &mixture, targets, smoothing, grad_scale);
  return tarn__output_loss(graph, head->x, mixture.table, mixture.bias, targets, smoothing, grad_scale);
}

tarn__tensor *tarn__head_token_loss(tarn__graph *graph, const tarn__head *head, tarn__tensor *targets) {
  if (in_bands(head)) return tarn__bands_token_loss(graph, head, targets);
  const tarn__mixture mixture = mixture_of(head);
  if (head->prior) return tarn__mixture_token_loss(graph, &mixture, targets);
  return tarn__output_token_loss(graph, head->x, mixture.table, mixture.bias, targets);
}

tarn__tensor *tarn__head_log_probabilities(tarn__graph *graph, const tarn__head *head) {
  if (in_bands(head)) return tarn__bands_log_probabilities(graph, head);
  const tarn__mixture mixture = mixture_of(head);
  if (head->prior) return tarn__mixture_log_probabilities(graph, &mixture);
  return tarn__output_log_probabilities(graph, head->x, mixture.table, mixture.bias);
}

tarn__tensor *tarn__head_logits(tarn__graph *graph, const tarn__head *head) {
  if (in_bands(head) || head->prior) return tarn__head_log_probabilities(graph, head);
  const tarn__mixture mixture = mixture_of(head);
  return tarn__output_logits(graph, head->x, mixture.table, mixture.bias);
}

tarn__top tarn__head_top(tarn__graph *graph, const tarn__head *head, int64_t best, int32_t always) {
  if (in_bands(head)) return tarn__bands_top(graph, head, best, always);
  const tarn__mixture mixture = mixture_of(head);
  if (head->prior) return tarn__mixture_top(graph, &mixture, best, always);
  return tarn__output_top(graph, head->x, mixture.table, mixture.bias, best, always);
}
