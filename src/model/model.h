// A model: the parameters of a description, and the graphs built from them. Its task defines its stacks and their
// inputs; arguments about a side that no stack reads are ignored.
//
// A model is opened without memory (names, shapes and counts, enough for a plan), then allocated, then initialised or
// loaded.
#ifndef TARN_MODEL_MODEL_H
#define TARN_MODEL_MODEL_H

#include "data/batch.h"
#include "description/description.h"
#include "graph/graph.h"
#include "parts/block.h"
#include "tarn/translate.h"
#include "task/task.h"

// Recurrent states of the decoder's layers at the start and end of each sentence of a batch, if the sentences are
// windows of a longer text: for layer l, start[l] and end[l] [rows, tarn__layer_state_width()], F32, in device memory;
// row s belongs to sentence s. Layers without a state are skipped.
typedef struct tarn__model_carried {
  int64_t rows;                     // at least the sentences of the batch
  void *const *start, *const *end;  // both NULL where a graph is only planned
} tarn__model_carried;

#define TARN__HELPERS "backskipping's predictor"  // the name of helpers in messages

// Options of a step: what it skips, and the states its sentences start from.
typedef struct tarn__model_shortcuts {
  // Cached outputs of the frozen bottom, read instead of running it (tarn__model_bottom_table()), and the table's row
  // of each source token [source.rows]. NULL: the bottom runs.
  tarn__param *bottom;
  const int32_t *bottom_ids;
  // The layers of each stack that the step skips (LayerDrop), one flag per layer from the bottom. They are not in the
  // graph. NULL: all run.
  const bool *skip[TARN__STACKS];
  const tarn__model_carried *carried;  // NULL: from zeros
  // The tensors to show of each stack: of the embeddings, which have only an output, then of each layer from the
  // bottom. NULL: none.
  tarn__shows *shows[TARN__STACKS];
  // In training: the fraction of an update's predictions in this batch, which tarn__model_build_loss() derives from
  // grad_scale.
  double share;
  // While a graph with Transparent attention is built (model/transparent.h): the embeddings and the outputs of the
  // encoder's layers, and the memory of each layer of the decoder. NULL: none.
  tarn__tensor **outputs, **memories;
  tarn__tensor **crosses;  // keys and values for the cross-attention of each layer of the decoder; NULL: computed
  tarn__block_run *below;  // receives what the last stack attends to: memory, its offsets; NULL: not wanted
  tarn__tensor **stacks;   // [TARN__STACKS] receives the output of each stack; NULL: not wanted
  // The rows of the last layer that are read, and their offsets (model/first_rows.h), which tarn__model_build_loss()
  // finds; NULL: all.
  tarn__tensor *read_rows, *read_offsets;
} tarn__model_shortcuts;

// Two groups of decoder layers, by the number of rows of its hypothesis that a token sees: as many as in any layer, or
// fewer. The near layers may keep a large state per token, but do not need it for long.
enum { TARN__FAR, TARN__NEAR, TARN__SIGHTS };

// One layer of a stack: its block and the weights it uses (shared layers point to the same weights).
typedef struct tarn__model_layer {
  const tarn__layer_weights *weights;
  int sight;
  const char *label;          // "encoder 3 R1": stack, depth and kind or set, for plans and profiles
  tarn__stand_in_sums *sums;  // of refreshes of its backskipping since the trainer last cleared them; NULL: none skips
} tarn__model_layer;

typedef struct tarn__model_stack {
  tarn__model_layer *layers;  // from the bottom
  int count;
  double skip;                   // the factor of x in norm deepnorm
  tarn__norm_weights norm;       // the final norm; without an entry: there is none
  const tarn_stack *steps;       // of the description: the keys of whole architectures
  int step_layers;               // of a step; 0: the sets of weights do not repeat
  tarn__linear_weights halting;  // of adaptive computation time; weight NULL: none
  tarn__param *biases;           // of attention by distance, shared by its layers (tarn__position_entry); NULL: none
} tarn__model_stack;

