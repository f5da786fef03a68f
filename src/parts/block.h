// The parts of a layer, and the interface of their entries for building graphs. A layer is a token mixer, in a decoder
// with an encoder cross-attention, and a channel mixer, each a sublayer with residual, norm and dropout. Entries are in
// the subfolders, one per file; table/part_table.h lists them.
#ifndef TARN_PARTS_BLOCK_H
#define TARN_PARTS_BLOCK_H

#include "base/index.h"
#include "graph/graph.h"
#include "ops/ops.h"
#include "parts/part.h"
#include "parts/shown.h"

// The state between sublayers: the residual stream x and a branch not yet added to it, so that the addition, its
// dropout and the next normalisation become one op.
typedef struct tarn__stream {
  tarn__tensor *x, *branch;
  double dropout;       // of the pending branch
  bool begins;          // a layer begins: its segment of the graph starts once the pending branch is added
  tarn__tensor *input;  // x at the beginning of the layer, with every branch added
  bool replaced;        // the current layer's output replaces x (kinds.NAME.residual: no)
  bool last;            // the current sublayer is the last one of its layer
  double skip;          // the current layer's factor on x by norm deepnorm
} tarn__stream;

// One norm: its entry and keys, and the parameters that the entry has declared. For a sublayer also the other
// parameters of its branch.
typedef struct tarn__norm_weights {
  tarn_part_use use;  // part NULL: there is no norm
  tarn__param *gain, *bias;
  tarn__param *gate;   // [1, 1], the factor on the branch (kinds.NAME.gate, norm fixup); NULL: none
  tarn__param *shift;  // [1, 1], added to the branch's input (norm fixup); NULL: none
  double skip;         // while a graph is built: the factor on x (norm deepnorm); 0: none
} tarn__norm_weights;

// Whether layers with this order have norms.
static inline bool tarn__order_has_norm(tarn_norm order) { return order != TARN_NORM_NONE && order != TARN_NORM_FIXUP; }

// A projection.
typedef struct tarn__linear_weights {
  tarn__param *weight;  // a matrix [out, in], or the signs of a structured one
  tarn__param *bias;    // NULL: none
} tarn__linear_weights;

// A growing list of parameters, and its index by name.
typedef struct tarn__param_list {
  tarn__param ***list;
  size_t *count, *capacity;
  tarn__index *names;
} tarn__param_list;

// The context in which a layer declares its parameters. add_param returns NULL after a failure, which `status` records.
typedef struct tarn__declare {
  const char *prefix;     // "encoder.layer3"
  const char *stack;      // "encoder"
  tarn__param_role role;  // of the next declarations, and the number of their stack
  int stack_id;
  // The set of another stack, "encoder.L1", whose parameters of the same names are used. NULL: none.
  const char *shared;
  const tarn_kind *kind;
  int64_t d_model;
  const tarn_part_use *position;      // the model's position scheme
  tarn_part_use norm;                 // of the final norm, which belongs to no kind
  struct tarn__cross_weights *cross;  // where a token mixer declares the following cross-attention
  bool attends;                       // the stack attends to another: cross-attention follows
  bool causal;                        // its tokens see only earlier ones
  bool frozen_part;                   // the next declarations are frozen, even if the kind is not
  tarn__param *last;                  // the last projection of the sublayer so far, or NULL
  double beta;                        // norm deepnorm: factor on first values in this stack (parts/depth.h)
  int64_t branches;                   // norm fixup: how many branches the model has
  tarn__arena *arena;
  tarn__param_list params;
  tarn__param_list helpers;  // parameters for training only, not part of the model; list NULL: none
  tarn_status status;
} tarn__declare;

// The structure of a layer's or mixer's weights, zeroed, from the arena; NULL after a failure.
void *tarn__declare_struct(tarn__declare *declare, size_t size);
tarn__param *tarn__declare_param(tarn__declare *declare, const char *name, int64_t rows, int64_t cols, bool trained,
                                 tarn__init init);
