// A description as plain structures: config reads it, and all other code takes values from it. Its public interface is
// tarn/config.h. The keys, their ranges and their defaults, in brackets, are those of docs/configuration.md.
#ifndef TARN_DESCRIPTION_DESCRIPTION_H
#define TARN_DESCRIPTION_DESCRIPTION_H

#include <stdbool.h>
#include <stdint.h>

#include "tarn/config.h"
#include "tarn/score.h"

// The words of each choice, in addition to those of tarn/config.h: X(value, "word in the file", "meaning").
#define TARN_NORM_MAP(X)                                                                       \
  X(TARN_NORM_POST, "post", "y = Norm(x + f(x)): Vaswani et al. 2017, fairseq's default")      \
  X(TARN_NORM_PRE, "pre",                                                                      \
    "y = x + f(Norm(x)), and one more norm at the top of each stack "                          \
    "whose last layer is pre-norm, unless final_norm says otherwise")                          \
  X(TARN_NORM_NONE, "none", "y = x + f(x), no norm")                                           \
  X(TARN_NORM_B2T, "b2t",                                                                      \
    "post, and the layer's input is added once more before its last norm: "                    \
    "Takase et al. 2022")                                                                      \
  X(TARN_NORM_DEEPNORM, "deepnorm",                                                            \
    "y = Norm(alpha x + f(x)), and smaller first values of the branches, both set by the "     \
    "depths of the stacks: Wang et al. 2022")                                                  \
  X(TARN_NORM_FIXUP, "fixup",                                                                  \
    "y = x + a f(x + b), no norm, a and b one trained number each per branch, at first 1 and " \
    "0, and first values of the branches set by how many there are: Zhang et al. 2019")
#define TARN_FINAL_NORM_MAP(X)                                                                        \
  X(TARN_FINAL_NORM_AUTO, "auto", "where the highest layer of the pattern is pre-norm")               \
  X(TARN_FINAL_NORM_YES, "yes", "always, as torch.nn.Transformer has it behind post-norm layers too") \
  X(TARN_FINAL_NORM_NO, "no", "never")
#define TARN_GATE_MAP(X)                                                                      \
  X(TARN_GATE_NONE, "none", "f(x)")                                                           \
  X(TARN_GATE_SCALAR, "scalar",                                                               \
    "g f(x) with one number g per branch, trained unless the whole layer is frozen: ReZero, " \
    "Bachlechner et al. 2020")
#define TARN_EMBEDDINGS_MAP(X)                                                                       \
  X(TARN_EMBEDDINGS_NONE, "none", "encoder input, decoder input and output have a matrix each")      \
  X(TARN_EMBEDDINGS_DECODER, "decoder", "decoder input and output share one")                        \
  X(TARN_EMBEDDINGS_ENCODER_DECODER, "encoder_decoder", "encoder input and decoder input share one") \
  X(TARN_EMBEDDINGS_ENCODER_OUTPUT, "encoder_output", "encoder input and output share one")          \
  X(TARN_EMBEDDINGS_ALL, "all", "the three share one")
#define TARN_FROZEN_EMBEDDINGS_MAP(X)                                                       \
  X(TARN_FROZEN_EMBEDDINGS_NONE, "none", "all embeddings are trained")                      \
  X(TARN_FROZEN_EMBEDDINGS_ENCODER, "encoder", "the matrix of the encoder input is frozen") \
  X(TARN_FROZEN_EMBEDDINGS_DECODER, "decoder", "the matrix of the decoder input is frozen") \
  X(TARN_FROZEN_EMBEDDINGS_BOTH, "both", "the matrices of both inputs are frozen")
#define TARN_INIT_MAP(X)                                                                     \
  X(TARN_INIT_XAVIER, "xavier", "uniform in +-sqrt(6 / (inputs + outputs)), Glorot 2010")    \
  X(TARN_INIT_ORTHOGONAL, "orthogonal", "orthonormal rows or columns, Saxe et al. 2013")     \
  X(TARN_INIT_HADAMARD, "hadamard",                                                          \
    "orthonormal rows or columns from three rounds of random signs and a Hadamard "          \
    "transform, Yu et al. 2016; frozen, it takes the place of the matrix and costs d log d") \
  X(TARN_INIT_NORMAL, "normal", "normal with standard deviation sqrt(2 / (inputs + outputs)), Glorot 2010")
