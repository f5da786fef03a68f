// HyperMixer (Mai et al. 2023): an MLP over the tokens of a sentence, as in MLP-Mixer, whose two matrices are computed
// from the tokens by hypernetworks, so it takes sentences of any length and treats all positions alike. The
// hypernetworks have no biases, and larger first values, as in the authors' code (idiap/hypermixing).
#include "ops/sentence_product.h"
#include "parts/block.h"

typedef struct hyper_keys {
  int64_t hidden;      // h
  bool tied;           // W2 = W1
  bool positions;      // p
  bool mixed_norm;     // the norm after the mixing
  int64_t max_length;  // the model's, with positions
} hyper_keys;

static const tarn__option options[] = {
    {"hidden", TARN__KEY_INTEGER(hyper_keys, hidden, 1, 65536), .value = "128",
     .help = "width of the MLP over tokens: columns of both of its matrices, and rows to which a "
             "sentence is mixed; it takes hidden x d_model numbers of memory for every sentence, "
             "however short (the paper has 512 where d_model is 256)",
     .also = "hypernet_size tokens_mlp_dim token_dim d_hidden hidden_dim"},
    {"tied", TARN__KEY_BOOL(hyper_keys, tied), .value = "no",
     .help = "one hypernetwork makes both matrices, W2 = W1 (the paper's tied HyperMixer)"},
    {"token_positions", TARN__KEY_BOOL(hyper_keys, positions), .value = "yes",
     .help = "a vector for each of model.max_length positions is added to what the hypernetworks read",
     .also = "token_information position_embeddings pos_enc"},
    {"mixed_norm", TARN__KEY_BOOL(hyper_keys, mixed_norm), .value = "yes",
     .help = "another norm of the kind's norm_type after the mixing, before the residual sum",
     .also = "use_layer_norm layer_norm"},
};

typedef struct hypernetwork {
  tarn__linear_weights in, out;  // [d_model, d_model], [hidden, d_model]
} hypernetwork;

typedef struct hyper_weights {
  const hyper_keys *keys;
  hypernetwork first, second;  // of W1 and W2; the second without weights if tied
  tarn__param *positions;      // [max_length, d_model]; NULL: none
  tarn__norm_weights norm, mixed_norm;
} hyper_weights;

static tarn_status resolve(const tarn__part_site *site, void *memory) {
  ((hyper_keys *)memory)->max_length = site->model->max_length;
  return TARN_STATUS_OK;
}

static const double GAIN = 1.41421356237309504880;

// As large as the authors' sinusoids.
static tarn__param *declare_positions(tarn__declare *declare, int64_t max_length) {
  const bool trained = declare->kind->frozen == TARN_FROZEN_NO && !declare->frozen_part;
  const tarn__init init = {TARN__INIT_NORMAL, 0.70710678118654752440 * declare->kind->init_gain, 1};
  return tarn__declare_param(declare, "hyper.positions.weight", max_length, declare->d_model, trained, init);
}

static hypernetwork declare_network(tarn__declare *declare, const char *in, const char *out, int64_t hidden) {
  const int64_t d = declare->d_model;
  return (hypernetwork){tarn__declare_matrix(declare, in, d, d, 1, GAIN),
                        tarn__declare_matrix(declare, out, hidden, d, 1, GAIN)};
}

static void *declare_hyper(tarn__declare *declare, const void *memory) {
  const hyper_keys *keys = memory;
  hyper_weights *weights = tarn__declare_struct(declare, sizeof *weights);
  if (!weights) return NULL;
  weights->keys = keys;
  weights->first = declare_network(declare, "hyper.first.in", "hyper.first.out", keys->hidden);
  if (!keys->tied) weights->second = declare_network(declare, "hyper.second.in", "hyper.second.out", keys->hidden);
  if (keys->positions) weights->positions = declare_positions(declare, keys->max_length);
  weights->norm = tarn__declare_norm(declare, "hyper.norm");
  if (keys->mixed_norm) weights->mixed_norm = tarn__declare_inner_norm(declare, "hyper.mixed_norm", declare->d_model);
  return weights;
}

// One of the two matrices, with a row for each token.
static tarn__tensor *matrix_of(const tarn__block_run *run, const hypernetwork *network, tarn__tensor *x) {
  tarn__tensor *inner = tarn__project(run->graph, x, &network->in, TARN__GELU);
  return tarn__project(run->graph, inner, &network->out, TARN__IDENTITY);
}

// x + p.
static tarn__tensor *with_positions(const tarn__block_run *run, const hyper_weights *weights, tarn__tensor *x) {
  if (!weights->positions) return x;
  tarn__tensor *p = tarn__embedding(run->graph, run->positions, NULL, weights->positions, NULL, 1.0, 0.0);
  return tarn__stream_sum(run->graph, x, p, 0.0);
}

static void build(const tarn__block_run *run, const void *memory, const tarn_kind *kind, tarn__stream *stream) {
  const hyper_weights *weights = memory;
  tarn__graph *graph = run->graph;
  tarn__tensor *x = tarn__stream_enter(graph, stream, &weights->norm, kind->norm);
  tarn__tensor *tokens = with_positions(run, weights, x);
  tarn__tensor *first = matrix_of(run, &weights->first, tokens);
  tarn__tensor *second = weights->keys->tied ? first : matrix_of(run, &weights->second, tokens);
  const tarn__sentence_spec spec = {.heads = 1, .d = run->d_model, .longest = run->longest};
  tarn__tensor *mixed = tarn__activate(graph, tarn__sentence_outer(graph, first, x, run->offsets, spec), TARN__GELU);
  tarn__tensor *y = tarn__sentence_product(graph, second, mixed, run->offsets, spec);
  const tarn__norm_weights *norm = &weights->mixed_norm;
  if (norm->use.part) y = tarn__norm_of(&norm->use)->build(graph, y, NULL, 0.0, norm).y;
  tarn__stream_leave(graph, stream, y, kind->dropout, &weights->norm, kind->norm);
}

static bool by_position(const void *keys) { return ((const hyper_keys *)keys)->positions; }

const tarn__mixer_entry tarn__mixer_hypermixer = {
    .part = {.word = "hypermixer",
             .text = "HyperMixer, Mai et al. 2023: an MLP over the tokens of a sentence, whose matrices "
                     "hypernetworks make from the tokens; encoder only, because no causal form was published",
             .equation = "W1 = gelu((X + P) A1^T) B1^T, W2 = gelu((X + P) A2^T) B2^T, or W2 = W1 (tied)   [n, h]\n"
                         "Y = norm(W2 gelu(W1^T X))",
             .source = "Mai et al. 2023 (arXiv 2203.03691)",
             .also = "hypermixing hyper_mixer hyper-mixer hyper",
             TARN__PART_KEYS(hyper_keys, options),
             .resolve = resolve},
    .declare = declare_hyper,
    .build = build,
    .by_position = by_position,
};
