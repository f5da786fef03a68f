// The ops: builders that append nodes to a graph. Tensors are [rows, cols]; rows are packed tokens. Every op has its
// own file with shape rule, gradient rule, operation count and checks. Its kernels are in the tables of devices
// (device/op_list.h).
//
// Letters: R rows, d model width, V vocabulary, H heads, n sequences.
#ifndef TARN_OPS_OPS_H
#define TARN_OPS_OPS_H

#include "graph/graph.h"
#include "ops/activation_table.h"
#include "ops/sampler.h"

// Activation of a linear layer, fused into its product (ops/activation_table.h).
#define TARN__ACTIVATION_NAME(name, ...) name,
typedef enum tarn__activation { TARN__EACH_ACTIVATION(TARN__ACTIVATION_NAME) TARN__ACTIVATIONS_END } tarn__activation;

// y [R, out] = act(x [R, in] weight^T + bias). weight is [out, in]; bias is [1, out] or NULL.
// Gradient: relu by the sign of y, dx = dy weight, dweight += dy^T x, dbias += column sums of dy. Every activation but
// relu keeps its input z if a gradient is wanted; y can be recomputed from it (train.recompute: cheap).
tarn__tensor *tarn__linear(tarn__graph *graph, tarn__tensor *x, tarn__param *weight, tarn__param *bias,
                           tarn__activation activation);

// The same with a frozen structured orthogonal matrix instead of `weight`: y [R, out] = act(x [R, in] Q^T + bias), Q
// the matrix [out, in] given by `signs` (signs->out, signs->in; see ops/hadamard.h). signs and bias are frozen.
// Gradient: relu by the sign of y, dx = dy Q. Any other activation is a separate node after it.
tarn__tensor *tarn__hadamard(tarn__graph *graph, tarn__tensor *x, tarn__param *signs, tarn__param *bias,
                             tarn__activation activation);

// y [R, n] = act(x) elementwise; `form` is neither TARN__IDENTITY nor TARN__RELU.
tarn__tensor *tarn__activate(tarn__graph *graph, tarn__tensor *x, tarn__activation form);

// Residual sum with dropout on the branch, and a norm of the sum, whose gain and bias are [1, d]:
//   sum [R, d] = skip x + dropout(branch)
//   LAYER  y [R, d] = gain * (sum - mean) / sqrt(variance + epsilon) + bias               (Ba, Kiros, Hinton 2016)
//   RMS    y [R, d] = gain * sum / sqrt(mean square + epsilon), bias is NULL              (Zhang and Sennrich 2019)
//   SCALE  y [R, d] = gain / sqrt(d) * sum / sqrt(mean square + epsilon), gain [1, 1]     (Nguyen and Salazar 2019)
// y is the norm of the sum as it is stored, rounded to bf16 if the sum is. branch may be NULL (sum = x, then no sum is
// stored); without a gain there is no norm, only the sum (y = NULL). A skip of 0 counts as 1; another one needs a
// branch and a norm, and only the norm reads its sum (DeepNorm, Wang et al. 2022). Post-norm uses only y; pre-norm
// continues with the sum and feeds y to the next sublayer.
typedef enum tarn__norm_form { TARN__NORM_LAYER, TARN__NORM_RMS, TARN__NORM_SCALE } tarn__norm_form;
typedef struct tarn__norm {
  tarn__norm_form form;
  double epsilon;
  tarn__param *gain, *bias;
  double skip;
} tarn__norm;
typedef struct tarn__residual_out {
  tarn__tensor *sum, *y;
} tarn__residual_out;
tarn__residual_out tarn__residual_norm(tarn__graph *graph, tarn__tensor *x, tarn__tensor *branch, double dropout,
                                       tarn__norm norm);