#define TARN_FROZEN_MAP(X)                                                                                          \
  X(TARN_FROZEN_NO, "no", "every parameter is trained")                                                             \
  X(TARN_FROZEN_YES, "yes", "every parameter keeps its random first value for ever")                                \
  X(TARN_FROZEN_MATRICES, "matrices",                                                                               \
    "the matrices, and the kernel of a light convolution, keep their random first values; norms, biases and gates " \
    "are trained, norms and biases from gain 1 and bias 0")
#define TARN_BACKSKIP_MAP(X)                                                                          \
  X(TARN_BACKSKIP_NONE, "none", "the true gradient")                                                  \
  X(TARN_BACKSKIP_IDENTITY, "identity", "the gradient at the output, as if the layer were not there") \
  X(TARN_BACKSKIP_FEEDBACK, "feedback", "the gradient at the output and a fixed random image of it")  \
  X(TARN_BACKSKIP_PREDICTOR, "predictor", "the gradient at the output and what a small network predicts")
#define TARN_OPTIMISER_MAP(X)                                                                      \
  X(TARN_OPTIMISER_ADAM, "adam", "Kingma and Ba 2015; weight decay is added to the gradient")      \
  X(TARN_OPTIMISER_ADAMW, "adamw", "Loshchilov and Hutter 2019; weight decay acts on the weights") \
  X(TARN_OPTIMISER_RIDGE, "ridge",                                                                 \
    "no steps: the output layer of a language model in closed form, from one pass over the data; all else is frozen")
#define TARN_SCHEDULE_MAP(X)                                                                                \
  X(TARN_SCHEDULE_INVERSE_SQRT, "inverse_sqrt", "lr * sqrt(warmup / n) after update n = warmup")            \
  X(TARN_SCHEDULE_COSINE, "cosine", "half a cosine from lr at the end of warm-up to min_lr at max_updates") \
  X(TARN_SCHEDULE_CONSTANT, "constant", "lr after warm-up")                                                 \
  X(TARN_SCHEDULE_LINEAR, "linear", "a line from lr at the end of warm-up to min_lr at max_updates")
// Number formats of the optimiser's moments.
#define TARN_MOMENTS_MAP(X)                                                                       \
  X(TARN_MOMENTS_FP32, "fp32", "4 bytes a number")                                                \
  X(TARN_MOMENTS_BF16, "bf16", "2 bytes, rounded up or down at random so that the mean is right") \
  X(TARN_MOMENTS_FP8, "fp8",                                                                      \
    "1 byte, rounded in the same way, with a scale for each block of 256; those of vectors in fp32")
// The number formats in which gradients are sent to other ranks: those of TARN_PRECISION_MAP.
#define TARN_REDUCE_MAP(X)                           \
  X(TARN_PRECISION_FP32, "fp32", "4 bytes a number") \
  X(TARN_PRECISION_BF16, "bf16", "2 bytes, rounded to nearest")
#define TARN_RECOMPUTE_MAP(X)                                                              \
  X(TARN_RECOMPUTE_NONE, "none", "keep what the backward pass needs")                      \
  X(TARN_RECOMPUTE_CHEAP, "cheap",                                                         \
    "keep products and sums, compute embeddings, norms, attention and convolutions again") \
  X(TARN_RECOMPUTE_BLOCK, "block", "keep one tensor a layer, compute the rest again")
#define TARN_CLOCK_MAP(X)                                                                  \
  X(TARN_CLOCK_WALL, "wall", "seconds that pass while the training steps run")             \
  X(TARN_CLOCK_CPU, "cpu",                                                                 \
    "processor seconds of the process in the training steps, divided by its threads: for " \
    "machines that others use too")
#define TARN_ARCHITECTURE_MAP(X)                                                                        \
  X(TARN_ARCHITECTURE_ENCODER_DECODER, "encoder-decoder",                                               \
    "a decoder that attends to what an encoder makes of a source: translation")                         \
  X(TARN_ARCHITECTURE_DECODER, "decoder", "a decoder alone, without cross-attention: a language model") \
  X(TARN_ARCHITECTURE_ENCODER, "encoder", "an encoder alone, whose tokens see the whole text: a masked language model")
#define TARN_POOL_MAP(X)                                                                                   \
  X(TARN_POOL_CLS, "cls", "of an encoder, the token <cls> in front of it")                                 \
  X(TARN_POOL_MEAN, "mean", "the mean of its tokens")                                                      \
  X(TARN_POOL_LAST, "last", "of a decoder, its last token, which has seen all; of a word, its last token") \
  X(TARN_POOL_FIRST, "first", "of a word, its first token")

