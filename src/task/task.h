// Tasks: what a model learns. An entry defines the stacks of layers and the sides of the data they read, the parameters
// besides the layers, the loss, the measures and the sums they are computed from, the checks of a description, and the
// uses of the models.
#ifndef TARN_TASK_TASK_H
#define TARN_TASK_TASK_H

#include "base/status.h"
#include "data/batch.h"
#include "description/description.h"
#include "parts/block.h"
#include "tarn/classify.h"
#include "tarn/measure.h"
#include "tarn/vocab.h"
#include "task/measure_entry.h"
#include "task/task_list.h"

// The keys of a description as seen by an entry's checks; the file itself belongs to the reader.
typedef struct tarn__task_keys {
  const void *root;
  // Fails, reporting the line of the key, or of the nearest map above it if the key has its default.
  tarn_status (*fail)(const void *root, const char *key, const char *text);
  bool (*given)(const void *root, const char *key);
} tarn__task_keys;

// The uses of a model.
typedef enum tarn__use {
  TARN__USE_TRANSLATE,
  TARN__USE_SCORE_TEXT,
  TARN__USE_CONTINUE_TEXT,
  TARN__USE_LABEL
} tarn__use;

// How a model translates, which determines its engine (decode/engine.h).
typedef enum tarn__decoding {
  TARN__DECODING_TOKENS,  // token by token: beam search
  TARN__DECODING_MASKS,   // iterations over whole sentences that fill in masks: mask-predict
  TARN__DECODING_EDITS,   // iterations that delete and insert: the Levenshtein Transformer
  TARN__DECODING_COUNT
} tarn__decoding;

// Sections of a description that only some tasks have.
typedef enum tarn__task_section {
  TARN__TASK_MASKING,
  TARN__TASK_HEAD,
  TARN__TASK_IMAGE,
  TARN__TASK_LEVENSHTEIN,
  TARN__TASK_SECTIONS
} tarn__task_section;

enum { TARN__TASK_TEXT = 160 };

// The sides of a batch, and the stacks of layers that a description may have.
typedef enum tarn__side { TARN__SIDE_SOURCE, TARN__SIDE_TARGET, TARN__SIDES } tarn__side;
typedef enum tarn__stack_id { TARN__STACK_ENCODER, TARN__STACK_DECODER, TARN__STACKS } tarn__stack_id;

// A stack of a task's models, which reads one side. The loss is computed from the output of the last one.
typedef struct tarn__task_stack {
  tarn__stack_id id;
  tarn__side side;
  bool causal;   // a token sees only the preceding ones
  bool attends;  // its layers attend to the output of the previous stack, if their mixers can
  bool prefix;   // it is causal, and its sentences are a source, all of which sees itself, and then a target
  bool bottom;   // the outputs of its frozen bottom may be cached (train.cache_frozen)
} tarn__task_stack;

// The words of a side or of the output in bands of ids, frequent ones first; later bands have narrower vectors
// (adaptive input and adaptive softmax).
enum { TARN__BANDS = 8 };
typedef struct tarn__bands {
  int count;                       // 0: one table has all words
  int64_t first[TARN__BANDS + 1];  // band b has the ids first[b] .. first[b + 1] - 1
  // [words, width]. The first table of an output, and of an input that shares its tables with it, has count - 1
  // additional rows, after those of its words: the classes of the other bands.
  tarn__param *table[TARN__BANDS];
  // For an input [d_model, width], for an output [width, d_model]; the first band of an output has none.
  tarn__param *projection[TARN__BANDS];
  tarn__param *bias[TARN__BANDS];  // for an output, [1, rows of the table], or NULL
  bool transposed;                 // the projections of an output are those of an input
  double dropout;                  // for an output
} tarn__bands;

