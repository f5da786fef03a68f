// The output layer of a mixture of softmaxes (Yang et al. 2018): with K latent vectors h_k and prior logits c of a row,
//   p = sum_k pi_k softmax(table h_k + bias)      pi = softmax(c)
// The loss is that of tarn__output_loss(), with label smoothing e: -(1 - e) log p_y - e / V sum_v log p_v. With Q_k =
// sum_v q_v r_kv, where q is the target distribution and r_kv = pi_k s_kv / p_v the share of softmax s_k in p_v, its
// gradients are
//   dlogits_kv = s_kv Q_k - q_v r_kv      dc_k = pi_k - Q_k
// Rows are processed in chunks: the logits of all K softmaxes of all rows are never in memory together.
#ifndef TARN_OPS_OUTPUT_MIXTURE_H
#define TARN_OPS_OUTPUT_MIXTURE_H

#include "graph/graph.h"
#include "ops/ops.h"
#include "ops/output_top.h"

enum { TARN__MIXTURES_MOST = 64 };

typedef enum tarn__mixture_mode { TARN__MIXTURE_LOSS, TARN__MIXTURE_LOG, TARN__MIXTURE_TOP } tarn__mixture_mode;

typedef struct tarn__mixture_attr {
  tarn__mixture_mode mode;
  double smoothing, grad_scale;  // of the loss
  tarn__output_top_attr top;
} tarn__mixture_attr;

// Indices of inputs; bias may be NULL, targets are for the loss.
enum { TARN__MIXTURE_H, TARN__MIXTURE_PRIOR, TARN__MIXTURE_TABLE, TARN__MIXTURE_BIAS, TARN__MIXTURE_TARGETS };
// Outputs of the loss; all but the first may be NULL. dparam: table or NULL, bias or NULL. log has one output, top has
// values and ids.
enum { TARN__MIXTURE_SUMS, TARN__MIXTURE_DH, TARN__MIXTURE_DPRIOR, TARN__MIXTURE_ROWS };

// The inputs of the mixture: h [R, K E], whose columns are K vectors of E; prior [R, K]; table [V, E]; bias [1, V] or
// NULL.
typedef struct tarn__mixture {
  tarn__tensor *h, *prior;
  tarn__param *table, *bias;
} tarn__mixture;

// Like tarn__output_loss(), tarn__output_token_loss(), tarn__output_log_probabilities() and tarn__output_top().
tarn__tensor *tarn__mixture_loss(tarn__graph *graph, const tarn__mixture *mixture, tarn__tensor *targets,
                                 double smoothing, double grad_scale);
tarn__tensor *tarn__mixture_token_loss(tarn__graph *graph, const tarn__mixture *mixture, tarn__tensor *targets);
tarn__tensor *tarn__mixture_log_probabilities(tarn__graph *graph, const tarn__mixture *mixture);
tarn__top tarn__mixture_top(tarn__graph *graph, const tarn__mixture *mixture, int64_t best, int32_t always);

#endif