// Of a model as a dynamical system: what is iterated, and in which numbers (docs/dynamics.md).
#define TARN_ITERATED_MAP(X)                                                                                   \
  X(TARN_ITERATED_AUTO, "auto", "a period if there is one, else the first recurrence, else the layers")        \
  X(TARN_ITERATED_PERIOD, "period", "the repeated layers of a stack that shares weights, any number of times") \
  X(TARN_ITERATED_LAYERS, "layers", "the layers of a stack, once, from the bottom to the top")                 \
  X(TARN_ITERATED_RECURRENCE, "recurrence", "a layer that reads its text token by token")
#define TARN_ITERATING_MAP(X)                                                             \
  X(TARN_ITERATING_FP32, "fp32", "states and perturbations in fp32, by the fast kernels") \
  X(TARN_ITERATING_DOUBLE, "double", "in double, by the reference kernels: about fifty times slower")

#define TARN_CHOICE_VALUE(value, word, text) value,
typedef enum tarn_norm { TARN_NORM_MAP(TARN_CHOICE_VALUE) TARN_NORM_COUNT } tarn_norm;
typedef enum tarn_final_norm { TARN_FINAL_NORM_MAP(TARN_CHOICE_VALUE) TARN_FINAL_NORM_COUNT } tarn_final_norm;
typedef enum tarn_gate { TARN_GATE_MAP(TARN_CHOICE_VALUE) TARN_GATE_COUNT } tarn_gate;
typedef enum tarn_embeddings { TARN_EMBEDDINGS_MAP(TARN_CHOICE_VALUE) TARN_EMBEDDINGS_COUNT } tarn_embeddings;
typedef enum tarn_frozen_embeddings {
  TARN_FROZEN_EMBEDDINGS_MAP(TARN_CHOICE_VALUE) TARN_FROZEN_EMBEDDINGS_COUNT
} tarn_frozen_embeddings;
typedef enum tarn_frozen { TARN_FROZEN_MAP(TARN_CHOICE_VALUE) TARN_FROZEN_COUNT } tarn_frozen;
typedef enum tarn_init { TARN_INIT_MAP(TARN_CHOICE_VALUE) TARN_INIT_COUNT } tarn_init;
typedef enum tarn_backskip_method { TARN_BACKSKIP_MAP(TARN_CHOICE_VALUE) TARN_BACKSKIP_COUNT } tarn_backskip_method;
typedef enum tarn_optimiser { TARN_OPTIMISER_MAP(TARN_CHOICE_VALUE) TARN_OPTIMISER_COUNT } tarn_optimiser;
typedef enum tarn_schedule { TARN_SCHEDULE_MAP(TARN_CHOICE_VALUE) TARN_SCHEDULE_COUNT } tarn_schedule;
typedef enum tarn_moments { TARN_MOMENTS_MAP(TARN_CHOICE_VALUE) TARN_MOMENTS_COUNT } tarn_moments;
typedef enum tarn_recompute { TARN_RECOMPUTE_MAP(TARN_CHOICE_VALUE) TARN_RECOMPUTE_COUNT } tarn_recompute;
typedef enum tarn_clock { TARN_CLOCK_MAP(TARN_CHOICE_VALUE) TARN_CLOCK_COUNT } tarn_clock;
typedef enum tarn_architecture { TARN_ARCHITECTURE_MAP(TARN_CHOICE_VALUE) TARN_ARCHITECTURE_COUNT } tarn_architecture;
typedef enum tarn_pool { TARN_POOL_MAP(TARN_CHOICE_VALUE) TARN_POOL_COUNT } tarn_pool;
typedef enum tarn_iterated { TARN_ITERATED_MAP(TARN_CHOICE_VALUE) TARN_ITERATED_COUNT } tarn_iterated;
typedef enum tarn_iterating { TARN_ITERATING_MAP(TARN_CHOICE_VALUE) TARN_ITERATING_COUNT } tarn_iterating;
#undef TARN_CHOICE_VALUE

enum {
  TARN_CONFIG_LAYERS = 2048,   // maximum of layers in a stack
  TARN_CONFIG_KINDS = 64,      // maximum of kinds
  TARN_CONFIG_SEEDS = 1000,    // maximum of seeds in train.seeds
  TARN_CONFIG_SETS = 16,       // maximum of scored sets
  TARN_CONFIG_KIND_NAME = 32,  // bytes of a kind's name with its zero byte
  TARN_CONFIG_SET_NAME = 48,   // bytes of a set's name with its zero byte
  TARN_CONFIG_HASH = 33        // bytes of a hash in hexadecimal with its zero byte
};