// The parameters of a model besides its layers. Pointers are equal if a matrix is shared; the output's parameters are
// trained. Names declared for the output begin with "output", all others with "embeddings".
typedef struct tarn__task_weights {
  tarn__param *source_table, *target_table;  // embeddings of the sides; NULL: no stack reads the side
  // [width of the embeddings, bytes of a patch] of images, whose products are added to the embeddings of the target;
  // NULL: its rows are no patches.
  tarn__param *patches;
  // Factorised embeddings: projections from the width of each table to d_model; equal if the tables are. Without a
  // weight the table has that width.
  tarn__linear_weights source_projection, target_projection;
  // With vocabularies in bands; the tables above and below are then those of the first bands.
  tarn__bands source_bands, target_bands, output_bands;
  tarn__param *output_table;
  // If a factorised table is also the output's: its projection, [d_model, embedding_size], by which the states are
  // multiplied before output_table. Else NULL.
  tarn__param *output_factor;
  // Low-rank output layer: [output_rank, d_model]; output_table is applied to the states times its transpose. NULL: to
  // the states.
  tarn__param *output_in;
  tarn__param *output_bias;  // [1, target_vocab], or NULL
  // A mixture of K softmaxes: output_table is applied to tanh(latent x), K vectors of its width, without output_in and
  // output_factor; prior x [K, d_model] are the logits of the softmaxes. NULL: one softmax.
  tarn__linear_weights latent;
  tarn__param *prior;
  // A head between the states and the output table: a layer of d_model with an activation, and a norm.
  tarn__linear_weights dense;
  tarn__norm_weights norm;
  // Models that edit sentences: the matrices of the deletion policy [2, d_model] and of the placeholder policy
  // [max_placeholders + 1, 2 d_model].
  tarn__param *deletion, *placeholders;
  tarn__param *lengths;  // [model.max_length, d_model] of a predicted length (task/lengths.h), or NULL
  // Classifiers: the representation of a sentence, and the dropout on it.
  tarn_pool pool;
  double dropout;
} tarn__task_weights;

// Arguments of an entry's declarations.
typedef struct tarn__task_site {
  tarn__declare *declare;
  const tarn_config_model *model;
  const tarn_config_head *head;
  const tarn_config_image *image;
  const tarn_config_levenshtein *levenshtein;
  int64_t source_vocab, target_vocab;
} tarn__task_site;

// A loss to be appended to a graph.
typedef struct tarn__task_loss {
  tarn__tensor *states;      // [rows of the side that it reads, d_model] the output of the last stack
  tarn__tensor *offsets;     // of that side's sentences
  tarn__tensor *memory;      // [rows of its side, d_model] the output of the stack before the last; NULL: there is none
  const tarn__batch *batch;  // ids NULL: the graph is only planned
  const tarn__task_weights *weights;
  double smoothing;
  double grad_scale;  // 1 / predictions of the whole update; ignored if the graph is only planned
  // Appends the last stack again, for other sentences of its side, which attend to what those of the batch attend to,
  // one by one; returns its output. ids I32 [1, rows->rows]: what a node computes in place of rows->ids; NULL: those.
  tarn__tensor *(*read)(tarn__graph *graph, const struct tarn__task_loss *from, const tarn__packed *rows,
                        tarn__tensor *ids);
  const void *reader;  // of `read`
  // For measures that need more than sums of the loss: the model's answers, one row per prediction, whose values are
  // passed to the entry's `tally`. NULL: not needed.
  tarn__tensor **answers;
} tarn__task_loss;

// What has labels: nothing, sentences (or pairs of them), or the words of sentences.
typedef enum tarn__labelled { TARN__LABELLED_NOTHING, TARN__LABELLED_SENTENCES, TARN__LABELLED_WORDS } tarn__labelled;

