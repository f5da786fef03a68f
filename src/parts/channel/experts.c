#include "parts/channel/experts.h"

#include <math.h>

#include "ops/grouped.h"
#include "ops/route.h"
#include "ops/weighted_rows.h"

typedef struct experts_weights {
  const tarn__experts_keys *keys;
  int64_t choices;
  tarn__param *router;
  tarn__param *noise;            // of trained noisy gating; else NULL
  tarn__linear_weights in, out;  // of all experts, stacked
  tarn__activated activation;    // its number is shared by all experts
  tarn__norm_weights norm;
} experts_weights;

tarn_status tarn__experts_resolve(const tarn__part_site *site, void *memory) {
  const tarn__experts_keys *keys = memory;
  if (keys->top > keys->experts)
    return tarn__part_fail(site, "top", "%lld choices, but there are %lld experts", (long long)keys->top,
                           (long long)keys->experts);
  if (keys->train_router && site->kind->frozen == TARN_FROZEN_YES)
    return tarn__part_fail(site, "train_router",
                           "nothing of a frozen layer is trained; use frozen: matrices in the kind");
  return TARN_STATUS_OK;
}

// NAME.weight [experts out, in] and NAME.bias [1, experts out].
static tarn__linear_weights declare_all(tarn__declare *declare, const char *name, int64_t experts, int64_t out,
                                        int64_t in) {
  tarn__linear_weights all = {.weight = tarn__declare_dense(declare, name, experts * out, in, (int)experts, 1.0),
                              .bias = tarn__declare_bias(declare, name, experts * out, in)};
  if (!all.weight) return all;
  all.weight->out = out;
  all.weight->in = in;
  return all;
}

void *tarn__experts_declare(tarn__declare *declare, const tarn__experts_keys *keys, int64_t choices) {
  experts_weights *weights = tarn__declare_struct(declare, sizeof *weights);
  if (!weights) return NULL;
  weights->keys = keys;
  weights->choices = choices;
  weights->router = tarn__declare_dense(declare, "ffn.router", keys->experts, declare->d_model, 1, 1.0);
  if (!weights->router) return NULL;
  // It stays in fp32 (Fedus et al. 2021, selective precision), and is not rounded to INT8.
  weights->router->vector = true;
  weights->router->out = keys->experts;
  weights->router->in = declare->d_model;
  if (keys->train_router) weights->router->trained = true;
  if (keys->gating == TARN__GATING_NOISY && declare->kind->frozen != TARN_FROZEN_YES) {
    // All experts begin with equal noise; the router itself is initialised like others.
    weights->noise = tarn__declare_param(declare, "ffn.noise.weight", keys->experts, declare->d_model,
                                         weights->router->trained, (tarn__init){TARN__INIT_ZERO, 0.0, 1});
    if (!weights->noise) return NULL;
    weights->noise->vector = true;
    weights->noise->out = keys->experts;
    weights->noise->in = declare->d_model;
  }
  weights->in = declare_all(declare, "ffn.in", keys->experts, keys->width, declare->d_model);
  weights->activation = tarn__declare_activation(declare, "ffn.beta", &keys->activation);
  weights->out = declare_all(declare, "ffn.out", keys->experts, declare->d_model, keys->width);
  weights->norm = tarn__declare_norm(declare, "ffn.norm");
  return weights;
}

// A frozen layer computes the same in training as elsewhere: its output must not depend on the batch.
static tarn__route_spec spec_of(const experts_weights *weights, const tarn__block_run *run, const tarn_kind *kind) {
  const tarn__experts_keys *keys = weights->keys;
  tarn__route_spec spec = {
      .choices = weights->choices, .normalise = weights->choices > 1, .capacity = INFINITY, .share = run->share};
  if (kind->frozen == TARN_FROZEN_YES) return spec;
  spec.capacity = keys->capacity;
  spec.importance = keys->importance;
  spec.load = keys->load;
  if (weights->noise) return spec;
  spec.balance = keys->balance;
  spec.noise = keys->noise;
  return spec;
}

void tarn__experts_build(const tarn__block_run *run, const void *memory, const tarn_kind *kind, tarn__stream *stream) {
  const experts_weights *weights = memory;
  const tarn__activation_entry *activation = tarn__activation_of(weights->activation.use);
  const tarn__activation form = activation->apply ? TARN__IDENTITY : activation->form;
  tarn__tensor *x = tarn__stream_enter(run->graph, stream, &weights->norm, kind->norm);
  const tarn__route_spec spec = spec_of(weights, run, kind);
  const tarn__routed routed = weights->noise ? tarn__route_noisy(run->graph, x, weights->router, weights->noise, spec)
                                             : tarn__route(run->graph, x, weights->router, spec);
  tarn__tensor *rows = tarn__gather_rows(run->graph, x, &routed);
  rows = tarn__grouped_linear(run->graph, rows, routed.offsets, weights->in.weight, weights->in.bias, form);
  if (activation->apply)
    rows =
        activation->apply(run->graph, rows, routed.offsets, weights->activation.use->keys, weights->activation.number);
  rows = tarn__grouped_linear(run->graph, rows, routed.offsets, weights->out.weight, weights->out.bias, TARN__IDENTITY);
  tarn__tensor *y = tarn__weighted_rows(run->graph, rows, routed.places, routed.gates);
  tarn__stream_leave(run->graph, stream, y, kind->dropout, &weights->norm, kind->norm);
}
