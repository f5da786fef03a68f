// What a layer of the pattern is made of, and the entries of the tables of parts as those see them that build graphs. A
// layer is a token mixer, in a decoder that has an encoder cross-attention, and a channel mixer, each a sublayer with
// residual, norm and dropout. Entries lie one a file in the folders beside this file; table/part_table.h lists them.
#ifndef TARN_PARTS_BLOCK_H
#define TARN_PARTS_BLOCK_H

#include "base/index.h"
#include "graph/graph.h"
#include "ops/ops.h"
#include "parts/part.h"
#include "parts/shown.h"

// The state between sublayers: the residual stream x and a branch that is not yet added to it, so that the addition,
// its dropout and the next normalisation become one op.
typedef struct tarn__stream {
  tarn__tensor *x, *branch;
  double dropout;       // of the pending branch
  bool begins;          // a layer begins: its segment of the graph starts once the pending branch is added
  tarn__tensor *input;  // x as the layer began, every branch added
  bool replaced;        // of the layer at hand: its output takes the place of x (kinds.NAME.residual: no)
  bool last;            // the sublayer at hand is the last one of its layer
  double skip;          // of the layer at hand: what norm deepnorm multiplies x by
} tarn__stream;

// One norm: its entry and keys, and its parameters as the entry has declared them. Of a sublayer also what else stands
// on its branch.
typedef struct tarn__norm_weights {
  tarn_part_use use;  // part NULL: there is no norm
  tarn__param *gain, *bias;
  tarn__param *gate;   // [1, 1], what the branch is multiplied by (kinds.NAME.gate, norm fixup); NULL: nothing
  tarn__param *shift;  // [1, 1], what is added to the branch's input (norm fixup); NULL: nothing
  double skip;         // while a graph is built: what x is multiplied by (norm deepnorm); 0: nothing
} tarn__norm_weights;

// Whether layers of an order have norms.
static inline bool tarn__order_has_norm(tarn_norm order) { return order != TARN_NORM_NONE && order != TARN_NORM_FIXUP; }

// A projection.
typedef struct tarn__linear_weights {
  tarn__param *weight;  // a matrix [out, in], or the signs of a structured one
  tarn__param *bias;    // NULL: none
} tarn__linear_weights;

// A list of parameters that grows, and its index by name.
typedef struct tarn__param_list {
  tarn__param ***list;
  size_t *count, *capacity;
  tarn__index *names;
} tarn__param_list;

