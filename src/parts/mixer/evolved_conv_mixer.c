// The branched convolutions of an Evolved Transformer (So et al. 2019): two branches of different widths, of which the
// narrow one is added to the first columns of the wide one, a norm, and a separable convolution. The cells of encoder
// and decoder differ, and so do their weights: "conv." where tokens see all others, "causal_conv." where only earlier
// ones.
#include <math.h>

#include "ops/cache.h"
#include "parts/block.h"

// Widths in tokens.
enum { STANDARD = 3, ENCODER = 9, LEFT = 11, RIGHT = 7, LAST = 7 };

// A convolution with a kernel for each channel, and a projection.
typedef struct separable {
  tarn__param *kernel;
  tarn__linear_weights out;
  int64_t width;
} separable;

typedef struct evolved_weights {
  tarn__linear_weights wide, narrow;  // of an encoder's cell: of the token, and of its neighbours
  separable left, right;              // of a decoder's, in their place
  tarn__norm_weights mixed_norm;
  separable last;
  tarn__norm_weights norm;
} evolved_weights;

static tarn_status resolve(const tarn__part_site *site, void *keys) {
  (void)keys;
  if (site->model->d_model % 2 == 0) return TARN_STATUS_OK;
  return tarn__part_fail(site, "mixer", "one of its branches is half as wide as model.d_model, %lld, which is odd",
                         (long long)site->model->d_model);
}

// With any init the kernel keeps the spread of its input.
static separable declare_separable(tarn__declare *declare, const char *kernel, const char *name, int64_t out,
                                   int64_t in, int64_t width) {
  const tarn_kind *kind = declare->kind;
  const double deviation = 1.0 / sqrt((double)width);
  tarn__init init = {TARN__INIT_UNIFORM, sqrt(3.0) * deviation, 1};
  if (kind->init == TARN_INIT_NORMAL) init = (tarn__init){TARN__INIT_NORMAL, deviation, 1};
  tarn__param *own = tarn__declare_param(declare, kernel, 1, width * in, kind->frozen == TARN_FROZEN_NO, init);
  return (separable){own, tarn__declare_linear(declare, name, out, in, 1, 1.0), width};
}

static void declare_encoder(tarn__declare *declare, evolved_weights *weights) {
  const int64_t d = declare->d_model;
  weights->wide = tarn__declare_linear(declare, "conv.wide", 4 * d, d, 1, 1.0);
  weights->narrow = tarn__declare_linear(declare, "conv.narrow", d / 2, STANDARD * d, 1, 1.0);
  weights->mixed_norm = tarn__declare_inner_norm(declare, "conv.mixed_norm", 4 * d);
  weights->last = declare_separable(declare, "conv.kernel", "conv.out", d / 2, 4 * d, ENCODER);
  weights->norm = tarn__declare_norm(declare, "conv.norm");
}

static void declare_decoder(tarn__declare *declare, evolved_weights *weights) {
  const int64_t d = declare->d_model;
  weights->left = declare_separable(declare, "causal_conv.left_kernel", "causal_conv.left", 2 * d, d, LEFT);
  weights->right = declare_separable(declare, "causal_conv.right_kernel", "causal_conv.right", d / 2, d, RIGHT);
  weights->mixed_norm = tarn__declare_inner_norm(declare, "causal_conv.mixed_norm", 2 * d);
  weights->last = declare_separable(declare, "causal_conv.kernel", "causal_conv.out", d, 2 * d, LAST);
  weights->norm = tarn__declare_norm(declare, "causal_conv.norm");
}

static void *declare_evolved(tarn__declare *declare, const void *keys) {
  (void)keys;
  evolved_weights *weights = tarn__declare_struct(declare, sizeof *weights);
  if (!weights) return NULL;
  if (declare->causal)
    declare_decoder(declare, weights);
  else
    declare_encoder(declare, weights);
  return weights;
}

// Of whole sentences; of a decoding step with the cache, whose columns from `column` on hold its input.
static tarn__tensor *convolve(const tarn__block_run *run, const separable *weights, tarn__tensor *x,
                              tarn__tensor *cache, int64_t column, tarn__activation activation) {
  const int64_t width = weights->width;
  const tarn__taps taps = {.width = width, .before = run->causal ? width - 1 : (width - 1) / 2};
  tarn__tensor *y = cache ? tarn__channel_conv_rows(run->graph, cache, column, run->history, run->history_ranges,
                                                    weights->kernel, width)
                          : tarn__channel_conv(run->graph, x, run->offsets, weights->kernel, taps);
  return tarn__project(run->graph, y, &weights->out, activation);
}