typedef struct tarn__task {
  const char *name;    // "translation"
  const char *model;   // "a translation model"
  const char *models;  // "translation models (models with an encoder and a decoder)"
  tarn__learns task;   // its name in a description
  tarn_architecture architecture;
  bool named;   // a model of that architecture learns it only if model.task names it
  bool source;  // its data are pairs of a source and a target; else a text, which is the target
  int stack_count;
  tarn__task_stack stacks[TARN__STACKS];  // from the first to the last
  const char *other_stacks;               // advice for a description with other stacks
  bool segments;                          // its rows may have two sentences, which model.segments distinguishes
  bool head;                              // its output always has parameters besides the output table
  tarn__labelled labelled;                // what has labels, if no words are predicted
  double label_smoothing;                 // default of train.label_smoothing
  bool readout;             // its output layer may be computed by regression from the states (train.optimiser: ridge)
  unsigned uses;            // set of tarn__use (1 << use)
  tarn__decoding decoding;  // of tasks that translate
  const tarn_verb *verb;    // for tasks with labels: the verb for predicting them
  unsigned embeddings;      // set of tarn_embeddings: allowed values of model.embeddings
  unsigned sections;        // set of tarn__task_section: sections of a description specific to it
  unsigned keeps;           // set of tarn__kept (1 << kept): what its evaluations keep, which determines its measures
  // Declares the matrices besides the layers, in the order of checkpoints: those shared by inputs and output, and,
  // after the tables of positions, the other parameters of the output.
  tarn_status (*declare_tables)(const tarn__task_site *site, tarn__task_weights *weights) TARN_CHECKED;
  tarn_status (*declare_output)(const tarn__task_site *site, tarn__task_weights *weights) TARN_CHECKED;
  // The input of the output table, from states.
  tarn__tensor *(*output_input)(tarn__graph *graph, tarn__tensor *states, const tarn__task_weights *weights);
  // The same for tasks whose sentences have labels: one row per sentence, from states, offsets and batch.
  tarn__tensor *(*pooled_input)(tarn__graph *graph, const tarn__task_loss *from);
  // Appends the loss: F64 [1, 2], sums over a batch of the loss, which training minimises, and of the watched measure.
  tarn__tensor *(*loss)(tarn__graph *graph, const tarn__task_loss *from);
  // The token before each sentence of whole rows; -1: none. NULL: none.
  tarn_status (*first)(int32_t *first, const tarn_config *config, const tarn_vocab *target) TARN_CHECKED;
  // The form of its batches for a data set: sets `rows` and `finish`. NULL: each row predicts the next one.
  tarn_status (*batches)(tarn__batcher_options *options, const tarn_config *config, const tarn__shard *shard,
                         const tarn_vocab *target) TARN_CHECKED;
  // Maximum number of predictions in a batch of `rows` target rows in `sentences` sentences; NULL: one per row.
  int64_t (*most_predictions)(const tarn_config *config, int64_t rows, int64_t sentences);
  bool edits;  // its batches have sentences without placeholders, too (tarn__batch.kept)
  // The measure that shows whether training goes wrong. diverged() returns whether a value of it, a mean over
  // predictions, shows divergence, and sets `is` to its description: "%.4g nats a token, over ...,".
  tarn__metric watched;
  bool (*diverged)(char is[TARN__TASK_TEXT], double value, int64_t words);
  // Adds data of a batch that measures need in addition to the sums of its loss, from the answers of `loss`; NULL:
  // none.
  void (*tally)(tarn__task_tally *tally, const tarn__batch *batch, const void *answers);
  // Collects data of a set that measures need in addition to its batches; NULL: none. Sentences with a side of more
  // than model.max_length tokens are skipped.
  tarn_status (*count)(tarn__task_tally *tally, const tarn_config *config, const tarn__shard *shard,
                       const tarn_vocab *target) TARN_CHECKED;
  // Fills in defaults that depend on the task, and checks keys that only some tasks have.
  tarn_status (*resolve)(tarn_config *config, const tarn__task_keys *keys);
} tarn__task;

// The entries of a task, one for each architecture that learns it; NULL-terminated.
#define TARN__TASK_ENTRIES(NAME, entries, word, text) extern const tarn__task *const tarn__tasks_##entries[];
TARN__TASK_LIST(TARN__TASK_ENTRIES)
#undef TARN__TASK_ENTRIES

// The entries of each task (task_table.c). The first one of an architecture is its default task.
extern const tarn__task *const *const tarn__task_table[];
extern const int tarn__task_count;

// Entry number `index`; NULL after the last one.
const tarn__task *tarn__task_at(int index);
// The default task of an architecture; NULL: there is no entry.
const tarn__task *tarn__task_usual(tarn_architecture architecture);
// The task of a description, from its architecture and model.task; NULL: none.
const tarn__task *tarn__config_task(const tarn_config *config);
// "an encoder alone" and so on.
const char *tarn__architecture_text(tarn_architecture architecture);

