// Tasks: what a model learns. An entry says which stacks of layers read which sides of the data, what its models have
// beside their layers, the loss, the measures and the sums they come from, what a description of one must look like,
// and what its models are used for.
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

// The keys of a description as an entry's checks see them: the file is the reader's affair.
typedef struct tarn__task_keys {
  const void *root;
  // Fails with the line of the key, or of the nearest map above it where the key has its default.
  tarn_status (*fail)(const void *root, const char *key, const char *text);
  bool (*given)(const void *root, const char *key);
} tarn__task_keys;

// What a model is used for.
typedef enum tarn__use {
  TARN__USE_TRANSLATE,
  TARN__USE_SCORE_TEXT,
  TARN__USE_CONTINUE_TEXT,
  TARN__USE_LABEL
} tarn__use;

// Sections of a description that only some tasks have.
typedef enum tarn__task_section { TARN__TASK_MASKING, TARN__TASK_HEAD, TARN__TASK_SECTIONS } tarn__task_section;

enum { TARN__TASK_TEXT = 160 };

// The sides of a batch, and the stacks of layers that a description may have.
typedef enum tarn__side { TARN__SIDE_SOURCE, TARN__SIDE_TARGET, TARN__SIDES } tarn__side;
typedef enum tarn__stack_id { TARN__STACK_ENCODER, TARN__STACK_DECODER, TARN__STACKS } tarn__stack_id;

// A stack of a task's models, which reads one side. The output of the last one is what the loss is computed from.
typedef struct tarn__task_stack {
  tarn__stack_id id;
  tarn__side side;
  bool causal;   // a token sees those before it only
  bool attends;  // its layers attend to the output of the stack before it, where their mixers do
  bool bottom;   // the outputs of its frozen bottom may be computed once for all (train.cache_frozen)
} tarn__task_stack;

// The words of a side or of the output in bands of ids, the frequent ones first, whose vectors get narrower (adaptive
// input and adaptive softmax).
enum { TARN__BANDS = 8 };
typedef struct tarn__bands {
  int count;                       // 0: one table has all words
  int64_t first[TARN__BANDS + 1];  // band b has the ids first[b] .. first[b + 1] - 1
  // [words, width]; the first of an output, and of the input that it shares its tables with, has count - 1 rows more,
  // behind those of its words: the classes of the other bands.
  tarn__param *table[TARN__BANDS];
  // Of an input [d_model, width], of an output [width, d_model]; the first of an output has none.
  tarn__param *projection[TARN__BANDS];
  tarn__param *bias[TARN__BANDS];  // of an output, [1, rows of the table], or NULL
  bool transposed;                 // the projections of an output are those of an input
  double dropout;                  // of an output
} tarn__bands;

// What a model has beside its layers. Equal pointers where a matrix is shared; what the output has is trained. Names of
// what is declared for the output begin with "output", all others with "embeddings".
typedef struct tarn__task_weights {
  tarn__param *source_table, *target_table;  // embeddings of the sides; NULL: no stack reads the side
  // Of factorised embeddings: from the width of each table to d_model; the same where the table is. Without a weight:
  // the table has that width.
  tarn__linear_weights source_projection, target_projection;
  // Where words are in bands; the tables above and below are those of the first bands.
  tarn__bands source_bands, target_bands, output_bands;
  tarn__param *output_table;
  // Where a factorised table is the output's too: its projection, [d_model, embedding_size]; output_table reads the
  // states times it. NULL: it does not.
  tarn__param *output_factor;
  // Low-rank output layer: [output_rank, d_model]; output_table reads the states times its transpose. NULL: it reads
  // the states.
  tarn__param *output_in;
  tarn__param *output_bias;  // [1, target_vocab], or NULL
  // Of a mixture of K softmaxes: tanh(latent x) is what the output table reads, K vectors of its width, without
  // output_in and output_factor; prior x [K, d_model] are the logits of the softmaxes. NULL: there is one.
  tarn__linear_weights latent;
  tarn__param *prior;
  // A head between the states and the output table: a layer of d_model with an activation, and a norm.
  tarn__linear_weights dense;
  tarn__norm_weights norm;
  // Of classifiers: what stands for a sentence, and the dropout on it.
  tarn_pool pool;
  double dropout;
} tarn__task_weights;

// Where an entry declares them.
typedef struct tarn__task_site {
  tarn__declare *declare;
  const tarn_config_model *model;
  const tarn_config_head *head;
  int64_t source_vocab, target_vocab;
} tarn__task_site;