// Multi-head scaled dot-product attention (Vaswani et al. 2017) over packed sequences: sequence s has query rows
// query_offsets[s] .. query_offsets[s+1]-1 and key rows key_offsets[s] .. key_offsets[s+1]-1 (I32 tensors [1, n + 1]).
// queries holds q in columns [query_column, query_column + d); keys_values holds k and v likewise at key_column and
// value_column. Self-attention: queries == keys_values == qkv [R, 3 d]. `causal`: query i sees keys 0..i of its
// sequence (equal lengths). longest: upper bound of the key rows of one sequence, for scratch. Returns [R, d].
// dropout, in training: each weight after the softmax becomes 0 with this probability p, and is else divided by 1 - p
// (Vaswani et al.'s code; its mask is in ops/attention.h).
// alibi > 0: attention with linear biases (ALiBi: Press et al. 2022). -slope |i - j| is added to the scaled score of
// query i and key j of a sequence, with the slopes of tarn__attention_slopes(); a sequence must then have equally many
// queries and keys.
typedef struct tarn__attention_spec {
  int heads;
  int causal;  // 0 or 1
  int64_t d;
  int64_t query_column, key_column, value_column;
  int64_t longest;
  double dropout;
  double alibi;  // the smallest slope is 2^-alibi; 0: nothing is added to scores
} tarn__attention_spec;
tarn__tensor *tarn__attention(tarn__graph *graph, tarn__tensor *queries, tarn__tensor *keys_values,
                              tarn__tensor *query_offsets, tarn__tensor *key_offsets, tarn__attention_spec spec);

// Attention of single query rows for incremental decoding (no gradient). Query row i sees the rows
// rows[ranges[2 i]] .. rows[ranges[2 i + 1] - 1] of keys_values; rows (I32 [1, m]) may be NULL: then the range itself
// names rows. keys_values is an EXTERNAL tensor (a cache) or an ordinary one. spec.causal and spec.dropout are ignored.
// With spec.alibi the query has the position of the last row of its range, and each row before that is one further
// away.
tarn__tensor *tarn__attention_rows(tarn__graph *graph, tarn__tensor *queries, tarn__tensor *keys_values,
                                   tarn__tensor *rows, tarn__tensor *ranges, tarn__attention_spec spec);

// A recurrence over whole sentences, each from a state of zeros (offsets as above):
//   GRU   r = s(x_r + W_r h + b_r), z = s(x_z + W_z h + b_z), n = tanh(x_n + r (W_n h + b_n)),
//         h' = (1 - z) n + z h                                             (Cho et al. 2014, in PyTorch's definition)
//   LSTM  i, f, o = s(x + W h + b), g = tanh(x_g + W_g h + b_g), c' = f c + i g, h' = o tanh(c')
//                                                              (Hochreiter and Schmidhuber 1997, with forget gates)
//   ECHO  h' = (1 - leak) h + leak f(x + W h + b), f ReLU or tanh                      (Jaeger 2001; Ueda et al.)
// x [R, directions * gates * hidden] is the projected input, with gates in the order r, z, n (GRU), i, f, g, o (LSTM).
// Weights are [gates * hidden, hidden], biases [1, gates * hidden] or NULL, leaks [1, hidden] or NULL. An ECHO's frozen
// weight may be stored as its entries (graph/entries.h). Two directions, forward and reverse, are side by side in x and
// in the result [R, directions * hidden], all states h'.
// Gradient: through time, to x, weights and biases, as far as they are trained.
typedef enum tarn__cell { TARN__CELL_GRU, TARN__CELL_LSTM, TARN__CELL_ECHO } tarn__cell;
typedef struct tarn__recurrence_spec {
  tarn__cell cell;
  int64_t hidden;
  int directions;  // 1 or 2
  bool reverse;    // one direction: from the last row of a sentence to its first
  bool relu;       // ECHO: f is ReLU, else tanh
  double leak;     // ECHO: 0 < leak <= 1; for all units, unless the weights have leaks
} tarn__recurrence_spec;
typedef struct tarn__recurrent {
  tarn__param *weight, *bias;
  tarn__param *leaks;  // ECHO: the leak of each unit, frozen; NULL: spec.leak for all
} tarn__recurrent;
tarn__tensor *tarn__recurrence(tarn__graph *graph, tarn__tensor *x, tarn__tensor *offsets,
                               const tarn__recurrent weights[2], tarn__recurrence_spec spec);

