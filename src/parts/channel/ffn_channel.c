// The feed-forward network (Vaswani et al. 2017): two projections with an activation between them.
#include "parts/block.h"

typedef struct ffn_keys {
  int64_t width;  // inner
  tarn_part_use activation;
} ffn_keys;

static const tarn__option options[] = {
    {"width", TARN__KEY_INTEGER(ffn_keys, width, 0, 1048576), .value = "1024",
     .help = "inner width; 0: the layer is its token mixer only",
     .also = "ffn_dim d_ff ffn_embed_dim transformer-dim-ffn hidden hidden_size"},
    {"activation", TARN__KEY_PART(ffn_keys, activation, TARN__TABLE_ACTIVATION), .derived = "model.activation",
     .inherits = offsetof(tarn_config_model, activation), .help = "between the two products",
     .also = "activation_fn activation_function hidden_act"},
};

typedef struct ffn_weights {
  tarn__linear_weights in, out;
  tarn__activated activation;
  tarn__norm_weights norm;
} ffn_weights;

static void *declare_ffn(tarn__declare *declare, const void *memory) {
  const ffn_keys *keys = memory;
  ffn_weights *weights = tarn__declare_struct(declare, sizeof *weights);
  if (!weights) return NULL;
  weights->in = tarn__declare_linear(declare, "ffn.in", keys->width, declare->d_model, 1, 1.0);
  weights->activation = tarn__declare_activation(declare, "ffn.beta", &keys->activation);
  weights->out = tarn__declare_linear(declare, "ffn.out", declare->d_model, keys->width, 1, 1.0);
  weights->norm = tarn__declare_norm(declare, "ffn.norm");
  return weights;
}

static void build(const tarn__block_run *run, const void *memory, const tarn_kind *kind, tarn__stream *stream) {
  const ffn_weights *weights = memory;
  tarn__tensor *x = tarn__stream_enter(run->graph, stream, &weights->norm, kind->norm);
  tarn__tensor *hidden = tarn__activated_project(run->graph, x, &weights->in, &weights->activation);
  tarn__show_tensor(run->shows, TARN__SHOW_HIDDEN, hidden);
  tarn__tensor *y = tarn__project(run->graph, hidden, &weights->out, TARN__IDENTITY);
  tarn__stream_leave(run->graph, stream, y, kind->dropout, &weights->norm, kind->norm);
}

const tarn__channel_entry tarn__channel_ffn = {
    .part = {.word = "ffn",
             .text = "feed-forward network, Vaswani et al. 2017: two projections with an activation between them",
             .equation = "y = W_2 act(W_1 x + b_1) + b_2",
             .source = "Vaswani et al. 2017 (arXiv 1706.03762)",
             .also = "mlp feed_forward feedforward",
             TARN__PART_KEYS(ffn_keys, options)},
    .declare = declare_ffn,
    .build = build,
};
