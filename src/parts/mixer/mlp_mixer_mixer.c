// MLP-Mixer (Tolstikhin et al. 2021): two linear layers across the tokens of a sentence, the same for each feature,
// with GELU between them. The layer's channel mixer is the other half of its block. There is no causal form.
#include "parts/mixer/token_layer.h"

typedef struct mlp_mixer_keys {
  int64_t hidden, tokens;
} mlp_mixer_keys;

static const tarn__option options[] = {
    {"hidden", TARN__KEY_INTEGER(mlp_mixer_keys, hidden, 1, 65536), .derived = "model.d_model / 2",
     .help = "width of the hidden layer across tokens (D_S)", .also = "tokens_mlp_dim d_s token_dim"},
    TARN__KEY_TOKENS(mlp_mixer_keys, tokens),
};

typedef struct mlp_mixer_weights {
  tarn__linear_weights in, out;  // [hidden, tokens], [tokens, hidden]
  tarn__norm_weights norm;
} mlp_mixer_weights;

static tarn_status resolve(const tarn__part_site *site, void *memory) {
  mlp_mixer_keys *keys = memory;
  if (keys->hidden == 0) keys->hidden = site->model->d_model > 1 ? site->model->d_model / 2 : 1;
  return tarn__tokens_resolve(site, &keys->tokens);
}

static void *declare_mlp_mixer(tarn__declare *declare, const void *memory) {
  const mlp_mixer_keys *keys = memory;
  mlp_mixer_weights *weights = tarn__declare_struct(declare, sizeof *weights);
  if (!weights) return NULL;
  weights->in.weight = tarn__token_weight(declare, "mlp_mixer.in", keys->hidden, keys->tokens, false);
  weights->in.bias = tarn__declare_bias(declare, "mlp_mixer.in", keys->hidden, keys->tokens);
  weights->out.weight = tarn__token_weight(declare, "mlp_mixer.out", keys->tokens, keys->hidden, false);
  weights->out.bias = tarn__declare_bias(declare, "mlp_mixer.out", keys->tokens, keys->hidden);
  weights->norm = tarn__declare_norm(declare, "mlp_mixer.norm");
  return weights;
}

static void build(const tarn__block_run *run, const void *memory, const tarn_kind *kind, tarn__stream *stream) {
  const mlp_mixer_weights *weights = memory;
  tarn__graph *graph = run->graph;
  const tarn__token_gate none = {0};
  tarn__tensor *x = tarn__stream_enter(graph, stream, &weights->norm, kind->norm);
  tarn__token_spec spec = {.form = TARN__TOKENS_IN, .longest = run->longest};
  tarn__tensor *h = tarn__token_linear(graph, x, run->offsets, weights->in.weight, weights->in.bias, none, spec);
  h = tarn__activate(graph, h, TARN__GELU);
  spec.form = TARN__TOKENS_OUT;
  spec.rows = x->rows;
  tarn__tensor *y = tarn__token_linear(graph, h, run->offsets, weights->out.weight, weights->out.bias, none, spec);
  tarn__stream_leave(graph, stream, y, kind->dropout, &weights->norm, kind->norm);
}

const tarn__mixer_entry tarn__mixer_mlp_mixer = {
    .part = {.word = "mlp_mixer",
             .text = "MLP-Mixer, Tolstikhin et al. 2021: two linear layers across tokens with GELU between "
                     "them, the same for all features; encoder only",
             .equation = "y = W_2 gelu(W_1 x + b_1) + b_2 for each feature, x its column over the n tokens of a "
                         "sentence\n"
                         "W_1 [hidden, tokens], W_2 [tokens, hidden], b_2 [tokens]; a sentence uses the first n "
                         "places of each",
             .source = "Tolstikhin et al. 2021 (arXiv 2105.01601)",
             .also = "mixer mlpmixer token_mlp",
             TARN__PART_KEYS(mlp_mixer_keys, options),
             .resolve = resolve},
    .bounded = true,
    .declare = declare_mlp_mixer,
    .build = build,
};