// A part of a layer or of the model: an entry of one of the program's tables of parts, and its keys. The entries and
// their keys are documented in docs/parts; tarn__part_word() and tarn__kind_number() read them.
struct tarn__part;
typedef struct tarn_part_use {
  const struct tarn__part *part;  // NULL: none, as with ffn: 0
  void *keys;                     // NULL: no keys
} tarn_part_use;

// Properties of the whole model.
typedef struct tarn_config_model {
  int64_t d_model;             // width of every layer's input and output; even with sinusoidal positions [512]
  tarn_norm norm;              // default of kinds.NAME.norm [post]
  tarn_part_use norm_type;     // default of kinds.NAME.norm_type [layer]
  tarn_part_use positions;     // [sinusoidal]
  int64_t max_length;          // maximum sentence length in tokens, including the end of sentence; training skips
                               // longer pairs and counts them, translation truncates longer sentences with a warning
                               // [1024]
  double dropout;              // default of model.embedding_dropout and of kinds.NAME.dropout; 0 <= p < 1 [0.1]
  double embedding_dropout;    // on the sum of embeddings and positions, encoder and decoder; 0 <= p < 1
                               // [model.dropout]
  tarn_embeddings embeddings;  // which matrices are shared; all, encoder_decoder and encoder_output need one vocabulary
                               // for both sides; a language model has none or decoder, an encoder alone none or
                               // encoder_output [decoder; of an encoder alone encoder_output]
  tarn_frozen_embeddings frozen_embeddings;  // input matrices that keep their initial values; the output layer's matrix
                                             // is always trained, so it cannot be shared with a frozen one [none]
  int64_t embedding_size;  // E of factorised embeddings (ALBERT: Lan et al. 2019): tokens, positions and segments have
                           // vectors of E numbers, whose sum, after its norm and dropout, is projected to d_model; an
                           // output shared with an input multiplies by the transposed factors; even, below d_model; 0:
                           // d_model, without a projection [0]
  double embedding_std;  // standard deviation of the initial embeddings, which are normal; for a separate output matrix
                         // it is 1 / sqrt(d_model); > 0 [1 / sqrt(their width)]
  bool embedding_scale;  // multiply input embeddings by the square root of their width [yes]
  bool output_bias;      // the output layer adds a trained bias to the logits, initially zero [no]; heads always have
                         // one
  int64_t output_rank;   // logits = B A x with A [rank, d_model] and B [vocabulary, rank]; 2 .. d_model, not with an
                         // output matrix shared with an input; 0: one matrix [0]
  int64_t output_mixtures;  // K of a mixture of softmaxes (Yang et al. 2018): p = sum_k pi_k softmax(W tanh(A_k x +
                            // a_k)), pi = softmax(C x); 2 .. 64; 0: one softmax of x itself [0]
  // Adaptive input (Baevski and Auli 2019) of every side: ids below the first cut-off are the first band, those from it
  // to below the second one the second band, and so on. Band b has vectors of floor(d_model / factor^b) numbers, b from
  // 0, and a projection to d_model. Increasing, above 0, below the vocabulary size, at most 7 [none: one band]
  const int64_t *adaptive_input_cutoff;
  int64_t adaptive_input_cutoffs;  // 0: none
  double adaptive_input_factor;    // 1 .. 65536; no band may have width 0 [4]
  // Adaptive softmax (Grave et al. 2017): one softmax over the words of the first band and one class for each other
  // band, and one softmax per other band over its words, of x projected to floor(d_model / factor^b) numbers. Same
  // ranges [none: one softmax]
  const int64_t *adaptive_softmax_cutoff;
  int64_t adaptive_softmax_cutoffs;  // 0: none
  double adaptive_softmax_factor;    // [4]
  double adaptive_softmax_dropout;   // on x, and on its projections; 0 <= p < 1 [0]
  // If the output shares its matrices with an input, the projections of its bands are the transposes of the input's too
  // [no]
  bool tie_adaptive_proj;
  // Whether a set of weights with the same name in both stacks is shared: R1 in the encoder and in the decoder. The
  // decoder's cross-attention is separate [no]
  bool share_stacks;
  tarn_part_use activation;        // of FFNs without a setting of their own [relu]
  tarn_architecture architecture;  // the stacks of the model; also implied by the sections encoder and decoder [from
                                   // them]
  int task;                        // number of the task (tarn_task_word()) [translation with encoder and decoder,
                                   // language-model of a decoder, masked-language-model of an encoder alone]
  int64_t segments;     // vectors that distinguish the first sentence of a row from the second, added to the embeddings
                        // of an encoder alone (BERT's token types); a row's second sentence has the last of two; 0:
                        // none [0]
  bool embedding_norm;  // a norm of model.norm_type on the sum of embeddings, positions and segments, before their
                        // dropout; with a source and a target each has its own [no]
  int64_t decoder_start;  // the first token read by the decoder of a translation or language model, by its id in the
                          // target vocabulary, such as the padding in Marian's models and <s> in LLaMA's; -1: the end
                          // of sentence, as in fairseq [-1]
} tarn_config_model;

