#include "task/next_token.h"

#include <math.h>
#include <stdio.h>

#include "ops/linear_transposed.h"
#include "task/bands.h"
#include "task/head.h"

tarn_status tarn__next_token_table(tarn__param **table, tarn__bands *bands, const tarn__task_site *site,
                                   const char *name, int64_t vocab, bool trained, bool shared) {
  const tarn__init init = {TARN__INIT_NORMAL, site->model->embedding_std, 1};
  if (site->model->adaptive_input_cutoffs > 0) {
    TARN_TRY(tarn__bands_declare_input(bands, site, name, vocab, trained, shared));
    *table = bands->table[0];
    return TARN_STATUS_OK;
  }
  *table = tarn__declare_param(site->declare, name, vocab, site->declare->d_model, trained, init);
  return site->declare->status;
}

// Keeps fairseq's standard deviation, regardless of that of the inputs: initial logits are near 0. With a low rank the
// input has the variance of x, so this rule gives the logits the same variance.
tarn_status tarn__next_token_output(tarn__task_weights *weights, const tarn__task_site *site) {
  if (site->model->adaptive_softmax_cutoffs > 0) {
    TARN_TRY(tarn__bands_declare_tables(&weights->output_bands, site));
    weights->output_table = weights->output_bands.table[0];
    return TARN_STATUS_OK;
  }
  const int64_t rank = site->model->output_rank, cols = rank > 0 ? rank : site->model->d_model;
  const tarn__init init = {TARN__INIT_NORMAL, 1.0 / sqrt((double)cols), 1};
  site->declare->role = TARN__ROLE_OUTPUT_TABLE;
  weights->output_table = tarn__declare_param(site->declare, "output.weight", site->target_vocab, cols, true, init);
  site->declare->role = TARN__ROLE_EMBEDDINGS;
  return site->declare->status;
}

// Latent vectors as wide as the table, and priors.
static void declare_mixtures(const tarn__task_site *site, tarn__task_weights *weights) {
  const int64_t mixtures = site->model->output_mixtures, d = site->declare->d_model;
  const int64_t columns = weights->output_table ? mixtures * weights->output_table->cols : 0;
  const tarn__init normal = {TARN__INIT_NORMAL, 1.0 / sqrt((double)d), 1}, zero = {TARN__INIT_ZERO, 0.0, 1};
  weights->latent.weight = tarn__declare_param(site->declare, "latent.weight", columns, d, true, normal);
  weights->latent.bias = tarn__declare_param(site->declare, "latent.bias", 1, columns, true, zero);
  weights->prior = tarn__declare_param(site->declare, "prior.weight", mixtures, d, true, normal);
}

static tarn_status declare_bias(const tarn__task_site *site, tarn__task_weights *weights) {
  const tarn__init zero = {TARN__INIT_ZERO, 0.0, 1};
  if (site->model->output_bias)
    weights->output_bias = tarn__declare_param(site->declare, "bias", 1, site->target_vocab, true, zero);
  return site->declare->status;
}

tarn_status tarn__next_token_declare(const tarn__task_site *site, tarn__task_weights *weights) {
  tarn__declare *declare = site->declare;
  const tarn__param *table = weights->output_table;
  if (weights->output_bands.count > 0) return tarn__bands_declare_output(weights, site, site->model->output_bias);
  if (site->model->output_mixtures > 0) {
    declare_mixtures(site, weights);
    return declare_bias(site, weights);
  }
  if (table == weights->source_table) weights->output_factor = weights->source_projection.weight;
  if (table == weights->target_table) weights->output_factor = weights->target_projection.weight;
  if (weights->output_factor) weights->output_factor->uses++;
  if (site->model->output_rank > 0)
    weights->output_in = tarn__declare_param(declare, "in.weight", site->model->output_rank, declare->d_model, true,
                                             (tarn__init){TARN__INIT_NORMAL, 1.0 / sqrt((double)declare->d_model), 1});
  return declare_bias(site, weights);
}

tarn__tensor *tarn__next_token_input(tarn__graph *graph, tarn__tensor *states, const tarn__task_weights *weights) {
  graph->label = "output";
  if (weights->prior)
    return tarn__tanh(graph, tarn__linear(graph, states, weights->latent.weight, weights->latent.bias, TARN__IDENTITY));
  if (weights->output_factor) return tarn__linear_transposed(graph, states, weights->output_factor);
  return weights->output_in ? tarn__linear(graph, states, weights->output_in, NULL, TARN__IDENTITY) : states;
}

tarn__tensor *tarn__next_token_loss(tarn__graph *graph, const tarn__task_loss *from) {
  const tarn__task_weights *weights = from->weights;
  const tarn__head head =
      tarn__head_of(graph, from->states, tarn__next_token_input(graph, from->states, weights), weights);
  tarn__tensor *ids = tarn__graph_input(graph, from->batch->predictions, from->batch->targets, "targets");
  return tarn__head_loss(graph, &head, ids, from->smoothing, from->grad_scale);
}

bool tarn__next_token_diverged(char is[TARN__TASK_TEXT], double nll, int64_t words) {
  const double blind = log((double)words);
  if (!(nll >= 100.0 * blind)) return false;
  snprintf(is, TARN__TASK_TEXT, "%.4g nats a token, over a hundred times the %.4g of equal chances for all %lld words,",
           nll, blind, (long long)words);
  return true;
}