// NAME.weight [out, in] and NAME.bias [out]; `blocks` row blocks are initialised separately. If the matrix is frozen, a
// kind with init hadamard has NAME.signs instead of the weight.
tarn__linear_weights tarn__declare_linear(tarn__declare *declare, const char *name, int64_t out, int64_t in, int blocks,
                                          double gain);
// The same without a bias.
tarn__linear_weights tarn__declare_matrix(tarn__declare *declare, const char *name, int64_t out, int64_t in, int blocks,
                                          double gain);
// NAME.weight [out, in], a matrix with any init.
tarn__param *tarn__declare_dense(tarn__declare *declare, const char *name, int64_t out, int64_t in, int blocks,
                                 double gain);
// The same, shared by all layers of the kind in a stack: STACK.shared.KIND.NAME.weight.
tarn__param *tarn__declare_dense_shared(tarn__declare *declare, const char *name, int64_t out, int64_t in, double gain);
// NAME.bias [n], 0 if trained, else uniform in 1 / sqrt(in).
tarn__param *tarn__declare_bias(tarn__declare *declare, const char *name, int64_t n, int64_t in);
// NAME.gain [d_model] of a norm, initially 1, and NAME.bias [d_model], initially 0.
tarn__param *tarn__declare_norm_gain(tarn__declare *declare, const char *name, bool trained);
tarn__param *tarn__declare_norm_bias(tarn__declare *declare, const char *name, bool trained);
// NAME [1, 1], frozen if the whole kind is.
tarn__param *tarn__declare_number(tarn__declare *declare, const char *name, double first);
// NAME.signs: those of a structured matrix [out, in] of `blocks` row blocks; NULL after a failure.
tarn__param *tarn__declare_signs(tarn__declare *declare, const char *name, int64_t out, int64_t in, int blocks);
// act(x weight^T + bias), for any kind of weight.
tarn__tensor *tarn__project(tarn__graph *graph, tarn__tensor *x, const tarn__linear_weights *weights,
                            tarn__activation activation);
// A norm of the layer's kind, without an entry if its layers have none; without a kind, declare->norm. In a sublayer it
// is declared after the projections, NAME.norm after NAME.out: this also declares gates and, with norm fixup, changes
// that projection's first values.
tarn__norm_weights tarn__declare_norm(tarn__declare *declare, const char *name);
// A norm of `width` columns within a branch, of the kind's norm_type, with any order of norms.
tarn__norm_weights tarn__declare_inner_norm(tarn__declare *declare, const char *name, int64_t width);

// Cross-attention over the encoder's output, after the token mixer of a decoder layer.
typedef struct tarn__cross_weights {
  int64_t heads;     // 0: there is none
  int64_t kv_heads;  // of keys and values, a divisor of heads
  int64_t width;     // of a head
  double attention_dropout;
  tarn__linear_weights q, kv, out;  // rows of kv are keys, values
  tarn__norm_weights norm;
} tarn__cross_weights;

// fairseq scales the Xavier bound of query, key and value projections by 1 / sqrt(2).
#define TARN__ATTENTION_GAIN 0.70710678118654752440