typedef struct tarn__model {
  const tarn_config *config;  // the caller's; must outlive the model
  int64_t source_vocab, target_vocab;
  tarn__dtype dtype;           // of compute: F32, BF16, F64
  tarn__fp32 fp32;             // how products of fp32 are computed: train.fp32 while training, else EXACT
  const tarn__device *device;  // tarn__device_default(), unless the caller sets another one before allocation
  bool training;               // gradients, master copies (and moments, by the trainer) exist
  bool updates_at_once;        // tarn__model_update_at_once()
  bool shares_optimiser;  // ranks do: master copies in bf16 and moments are those of parts (param.training.part), which
                          // take their own memory; set it before allocation
  uint64_t seed;          // of the frozen weights; a checkpoint records it
  tarn__param **params;   // all parameters, each once, in a fixed order
  size_t param_count;
  tarn__param **helpers;  // of backskipping, while training: no part of the model, with an optimiser of their own
  size_t helper_count;
  tarn__task_weights weights;                        // those outside the layers
  tarn__param *source_positions, *target_positions;  // learned ones [max_length, d_model], or NULL
  tarn__param *segments;                             // [model.segments, d_model] of a text's sentences, or NULL
  tarn__norm_weights embedding_norms[TARN__SIDES];   // of the sums of embeddings; without an entry: there is none
  // A table of embeddings without rows, as wide as the model: with adaptive inputs, a separate node adds the positions
  // and looks nothing up.
  tarn__param no_table;
  tarn__model_stack encoder, decoder;
  tarn__param **shares;  // of Transparent attention, one for each layer of the decoder; NULL: none
  // The most rows, including the token's own, that decoder layers of each group see; INT64_MAX: all; 0: no such layers.
  int64_t sights[TARN__SIGHTS];
  tarn__arena arena;  // owns params, names, layers
  void *storage[TARN__MEMORY_KINDS];
  const struct tarn__map *map;  // file with values outside the model's memory (tarn__param.mapped); NULL: none
} tarn__model;

// A stack; it has no layers if the model has none of that id.
static inline const tarn__model_stack *tarn__model_stack_at(const tarn__model *model, tarn__stack_id id) {
  return id == TARN__STACK_ENCODER ? &model->encoder : &model->decoder;
}

// Number `index` of all parameters (param_count), followed by the helpers (helper_count).
static inline tarn__param *tarn__model_param(const tarn__model *model, size_t index) {
  return index < model->param_count ? model->params[index] : model->helpers[index - model->param_count];
}

// The value of train.fp32.
tarn__fp32 tarn__model_products(const tarn_config_train *train);

// Starts a graph of the model.
static inline void tarn__model_begin(const tarn__model *model, tarn__graph *graph, bool training, int threads) {
  tarn__graph_begin(graph, model->device, model->dtype, training, threads);
  graph->fp32 = model->fp32;
}

// Declares the parameters. Allocates only names and shapes. Fails with UNSUPPORTED if training needs products that the
// device does not have.
tarn_status tarn__model_open(tarn__model **model, const tarn_config *config, int64_t source_vocab, int64_t target_vocab,
                             tarn__dtype dtype, bool training) TARN_CHECKED;
