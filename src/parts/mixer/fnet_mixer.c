// FNet (Lee-Thorp et al. 2021): the real part of the discrete Fourier transform of a sentence along tokens and along
// features. It has no weights but its norm. Every token sees all others, so it works only in encoders.
#include "ops/fourier.h"
#include "parts/block.h"

typedef struct fnet_weights {
  tarn__norm_weights norm;
} fnet_weights;

static void *declare_fnet(tarn__declare *declare, const void *keys) {
  (void)keys;
  fnet_weights *weights = tarn__declare_struct(declare, sizeof *weights);
  if (weights) weights->norm = tarn__declare_norm(declare, "fnet.norm");
  return weights;
}

static void build(const tarn__block_run *run, const void *memory, const tarn_kind *kind, tarn__stream *stream) {
  const fnet_weights *weights = memory;
  tarn__tensor *x = tarn__stream_enter(run->graph, stream, &weights->norm, kind->norm);
  tarn__tensor *y = tarn__fourier(run->graph, x, run->offsets, run->longest);
  tarn__stream_leave(run->graph, stream, y, kind->dropout, &weights->norm, kind->norm);
}

const tarn__mixer_entry tarn__mixer_fnet = {
    .part = {.word = "fnet",
             .text = "FNet, Lee-Thorp et al. 2021: the real part of the Fourier transform along tokens and "
                     "features, without weights; encoder only",
             .equation = "y = Re(F_n x F_d) for a sentence of n tokens, d = d_model\n"
                         "F_n[j, k] = exp(-2 pi i j k / n): the discrete Fourier transform along tokens; F_d that "
                         "along features",
             .source = "Lee-Thorp et al. 2021 (arXiv 2105.03824)",
             .also = "fourier fft dft"},
    .declare = declare_fnet,
    .build = build,
};