// Inputs for building a layer, in addition to its weights and the stream.
typedef struct tarn__block_run {
  tarn__graph *graph;
  int64_t d_model;
  // Whole sequences: offsets of this side, and the encoder's output for the decoder.
  tarn__tensor *offsets;
  tarn__tensor *memory, *memory_offsets;
  // Offsets of the rows that attend to each sentence of the memory, for several sentences of this side that share one;
  // NULL: offsets.
  tarn__tensor *memory_readers;
  int64_t longest, memory_longest;
  // Position of every row in its sentence, I32 [1, rows], in decoding too. The distance of two rows of a sentence is
  // the difference of their rows here, and while decoding that of their places in `history`, whose last row is the
  // step's own.
  tarn__tensor *positions;
  const tarn_part_use *position;  // the model's position scheme
  tarn__tensor *biases;           // by head and distance, added to scores of this stack; NULL: none
  double skip;                    // of this stack: the factor on x by norm deepnorm (parts/depth.h)
  tarn__stand_in_sums *sums;      // of this layer, for refreshes of its backskipping; NULL: no refresh
  bool causal;                    // self-attention sees only earlier tokens
  // Of a causal stack whose sentences begin with a source that sees all of itself (parts/prefix.h), in whole sequences;
  // NULL: none.
  const struct tarn__prefix *prefix;
  double share;  // the share of an update's predictions in this batch; 1 without learning
  // Initial and final states of the sentences, for a layer with states (tarn__layer_state_width()), as
  // tarn__recurrence_carried() takes them; NULL: sentences begin with zeros.
  tarn__tensor *start, *end;
  // Of the last layer, if what is above reads only the first row of each sentence: these rows and their offsets, 0, 1,
  // 2 and so on. The mixer leaves these rows alone in the stream (reads_rows); NULL: all rows are read.
  tarn__tensor *read_rows, *read_offsets;
  tarn__shows *shows;  // of this layer, in whole sequences: the tensors to show; NULL: none
  // Incremental decoding: caches of this layer instead of the above; see model/model.h. Row i of the step appends row
  // first_row + i to self_cache and sees its rows history[ranges[2 i]] .. history[ranges[2 i + 1] - 1], those of its
  // hypothesis in order of time, its own being the last.
  bool incremental;
  tarn__tensor *self_cache, *history, *history_ranges;
  int64_t first_row;
  // Keys and values of the memory (tarn__cross_memory()), for whole sequences too; NULL there: they are computed.
  tarn__tensor *cross_cache, *source_ranges;
} tarn__block_run;

// cross_attn.q, .kv, .out and .norm, if the layer has cross-attention.
void tarn__cross_declare(tarn__declare *declare, int64_t heads, double attention_dropout);
// The same with fewer heads of keys and values, or with heads of another width than d_model / heads.
typedef struct tarn__cross_heads {
  int64_t heads, kv_heads, width;
} tarn__cross_heads;
void tarn__cross_declare_heads(tarn__declare *declare, tarn__cross_heads heads, double attention_dropout);
// The same without the norm, for a mixer that has the cross-attention `beside`.
void tarn__cross_declare_beside(tarn__declare *declare, int64_t heads, double attention_dropout);
// Attention of x over whole sequences or run->cross_cache, and its projection.
tarn__tensor *tarn__cross_attend(const tarn__block_run *run, const tarn__cross_weights *weights, tarn__tensor *x);
// Keys and values of the encoder's output [rows, 2 kv_heads * width].
tarn__tensor *tarn__cross_memory(const tarn__block_run *run, const tarn__cross_weights *weights);
// The sublayer: attention over the memory or run->cross_cache.
void tarn__cross_build(const tarn__block_run *run, const tarn__cross_weights *weights, const tarn_kind *kind,
                       tarn__stream *stream);