// A loss to be appended to a graph.
typedef struct tarn__task_loss {
  tarn__tensor *states;      // [rows of the side that it reads, d_model] the output of the last stack
  tarn__tensor *offsets;     // of that side's sentences
  const tarn__batch *batch;  // ids NULL: the graph is only planned
  const tarn__task_weights *weights;
  double smoothing;
  double grad_scale;  // 1 / predictions of the whole update; of no account where the graph is only planned
  // Where measures need more than sums of the loss: what the model answers, a row a prediction, of which the entry's
  // `tally` is given the values. NULL: nobody asks for it.
  tarn__tensor **answers;
} tarn__task_loss;

// What has labels: nothing, sentences (or pairs of them), or the words of sentences.
typedef enum tarn__labelled { TARN__LABELLED_NOTHING, TARN__LABELLED_SENTENCES, TARN__LABELLED_WORDS } tarn__labelled;

typedef struct tarn__task {
  const char *name;    // "translation"
  const char *model;   // "a translation model"
  const char *models;  // "translation models (models with an encoder and a decoder)"
  tarn__learns task;   // what it is called in a description
  tarn_architecture architecture;
  bool source;  // its data are pairs of a source and a target; else they are a text, which is the target
  int stack_count;
  tarn__task_stack stacks[TARN__STACKS];  // from the first to the last
  const char *other_stacks;               // what to do where a description has others
  bool segments;                          // its rows may have two sentences, which model.segments tells apart
  bool head;                              // its output has parameters beside the output table, whatever the keys say
  tarn__labelled labelled;                // what has labels, where no words are predicted
  double label_smoothing;                 // of its trainings where train.label_smoothing is not given
  bool readout;           // its output layer may be computed by regression from the states (train.optimiser: ridge)
  unsigned uses;          // set of tarn__use (1 << use)
  const tarn_verb *verb;  // of tasks with labels: what telling them is called
  unsigned embeddings;    // set of tarn_embeddings: what of model.embeddings its models may have
  unsigned sections;      // set of tarn__task_section: the sections of a description that are its own
  unsigned keeps;         // set of tarn__kept (1 << kept): what its evaluations keep, from which its measures follow
  // The matrices beside the layers, in the order of checkpoints: those that inputs and output share, and, behind the
  // tables of positions, what else the output has.
  tarn_status (*declare_tables)(const tarn__task_site *site, tarn__task_weights *weights) TARN_CHECKED;
  tarn_status (*declare_output)(const tarn__task_site *site, tarn__task_weights *weights) TARN_CHECKED;
  // What the output table reads of states.
  tarn__tensor *(*output_input)(tarn__graph *graph, tarn__tensor *states, const tarn__task_weights *weights);
  // The same of tasks whose sentences have labels: a row a sentence, from states, offsets and batch.
  tarn__tensor *(*pooled_input)(tarn__graph *graph, const tarn__task_loss *from);
  // Appends the loss: F64 [1, 2], sums over a batch of the loss, which training minimises, and of the watched measure.
  tarn__tensor *(*loss)(tarn__graph *graph, const tarn__task_loss *from);
  // The token in front of each sentence of whole rows; -1: none, as where this is NULL.
  tarn_status (*first)(int32_t *first, const tarn_config *config, const tarn_vocab *target) TARN_CHECKED;
  // The form of its batches, of a set of data: sets `rows` and `finish`. NULL: each row predicts the next one.
  tarn_status (*batches)(tarn__batcher_options *options, const tarn_config *config, const tarn__shard *shard,
                         const tarn_vocab *target) TARN_CHECKED;
  // Most predictions of a batch of `rows` target rows in so many sentences; NULL: one a row.
  int64_t (*most_predictions)(const tarn_config *config, int64_t rows, int64_t sentences);
  // The measure that shows whether a training goes wrong. diverged() says whether a value of it, a mean over
  // predictions, is that of a model that has diverged, and in `is` what to say of it: "%.4g nats a token, over ...,".
  tarn__metric watched;
  bool (*diverged)(char is[TARN__TASK_TEXT], double value, int64_t words);
  // Adds what measures need of a batch beside the sums of its loss, from the answers that `loss` gave; NULL: nothing.
  void (*tally)(tarn__task_tally *tally, const tarn__batch *batch, const void *answers);
  // What measures need to know of a set of data beside its batches; NULL: nothing. Sentences with a side of more than
  // model.max_length tokens are left out.
  tarn_status (*count)(tarn__task_tally *tally, const tarn_config *config, const tarn__shard *shard,
                       const tarn_vocab *target) TARN_CHECKED;
  // Fills in defaults that depend on the task, and checks keys that only some tasks have.
  tarn_status (*resolve)(tarn_config *config, const tarn__task_keys *keys);
} tarn__task;

