// Light and dynamic convolution (Wu et al. 2019): a projection to 2 d with a gated linear unit, a depthwise convolution
// with a softmax kernel for each head, and a projection back; in the decoder causal, then cross-attention. The kernels
// of a light convolution are a parameter, those of a dynamic one a function of each position.
#include <math.h>

#include "parts/block.h"
#include "parts/registry.h"

typedef struct conv_weights {
  tarn__linear_weights in, out;
  tarn__param *light;            // [1, heads * kernel], or NULL
  tarn__linear_weights dynamic;  // [heads * kernel, d], without a bias
  tarn__norm_weights norm;
  tarn__cross_weights cross;  // decoder only
} conv_weights;

static conv_weights *declare_ends(tarn__declare *declare) {
  conv_weights *weights = tarn__declare_struct(declare, sizeof *weights);
  if (!weights) return NULL;
  const int64_t d = declare->d_model;
  weights->in = tarn__declare_linear(declare, "conv.in", 2 * d, d, 1, 1.0);
  weights->out = tarn__declare_linear(declare, "conv.out", d, d, 1, 1.0);
  weights->norm = tarn__declare_norm(declare, "conv.norm");
  if (declare->decoder) weights->cross = tarn__cross_declare(declare);
  return weights;
}

// The kernel of a light convolution is no projection: whatever the projections are, it has the spread of Xavier's rule
// for fairseq's tensor [heads, 1, kernel], uniform or, with init normal, normal.
static void *declare_light(tarn__declare *declare) {
  conv_weights *weights = declare_ends(declare);
  if (!weights) return NULL;
  const tarn_kind *kind = declare->kind;
  const double width = (double)kind->kernel, deviation = sqrt(2.0 / (width + (double)kind->heads * width));
  tarn__init init = {TARN__INIT_UNIFORM, sqrt(3.0) * deviation, 1};
  if (kind->init == TARN_INIT_NORMAL) init = (tarn__init){TARN__INIT_NORMAL, deviation, 1};
  weights->light =
      tarn__declare_param(declare, "conv.kernel", 1, kind->heads * kind->kernel, kind->frozen == TARN_FROZEN_NO, init);
  return weights;
}

static void *declare_dynamic(tarn__declare *declare) {
  conv_weights *weights = declare_ends(declare);
  if (!weights) return NULL;
  const tarn_kind *kind = declare->kind;
  weights->dynamic = tarn__declare_matrix(declare, "conv.kernel", kind->heads * kind->kernel, declare->d_model, 1, 1.0);
  return weights;
}

static tarn__tensor *convolve(const tarn__block_run *run, const conv_weights *weights, const tarn_kind *kind,
                              tarn__tensor *x) {
  tarn__conv_spec spec = {
      .heads = kind->heads, .width = kind->kernel, .before = run->causal ? kind->kernel - 1 : (kind->kernel - 1) / 2};
  tarn__tensor *logits = weights->light ? tarn__graph_param(run->graph, weights->light)
                                        : tarn__project(run->graph, x, &weights->dynamic, TARN__IDENTITY);
  if (!run->incremental) return tarn__depthwise_conv(run->graph, x, logits, run->offsets, spec, kind->kernel_dropout);
  tarn__tensor *cache = tarn__cache_append(run->graph, x, 0, run->self_cache, run->first_row);
  return tarn__depthwise_conv_rows(run->graph, cache, logits, run->history, run->history_ranges, spec);
}

static void build(const tarn__block_run *run, const void *memory, const tarn_kind *kind, tarn__stream *stream) {
  const conv_weights *weights = memory;
  tarn__tensor *x = tarn__stream_enter(run->graph, stream, &weights->norm, kind->norm);
  tarn__tensor *gated = tarn__glu(run->graph, tarn__project(run->graph, x, &weights->in, TARN__IDENTITY));
  tarn__tensor *y = convolve(run, weights, kind, gated);
  y = tarn__project(run->graph, y, &weights->out, TARN__IDENTITY);
  tarn__stream_leave(run->graph, stream, y, kind->dropout, &weights->norm, kind->norm);
  if (weights->cross.q.weight) tarn__cross_build(run, &weights->cross, kind, stream);
}

static tarn__tensor *build_cross(const tarn__block_run *run, const void *memory) {
  return tarn__cross_memory(run, &((const conv_weights *)memory)->cross);
}

// What is convolved.
static int64_t cache_width(const tarn_kind *kind, int64_t d_model) {
  (void)kind;
  return d_model;
}

// As many rows as the kernel is wide.
static int64_t history(const tarn_kind *kind) { return kind->kernel; }

const tarn__mixer tarn__mixer_light_conv = {.id = TARN_MIXER_LIGHT_CONV,
                                            .declare = declare_light,
                                            .build = build,
                                            .build_cross = build_cross,
                                            .cache_width = cache_width,
                                            .history = history};
const tarn__mixer tarn__mixer_dynamic_conv = {.id = TARN_MIXER_DYNAMIC_CONV,
                                              .declare = declare_dynamic,
                                              .build = build,
                                              .build_cross = build_cross,
                                              .cache_width = cache_width,
                                              .history = history};