// Decides for every parameter whether it may be rounded to INT8 (tarn__param.rounds): in a model that does not train,
// the matrices and tables that the graphs of its uses read only in products and lookups. Part of tarn__model_open().
tarn_status tarn__model_find_rounded(tarn__model *model) TARN_CHECKED;
// Prepares a model for trainings that update each parameter as soon as its gradient is complete (graph/update.h):
// gradients get no memory of their own. Call it before allocation.
void tarn__model_update_at_once(tarn__model *model);
// Allocates values, master copies (unless shares_optimiser) and gradients. In bf16 a frozen matrix exists only in bf16.
tarn_status tarn__model_allocate(tarn__model *model) TARN_CHECKED;
// Gives every parameter its initial value, a function of (seed, name, initialiser). Orthogonal matrices take about half
// a second per million parameters; threads make different parameters in parallel.
tarn_status tarn__model_initialise(tarn__model *model, uint64_t seed) TARN_CHECKED;
// The same for the frozen parameters only: trained ones are then read from a checkpoint.
tarn_status tarn__model_initialise_frozen(tarn__model *model, uint64_t seed) TARN_CHECKED;
// Parameters that are redrawn at intervals of updates (param->redraw) also depend on the number of the update. The
// first function sets the number of updates done, before the frozen parameters are made; the second redraws the
// parameters due at this update, from 1.
void tarn__model_set_draws(tarn__model *model, int64_t update);
tarn_status tarn__model_redraw(tarn__model *model, int64_t update) TARN_CHECKED;
// The same; calls `done` for each finished parameter, on the thread that made it.
tarn_status tarn__model_initialise_told(tarn__model *model, uint64_t seed,
                                        void (*done)(void *user, const tarn__param *param), void *user) TARN_CHECKED;
// The same for one parameter, in fp32 into `values` [rows, cols], to check a checkpoint's recipe.
tarn_status tarn__param_initialise(const tarn__param *param, uint64_t seed, float *values) TARN_CHECKED;
// Sets a parameter from fp32 values [rows, cols], which may be its master copy: that copy (if trained), or its part of
// the copy, and the compute copy.
tarn_status tarn__param_set(tarn__param *param, const float *values) TARN_CHECKED;
// The same for `count` of its values, in the order of rows, from number `first` on. Both fail with INTERNAL if the
// values are in a file.
tarn_status tarn__param_set_part(tarn__param *param, size_t first, const float *values, size_t count) TARN_CHECKED;
// Reads a parameter as fp32: the master copy if it has one of its own, else the compute copy (exact for frozen bf16).
tarn_status tarn__param_get(const tarn__param *param, float *values) TARN_CHECKED;
void tarn__model_close(tarn__model **model);

// Bytes of parameters by category, with their gradients and optimiser state, without allocating. With shares_optimiser,
// parts are not counted.
typedef struct tarn__model_size {
  size_t trained_bytes, frozen_bytes, gradient_bytes, optimiser_bytes;  // with helpers
  int64_t trained, frozen;                                              // parameters (each set once)
  int64_t shared_uses;    // parameters saved by sharing: sum over sets of (uses - 1) * size
  int64_t shared_layers;  // those of layers; the rest are of embeddings and the output layer
} tarn__model_size;
void tarn__model_measure(const tarn__model *model, tarn__model_size *size);

// Whether train.autofreeze sums the gradients of a parameter: it belongs to a trained set of the encoder.
bool tarn__model_sums(const tarn__model *model, const tarn__param *param);
// Bytes of such a sum (0: none), and of each moment of a trained parameter; multiples of 64. tarn__model_moments() is
// the format of its moments, by train.moments: with fp8 those of vectors are in fp32.
size_t tarn__model_sum_bytes(const tarn__model *model, const tarn__param *param);
tarn__moments tarn__model_moments(const tarn__model *model, const tarn__param *param);
size_t tarn__model_moment_bytes(const tarn__model *model, const tarn__param *param);

// The frozen bottom: the lowest frozen layers of the stack that may have one (tarn__task_stack), if its embedding is
// frozen too. Returns the number of these layers, or 0. Without dropout their output depends only on the sentence.
int tarn__model_bottom(const tarn__model *model);
// A frozen table for that output, without values: one row for each of `tokens` source tokens, in the model's precision.
tarn__param tarn__model_bottom_table(const tarn__model *model, int64_t tokens);
// Appends only the frozen bottom and returns its output [source.rows, d_model] (kept), the residual stream with every
// branch added. The bits of a row depend only on its sentence and equal those of the whole model's forward pass.
tarn__tensor *tarn__model_build_bottom(const tarn__model *model, tarn__graph *graph, const tarn__packed *source);

// Whether the backskipping of some layer does a true backward pass at intervals.
bool tarn__model_refreshes(const tarn__model *model);