// A token mixer. Its keys are siblings of `mixer` in the kind.
typedef struct tarn__mixer_entry {
  tarn__part part;
  bool empty;       // no token mixer: the layer is its channel mixer alone, and pre-norm by default
  bool causal;      // it has a causal form; else it works only in encoders
  bool prefixes;    // it obeys run->prefix; a mixer that is `empty` need not
  bool decodes;     // it has a form for incremental decoding
  bool reads_rows;  // it obeys run->read_rows
  bool attends;     // cross-attention follows it in a decoder with an encoder
  bool beside;      // that cross-attention is a part of the mixer's own sublayer
  bool bounded;     // its weights are indexed by position, below model.max_length
  bool pairs;       // it compares tokens by queries and keys, which a position scheme may rotate or add to
  bool sequential;  // a token reads the output of the previous token: a step cannot have two tokens of one hypothesis.
                    // Its cache (cache_width) is a state, with which whole sentences can begin too
  // Declares the parameters, including those of cross-attention (tarn__cross_declare()), and returns the mixer's
  // structure from the arena (tarn__declare_struct()), or NULL.
  void *(*declare)(tarn__declare *declare, const void *keys);
  void (*build)(const tarn__block_run *run, const void *weights, const tarn_kind *kind, tarn__stream *stream);
  // Incremental decoding: numbers per token in run->self_cache; NULL: none.
  int64_t (*cache_width)(const void *keys, int64_t d_model);
  bool wide;  // they are F32 even in BF16 models: sums that grow with the tokens
  // Rows of its hypothesis that a token sees there, including its own; NULL: all.
  int64_t (*history)(const void *keys);
  // Heads of its queries, for a mixer with pairs.
  int64_t (*heads)(const void *keys);
  // Whether it has weights for each position below model.max_length, so that run->positions is set and no sentence is
  // longer; NULL: never.
  bool (*by_position)(const void *keys);
  // Whether some of its matrices are frozen in a trained kind; NULL: never.
  bool (*partly_frozen)(const void *keys);
  const char *explodes;  // what else to check if a training diverges; NULL: nothing
} tarn__mixer_entry;

// A channel mixer works on every row separately, so it is causal and decodes without further code.
typedef struct tarn__channel_entry {
  tarn__part part;
  bool together;  // in training its rows compete for experts, so that all of them count
  void *(*declare)(tarn__declare *declare, const void *keys);
  void (*build)(const tarn__block_run *run, const void *weights, const tarn_kind *kind, tarn__stream *stream);
} tarn__channel_entry;

// A norm of layers and at the top of a stack.
typedef struct tarn__norm_entry {
  tarn__part part;
  // Declares NAME.gain etc.; use is set.
  void (*declare)(tarn__declare *declare, const char *name, bool trained, tarn__norm_weights *weights);
  // sum = x + dropout(branch), and y, the norm of the sum. branch may be NULL.
  tarn__residual_out (*build)(tarn__graph *graph, tarn__tensor *x, tarn__tensor *branch, double dropout,
                              const tarn__norm_weights *weights);
} tarn__norm_entry;

// The rows of a side's token embedding.
typedef struct tarn__embedded {
  tarn__tensor *ids, *positions;
  tarn__param *table, *position_table;  // position_table: the entry's declaration for this side, or NULL
  double scale, dropout;
  int64_t longest;   // above every position; 0: unknown, because the graph is only planned
  const void *keys;  // of the scheme
} tarn__embedded;

// A position scheme.
typedef struct tarn__position_entry {
  tarn__part part;
  bool bounded;  // positions are limited to below model.max_length
  bool reads;    // it reads positions; else run->positions and those of embeddings are NULL
  // A table in addition to a side's embedding matrix, trained if that is; NULL: the scheme has none.
  tarn__param *(*declare)(tarn__declare *declare, const char *name, const tarn_config_model *model, bool trained);
  // The embedding of tokens, with the scheme's addition; NULL: nothing.
  tarn__tensor *(*embed)(tarn__graph *graph, const tarn__embedded *embedded);
  // Queries and keys, the first `columns` columns of x [rows, *] in heads of `head` columns, rotated by their positions
  // (run->positions), in whole sequences and while decoding, where keys are cached after rotation. NULL: no rotation.
  tarn__tensor *(*turn)(const tarn__block_run *run, tarn__tensor *x, int64_t columns, int64_t head);
  // The addition to scores of self-attention by distance, written into the spec of whole sequences and of a decoding
  // step. NULL: nothing.
  void (*bias)(const tarn__block_run *run, tarn__attention_spec *spec);
  // The same, learnt, from a table shared by all layers of a stack, whose self-attentions have `heads` heads each: its
  // parameter, declared once per stack, and run->biases, made from it once per graph (for tarn__attention_with()).
  // `causal`: keys never follow the query. NULL: there is none.
  tarn__param *(*declare_biases)(tarn__declare *declare, const void *keys, int64_t heads, bool trained);
  tarn__tensor *(*biases)(tarn__graph *graph, const void *keys, tarn__param *table, bool causal);
  // Vectors by distance, compared with queries and added to values (ops/relative_attention.h): the largest
  // distinguished distance, and whether there are vectors for values. A mixer with pairs declares them in each layer.
  // NULL: there are none.
  int64_t (*relative)(const void *keys, bool *values);
  // Whether heads of a kind, `width` columns each, can be rotated; site->path is the kind's. NULL if turn is.
  tarn_status (*check_heads)(const tarn__part_site *site, int64_t heads, int64_t width);
} tarn__position_entry;

