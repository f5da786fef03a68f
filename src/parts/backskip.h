// Backskipping (Shen et al. 2021): a frozen layer without a backward pass, and the approximation of the gradient at its
// input.
//
// Let x be the residual stream at the layer's input and y at its output, each with all branches added, and dx and dy
// the gradients there. In post-norm y is the output of the layer's last norm. Then, without a backward node of the
// layer:
//   identity    dx = dy: the Jacobian of the whole layer is taken as the identity. In pre-norm that is exact for the
//               residual path, and leaves out the branches; in post-norm it leaves out the norms as well.
//   feedback    dx = dy + dy Q / 2 with a fixed random orthogonal Q (random signs and Hadamard transforms), which takes
//               the place of the branches' Jacobian (after Lillicrap et al. 2016)
//   predictor   dx = dy + (conv3(dy A^T) * sigmoid(x U^T + z V^T + b)) H^T, linear in dy, with the weights A, U, V [r,
//               d], H [d, r] and a depthwise convolution of width 3 over the rows of each sentence; z is y in post-norm
//               and the layer's last branch, y less the stream that it is added to, in pre-norm. H begins at 0.
// The forward pass keeps nothing for these except the predictor's two features [rows, r].
//
// In an update that refreshes, the layer is built like any other with the same bits, but its backward pass recomputes
// its inputs (unless every update refreshes), so the memory of a step does not grow; the method's gradient is also
// computed and compared with the true one, and the predictor's weights get gradients of |approximation - dx|^2 / |dx|^2
// over the batch.
#ifndef TARN_PARTS_BACKSKIP_H
#define TARN_PARTS_BACKSKIP_H

#include "parts/block.h"

// The additional weights of a set.
typedef struct tarn__backskip_weights {
  tarn_backskip how;
  tarn__param *signs;                               // feedback; frozen
  tarn__param *down, *input, *input_bias, *output;  // predictor: A, U, b, V; trained separately
  tarn__param *kernel, *head;                       // [1, 3 r], H
} tarn__backskip_weights;

// Width r of the predictor: an eighth of d, rounded up to whole registers.
static inline int64_t tarn__backskip_width(int64_t d_model) { return (d_model + 127) / 128 * 16; }

// Whether update number `update` (from 1; 0: none) uses the true backward pass.
bool tarn__backskip_refreshes(const tarn_backskip *how, int64_t update);

// Declares its parameters among declare->helpers; NULL if the kind skips nothing, without training, or on failure.
tarn__backskip_weights *tarn__backskip_declare(tarn__declare *declare);

// The two ends of a skipped layer. enter returns NULL if there is nothing to skip: no weights, no training, or nothing
// trained below; leave accepts NULL.
typedef struct tarn__backskip tarn__backskip;
tarn__backskip *tarn__backskip_enter(const tarn__block_run *run, const tarn__backskip_weights *weights,
                                     tarn__stream *stream);
void tarn__backskip_leave(const tarn__block_run *run, tarn__backskip *skip, tarn__stream *stream);

// After the run of a graph: adds the measurements of its refreshes to the sums of their layers (tarn__block_run).
tarn_status tarn__backskip_measured(const tarn__graph *graph) TARN_CHECKED;

#endif
