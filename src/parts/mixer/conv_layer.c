#include "parts/mixer/conv_layer.h"

const tarn__option tarn__conv_options[TARN__CONV_OPTIONS] = {
    TARN__KEY_HEADS(tarn__conv_keys,
                    "kernels of a convolution, and heads of the cross-attention that follows; a divisor of "
                    "model.d_model"),
    {"kernel", TARN__KEY_INTEGER(tarn__conv_keys, kernel, 1, 1023), .value = "7", .unit = "tokens",
     .help = "width of the convolution; odd in the encoder",
     .also = "kernel_size conv_kernel_size encoder_kernel_size_list decoder_kernel_size_list"},
    {"kernel_dropout", TARN__KEY_REAL(tarn__conv_keys, kernel_dropout, 0, 1), TARN__KEY_BELOW_MOST, .value = "0",
     .help = "DropConnect on the softmax kernel", .random = true, .also = "weight_dropout dropconnect"},
    TARN__KEY_CROSS_DROPOUT(tarn__conv_keys, cross_dropout),
};

tarn_status tarn__conv_resolve(const tarn__part_site *site, void *memory) {
  const tarn__conv_keys *keys = memory;
  TARN_TRY(tarn__heads_check(site, keys->heads));
  return tarn__centred_check(site, "kernel", keys->kernel);
}

tarn__conv_weights *tarn__conv_declare(tarn__declare *declare, const tarn__conv_keys *keys) {
  tarn__conv_weights *weights = tarn__declare_struct(declare, sizeof *weights);
  if (!weights) return NULL;
  const int64_t d = declare->d_model;
  weights->keys = keys;
  weights->in = tarn__declare_linear(declare, "conv.in", 2 * d, d, 1, 1.0);
  weights->out = tarn__declare_linear(declare, "conv.out", d, d, 1, 1.0);
  weights->norm = tarn__declare_norm(declare, "conv.norm");
  tarn__cross_declare(declare, keys->heads, keys->cross_dropout);
  return weights;
}

static tarn__tensor *convolve(const tarn__block_run *run, const tarn__conv_weights *weights, tarn__tensor *x) {
  const tarn__conv_keys *keys = weights->keys;
  tarn__conv_spec spec = {
      .heads = keys->heads, .width = keys->kernel, .before = run->causal ? keys->kernel - 1 : (keys->kernel - 1) / 2};
  tarn__tensor *logits = weights->light ? tarn__graph_param(run->graph, weights->light)
                                        : tarn__project(run->graph, x, &weights->dynamic, TARN__IDENTITY);
  if (!weights->light)
    tarn__show_part(
        run->shows, TARN__SHOW_KERNEL,
        (tarn__shown){.tensor = logits, .form = TARN__SHOWN_SOFTMAX, .width = logits->cols, .group = keys->kernel});
  if (!run->incremental) return tarn__depthwise_conv(run->graph, x, logits, run->offsets, spec, keys->kernel_dropout);
  tarn__tensor *cache = tarn__cache_append(run->graph, x, 0, run->self_cache, run->first_row);
  return tarn__depthwise_conv_rows(run->graph, cache, logits, run->history, run->history_ranges, spec);
}

void tarn__conv_build(const tarn__block_run *run, const void *memory, const tarn_kind *kind, tarn__stream *stream) {
  const tarn__conv_weights *weights = memory;
  tarn__tensor *x = tarn__stream_enter(run->graph, stream, &weights->norm, kind->norm);
  tarn__tensor *halves = tarn__project(run->graph, x, &weights->in, TARN__IDENTITY);
  tarn__show_part(
      run->shows, TARN__SHOW_GATES,
      (tarn__shown){.tensor = halves, .form = TARN__SHOWN_SIGMOID, .column = run->d_model, .width = run->d_model});
  tarn__tensor *gated = tarn__glu(run->graph, halves, TARN__SIGMOID);
  tarn__tensor *y = convolve(run, weights, gated);
  y = tarn__project(run->graph, y, &weights->out, TARN__IDENTITY);
  tarn__stream_leave(run->graph, stream, y, kind->dropout, &weights->norm, kind->norm);
}

int64_t tarn__conv_cache_width(const void *keys, int64_t d_model) {
  (void)keys;
  return d_model;
}

int64_t tarn__conv_history(const void *keys) { return ((const tarn__conv_keys *)keys)->kernel; }