// An activation: act(x weight^T + bias).
typedef struct tarn__activation_entry {
  tarn__part part;
  tarn__activation form;  // of products built elsewhere; ignored if `apply` is set
  tarn__tensor *(*build)(tarn__graph *graph, tarn__tensor *x, const tarn__linear_weights *weights);
  // For an activation with a number for each layer, or with keys: a separate node after the product. `declare` declares
  // the number, NULL: none; `apply` is act(z), for experts only of the rows within `offsets` (ops/route.h), NULL: all.
  tarn__param *(*declare)(tarn__declare *declare, const char *name, const void *keys);
  tarn__tensor *(*apply)(tarn__graph *graph, tarn__tensor *z, tarn__tensor *offsets, const void *keys,
                         tarn__param *number);
} tarn__activation_entry;

// An activation of a layer, with its number.
typedef struct tarn__activated {
  const tarn_part_use *use;
  tarn__param *number;
} tarn__activated;
// The number's name: "ffn.beta".
tarn__activated tarn__declare_activation(tarn__declare *declare, const char *name, const tarn_part_use *use);
// act(x weight^T + bias).
tarn__tensor *tarn__activated_project(tarn__graph *graph, tarn__tensor *x, const tarn__linear_weights *weights,
                                      const tarn__activated *activated);

// The entry of a use, in its table's structure.
static inline const tarn__mixer_entry *tarn__mixer_of(const tarn_kind *kind) {
  return (const tarn__mixer_entry *)kind->mixer.part;
}
static inline const tarn__channel_entry *tarn__channel_of(const tarn_kind *kind) {
  return (const tarn__channel_entry *)kind->channel.part;
}
static inline const tarn__norm_entry *tarn__norm_of(const tarn_part_use *use) {
  return (const tarn__norm_entry *)use->part;
}
static inline const tarn__position_entry *tarn__position_of(const tarn_part_use *use) {
  return (const tarn__position_entry *)use->part;
}
static inline const tarn__activation_entry *tarn__activation_of(const tarn_part_use *use) {
  return (const tarn__activation_entry *)use->part;
}

// The key `heads`, which several mixers have, and its check: it divides d_model, and the position scheme can rotate
// heads of that width if the mixer has queries and keys.
#define TARN__KEY_HEADS(structure, meaning)                                                                      \
  {                                                                                                              \
    "heads", TARN__KEY_INTEGER(structure, heads, 1, 1024), .value = "4", .help = meaning,                        \
                                                           .also = "attention_heads transformer-heads num_heads" \
  }
// The key `heads` of mixers that have heads only in a following cross-attention.
#define TARN__KEY_CROSS_HEADS(structure, field)                                                           \
  {                                                                                                       \
    "heads", TARN__KEY_INTEGER(structure, field, 1, 1024),                                                \
        .value = "4",                                                                                     \
        .help =                                                                                           \
            "heads of the cross-attention that follows, which language models do not have; a divisor of " \
            "model.d_model",                                                                              \
        .also = "attention_heads transformer-heads num_heads"                                             \
  }
// The key `attention_dropout`: of self-attention, and of the cross-attention that follows a mixer.
#define TARN__KEY_ATTENTION_DROPOUT(structure, field, meaning)                         \
  {                                                                                    \
    "attention_dropout", TARN__KEY_REAL(structure, field, 0, 1), TARN__KEY_BELOW_MOST, \
        .value = "0", .help = meaning, .later = true, .random = true,                  \
        .also =                                                                        \
            "attn_pdrop attention_probs_dropout_prob "                                 \
            "attn_dropout attention_dropout_prob "                                     \
            "dropatt weights_dropout"                                                  \
  }