// The same, in the forward direction only, for windows of longer texts: sentence s begins with the state start[s]
// instead of zeros, and its last state is written to end[s]. Both are EXTERNAL [at least as many rows as sentences,
// tarn__recurrence_cache_width()], for LSTM hidden state and then cell state, F32 (F64 in double) for any type of x,
// like states within a sentence: so consecutive windows have the bits of one long sentence. They must not share memory;
// rows of `end` without a sentence stay unchanged.
// Gradient: as above, but none flows to the start (truncated backpropagation through time, Williams and Peng 1990). The
// gradient of the weights reads it, for the first row of each sentence.
tarn__tensor *tarn__recurrence_carried(tarn__graph *graph, tarn__tensor *x, tarn__tensor *offsets,
                                       tarn__recurrent weights, tarn__recurrence_spec spec, tarn__tensor *start,
                                       tarn__tensor *end);
static inline tarn__dtype tarn__recurrence_state_dtype(tarn__dtype dtype) {
  return dtype == TARN__F64 ? TARN__F64 : TARN__F32;
}

// One step of the same for incremental decoding (no gradient), one direction. Row i of x [R, gates * hidden] follows
// the token whose cache row is rows[ranges[2 i + 1] - 2], or begins if its range has only one row. cache (EXTERNAL)
// [*, tarn__recurrence_cache_width()] holds the states of every token, for LSTM followed by the cell; those of row i go
// to its row first_row + i, which is rows[ranges[2 i + 1] - 1]. Returns the states [R, hidden].
int64_t tarn__recurrence_cache_width(tarn__cell cell, int64_t hidden);
tarn__tensor *tarn__recurrence_rows(tarn__graph *graph, tarn__tensor *x, tarn__tensor *cache, int64_t first_row,
                                    tarn__tensor *rows, tarn__tensor *ranges, tarn__recurrent weights,
                                    tarn__recurrence_spec spec);

// Gated linear unit: y [R, d] = left * act(right) of the halves of x [R, 2 d]. With the sigmoid that of Dauphin et al.
// 2017, with other activations, including the identity, those of Shazeer 2020.
tarn__tensor *tarn__glu(tarn__graph *graph, tarn__tensor *x, tarn__activation gate);

// Light and dynamic convolution (Wu et al. 2019) over packed sentences: every channel is convolved with the kernel of
// its head (head h has the channels [h d / H, (h + 1) d / H)), which is a softmax over the width K, with DropConnect:
//   y[r, c] = sum over k of dropout(softmax(logits[r, h])[k]) x[r + k - before, c]
// where rows outside of the sentence count as zeros. logits is the tensor of a parameter [1, H K], the same kernel for
// all rows (light), or a tensor [R, H K] (dynamic). `before`: taps before the row itself; (K - 1) / 2 is centred, K - 1
// causal. Dropout is drawn for every row, as in fairseq's LightweightConv1dTBC.
typedef struct tarn__conv_spec {
  int64_t heads, width;
  int64_t before;
} tarn__conv_spec;
tarn__tensor *tarn__depthwise_conv(tarn__graph *graph, tarn__tensor *x, tarn__tensor *logits, tarn__tensor *offsets,
                                   tarn__conv_spec spec, double dropout);

// The causal convolution of single rows for incremental decoding (no gradient): row i of the result [m, d] sees the
// last K of the rows rows[ranges[2 i]] .. rows[ranges[2 i + 1] - 1] of x (a cache), in order of time. logits is as
// above, [m, H K] for a tensor; ranges is I32 [1, 2 m]. spec.before is ignored.
tarn__tensor *tarn__depthwise_conv_rows(tarn__graph *graph, tarn__tensor *x, tarn__tensor *logits, tarn__tensor *rows,
                                        tarn__tensor *ranges, tarn__conv_spec spec);

// A row of a packed sentence and its neighbours: tap k of row r, 0 <= k < width, is row r + k - before of the sentence;
// taps outside of it are zeros. `before` is less than width; (width - 1) / 2 is centred, width - 1 causal.
typedef struct tarn__taps {
  int64_t width, before;
} tarn__taps;

// The depthwise half of a separable convolution (Chollet 2017): each channel has a kernel of its own,
//   y[r, c] = sum over k of kernel[k C + c] x[r + k - before, c]
// kernel is a vector [1, width C].
tarn__tensor *tarn__channel_conv(tarn__graph *graph, tarn__tensor *x, tarn__tensor *offsets, tarn__param *kernel,
                                 tarn__taps taps);