// The tokens that a masked language model predicts, redrawn for each row in each epoch (docs/masked-models.md).
typedef struct tarn_config_masking {
  double share;      // fraction of a row's tokens, excluding special ones, that are masked; 0 < share <= 1 [0.15]
  double random;     // fraction of the masked tokens replaced by a random token, never a special one [0.1]
  double keep;       // fraction of them left unchanged; random + keep <= 1; the others become <mask> [0.1]
  bool whole_words;  // mask all tokens of a word or none [no]
} tarn_config_masking;

// The Levenshtein Transformer (Gu et al. 2019; docs/non-autoregressive.md).
typedef struct tarn_config_levenshtein {
  int64_t max_placeholders;  // most words inserted between two tokens at once [255]
  double beta;               // mixture factor: chance that a roll-in of the insertion policies is an empty sentence,
                             // where translation begins; else random words are left out of the reference [0]
} tarn_config_levenshtein;

// The head of a classifier or a regression model, above its body (docs/classification.md).
typedef struct tarn_config_head {
  tarn_pool pool;  // the vector that represents a row, or a word [cls of an encoder, last of a decoder; of words first
                   // and last]
  int64_t hidden;  // width of a hidden layer with tanh below the output layer; 0: none [0]
  double dropout;  // on the pooled vector and on the hidden layer; 0 <= p < 1 [model.dropout]
  const char *labels;  // distinct names of the classes, separated by bars, with a bar in a name doubled (so none may
                       // begin with one); NULL for regression, or if there is no data.train to take them from [those of
                       // data.train]
} tarn_config_head;

// Images and their patches (Dosovitskiy et al. 2021; docs/vision.md).
typedef struct tarn_config_image {
  int64_t patch;          // height and width of a patch in pixels, which divides those of an image [4]
  int64_t height, width;  // of an image in pixels; 0: unknown [those of data.train]
  int64_t channels;       // numbers of a pixel: 1 grey, 3 colour; 0: unknown [those of data.train]
} tarn_config_image;

// The replacement for the backward pass of a frozen layer (Shen et al. 2021; docs/backskipping.md).
typedef struct tarn_backskip {
  tarn_backskip_method method;  // not with a trained kind; in a decoder with an encoder only if the layer does not
                                // attend to it [none]
  // Updates 1, 1 + n, 1 + 2 n, .. compute and use the true backward pass, and log how well the replacement agrees with
  // it in direction; 0: never, which is not allowed for the predictor, because it learns from them [10]
  int64_t refresh;
} tarn_backskip;

// A kind of layer: a token mixer, then a channel mixer (FFN), each with its residual, norm and dropout.
typedef struct tarn_kind {
  char name[TARN_CONFIG_KIND_NAME];  // letters and underscores; not "layer", the prefix of the sets of bare uses, nor
                                     // "null"
  tarn_part_use mixer;               // token mixer; its keys are next to it in the kind [attention]
  tarn_part_use channel;             // key `ffn`: a width, or a map; part NULL for width 0: the layer has only its
                                     // token mixer [1024]
  bool residual;                     // no: y = f(x) instead of x + f(x), without norm and FFN, as layers of recurrent
                                     // language models are stacked [yes]
  tarn_frozen frozen;                // in the decoder it applies to mixer, cross-attention and FFN [no]
  tarn_init init;                    // of projection weights [xavier if frozen is no, else orthogonal]
  double init_gain;  // factor on the initial values of `init`, as in PyTorch's initialisers: for orthogonal weights
                     // every singular value is init_gain; not for biases, the kernel of a light convolution, W_rec, or
                     // a W_in with its own input_scaling; 0 < g <= 1000 [1]
  tarn_norm norm;    // [model.norm; pre for a layer without token mixer: y = x + FFN(Norm(x))]
  tarn_part_use norm_type;  // of the layer's norms, and of the stack's final norm if the layer is the top one
                            // [model.norm_type]
  tarn_gate gate;    // the gate of each branch; only with a residual, and not with norm fixup, which has its own factor
                     // [none]
  double gate_init;  // initial value of the gates; not 0 if the whole layer is frozen, as its branches would stay
                     // closed; -1000 .. 1000 [0]
  double dropout;    // on the output of mixer, cross-attention and FFN, before the residual sum [model.dropout]
  tarn_backskip backskip;
} tarn_kind;