// The entries of a task, one for each architecture that learns it; NULL behind the last one.
#define TARN__TASK_ENTRIES(NAME, entries, word, text) extern const tarn__task *const tarn__tasks_##entries[];
TARN__TASK_LIST(TARN__TASK_ENTRIES)
#undef TARN__TASK_ENTRIES

// The registry: the entries of each task (task_table.c). Of those of an architecture the first is what its models learn
// where nothing else is said.
extern const tarn__task *const *const tarn__task_table[];
extern const int tarn__task_count;

// Entry number `index`; NULL behind the last one.
const tarn__task *tarn__task_at(int index);
// What models of an architecture learn where nothing else is said; NULL: there is no entry.
const tarn__task *tarn__task_usual(tarn_architecture architecture);
// The task of a description, from its architecture and model.task; NULL: there is none.
const tarn__task *tarn__config_task(const tarn_config *config);
// "an encoder alone" and so on.
const char *tarn__architecture_text(tarn_architecture architecture);

// What models with these stacks (a set of 1 << tarn__stack_id) learn where nothing else is said; NULL: there is none.
const tarn__task *tarn__task_with(unsigned stacks);
// Where it gives NULL: a stack that would have to be added.
tarn__stack_id tarn__task_missing(unsigned stacks);
// A stack of the task's models; NULL: they have none of that id.
const tarn__task_stack *tarn__task_stack_of(const tarn__task *task, tarn__stack_id id);
// Whether a stack of the task's models reads the side, and how many sides they read.
bool tarn__task_reads(const tarn__task *task, tarn__side side);
int tarn__task_sides(const tarn__task *task);
// The stack that may have a frozen bottom; NULL: there is none.
const tarn__task_stack *tarn__task_bottom(const tarn__task *task);
// "none, encoder_decoder or encoder_output": the words of model.embeddings among a set that the task's models may have.
void tarn__task_embeddings(char text[TARN__TASK_TEXT], const tarn__task *task, unsigned among);
// The layers of a stack in a description, and the name of its section, with which names of parameters begin.
const tarn_stack *tarn__config_stack(const tarn_config *config, tarn__stack_id id);
const char *tarn__stack_name(tarn__stack_id id);
// What a model has beside its layers, by number 0 .. TARN__TASK_PARTS-1: embeddings, learned positions, segments, their
// norm, and what the output layer has beside the output table. False: it has no such part of its own.
enum { TARN__TASK_PARTS = 8 };
typedef struct tarn__task_part {
  const char *name;  // what the names of its parameters begin with: "embeddings.source"
  bool trained;
} tarn__task_part;
bool tarn__task_part_at(const tarn_config *config, int index, tarn__task_part *part);

// Whether a layer of a stack is of a kind.
bool tarn__stack_has(const tarn_stack *stack, const tarn_config *config, const tarn_kind *kind);
// Whether layers of a kind attend to the output of another stack, which they do in all the stacks that attend.
bool tarn__config_crosses(const tarn_config *config, const tarn_kind *kind);

// Fails with USAGE unless models of the description are for that use, in a line that begins with `path` (NULL: none).
tarn_status tarn__task_require(const tarn_config *config, tarn__use use, const char *path) TARN_CHECKED;

// The same of telling labels under a verb's word; NULL: under any.
tarn_status tarn__task_require_verb(const tarn_config *config, const char *verb, const char *path) TARN_CHECKED;

// Whether a task has a measure.
bool tarn__task_has(const tarn__task *task, int metric);
// The measures of a task that follow from the batches of a set, all of them added, whose loss is finite; of the others
// the places stay as they are.
tarn_status tarn__task_scores(double scores[TARN_MEASURES], const tarn__task *task,
                              const tarn__task_tally *tally) TARN_CHECKED;

// The token that the description's task has in front of each sentence; -1: none.
tarn_status tarn__task_first(int32_t *first, const tarn_config *config, const tarn_vocab *target) TARN_CHECKED;
// The form of the batches of the description's task, which options have otherwise been filled in.
tarn_status tarn__task_batches(tarn__batcher_options *options, const tarn_config *config, const tarn__shard *shard,
                               const tarn_vocab *target) TARN_CHECKED;
int64_t tarn__task_most_predictions(const tarn_config *config, int64_t rows, int64_t sentences);

// Resolves and checks a description by its task. Fails where it asks for a measure that the task has not, and names
// those that it has.
tarn_status tarn__task_resolve(tarn_config *config, const tarn__task_keys *keys) TARN_CHECKED;
#endif