// Appends the whole training (or evaluation) forward pass and returns the loss tensor of the task: F64 [1, 2] = {sum of
// the loss, sum of its watched measure} over the batch's predictions. `shortcuts` may be NULL. For training call
// tarn__model_differentiate() on it: the gradients are those of grad_scale * the loss. `answers` (NULL: not wanted)
// receives the input of tarn__task.tally (kept), or NULL if the task's measures need none.
tarn__tensor *tarn__model_build_loss(const tarn__model *model, tarn__graph *graph, const tarn__batch *batch,
                                     const tarn__model_shortcuts *shortcuts, double label_smoothing, double grad_scale,
                                     tarn__tensor **answers);

// Language models: the input of the output layer for every target row [target.rows, d_model] (kept), without dropout if
// the graph does not train. `shortcuts` may be NULL.
tarn__tensor *tarn__model_build_states(const tarn__model *model, tarn__graph *graph, const tarn__packed *target,
                                       const tarn__model_shortcuts *shortcuts);

// Language models: -log p of tokens, without dropout. The prediction at packed target row rows[i] (`rows` [count]) is
// scored for the token targets[i]. Returns F64 [count, 2], both columns equal (kept). `best`, if it is not NULL,
// receives the most likely token of each prediction (a result).
tarn__tensor *tarn__model_build_scores(const tarn__model *model, tarn__graph *graph, const tarn__packed *target,
                                       const int32_t *rows, const int32_t *targets, int64_t count, tarn__top *best);

// The most tokens of a sentence, including the end of sentence, that a language model accepts for scoring or
// generation: model.max_length, or no limit without positions and weights by position.
int64_t tarn__model_longest(const tarn__model *model);
// Whether a token mixer of it has weights by position.
bool tarn__model_by_position(const tarn__model *model);

// Appends the backward pass of that loss, with recomputation if the configuration says so.
void tarn__model_differentiate(const tarn__model *model, tarn__graph *graph, tarn__tensor *loss);

// Decoding, first part: encodes sentences and computes for every decoder layer l the keys and values of its
// cross-attention, cross[l] [source.rows, tarn__layer_cross_width()] (kept until the end of the run; NULL for layers
// without cross-attention). Returns the output of the encoder; NULL: the model has none.
tarn__tensor *tarn__model_build_encode(const tarn__model *model, tarn__graph *graph, const tarn__packed *source,
                                       tarn__tensor **cross);

// The history that layers of one group see. Hypothesis i sees cache rows rows[ranges[2 i]] .. rows[ranges[2 i + 1] - 1]
// in temporal order; the last is its own new row. A step writes cache rows first_row .. first_row + its rows - 1.
typedef struct tarn__model_history {
  const int32_t *rows, *ranges;
  int64_t count, cache_rows, first_row;
} tarn__model_history;

