// Backskipping (Shen et al. 2021): a frozen layer whose backward pass is left out, and what takes the place of the
// gradient at its input.
//
// Let x be the residual stream at the layer's input and y at its output, each with all branches added, and dx and dy
// the gradients there. In post-norm y is what the layer's last norm gives. Then, without a node of the layer's own:
//   identity    dx = dy: the Jacobian of the whole layer is taken as the identity. In pre-norm that is exact for the
//               residual path, and leaves out the branches; in post-norm it leaves out the norms as well.
//   feedback    dx = dy + dy Q / 2 with a fixed random orthogonal Q (random signs and Hadamard transforms), which takes
//               the place of the branches' Jacobian (after Lillicrap et al. 2016)
//   predictor   dx = dy + (conv3(dy A^T) * sigmoid(x U^T + z V^T + b)) H^T, linear in dy, with the weights A, U, V [r,
//               d], H [d, r] and a depthwise convolution of width 3 over the rows of each sentence; z is y in post-norm
//               and the layer's last branch, y less the stream that it is added to, in pre-norm. H begins at 0.
// Of the forward pass nothing is kept for these, but for the predictor's two features [rows, r].
//
// In an update that refreshes, the layer is built as any other and gives the same bits, but computes again in its
// backward pass what it needs (unless every update refreshes), so that the memory of a step stays what it is without;
// the gradient that the method would have given is computed as well and compared with the true one, and the predictor's
// weights get gradients of |approximation - dx|^2 / |dx|^2 over the batch.
#ifndef TARN_PARTS_BACKSKIP_H
#define TARN_PARTS_BACKSKIP_H

#include "parts/block.h"

// What a set of weights has beside its own.
typedef struct tarn__backskip_weights {
  tarn_backskip how;
  tarn__param *signs;                               // feedback; frozen
  tarn__param *down, *input, *input_bias, *output;  // predictor: A, U, b, V; trained on its own
  tarn__param *kernel, *head;                       // [1, 3 r], H
} tarn__backskip_weights;

// Width r of the predictor: an eighth of d, rounded up to whole registers.
static inline int64_t tarn__backskip_width(int64_t d_model) { return (d_model + 127) / 128 * 16; }

// Whether update number `update` (from 1; 0: none) does the true backward pass.
bool tarn__backskip_refreshes(const tarn_backskip *how, int64_t update);

// Declares its parameters among declare->helpers; NULL if the kind skips nothing, there is no training, or it failed.
tarn__backskip_weights *tarn__backskip_declare(tarn__declare *declare);

// The two ends of a layer that skips. enter returns NULL where there is nothing to skip: no weights, no training, or
// nothing trained below; leave accepts NULL.
typedef struct tarn__backskip tarn__backskip;
tarn__backskip *tarn__backskip_enter(const tarn__block_run *run, const tarn__backskip_weights *weights,
                                     tarn__stream *stream);
void tarn__backskip_leave(const tarn__block_run *run, tarn__backskip *skip, tarn__stream *stream);

// After the run of a graph: adds what its refreshes have measured to the sums of their layers (tarn__block_run).
tarn_status tarn__backskip_measured(const tarn__graph *graph) TARN_CHECKED;

#endif
