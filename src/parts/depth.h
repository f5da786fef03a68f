// Factors of norms and first values that depend on the depth of a model.
#ifndef TARN_PARTS_DEPTH_H
#define TARN_PARTS_DEPTH_H

#include <stdbool.h>
#include <stdint.h>

// Norm deepnorm (Wang et al. 2022, "DeepNet: Scaling Transformers to 1,000 Layers", table of figure 2), with N layers
// in the encoder and M in the decoder, 0 if there is none:
//              encoder alone    decoder alone    encoder, with a decoder   decoder, with an encoder
//   alpha      (2 N)^(1/4)      (2 M)^(1/4)      0.81 (N^4 M)^(1/16)       (3 M)^(1/4)
//   beta       (8 N)^(-1/4)     (8 M)^(-1/4)     0.87 (N^4 M)^(-1/16)      (12 M)^(-1/4)
typedef struct tarn__deepnorm {
  double alpha;  // y = Norm(alpha x + f(x))
  double beta;   // factor on the first values of all projections but queries and keys
} tarn__deepnorm;

// For a stack of `depth` layers; `other` is the depth of the other stack, 0: there is none. `attends`: it is the
// decoder of the two.
tarn__deepnorm tarn__deepnorm_of(int64_t depth, int64_t other, bool attends);

// Norm fixup (Zhang et al. 2019): L^(-1 / (2 m - 2)), the factor on the first values of projections, for L branches in
// the model and m products in a branch. Attention counts four, for queries, keys, values and output, others two, as in
// Narang et al. 2021.
double tarn__fixup_factor(int64_t branches, int products);

#endif