// Decoding, second part: one step for `rows` hypotheses.
typedef struct tarn__model_step {
  int64_t rows;
  const int32_t *ids, *positions;  // [rows] last token of each hypothesis, and its position
  // The cache of layer l for earlier tokens: self_cache[l] [cache_rows of its group, tarn__layer_cache_width()] of
  // tarn__layer_cache_dtype().
  void *const *self_cache;
  tarn__model_history histories[TARN__SIGHTS];
  int64_t longest;        // most rows that one hypothesis sees (history or source)
  int64_t positions_end;  // above every position
  // cross_cache[l] [source_rows, tarn__layer_cross_width()] from the first part; hypothesis i sees rows source_ranges[2
  // i] .. source_ranges[2 i + 1] - 1.
  void *const *cross_cache;
  int64_t source_rows;
  const int32_t *source_ranges;
  const int32_t *predicted;  // [predicted_count] the rows whose next token is wanted; NULL: all rows
  int64_t predicted_count;
  int64_t best;  // continuations wanted of each, besides the end of sentence; 0: the log-probabilities of all words
  int32_t eos;
  // Draws from the continuations (ops/ops.h: tarn__sample_rows()), [draw_count * TARN__DRAW_WORDS], whose rows are
  // numbers among those whose next token is wanted. `sampling` NULL: the continuations themselves.
  const tarn__sample_spec *sampling;
  const int32_t *draws;
  int64_t draw_count;
  // Tokens whose log-probabilities are wanted besides, whatever their rank: [predicted_count][wanted_count], padded
  // with -1; not with `sampling`. 0: none.
  const int32_t *wanted;
  int64_t wanted_count;
  int64_t tops;  // the likeliest tokens as the model alone has them, wanted besides of each row; 0: none
  // Processed logits: what is changed before anything is found or drawn (ops/ops.h: tarn__adjust_rows()); NULL:
  // nothing. numbers, for these and for `wanted`: for each result its row, [draw_count] of draws, else
  // [predicted_count].
  const int32_t *edits, *numbers;
  int64_t edit_words;
} tarn__model_step;
// `top` and `wanted` (tarn__pick_rows()), and with edits also what is `own`: the same log-probabilities as the model
// alone has them. That of what was drawn is also there with `tops`.
typedef struct tarn__next {
  tarn__top top;
  tarn__top tops;  // of the model alone, as tarn__best_rows()
  tarn__tensor *own, *wanted, *wanted_own;
} tarn__next;
// Returns the best continuations of every row whose next token is wanted (a result). If best is 0, ids are NULL and
// values [rows, words] are those of tarn__output_log_probabilities(); with `sampling` they are those of the draws.
// Without such a row all are NULL. The rows of a step may be several tokens of one hypothesis, in temporal order, if
// no mixer is `sequential`.
tarn__next tarn__model_build_step(const tarn__model *model, tarn__graph *graph, const tarn__model_step *step);

// Decoding by a decoder that is not causal, second part: target sentences, each read as a whole. Several may translate
// one source sentence; they follow each other.
typedef struct tarn__model_whole {
  tarn__packed target;
  const int32_t *readers;    // [source.sentences + 1] offsets of the target rows that attend to each source sentence
  tarn__packed source;       // sentences, rows, longest and offsets
  void *const *cross_cache;  // cross_cache[l] [source.rows, tarn__layer_cross_width()], from the first part
} tarn__model_whole;
// Returns the output of the decoder for every target row [target.rows, d_model].
tarn__tensor *tarn__model_build_whole(const tarn__model *model, tarn__graph *graph, const tarn__model_whole *whole);
// The `best` most likely words (a result, ids and log-probabilities as tarn__output_top(), `always` being one of them)
// of rows [count] of states; rows NULL: of all `count` rows.
tarn__top tarn__model_build_top(const tarn__model *model, tarn__graph *graph, tarn__tensor *states, const int32_t *rows,
                                int64_t count, int64_t best, int32_t always);

// Weights packed for products (src/model/pack.c), for decoding: pack_check() fails unless the device supports the
// rounding, pack_bytes() is the memory that they need, and pack() writes them to `memory` (aligned to 64 bytes, owned
// by the caller). Every forward product of a graph then reads the packed weights instead of the values until unpack(),
// before which a model that trains must not run a step. Only models in F32 can be rounded; tables of vocabularies that
// may be rounded are then looked up as INT8, with INT4 too. Weights that a file holds as INT8 are only reordered. On a
// device whose products read weights unpacked, pack() and unpack() do nothing.
tarn__rounding tarn__rounding_of(tarn_translate_precision precision);
// How one parameter is rounded if the model is rounded so.
tarn__rounding tarn__model_rounding(const tarn__model *model, const tarn__param *param, tarn__rounding rounding);
tarn_status tarn__model_pack_check(const tarn__model *model, tarn__rounding rounding) TARN_CHECKED;
size_t tarn__model_pack_bytes(const tarn__model *model, tarn__rounding rounding);
tarn_status tarn__model_pack(const tarn__model *model, void *memory, tarn__rounding rounding, int threads) TARN_CHECKED;
void tarn__model_unpack(const tarn__model *model);

#endif