// The default task of models with these stacks (a set of 1 << tarn__stack_id); NULL: none.
const tarn__task *tarn__task_with(unsigned stacks);
// If that is NULL: a stack that would have to be added.
tarn__stack_id tarn__task_missing(unsigned stacks);
// A stack of the task's models; NULL: they have none of that id.
const tarn__task_stack *tarn__task_stack_of(const tarn__task *task, tarn__stack_id id);
// Whether a stack of the task's models reads the side, and how many sides they read.
bool tarn__task_reads(const tarn__task *task, tarn__side side);
int tarn__task_sides(const tarn__task *task);
// The stack that may have a frozen bottom; NULL: none.
const tarn__task_stack *tarn__task_bottom(const tarn__task *task);
// "none, encoder_decoder or encoder_output": the words of model.embeddings in a set that the task's models may have.
void tarn__task_embeddings(char text[TARN__TASK_TEXT], const tarn__task *task, unsigned among);
// The layers of a stack in a description, and the name of its section, with which names of parameters begin.
const tarn_stack *tarn__config_stack(const tarn_config *config, tarn__stack_id id);
const char *tarn__stack_name(tarn__stack_id id);
// Whether a norm stands behind the highest layer of a stack.
bool tarn__config_final_norm(const tarn_config *config, tarn__stack_id id);
// The parts of a model besides its layers, by number 0 .. TARN__TASK_PARTS-1: embeddings, learned positions, segments,
// norms of their sums, the projection of patches, and the parameters of the output layer besides the output table.
// False: it has no such part of its own.
enum { TARN__TASK_PARTS = 10 };
typedef struct tarn__task_part {
  const char *name;  // prefix of the names of its parameters: "embeddings.source"
  bool trained;
} tarn__task_part;
bool tarn__task_part_at(const tarn_config *config, int index, tarn__task_part *part);

// Whether a stack has a layer of a kind.
bool tarn__stack_has(const tarn_stack *stack, const tarn_config *config, const tarn_kind *kind);
// Whether layers of a kind attend to the output of another stack, as they do in all stacks that attend.
bool tarn__config_crosses(const tarn_config *config, const tarn_kind *kind);

// Fails with USAGE, in a line that begins with `path` (NULL: none), unless models of the description have that use.
tarn_status tarn__task_require(const tarn_config *config, tarn__use use, const char *path) TARN_CHECKED;

// The same for predicting labels by a verb; NULL: by any.
tarn_status tarn__task_require_verb(const tarn_config *config, const char *verb, const char *path) TARN_CHECKED;

// Whether a task has a measure.
bool tarn__task_has(const tarn__task *task, int metric);
// Computes the measures of a task from the sums over all batches of a set, whose loss must be finite; the elements of
// other measures are unchanged.
tarn_status tarn__task_scores(double scores[TARN_MEASURES], const tarn__task *task,
                              const tarn__task_tally *tally) TARN_CHECKED;

// The token that the description's task puts before each sentence; -1: none.
tarn_status tarn__task_first(int32_t *first, const tarn_config *config, const tarn_vocab *target) TARN_CHECKED;
// Sets the form of the batches of the description's task in options that are otherwise filled in.
tarn_status tarn__task_batches(tarn__batcher_options *options, const tarn_config *config, const tarn__shard *shard,
                               const tarn_vocab *target) TARN_CHECKED;
// Completes a batch that has the most rows and sentences, for plans: sets the most predictions, and with them `kept`.
void tarn__task_largest(tarn__batch *batch, const tarn_config *config);

// Whether a kind of decoding has an option: "beam", as in the section `translate` and in tarn_translator_options. If
// not, `text` becomes "a translation model has no iterations; its options are beam, ...", for the models of an entry.
bool tarn__decoding_has(char text[2 * TARN__TASK_TEXT], const tarn__task *task, const char *option);
// Whether the task's decoder reads whole sentences, and not only the preceding tokens.
bool tarn__task_reads_whole(const tarn__task *task);

// Resolves and checks a description by its task. Fails if it names a measure that the task lacks, listing those that it
// has.
tarn_status tarn__task_resolve(tarn_config *config, const tarn__task_keys *keys) TARN_CHECKED;
#endif