// The causal form of single rows for incremental decoding (no gradient): row i of the result [m, C] sees the last
// `width` of the rows rows[ranges[2 i]] .. rows[ranges[2 i + 1] - 1] of x (a cache), in order of time, of which it
// reads the C columns from `column` on; ranges is I32 [1, 2 m].
tarn__tensor *tarn__channel_conv_rows(tarn__graph *graph, tarn__tensor *x, int64_t column, tarn__tensor *rows,
                                      tarn__tensor *ranges, tarn__param *kernel, int64_t width);

// All taps of a row side by side, y[r, k C + c] = x[r + k - before, c], so that a product of y [R, width C] is a
// convolution of x [R, C].
tarn__tensor *tarn__neighbours(tarn__graph *graph, tarn__tensor *x, tarn__tensor *offsets, tarn__taps taps);

// y [R, cols] = base + x, whose missing columns are zeros: x has at most as many. base NULL: zeros.
tarn__tensor *tarn__widen(tarn__graph *graph, tarn__tensor *base, tarn__tensor *x, int64_t cols);

// Rotary positions (Su et al. 2021) on the queries and keys of packed rows, in the convention of LLaMA and GPT-NeoX
// (rotate_half): from `column` on x [R, *] has `heads` heads of `width` columns, and of each head the first n =
// `rotated` columns (even) are rotated by the row's position, i < n / 2:
//   angle = position base^(-2 i / n);  y[i] = x[i] cos(angle) - x[i + n/2] sin(angle),
//                                      y[i + n/2] = x[i + n/2] cos(angle) + x[i] sin(angle)
// y [R, *] equals x in all other columns, and takes over its memory if it has no other reader. positions: I32 [1, R],
// of whole sentences or of the rows of a decoding step, whose keys are cached after rotation. Gradient: rotated back.
// The angles may be scaled for texts longer than those of training. factor 0 or 1: no scaling. original 0: every
// frequency is divided by `factor` (Chen et al. 2023). Else, as in Llama 3.1, those that turn less than `low` times in
// `original` positions are divided, those that turn more than `high` times stay, and in between it is interpolated.
typedef struct tarn__rotary_scaling {
  double factor, low, high, original;
} tarn__rotary_scaling;
typedef struct tarn__rotary_spec {
  int64_t column, heads, width, rotated;
  double base;  // more than 1
  tarn__rotary_scaling scaling;
} tarn__rotary_spec;
tarn__tensor *tarn__rotary(tarn__graph *graph, tarn__tensor *x, tarn__tensor *positions, tarn__rotary_spec spec);

// Average pooling over packed sentences as a token mixer (PoolFormer, Yu et al. 2022): the mean of a window of tokens,
// minus the token itself, which the residual adds again (AvgPool(x) - x):
//   y[r] = mean of x[j] over the rows j of the sentence with r - before <= j < r - before + width, less x[r]
// The mean is over existing tokens (count_include_pad=False). `before`: rows before the row itself; (width - 1) / 2 is
// centred, width - 1 causal; less than width. Its gradient needs nothing of the forward pass.
typedef struct tarn__pooling_spec {
  int64_t width, before;
} tarn__pooling_spec;
tarn__tensor *tarn__pooling(tarn__graph *graph, tarn__tensor *x, tarn__tensor *offsets, tarn__pooling_spec spec);

// The causal form of single rows for incremental decoding (no gradient): row i of the result [m, d] is the mean of the
// last `width` of the rows rows[ranges[2 i]] .. rows[ranges[2 i + 1] - 1] of x (a cache), in order of time, minus the
// last of them, its own; ranges is I32 [1, 2 m].
tarn__tensor *tarn__pooling_rows(tarn__graph *graph, tarn__tensor *x, tarn__tensor *rows, tarn__tensor *ranges,
                                 int64_t width);

// Copies columns [column, column + cols of cache) of x [R, *] into cache rows [first_row, first_row + R); for the key
// and value cache of incremental decoding. cache is EXTERNAL. Returns a tensor that shares the cache's memory, through
// which later nodes read it (so that the order of execution is visible in the graph).
tarn__tensor *tarn__cache_append(tarn__graph *graph, tarn__tensor *x, int64_t column, tarn__tensor *cache,
                                 int64_t first_row);