// Where a layer declares its parameters. add_param returns NULL after a failure, which is kept in `status`.
typedef struct tarn__declare {
  const char *prefix;     // "encoder.layer3"
  const char *stack;      // "encoder"
  tarn__param_role role;  // of what is declared next, and the number of its stack
  int stack_id;
  // The set of another stack, "encoder.L1": where it has a parameter of the name, that is the one. NULL: none.
  const char *shared;
  const tarn_kind *kind;
  int64_t d_model;
  const tarn_part_use *position;      // the model's position scheme
  tarn_part_use norm;                 // of a norm that no kind has: the final one
  struct tarn__cross_weights *cross;  // where a token mixer declares the cross-attention that follows it
  bool attends;                       // of a stack that attends to another: cross-attention follows
  bool frozen_part;                   // what is declared next is frozen, even where the kind is not
  tarn__param *last;                  // the last projection of the sublayer so far, or NULL
  double beta;                        // norm deepnorm: factor on first values in this stack (parts/depth.h)
  int64_t branches;                   // norm fixup: how many branches the model has
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
// The same, one that all layers of the kind in a stack share: STACK.shared.KIND.NAME.weight.
tarn__param *tarn__declare_dense_shared(tarn__declare *declare, const char *name, int64_t out, int64_t in, double gain);
// NAME.bias [n], 0 where it is trained, else uniform in 1 / sqrt(in).
tarn__param *tarn__declare_bias(tarn__declare *declare, const char *name, int64_t n, int64_t in);
// NAME.gain [d_model] of a norm, which begins as 1, and NAME.bias [d_model], which begins as 0.
tarn__param *tarn__declare_norm_gain(tarn__declare *declare, const char *name, bool trained);
tarn__param *tarn__declare_norm_bias(tarn__declare *declare, const char *name, bool trained);
// NAME [1, 1], frozen where the kind is frozen as a whole.
tarn__param *tarn__declare_number(tarn__declare *declare, const char *name, double first);
// NAME.signs: those of a structured matrix [out, in] of `blocks` row blocks; NULL after a failure.
tarn__param *tarn__declare_signs(tarn__declare *declare, const char *name, int64_t out, int64_t in, int blocks);
// act(x weight^T + bias), whatever the weight is.
tarn__tensor *tarn__project(tarn__graph *graph, tarn__tensor *x, const tarn__linear_weights *weights,
                            tarn__activation activation);
// A norm of the layer's kind, without an entry where its layers have none; else declare->norm. Of a sublayer it comes
// behind its projections, as NAME.norm behind NAME.out: gates begin here, and with norm fixup that projection.
tarn__norm_weights tarn__declare_norm(tarn__declare *declare, const char *name);
// A norm within a branch, of the kind's norm_type whatever the order of its norms is.
tarn__norm_weights tarn__declare_inner_norm(tarn__declare *declare, const char *name);

// Cross-attention over the encoder's output: what a decoder layer has behind its token mixer.
typedef struct tarn__cross_weights {
  int64_t heads;     // 0: there is none
  int64_t kv_heads;  // of keys and values, a divisor of heads
  double attention_dropout;
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
  // Place of every row in its sentence, I32 [1, rows], in decoding too. How far two rows of a sentence are apart is the
  // difference of their rows here, and while decoding of their places in `history`, whose last row is the step's own.
  tarn__tensor *positions;
  const tarn_part_use *position;  // the model's position scheme
  tarn__tensor *biases;           // by head and distance, what it adds to scores of this stack; NULL: nothing
  double skip;                    // of this stack: what norm deepnorm multiplies x by (parts/depth.h)
  tarn__stand_in_sums *sums;      // of this layer: what a refresh of its backskipping adds to; NULL: none is done
  bool causal;                    // self-attention sees earlier tokens only
  double share;                   // the part of an update's predictions that is in this batch; 1 where nothing learns
  // States that the sentences begin with and end with, of a layer that has any (tarn__layer_state_width()), as
  // tarn__recurrence_carried() takes them; NULL: sentences begin with zeros.
  tarn__tensor *start, *end;
  tarn__shows *shows;  // of this layer, in whole sequences: what somebody wants to look at; NULL: nobody does
  // Incremental decoding: caches of this layer in place of the above; see model/model.h. Row i of the step appends row
  // first_row + i to self_cache and sees its rows history[ranges[2 i]] .. history[ranges[2 i + 1] - 1], which are those
  // of its hypothesis in the order of time, its own the last of them.
  bool incremental;
  tarn__tensor *self_cache, *history, *history_ranges;
  int64_t first_row;
  tarn__tensor *cross_cache, *source_ranges;
} tarn__block_run;

// cross_attn.q, .kv, .out and .norm, where the layer has cross-attention.
void tarn__cross_declare(tarn__declare *declare, int64_t heads, double attention_dropout);
// The same with fewer heads of keys and values.
void tarn__cross_declare_grouped(tarn__declare *declare, int64_t heads, int64_t kv_heads, double attention_dropout);
// Keys and values of the encoder's output [rows, 2 kv_heads d_model / heads].
tarn__tensor *tarn__cross_memory(const tarn__block_run *run, const tarn__cross_weights *weights);
// The sublayer: attention from whole sequences or from run->cross_cache.
void tarn__cross_build(const tarn__block_run *run, const tarn__cross_weights *weights, const tarn_kind *kind,
                       tarn__stream *stream);

// A token mixer. Its keys stand beside `mixer` in the kind.
typedef struct tarn__mixer_entry {
  tarn__part part;
  bool empty;       // no token mixer: the layer is its channel mixer alone, and pre-norm by default
  bool causal;      // it has a causal form; else it can stand in an encoder only
  bool decodes;     // it has a form for incremental decoding
  bool attends;     // cross-attention follows it in a decoder that has an encoder
  bool bounded;     // its weights are indexed by position: there are tokens below model.max_length only
  bool pairs;       // it compares pairs of tokens by queries and keys, which a position scheme may turn or add to
  bool sequential;  // a token reads what the token before it wrote: a step cannot have two tokens of one hypothesis.
                    // What it keeps of a token (cache_width) is a state, from which whole sentences can begin too
  // Declares the parameters, those of cross-attention among them (tarn__cross_declare()), and returns the mixer's own
  // structure from the arena (tarn__declare_struct()), or NULL.
  void *(*declare)(tarn__declare *declare, const void *keys);
  void (*build)(const tarn__block_run *run, const void *weights, const tarn_kind *kind, tarn__stream *stream);
  // Incremental decoding: how many numbers of every token it keeps in run->self_cache; NULL: none.
  int64_t (*cache_width)(const void *keys, int64_t d_model);
  bool wide;  // they are F32 where the model is BF16: sums that grow with the tokens
  // How many rows of its hypothesis a token sees there, its own counted; NULL: all.
  int64_t (*history)(const void *keys);
  // Heads that its queries have, of a mixer with pairs.
  int64_t (*heads)(const void *keys);
  // Whether it has weights for each position below model.max_length, so that run->positions is there and no sentence is
  // longer; NULL: never.
  bool (*by_position)(const void *keys);
  // Whether some of its matrices are frozen though the kind is trained; NULL: never.
  bool (*partly_frozen)(const void *keys);
  const char *explodes;  // what else to look at where a training diverges; NULL: nothing
} tarn__mixer_entry;

// A channel mixer: works on every row by itself, so it is causal and decodes without more.
typedef struct tarn__channel_entry {
  tarn__part part;
  void *(*declare)(tarn__declare *declare, const void *keys);
  void (*build)(const tarn__block_run *run, const void *weights, const tarn_kind *kind, tarn__stream *stream);
} tarn__channel_entry;

// A norm, of layers and at the top of a stack.
typedef struct tarn__norm_entry {
  tarn__part part;
  // Declares NAME.gain and the like; use is set.
  void (*declare)(tarn__declare *declare, const char *name, bool trained, tarn__norm_weights *weights);
  // sum = x + dropout(branch), and y, the norm of the sum. branch may be NULL.
  tarn__residual_out (*build)(tarn__graph *graph, tarn__tensor *x, tarn__tensor *branch, double dropout,
                              const tarn__norm_weights *weights);
} tarn__norm_entry;

// The rows of a side's token embedding.
typedef struct tarn__embedded {
  tarn__tensor *ids, *positions;
  tarn__param *table, *position_table;  // position_table: what the entry declared for this side, or NULL
  double scale, dropout;
  int64_t longest;   // above every position; 0: not known, because the graph is only planned
  const void *keys;  // of the scheme
} tarn__embedded;

// A position scheme.
typedef struct tarn__position_entry {
  tarn__part part;
  bool bounded;  // there are positions below model.max_length only
  bool reads;    // it looks at positions; else run->positions and those of embeddings are NULL
  // A table beside a side's embedding matrix, trained where that is; NULL: the scheme has none.
  tarn__param *(*declare)(tarn__declare *declare, const char *name, const tarn_config_model *model, bool trained);
  // The embedding of tokens, with what the scheme adds to it; NULL: nothing.
  tarn__tensor *(*embed)(tarn__graph *graph, const tarn__embedded *embedded);
  // Queries and keys, which are the first `columns` columns of x [rows, *] in heads of `head` columns, as the scheme
  // turns them by their positions (run->positions), in whole sequences and while decoding, where keys are cached
  // turned. NULL: it turns nothing.
  tarn__tensor *(*turn)(const tarn__block_run *run, tarn__tensor *x, int64_t columns, int64_t head);
  // What self-attention adds to the scores of pairs of tokens by their distance, written into the spec of whole
  // sequences and of a step of decoding. NULL: nothing.
  void (*bias)(const tarn__block_run *run, tarn__attention_spec *spec);
  // The same, learnt, from a table that all layers of a stack share, whose self-attentions have `heads` heads each: its
  // parameter, declared once a stack, and run->biases, which is made of it once a graph (as tarn__attention_with()
  // takes it). `causal`: keys are never after the query. NULL: there is none.
  tarn__param *(*declare_biases)(tarn__declare *declare, const void *keys, int64_t heads, bool trained);
  tarn__tensor *(*biases)(tarn__graph *graph, const void *keys, tarn__param *table, bool causal);
  // Vectors by distance, which queries are compared with and which are added to values (ops/relative_attention.h): how
  // far distances are told apart, and whether there are vectors for values, too. A mixer with pairs declares them in
  // each layer. NULL: there are none.
  int64_t (*relative)(const void *keys, bool *values);
  // Whether heads of a kind can be turned; site->path is the kind's. NULL where turn is.
  tarn_status (*check_heads)(const tarn__part_site *site, int64_t heads);
} tarn__position_entry;

// An activation: act(x weight^T + bias).
typedef struct tarn__activation_entry {
  tarn__part part;
  tarn__activation form;  // of products that are built elsewhere; without effect where `apply` is there
  tarn__tensor *(*build)(tarn__graph *graph, tarn__tensor *x, const tarn__linear_weights *weights);
  // Of one that has a number for each layer, or keys: a node of its own behind the product. The number, NULL: none; and
  // act(z), of experts' rows only as far as their offsets say (ops/route.h), NULL: of all.
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

// The entry of a use in a table's own structure.
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

// The key `heads`, which several mixers have, and its check: it divides d_model, and the position scheme can turn heads
// of that width where the mixer has queries and keys.
#define TARN__KEY_HEADS(structure, meaning)                                                                      \
  {                                                                                                              \
    "heads", TARN__KEY_INTEGER(structure, heads, 1, 1024), .value = "4", .help = meaning,                        \
                                                           .also = "attention_heads transformer-heads num_heads" \
  }
// The key `heads` of mixers that have heads only where cross-attention follows them.
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
// The key `epsilon` of norms; its least value is a normal number in the floats of kernels too.
#define TARN__KEY_EPSILON(structure, meaning)                                                                   \
  {                                                                                                             \
    "epsilon", TARN__KEY_REAL(structure, epsilon, 1e-30, 1),                                                    \
        .value = "1e-5", .help = meaning, .also = "eps layer_norm_epsilon layer_norm_eps norm_eps rms_norm_eps" \
  }
tarn_status tarn__heads_check(const tarn__part_site *site, int64_t heads);
// A key that is a width in tokens, which an encoder layer centres on the token: there it is odd.
tarn_status tarn__centred_check(const tarn__part_site *site, const char *key, int64_t width);

// The weights of one set.
typedef struct tarn__layer_weights {
  const tarn_kind *kind;
  const struct tarn__backskip_weights *backskip;  // parts/backskip.h; NULL: the layer has a true backward pass
  void *mixing;                                   // the mixer's own structure
  tarn__cross_weights cross;
  void *channels;  // the channel mixer's own structure
} tarn__layer_weights;

tarn__layer_weights *tarn__layer_declare(tarn__declare *declare);
void tarn__layer_build(const tarn__block_run *run, const tarn__layer_weights *weights, tarn__stream *stream);
// Numbers that a decoder layer keeps while decoding: of every target token, and of every source token. 0: nothing.
int64_t tarn__layer_cache_width(const tarn__layer_weights *weights, int64_t d_model);
int64_t tarn__layer_cross_width(const tarn__layer_weights *weights, int64_t d_model);
// Their type in a model of that type.
tarn__dtype tarn__layer_cache_dtype(const tarn__layer_weights *weights, tarn__dtype dtype);
// Numbers of the state that a layer can carry from sentence to sentence, where these are windows of one text; 0: none.
int64_t tarn__layer_state_width(const tarn__layer_weights *weights, int64_t d_model);
// Rows of its hypothesis that a token sees while decoding, its own counted; INT64_MAX: all.
int64_t tarn__layer_history(const tarn__layer_weights *weights);

// The two ends of every sublayer. enter returns the sublayer's input (normalised if pre-norm, and then the pending
// branch joins the stream in the same op); leave adds the sublayer's output to the stream.
tarn__tensor *tarn__stream_enter(tarn__graph *graph, tarn__stream *stream, const tarn__norm_weights *norm,
                                 tarn_norm order);
void tarn__stream_leave(tarn__graph *graph, tarn__stream *stream, tarn__tensor *branch, double dropout,
                        const tarn__norm_weights *norm, tarn_norm order);
// Shows the stream as it is behind a layer: with every branch added, if somebody wants to see it.
void tarn__stream_show(tarn__graph *graph, const tarn__stream *stream, tarn__shows *shows);
// Joins a pending branch, with a final norm if it has an entry, and returns the result.
tarn__tensor *tarn__stream_finish(tarn__graph *graph, tarn__stream *stream, const tarn__norm_weights *norm);

#endif
