// Blocks: what a layer of the pattern is made of. A layer is a token mixer (one file each, listed in registry.c)
// followed by an FFN, each a sublayer with residual, normalisation and dropout.
#ifndef TARN_PARTS_BLOCK_H
#define TARN_PARTS_BLOCK_H

#include "graph/graph.h"
#include "ops/ops.h"
#include "tarn/config.h"

// The state between sublayers: the residual stream x and a branch that is not yet added to it, so that the addition,
// its dropout and the next normalisation become one op.
typedef struct tarn__stream {
  tarn__tensor *x, *branch;
  double dropout;       // of the pending branch
  bool begins;          // a layer begins: its segment of the graph starts once the pending branch is added
  tarn__tensor *input;  // x as the layer began, every branch added
  bool replaced;        // of the layer at hand: its output takes the place of x (kinds.NAME.residual: no)
} tarn__stream;

// Gain and bias of one layer normalisation.
typedef struct tarn__norm_weights {
  tarn__param *gain, *bias;
} tarn__norm_weights;

// A projection.
typedef struct tarn__linear_weights {
  tarn__param *weight;  // a matrix [out, in], or the signs of a structured one
  tarn__param *bias;    // NULL: none
} tarn__linear_weights;

// A list of parameters that grows.
typedef struct tarn__param_list {
  tarn__param ***list;
  size_t *count, *capacity;
} tarn__param_list;

// Where a layer declares its parameters. add_param returns NULL after a failure, which is kept in `status`.
typedef struct tarn__declare {
  const char *prefix;  // "encoder.layer3"
  const tarn_kind *kind;
  int64_t d_model;
  tarn_activation activation;  // of the FFN
  bool decoder;                // of an encoder-decoder: cross-attention follows
  bool frozen_part;            // what is declared next is frozen, even where the kind is not
  tarn__arena *arena;
  tarn__param_list params;
  tarn__param_list helpers;  // parameters that only training needs and that are no part of the model; list NULL: none
  tarn_status status;
} tarn__declare;

// The structure of a layer's or mixer's weights, zeroed, from the arena; NULL after a failure.
void *tarn__declare_struct(tarn__declare *declare, size_t size);
tarn__param *tarn__declare_param(tarn__declare *declare, const char *name, int64_t rows, int64_t cols, bool trained,
                                 tarn__init init);
// NAME.weight [out, in] and NAME.bias [out]; `blocks` row blocks are initialised apart. Where the matrix is frozen, a
// kind of init hadamard has NAME.signs in place of the weight.
tarn__linear_weights tarn__declare_linear(tarn__declare *declare, const char *name, int64_t out, int64_t in, int blocks,
                                          double gain);
// The same without a bias.
tarn__linear_weights tarn__declare_matrix(tarn__declare *declare, const char *name, int64_t out, int64_t in, int blocks,
                                          double gain);
// NAME.weight [out, in], which is a matrix whatever its init is.
tarn__param *tarn__declare_dense(tarn__declare *declare, const char *name, int64_t out, int64_t in, int blocks,
                                 double gain);
// NAME.bias [n], 0 where it is trained, else uniform in 1 / sqrt(in).
tarn__param *tarn__declare_bias(tarn__declare *declare, const char *name, int64_t n, int64_t in);
// NAME.signs: those of a structured matrix [out, in] of `blocks` row blocks; NULL after a failure.
tarn__param *tarn__declare_signs(tarn__declare *declare, const char *name, int64_t out, int64_t in, int blocks);
// act(x weight^T + bias), whatever the weight is.
tarn__tensor *tarn__project(tarn__graph *graph, tarn__tensor *x, const tarn__linear_weights *weights,
                            tarn__activation activation);
tarn__norm_weights tarn__declare_norm(tarn__declare *declare, const char *name);

// Cross-attention over the encoder's output: what a decoder layer has behind its token mixer.
typedef struct tarn__cross_weights {
  tarn__linear_weights q, kv, out;  // rows of kv are keys, values
  tarn__norm_weights norm;
} tarn__cross_weights;

// fairseq scales the Xavier bound of query, key and value projections by 1 / sqrt(2).
#define TARN__ATTENTION_GAIN 0.70710678118654752440