#define TARN__KEY_CROSS_DROPOUT(structure, field)                                                                   \
  TARN__KEY_ATTENTION_DROPOUT(structure, field,                                                                     \
                              "on the weights of the cross-attention that follows, after their softmax; fairseq's " \
                              "attention_dropout")
// The key `epsilon` of norms; its least value is also a normal number in float.
#define TARN__KEY_EPSILON(structure, meaning)                                                                   \
  {                                                                                                             \
    "epsilon", TARN__KEY_REAL(structure, epsilon, 1e-30, 1),                                                    \
        .value = "1e-5", .help = meaning, .also = "eps layer_norm_epsilon layer_norm_eps norm_eps rms_norm_eps" \
  }
tarn_status tarn__heads_check(const tarn__part_site *site, int64_t heads);
// The same for heads of `width` columns, whose number may be any.
tarn_status tarn__head_width_check(const tarn__part_site *site, int64_t heads, int64_t width);
// A key that is a width in tokens, centred on the token in encoder layers, where it must be odd.
tarn_status tarn__centred_check(const tarn__part_site *site, const char *key, int64_t width);

// The weights of one set.
typedef struct tarn__layer_weights {
  const tarn_kind *kind;
  const struct tarn__backskip_weights *backskip;  // parts/backskip.h; NULL: the layer has a true backward pass
  void *mixing;                                   // the mixer's structure
  tarn__cross_weights cross;
  void *channels;  // the channel mixer's structure
} tarn__layer_weights;

tarn__layer_weights *tarn__layer_declare(tarn__declare *declare);
void tarn__layer_build(const tarn__block_run *run, const tarn__layer_weights *weights, tarn__stream *stream);
// Numbers that a decoder layer keeps while decoding, per target token and per source token. 0: nothing.
int64_t tarn__layer_cache_width(const tarn__layer_weights *weights, int64_t d_model);
int64_t tarn__layer_cross_width(const tarn__layer_weights *weights);
// Their type in a model of that type.
tarn__dtype tarn__layer_cache_dtype(const tarn__layer_weights *weights, tarn__dtype dtype);
// Size of the state that a layer can carry between sentences that are windows of one text; 0: none.
int64_t tarn__layer_state_width(const tarn__layer_weights *weights, int64_t d_model);
// Rows of its hypothesis that a token sees while decoding, including its own; INT64_MAX: all.
int64_t tarn__layer_history(const tarn__layer_weights *weights);

// The two ends of every sublayer. enter returns the sublayer's input (normalised if pre-norm, and then the pending
// branch joins the stream in the same op); leave adds the sublayer's output to the stream.
tarn__tensor *tarn__stream_enter(tarn__graph *graph, tarn__stream *stream, const tarn__norm_weights *norm,
                                 tarn_norm order);
void tarn__stream_leave(tarn__graph *graph, tarn__stream *stream, tarn__tensor *branch, double dropout,
                        const tarn__norm_weights *norm, tarn_norm order);
// x + dropout(y), without a norm.
tarn__tensor *tarn__stream_sum(tarn__graph *graph, tarn__tensor *x, tarn__tensor *y, double dropout);
// Shows the stream after a layer, with every branch added, if requested.
void tarn__stream_show(tarn__graph *graph, const tarn__stream *stream, tarn__shows *shows);
// Leaves some rows alone in the stream, which has no pending branch.
void tarn__stream_select(tarn__graph *graph, tarn__stream *stream, tarn__tensor *rows);
// Joins a pending branch, with a final norm if it has an entry, and returns the result.
tarn__tensor *tarn__stream_finish(tarn__graph *graph, tarn__stream *stream, const tarn__norm_weights *norm);

#endif
