// The op token_linear: a linear layer across the tokens of packed sentences, whose weights are indexed by the position
// of a token in its sentence (MLP-Mixer: Tolstikhin et al. 2021, arXiv 2105.01601; gMLP: Liu et al. 2021, arXiv
// 2105.08050). Columns are mixed separately. For sentence s, with n tokens, d columns and weights W [*, *] and b
// [1, *]:
//   AMONG  z = W[:n, :n] x_s + b[:n]    x [R, d], y [R, d], W [N, N]; causal: of W the lower triangle alone
//   IN     z = W[:, :n] x_s + b         x [R, d], y [sentences h, d], W [h, N]: h hidden rows for each sentence
//   OUT    z = W[:n, :] x_s + b[:n]     x [sentences h, d], y [R, d], W [N, h]
// and, for AMONG, the gate of gMLP, with or without the attention of aMLP:
//   y = z, or gate * z, or gate * (z + added)
// No sentence has more than N tokens; each has its h hidden rows, even an empty one (those of b). Gradient: to x, gate
// and added, W and b, zero for parts of W and b that no sentence of a batch reaches.
#ifndef TARN_OPS_TOKEN_LINEAR_H
#define TARN_OPS_TOKEN_LINEAR_H

#include "base/host_device.h"
#include "graph/graph.h"

typedef enum tarn__token_form { TARN__TOKENS_AMONG, TARN__TOKENS_IN, TARN__TOKENS_OUT } tarn__token_form;

typedef struct tarn__token_spec {
  tarn__token_form form;
  int causal;       // 0 or 1, AMONG only; as wide as the form, so that no byte is unset
  int64_t longest;  // upper bound of the tokens of a sentence, for scratch
  int64_t rows;     // OUT: tokens of all sentences
} tarn__token_spec;

// Additional inputs of AMONG, besides W x + b; NULL: none. Both [R, d].
typedef struct tarn__token_gate {
  tarn__tensor *gate, *added;  // no `added` without a gate
} tarn__token_gate;

// bias NULL: none.
tarn__tensor *tarn__token_linear(tarn__graph *graph, tarn__tensor *x, tarn__tensor *offsets, tarn__param *weight,
                                 tarn__param *bias, tarn__token_gate with, tarn__token_spec spec);

// The causal form of single rows for incremental decoding (no gradient): row i of the result [m, d] sees the rows
// rows[ranges[2 i]] .. rows[ranges[2 i + 1] - 1] of x (a cache), all of its hypothesis in order of time, its own being
// the last; their number is its position. It reads columns [column, column + d) of x. ranges is I32 [1, 2 m].
tarn__tensor *tarn__token_linear_rows(tarn__graph *graph, tarn__tensor *x, int64_t column, int64_t d,
                                      tarn__tensor *rows, tarn__tensor *ranges, tarn__param *weight, tarn__param *bias,
                                      tarn__token_gate with);

// token_linear and token_linear_rows. Z is the gate's factor, if a gradient is wanted.
enum {
  TARN__TOKENS_X,
  TARN__TOKENS_WEIGHT,
  TARN__TOKENS_BIAS,
  TARN__TOKENS_GATE,
  TARN__TOKENS_ADDED,
  TARN__TOKENS_OFFSETS,
  TARN__TOKENS_ROWS,
  TARN__TOKENS_RANGES
};
enum { TARN__TOKENS_Y, TARN__TOKENS_Z };

// token_linear_dx: dz = dy * gate, dgate = dy * z, dx (+)= W^T dz. Without a gate dz is dy, without an output. DX and
// DGATE share the memory of PREVIOUS and PREVIOUS_GATE, the gradients so far, unless these are NULL; unwanted ones are
// NULL.
enum {
  TARN__TOKENS_DX_DY,
  TARN__TOKENS_DX_WEIGHT,
  TARN__TOKENS_DX_OFFSETS,
  TARN__TOKENS_DX_GATE,
  TARN__TOKENS_DX_Z,
  TARN__TOKENS_DX_PREVIOUS,
  TARN__TOKENS_DX_PREVIOUS_GATE
};
enum { TARN__TOKENS_DX, TARN__TOKENS_DGATE, TARN__TOKENS_DZ };

// token_linear_dweight: dparam[0] += the sum over sentences, in their order, of dz_s x_s^T, if the weight is trained;
// dparam[1] += the sums of the rows of dz, if the bias is. X is NULL if the weight is not.
enum { TARN__TOKENS_DWEIGHT_DZ, TARN__TOKENS_DWEIGHT_X, TARN__TOKENS_DWEIGHT_OFFSETS };

// token_linear_tangent: dy [k R, d] = gate (dz + dadded) + dgate z. dz is W dx, whose memory dy may take over. Tangents
// are NULL if zero, Z if the gate does not move.
enum {
  TARN__TOKENS_TANGENT_DZ,
  TARN__TOKENS_TANGENT_DADDED,
  TARN__TOKENS_TANGENT_GATE,
  TARN__TOKENS_TANGENT_DGATE,
  TARN__TOKENS_TANGENT_Z
};

typedef struct tarn__token_attr {
  tarn__token_spec spec;  // its `longest` is within the limit of the weights
  int64_t hidden;         // rows of a sentence in the hidden layer; IN and OUT
  int64_t column;         // of x; token_linear_rows
} tarn__token_attr;

// Rows of a sentence's result and of its x, and their beginnings.
typedef struct tarn__token_sentence {
  int64_t out, in, out_row, in_row;
} tarn__token_sentence;

static inline TARN__HOST_DEVICE tarn__token_sentence tarn__token_sentence_of(const tarn__token_attr *attr, int64_t s,
                                                                             int64_t row, int64_t n) {
  tarn__token_sentence at = {n, n, row, row};
  if (attr->spec.form == TARN__TOKENS_IN) at.out = attr->hidden, at.out_row = s * attr->hidden;
  if (attr->spec.form == TARN__TOKENS_OUT) at.in = attr->hidden, at.in_row = s * attr->hidden;
  return at;
}

#endif