// What building a layer needs beside its weights and the stream.
typedef struct tarn__block_run {
  tarn__graph *graph;
  int64_t d_model;
  // Whole sequences: offsets of this side, and the encoder's output for the decoder.
  tarn__tensor *offsets;
  tarn__tensor *memory, *memory_offsets;
  int64_t longest, memory_longest;
  tarn__stand_in_sums *sums;  // of this layer: what a refresh of its backskipping adds to; NULL: none is done
  bool causal;                // self-attention sees earlier tokens only
  // Incremental decoding: caches of this layer in place of the above; see model/model.h. Row i of the step appends row
  // first_row + i to self_cache and sees its rows history[ranges[2 i]] .. history[ranges[2 i + 1] - 1], which are those
  // of its hypothesis in the order of time, its own the last of them.
  bool incremental;
  tarn__tensor *self_cache, *history, *history_ranges;
  int64_t first_row;
  tarn__tensor *cross_cache, *source_ranges;
} tarn__block_run;

// cross_attn.q, .kv, .out and .norm.
tarn__cross_weights tarn__cross_declare(tarn__declare *declare);
// Keys and values of the encoder's output [rows, 2 d_model].
tarn__tensor *tarn__cross_memory(const tarn__block_run *run, const tarn__cross_weights *weights);
// The sublayer: attention with kind->heads heads, from whole sequences or from run->cross_cache.
void tarn__cross_build(const tarn__block_run *run, const tarn__cross_weights *weights, const tarn_kind *kind,
                       tarn__stream *stream);

// A token mixer.
typedef struct tarn__mixer {
  tarn_mixer id;
  // Declares the parameters and returns the mixer's own structure from the arena (tarn__declare_struct()), or NULL.
  void *(*declare)(tarn__declare *declare);
  void (*build)(const tarn__block_run *run, const void *weights, const tarn_kind *kind, tarn__stream *stream);
  // Decoder: keys and values of the encoder's output for cross-attention [rows, 2 d_model], or NULL when the mixer has
  // none.
  tarn__tensor *(*build_cross)(const tarn__block_run *run, const void *weights);
  // Incremental decoding: how many numbers of every token it keeps in run->self_cache; NULL: none.
  int64_t (*cache_width)(const tarn_kind *kind, int64_t d_model);
  // How many rows of its hypothesis a token sees there, its own counted; NULL: all.
  int64_t (*history)(const tarn_kind *kind);
  // A token reads what the token before it wrote: a step cannot have two tokens of one hypothesis.
  bool sequential;
} tarn__mixer;

// The weights of one set.
typedef struct tarn__layer_weights {
  const tarn_kind *kind;
  const struct tarn__backskip_weights *backskip;  // parts/backskip.h; NULL: the layer has a true backward pass
  const tarn__mixer *mixer;
  void *mixing;  // the mixer's own structure
  bool crosses;  // it has cross-attention
  tarn_activation activation;
  tarn__linear_weights ffn_in, ffn_out;
  tarn__norm_weights ffn_norm;
} tarn__layer_weights;

tarn__layer_weights *tarn__layer_declare(tarn__declare *declare);
void tarn__layer_build(const tarn__block_run *run, const tarn__layer_weights *weights, tarn__stream *stream);
// Numbers that a decoder layer keeps while decoding: of every target token, and of every source token. 0: nothing.
int64_t tarn__layer_cache_width(const tarn__layer_weights *weights, int64_t d_model);
int64_t tarn__layer_cross_width(const tarn__layer_weights *weights, int64_t d_model);
// Rows of its hypothesis that a token sees while decoding, its own counted; INT64_MAX: all.
int64_t tarn__layer_history(const tarn__layer_weights *weights);

// The two ends of every sublayer. enter returns the sublayer's input (normalised if pre-norm, and then the pending
// branch joins the stream in the same op); leave adds the sublayer's output to the stream.
tarn__tensor *tarn__stream_enter(tarn__graph *graph, tarn__stream *stream, const tarn__norm_weights *norm,
                                 tarn_norm order);
void tarn__stream_leave(tarn__graph *graph, tarn__stream *stream, tarn__tensor *branch, double dropout,
                        const tarn__norm_weights *norm, tarn_norm order);
// Joins a pending branch, with a final norm if its weights are not NULL, and returns the result.
tarn__tensor *tarn__stream_finish(tarn__graph *graph, tarn__stream *stream, const tarn__norm_weights *norm);

#endif