// Both branches, each with its dropout, and the norm of their sum.
static tarn__tensor *join(const tarn__block_run *run, const evolved_weights *weights, tarn__tensor *wide,
                          tarn__tensor *narrow, double dropout) {
  const tarn__norm_weights *norm = &weights->mixed_norm;
  wide = tarn__dropout_apply(run->graph, wide, dropout);
  narrow = tarn__dropout_apply(run->graph, narrow, dropout);
  tarn__tensor *sum = tarn__widen(run->graph, wide, narrow, wide->cols);
  return tarn__norm_of(&norm->use)->build(run->graph, sum, NULL, 0.0, norm).y;
}

static tarn__tensor *encoder_branches(const tarn__block_run *run, const evolved_weights *weights, tarn__tensor *x,
                                      double dropout) {
  const tarn__taps taps = {.width = STANDARD, .before = (STANDARD - 1) / 2};
  tarn__tensor *wide = tarn__project(run->graph, x, &weights->wide, TARN__RELU);
  tarn__tensor *near = tarn__neighbours(run->graph, x, run->offsets, taps);
  tarn__tensor *narrow = tarn__project(run->graph, near, &weights->narrow, TARN__RELU);
  tarn__tensor *y = join(run, weights, wide, narrow, dropout);
  y = convolve(run, &weights->last, y, NULL, 0, TARN__IDENTITY);
  return tarn__widen(run->graph, NULL, y, run->d_model);
}

static tarn__tensor *decoder_branches(const tarn__block_run *run, const evolved_weights *weights, tarn__tensor *x,
                                      double dropout) {
  const int64_t d = run->d_model;
  tarn__tensor *cache = NULL;
  if (run->incremental) cache = tarn__cache_append_columns(run->graph, x, 0, d, run->self_cache, 0, run->first_row);
  tarn__tensor *wide = convolve(run, &weights->left, x, cache, 0, TARN__RELU);
  tarn__tensor *narrow = convolve(run, &weights->right, x, cache, 0, TARN__IDENTITY);
  tarn__tensor *y = join(run, weights, wide, narrow, dropout);
  if (cache) cache = tarn__cache_append_columns(run->graph, y, 0, 2 * d, cache, d, run->first_row);
  return convolve(run, &weights->last, y, cache, d, TARN__IDENTITY);
}

static void build(const tarn__block_run *run, const void *memory, const tarn_kind *kind, tarn__stream *stream) {
  const evolved_weights *weights = memory;
  tarn__tensor *x = tarn__stream_enter(run->graph, stream, &weights->norm, kind->norm);
  tarn__tensor *y = weights->left.kernel ? decoder_branches(run, weights, x, kind->dropout)
                                         : encoder_branches(run, weights, x, kind->dropout);
  tarn__stream_leave(run->graph, stream, y, kind->dropout, &weights->norm, kind->norm);
}

// The inputs of the first and of the last convolutions.
static int64_t cache_width(const void *keys, int64_t d_model) {
  (void)keys;
  return 3 * d_model;
}

static int64_t history(const void *keys) {
  (void)keys;
  return LEFT;
}

const tarn__mixer_entry tarn__mixer_evolved_conv = {
    .part = {.word = "evolved_conv",
             .text =
                 "the branched convolutions of an Evolved Transformer's cells, So et al. 2019: those of its encoder "
                 "where tokens see all others, those of its decoder where they see only earlier ones; no "
                 "cross-attention follows. model.d_model is even",
             .equation = "all others: u = ReLU(x W_l) + pad(ReLU(conv_3(x))), y = pad(sep_9(norm(u)))\n"
                         "earlier ones: u = ReLU(sep_11(x)) + pad(sep_7(x)), y = sep_7(norm(u))\n"
                         "widths in multiples of d_model: 4, 1/2, 1/2 and 2, 1/2, 1; pad adds columns of "
                         "zeros\n"
                         "conv_k is a convolution over k tokens, sep_k one with a kernel for each channel, and a "
                         "projection",
             .source = "So et al. 2019 (arXiv 1901.11117)",
             .also = "evolved evolved_transformer conv_branches branched_conv separable_conv",
             .resolve = resolve},
    .causal = true,
    .decodes = true,
    .declare = declare_evolved,
    .build = build,
    .cache_width = cache_width,
    .history = history,
};