// Token embedding with positions and dropout:
//   y [R, d] = dropout(scale * table[id] + position(p))
// ids and positions are I32 [1, R] (position = place in the sentence, from 0). Sinusoids as in tensor2tensor and
// fairseq: first half sines, second half cosines, frequencies exp(-i ln(10000) / (d/2 - 1)). `learned` [P, d] replaces
// them for the positions 0 .. P - 1; NULL: sinusoids. positions may be NULL: none added.
tarn__tensor *tarn__embedding(tarn__graph *graph, tarn__tensor *ids, tarn__tensor *positions, tarn__param *table,
                              tarn__param *learned, double scale, double dropout);

// y [R, c] = sigmoid(u + v) * (x convolved over the rows of each sentence), depthwise, with zeros outside: kernel
// [1, 3 c] (F32, or F64 in the reference in double) has the factors on rows t - 1, t and t + 1. offsets: I32
// [1, sentences + 1].
tarn__tensor *tarn__gated_conv(tarn__graph *graph, tarn__tensor *x, tarn__tensor *u, tarn__tensor *v,
                               tarn__tensor *offsets, tarn__param *kernel);

// Approximate gradients, for backward passes only. A copy; dy + scale delta; and a comparison, which returns its sums
// over all elements, F64 [1, 3] (kept) as in the structure, and in *error, if it is not NULL, the gradient of
// |approximation - truth|^2 / |truth|^2 with respect to the approximation.
typedef struct tarn__stand_in_sums {
  double dot, approximation, truth;  // of the products, and of the squares of each
} tarn__stand_in_sums;
tarn__tensor *tarn__stand_in_copy(tarn__graph *graph, tarn__tensor *x);
tarn__tensor *tarn__stand_in_add(tarn__graph *graph, tarn__tensor *dy, tarn__tensor *delta, double scale);
tarn__tensor *tarn__stand_in_measure(tarn__graph *graph, tarn__tensor *approximation, tarn__tensor *truth,
                                     tarn__tensor **error);

// Output layer with label-smoothed cross-entropy (Szegedy et al. 2016), in chunks of rows that never hold all logits:
// logits = x table^T (+ bias), table [V, d];
//   loss = sum over rows of (1 - smoothing) * nll + smoothing * mean over V of -log p      (PyTorch's label_smoothing)
// fairseq spreads the mass over the V - 1 other words since 2021; with V in the thousands that is the same number.
// out: F64 [1, 2] = {sum of the smoothed loss, sum of nll} over all rows, unscaled. In training the same pass computes
// the gradients of grad_scale * loss (1 / number of target tokens of the whole update): of x, and added to the table's
// and bias's. targets: I32 [1, R].
tarn__tensor *tarn__output_loss(tarn__graph *graph, tarn__tensor *x, tarn__param *table, tarn__param *bias,
                                tarn__tensor *targets, double smoothing, double grad_scale);

// The same per token, without gradients and smoothing: -log p of every row's target, F64 [R, 2] (nll, nll).
tarn__tensor *tarn__output_token_loss(tarn__graph *graph, tarn__tensor *x, tarn__param *table, tarn__param *bias,
                                      tarn__tensor *targets);

// Plain dropout: each element of x is kept with probability 1 - p, and then divided by it (ops/dropout.h). x itself if
// nothing is dropped.
tarn__tensor *tarn__dropout_apply(tarn__graph *graph, tarn__tensor *x, double p);

// Rows of x by number: y [n, d] = x[rows[i]], rows I32 [1, n], in any order. Gradient: dx[rows[i]] += dy[i], zeros in
// unselected rows.
tarn__tensor *tarn__select_rows(tarn__graph *graph, tarn__tensor *x, tarn__tensor *rows);

// The mean of the rows of each packed sentence: y [n, d], offsets I32 [1, n + 1]; zeros for a sentence without rows.
tarn__tensor *tarn__sentence_mean(tarn__graph *graph, tarn__tensor *x, tarn__tensor *offsets);

// y [R, n] = tanh(x).
tarn__tensor *tarn__tanh(tarn__graph *graph, tarn__tensor *x);

// Regression: the numbers x weight^T + bias of the rows of x [n, d], weight [1, d], bias [1, 1], computed in double,
// and
//   loss = sum over rows of (number - value)^2
// Returns F64 [1, 2] = {loss, loss}, unscaled; in training the same pass computes the gradients of grad_scale * loss,
// of x, and added to those of weight and bias. values: I32 [1, n], the bits of floats (a graph's inputs are integers);
// NULL: no loss. *numbers: F32 [n, 1] (F64 in the reference in double).
tarn__tensor *tarn__squared_error(tarn__graph *graph, tarn__tensor *x, tarn__param *weight, tarn__param *bias,
                                  tarn__tensor *values, double grad_scale, tarn__tensor **numbers);

