// Feed-forward networks with a gate (Shazeer 2020): y = W_out (left * act(right)), where left and right are two
// products of x. GLU has the sigmoid (Dauphin et al. 2017), GEGLU GELU, ReGLU ReLU, SwiGLU Swish, LiGLU no function, so
// it is bilinear. Unlike Shazeer's they have biases, like the network without a gate.
#include "ops/swish_beta.h"
#include "parts/block.h"

typedef struct gated_keys {
  int64_t width;
  bool equalize;
  double beta;  // of swiglu
  bool learned;
} gated_keys;

#define WIDTH_KEYS                                                                                               \
  {"width", TARN__KEY_INTEGER(gated_keys, width, 1, 1048576), .value = "1024",                                   \
   .help = "inner width: that of each half",                                                                     \
   .also = "ffn_dim d_ff ffn_embed_dim transformer-dim-ffn hidden hidden_size intermediate_size"},               \
  {                                                                                                              \
    "equalize", TARN__KEY_BOOL(gated_keys, equalize),                                                            \
        .value = "no",                                                                                           \
        .help =                                                                                                  \
            "the inner width is two thirds of `width`, to the nearest multiple of 8, so that there are as many " \
            "parameters as "                                                                                     \
            "in an ffn of that `width`"                                                                          \
  }

static const tarn__option options[] = {WIDTH_KEYS};

static const tarn__option swish_options[] = {
    WIDTH_KEYS,
    {"beta", TARN__KEY_REAL(gated_keys, beta, 0, 1000), .value = "1",
     .help = "what the gate's x is multiplied by inside its sigmoid; with `learned`, where each layer begins",
     .later = true},
    {"learned", TARN__KEY_BOOL(gated_keys, learned), .value = "no",
     .help = "each layer that is not frozen learns a beta of its own", .later = true,
     .also = "trainable learnable learn_beta"},
};

typedef struct gated_weights {
  const gated_keys *keys;
  tarn__linear_weights in, out;  // rows of `in` are left, right
  tarn__param *beta;             // of swiglu, if learnt; else NULL
  tarn__norm_weights norm;
} gated_weights;

// Two products of `width` and their biases have 2 d w + w numbers (the bias of `out` aside), three of w' 3 d w' + 2 w'.
static int64_t inner_width(const gated_keys *keys, int64_t d) {
  if (!keys->equalize) return keys->width;
  const double equal = (double)keys->width * (double)(2 * d + 1) / (double)(3 * d + 2);
  const int64_t width = (int64_t)(equal / 8.0 + 0.5) * 8;
  return width > 0 ? width : 8;
}

static void *declare_gated(tarn__declare *declare, const void *memory) {
  const int64_t width = inner_width(memory, declare->d_model);
  gated_weights *weights = tarn__declare_struct(declare, sizeof *weights);
  if (!weights) return NULL;
  weights->keys = memory;
  weights->in = tarn__declare_linear(declare, "ffn.in", 2 * width, declare->d_model, 2, 1.0);
  if (weights->keys->learned) weights->beta = tarn__declare_number(declare, "ffn.beta", weights->keys->beta);
  weights->out = tarn__declare_linear(declare, "ffn.out", declare->d_model, width, 1, 1.0);
  weights->norm = tarn__declare_norm(declare, "ffn.norm");
  return weights;
}

// Entries without beta leave it 0.
static tarn__tensor *gate_of(tarn__graph *graph, tarn__tensor *halves, const gated_weights *weights,
                             tarn__activation gate) {
  const double beta = weights->keys->beta;
  const bool plain = gate != TARN__SWISH || (beta == 1.0 && !weights->beta);
  return plain ? tarn__glu(graph, halves, gate) : tarn__swish_beta(graph, halves, NULL, beta, weights->beta, true);
}

static void build(const tarn__block_run *run, const gated_weights *weights, const tarn_kind *kind, tarn__stream *stream,
                  tarn__activation gate) {
  tarn__tensor *x = tarn__stream_enter(run->graph, stream, &weights->norm, kind->norm);
  tarn__tensor *halves = tarn__project(run->graph, x, &weights->in, TARN__IDENTITY);
  tarn__tensor *gated = gate_of(run->graph, halves, weights, gate);
  tarn__show_tensor(run->shows, TARN__SHOW_HIDDEN, gated);
  tarn__tensor *y = tarn__project(run->graph, gated, &weights->out, TARN__IDENTITY);
  tarn__stream_leave(run->graph, stream, y, kind->dropout, &weights->norm, kind->norm);
}

#define ENTRY(name, gate, meaning, function, from, keys)                                           \
  static void build_##name(const tarn__block_run *run, const void *weights, const tarn_kind *kind, \
                           tarn__stream *stream) {                                                 \
    build(run, weights, kind, stream, gate);                                                       \
  }                                                                                                \
  const tarn__channel_entry tarn__channel_##name = {                                               \
      .part = {.word = #name,                                                                      \
               .text = meaning,                                                                    \
               .equation = "y = W_2 ((W_l x + b_l) * " function ") + b_2",                         \
               .source = from,                                                                     \
               TARN__PART_KEYS(gated_keys, keys)},                                                 \
      .declare = declare_gated,                                                                    \
      .build = build_##name,                                                                       \
  };

#define SHAZEER "Shazeer 2020 (arXiv 2002.05202)"
ENTRY(glu, TARN__SIGMOID, "feed-forward network with a gate: left * sigmoid(right), Dauphin et al. 2017, Shazeer 2020",
      "sigmoid(W_r x + b_r)", "Dauphin et al. 2017 (arXiv 1612.08083); " SHAZEER, options)
ENTRY(geglu, TARN__GELU, "left * GELU(right), Shazeer 2020", "GELU(W_r x + b_r)", SHAZEER, options)
ENTRY(reglu, TARN__RELU, "left * ReLU(right), Shazeer 2020", "ReLU(W_r x + b_r)", SHAZEER, options)
ENTRY(swiglu, TARN__SWISH, "left * Swish(right), Shazeer 2020", "Swish_beta(W_r x + b_r)", SHAZEER, swish_options)
ENTRY(liglu, TARN__IDENTITY, "left * right, the bilinear form, Shazeer 2020", "(W_r x + b_r)", SHAZEER, options)