// One position in a stack. `set` names the weights within the stack, so that a parameter is called encoder.layer3.… or
// encoder.R1.…; layers with equal `first` share weights.
typedef struct tarn_layer {
  int32_t kind;                    // index into tarn_config.kinds
  int32_t first;                   // index of the lowest layer that uses this set; its own index for the first use
  char set[TARN_CONFIG_SET_NAME];  // "layer3" for a bare use at depth 3 (1 is the bottom), "R1" for a named set
} tarn_layer;

typedef struct tarn_stack {
  tarn_layer *layers;  // from the bottom to the top
  int32_t count;       // 1 .. TARN_CONFIG_LAYERS; 0: the model has no such stack
  // The depths of the pattern to keep, from 1, without repetition. The other layers are removed; the rest keep the
  // names of their sets, so that weights trained without this key can be loaded (fairseq's encoder_layers_to_keep)
  // [all]
  const int64_t *layers_to_keep;
  int64_t keep_count;  // 0: all
  tarn_layer
      *pattern;   // the whole pattern: `layers`, and the removed ones. Its highest layer gives a norm behind the stack
  int32_t depth;  // its type, and with final_norm auto decides whether there is one
  tarn_final_norm final_norm;  // whether there is a norm behind the highest layer [auto]
  double layerdrop;  // probability that a training step skips a layer, drawn for every layer and batch; all run in
                     // validation and translation (Fan et al. 2020); 0 <= p < 1 [0]
  // Universal Transformer (Dehghani et al. 2019), for a pattern that repeats one sequence of sets: before each step the
  // sinusoids of the position and of the step's number are added [no]
  bool step_embeddings;
  // Adaptive computation time (Graves 2016): a token halts in the step in which the sum of its halting probabilities
  // exceeds this, and the output is the mean of its states weighted by them; 0: all tokens run all steps; 0 <= t < 1
  // [0]
  double act_threshold;
  double act_loss_weight;  // factor of the ponder cost in the loss: the mean over tokens of steps and remainder [0.01]
  // Transparent attention (Bapna et al. 2018), of a decoder behind an encoder: the cross-attention of each layer reads
  // its own trained mean of the embeddings and the outputs of all layers of the encoder [no]
  bool transparent_attention;
  // Funnel-Transformer (Dai et al. 2020): after these layers, from 1, ascending, the rows of a sentence are pooled, the
  // mean of two each; after layer upsample_after each of its rows is repeated, and the output before the first pooling
  // is added; 0: the output of the stack is pooled [none, 0]
  const int64_t *pool_after;
  int64_t pool_count;
  int64_t upsample_after;
  const char *reservoir;  // kind or named set that `place` calls a reservoir; NULL: the description has a pattern, or
                          // no reservoirs
} tarn_stack;

// Files, relative to the current folder. NULL if the key is not set.
typedef struct tarn_config_data {
  const char *vocab;            // of the source, and of both sides unless target_vocab is set
  const char *target_vocab;     // [vocab]
  const char *train;            // prefix of the shards written by `tarn prepare --output`
  const char *valid;            // prefix of the validation shards; NULL: no validation
  const char *valid_reference;  // raw target text, one sentence per line, for BLEU [the shard's target, detokenized]
} tarn_config_data;

// One entry of train.freeze: the named part is trained in the first `at` updates, and frozen from then on.
typedef struct tarn_freeze {
  const char *layers;  // prefix of parameter names: "encoder.layer3", "decoder.L1", "encoder.norm" (the final norm),
                       // "embeddings.source"; or "encoder", "decoder", "embeddings" for all of them
  int64_t at;          // at least 0
} tarn_freeze;