// Log-probabilities of the next token, F32 [R, V] = log_softmax(x table^T + bias), for decoding (no gradient).
tarn__tensor *tarn__output_log_probabilities(tarn__graph *graph, tarn__tensor *x, tarn__param *table,
                                             tarn__param *bias);

// The best next tokens of every row, without ever holding all log-probabilities
// (no gradient, but training may follow from the choice: ops/deletions.h):
//   ids [R, best], I32: words by falling probability, equal ones by rising id; -1 where no word with a finite
//   log-probability is left
//   values [R, best + 1], F32 (F64 in the reference in double): their log-probabilities, -infinity behind the last
//   word, and in the last column that of the word `always`. A row with a logit that is not a number has no numbers.
typedef struct tarn__top {
  tarn__tensor *values, *ids;
} tarn__top;
tarn__top tarn__output_top(tarn__graph *graph, tarn__tensor *x, tarn__param *table, tarn__param *bias, int64_t best,
                           int32_t always);

// The logits themselves, F32 [R, V] = x table^T + bias, for decoding (no gradient).
tarn__tensor *tarn__output_logits(tarn__graph *graph, tarn__tensor *x, tarn__param *table, tarn__param *bias);

// Logits changed at a few tokens of each row: y [R, V] = logits, but of a token with an edit (scale, less)
//   y = (logit < 0 ? logit scale : logit / scale) - less,   less = infinity: the token cannot be chosen
// edits: I32 [1, R + 1 + TARN__EDIT_WORDS E]: the edits of row r are numbers edits[r] .. edits[r + 1] - 1 of the E that
// follow these offsets, each a token, and the bits of the floats scale (above 0) and less. A row names a token once.
enum { TARN__EDIT_WORDS = 3 };
tarn__tensor *tarn__adjust_rows(tarn__graph *graph, tarn__tensor *logits, tarn__tensor *edits);

// As tarn__output_top(), from logits [R, V] in memory.
tarn__top tarn__best_rows(tarn__graph *graph, tarn__tensor *logits, int64_t best, int32_t always);

// Log-probabilities of given tokens, from logits [R, V] in memory: y [M, K + 1], F32 (F64 in the reference in double),
// of ids [M, K] in row numbers[m], -infinity for ids outside the vocabulary, and in the last column that of `always`.
// numbers: I32 [1, M].
tarn__tensor *tarn__pick_rows(tarn__graph *graph, tarn__tensor *logits, tarn__tensor *ids, tarn__tensor *numbers,
                              int32_t always);

// Draws next tokens (ops/sampler.h), for decoding (no gradient). `from`: what tarn__output_top() gives, `always` the
// end of sentence; or with ids NULL all log-probabilities [R, V]. draws: I32 [1, N * TARN__DRAW_WORDS], for each draw
// the words below. Returns ids [N, 1], I32, -1 where nothing may be drawn, and values [N, 2], F32: the log-probability
// of the token and that of the end of sentence.
enum {
  TARN__DRAW_ROW,         // the row that it draws from
  TARN__DRAW_KEY,         // the key of the prompt, its lower half and then its upper half,
  TARN__DRAW_SAMPLE = 3,  // the number of the sample
  TARN__DRAW_POSITION,    // and the position, as tarn__sampling_uniform() takes them
  TARN__DRAW_ENDS,        // 0: it may not be the end of sentence
  TARN__DRAW_HOW,         // the bytes of a tarn__sampling: how it is drawn, typical only with ids NULL
  TARN__DRAW_WORDS = TARN__DRAW_HOW + sizeof(tarn__sampling) / sizeof(int32_t)
};
enum { TARN__SAMPLE_BANNED = 8 };
typedef struct tarn__sample_spec {
  int32_t banned[TARN__SAMPLE_BANNED];  // tokens that are never drawn
  int banned_count;
  int32_t eos;
} tarn__sample_spec;
tarn__top tarn__sample_rows(tarn__graph *graph, tarn__top from, tarn__tensor *draws, const tarn__sample_spec *spec);

#endif