typedef struct tarn_config_train {
  int64_t seed;              // of initialisation, shuffling and dropout [1]
  const int64_t *seeds;      // runs to make one after the other, each with its seed in place of `seed` [none]
  int64_t seed_count;        // length of `seeds`; 0: one run with `seed`
  int64_t max_updates;       // stop after this many optimiser steps; 0: no limit [50000]
  int64_t max_epochs;        // stop after this many passes over the data; 0: no limit [0]
  double max_minutes;        // stop after this much training time, excluding validation and saving; 0: no limit [0]
  tarn_clock clock;          // the clock for training time: in max_minutes, the log and the result [wall]
  int64_t max_tokens;        // maximum of source tokens and of target tokens in a batch [4096]
  int64_t max_sentences;     // maximum of sentences in a batch; 0: no limit [0]
  int64_t accumulate;        // batches per update; gradients are summed over them [1]
  tarn_optimiser optimiser;  // [adam]
  double ridge;              // optimiser ridge: added to the diagonal of the summed products [1e-6]
  double lr;                 // learning rate at the end of warm-up [0.0005]
  double beta1, beta2;       // [0.9, 0.98]
  double eps;                // at least 1e-30, so that it is not 0 in fp32 [1e-8]
  double weight_decay;       // of every trained parameter, including biases and norms, as in PyTorch [0]
  tarn_schedule schedule;    // [inverse_sqrt]
  int64_t warmup;            // updates in which the rate rises linearly from 0 to lr [4000]
  double min_lr;             // lower bound of the rate after warm-up [0]
  double clip_norm;          // gradients with a larger L2 norm over all parameters are scaled down to it; 0: off [0]
  double label_smoothing;    // probability mass spread evenly over the vocabulary (PyTorch's definition) [0.1 for
                             // translation, else 0]
  tarn_precision precision;  // [fp32]
  // Of the optimiser's moments. bf16 and fp8 use stochastic rounding: a half and a quarter of the memory, different
  // results [fp32]
  tarn_moments moments;
  // Of gradients exchanged by ranks: bf16 halves the bytes and changes results; a single rank sends none [fp32]
  tarn_precision reduce;
  // Optimiser state sharding: each rank keeps the moments of only its own part of the parameters, updates that part,
  // and sends its new weights to the others (ZeRO stage 1: Rajbhandari et al. 2020, arXiv 1910.02054). Results are
  // bit-identical without it. A single rank has all parts [no]
  bool shard_optimiser;
  tarn_fp32 fp32;            // how products of precision fp32 are computed. All but exact need a processor with matrix
                             // tiles (Intel's AMX), also to resume [exact]
  tarn_recompute recompute;  // what the backward pass recomputes to save memory; results are bit-identical [none]
  int64_t log_every;         // updates between two lines of the log [50]
  bool tensorboard;          // also write the log's scores as event files for TensorBoard; does not affect results
                             // [yes]
  int64_t save_every;        // updates between two checkpoints; 0: only when validating and at the end [0]
  int64_t keep_last;         // numbered checkpoints kept in addition to best and last [5]
  int64_t average;   // at the end write the average of the last n numbered checkpoints; at most keep_last; 0: off [0]
  int64_t patience;  // stop after this many validations without a better metric; 0: off [0]
  int64_t threads;   // 0: all available to the process [0]
  // Compute the outputs of the frozen layers at the bottom of the encoder once for all training sentences and keep them
  // in the run directory. Needs frozen encoder embeddings, a frozen lowest layer, and no dropout in either; training is
  // bit-identical without it [no]
  bool cache_frozen;
  // For a language model with recurrent layers: the windows of a stream are read in order, in parallel tracks, and each
  // begins with the final recurrent states of the previous one; no gradient flows from window to window (truncated
  // backpropagation through time; docs/data.md) [no]
  bool carry_state;
  double core_watts;          // power of one busy core: energy is estimated as this times processor seconds if nothing
                              // measures it; 0: no estimate [0]
  double co2_per_kwh;         // grams of CO2 per kWh of the machine's electricity; 0: unknown [0]
  const char *init_from;      // run directory or checkpoint whose weights a new training run starts from; else they are
                              // random [none]
  const tarn_freeze *freeze;  // staged freezing, in the order of the file [none]
  int64_t freeze_count;
  int64_t autofreeze;  // updates between two tests of AutoFreeze, which freezes encoder layers from the bottom when
                       // their gradients change little (Liu et al. 2021); 0: off [0]
  double autofreeze_percentile;  // of the changes of all layers still trained; 0 .. 100 [50]
} tarn_config_train;

typedef struct tarn_config_valid {
  int64_t every;                 // updates between two validations; 0: at the end of every epoch [1000]
  bool bleu;                     // translate the validation sentences and score them [yes; no for language models]
  int64_t beam;                  // beam of that translation; 1: greedy [1]
  double length_penalty;         // of that translation; see tarn_config_translate [1]
  int64_t max_sentences;         // number of sentences translated, from the beginning; 0: all [0]
  bool at_start;                 // also validate the untrained model, at update 0; it is never the best one [no]
  int metric;                    // number of the measure for "best" and patience (tarn_measure_of()) [bleu if
                                 // valid.bleu; else nll, or accuracy of classes, or pearson of numbers]
  bool lowercase;                // BLEU of lower-cased text [no]
  tarn_bleu_tokenizer tokenize;  // [13a]
} tarn_config_valid;

// One entry of sets: sentences that are scored in addition to the validation data, on their own schedule, without
// influence on model selection. They are translated and scored according to valid. The log has their scores under the
// name of the set.
typedef struct tarn_config_scored_set {
  char name[TARN_CONFIG_KIND_NAME];  // letters, digits and underscores, beginning with a letter; none of the log's own
                                     // kinds
  const char *data;                  // prefix of the shards; required
  const char *reference;             // as data.valid_reference
  int64_t every;                     // updates between two scores; 0: at the end of every epoch [valid.every]
  bool bleu;                         // [valid.bleu]
  int64_t max_sentences;             // number of sentences translated, from the beginning; 0: all [0]
} tarn_config_scored_set;

// Lyapunov exponents of the model over its training (docs/dynamics.md), with the options of `tarn dynamics`. The model
// is iterated on some sentences before the first update, at intervals, and at the end; the log has the exponents.
typedef struct tarn_config_dynamics {
  const char *input;                // text file, one sentence per line; NULL: nothing is computed [none]
  int64_t sentences;                // sentences iterated, from the beginning of the file; 0: all [16]
  int64_t every;                    // updates between two computations; 0: at the end of every epoch [valid.every]
  int64_t iterations;               // 0: 1000 of a period, all layers, all tokens of a text [0]
  int64_t exponents;                // of each sentence, 1 .. 64 [1]
  tarn_iterating precision;         // [fp32]
  tarn_iterated map;                // [auto]
  int64_t first_layer, last_layer;  // as in tarn_dynamics_options; 0: detected [0]
  int64_t discard;                  // iterations excluded from the exponents; -1: half of them, or none for layers and
                                    // texts [-1]
} tarn_config_dynamics;

// Defaults of `tarn translate`; its options override them.
typedef struct tarn_config_translate {
  int64_t beam;           // 1: greedy [5]
  double length_penalty;  // score of a hypothesis: log-probability / length^length_penalty (fairseq's lenpen) [1]
  double max_len_a;       // a translation has at most max_len_a * source tokens + max_len_b tokens, and never more
  int64_t max_len_b;      // than model.max_length [1.2, 10]
  int64_t max_tokens;     // maximum of source tokens translated together [4096]
  int64_t min_length;     // minimum of tokens before the end of sentence; 0: a translation may be empty [1]
  // Whether a search ends as soon as `beam` hypotheses are finished, as in fairseq. If not, it ends when the best
  // running hypothesis, scored as it is, is no better than the worst of these, as in transformers by default [yes]
  bool early_stopping;
  bool allow_unk;  // whether translations may have the unknown token of the target's vocabulary [yes]
  // Of models that fill in masks (model.task: masked-translation), which have of the keys above max_tokens and
  // allow_unk:
  int64_t iterations;   // mask-predict's iterations over a sentence [10]
  int64_t length_beam;  // the likeliest lengths, of whose translations the best one is taken [5]
  // Of models that edit (model.task: levenshtein), which have iterations, max_tokens and allow_unk too:
  double placeholder_penalty;  // lowers the log-probability of inserting nothing between two tokens [0]
} tarn_config_translate;

struct tarn__config_memory;

// A whole description with every default filled in.
struct tarn_config {
  const char *name;  // the file's name, or the name given to tarn_config_parse(); for messages
  tarn_config_model model;
  tarn_stack encoder, decoder;
  tarn_kind *kinds;  // in the order of the file
  int32_t kind_count;
  tarn_config_data data;
  tarn_config_masking masking;
  tarn_config_levenshtein levenshtein;
  tarn_config_head head;
  tarn_config_image image;
  tarn_config_train train;
  tarn_config_valid valid;
  tarn_config_scored_set *sets;  // in the order of the file
  int32_t set_count;
  tarn_config_dynamics dynamics;
  tarn_config_translate translate;
  struct tarn__config_memory *memory;  // owns all strings and arrays above
};

#endif
