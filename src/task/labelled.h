// Common code of tasks with labels: batches with labels, the rows that represent sentences or words, the head, and the
// answers, all of which the measures need.
#ifndef TARN_TASK_LABELLED_H
#define TARN_TASK_LABELLED_H

#include "task/task.h"

// The names of head.labels, separated by bars; a bar within a name is doubled. Zero-initialise or open; close accepts
// both.
typedef struct tarn__label_names {
  char **names;
  int32_t count;
  // Private.
  char *text;
} tarn__label_names;
// `labels` NULL: none. Fails with DATA for an empty name, or MEMORY.
tarn_status tarn__label_names_open(tarn__label_names *names, const char *labels) TARN_CHECKED;
void tarn__label_names_close(tarn__label_names *names);
// The index of each name in `labels`; -1: not found. Among duplicates in `labels` the first counts.
tarn_status tarn__label_places(int32_t *places, const char *labels, const char *const *names,
                               int32_t count) TARN_CHECKED;
// Joins names, none of which may begin with a bar, which could not be distinguished from the end of the previous name.
// Free the result with tarn__free().
tarn_status tarn__label_names_join(char **labels, const char *const *names, int32_t count) TARN_CHECKED;

// The classes of a shard, for the training set. Fails as tarn__shard_open() does, or with DATA if it has none.
tarn_status tarn__labels_of_shard(char **labels, const char *prefix) TARN_CHECKED;

// The rows that represent packed sentences: the first row of each, or the last. Not for mean pooling.
void tarn__pooled_rows(int32_t *rows, const int32_t *offsets, int64_t sentences, tarn_pool pool);
// The rows that represent the words of a sentence: their first tokens, or their last ones. Words begin at tokens
// first[0 .. words-1], and the last one ends before token `end`.
void tarn__word_rows(int32_t *rows, const int32_t *first, int64_t words, int32_t end, tarn_pool pool);
// The token before each sentence, as for a masked model or a language model; -1: none. Fails with USAGE if the head
// reads a token that the vocabulary, with file `name`, lacks.
tarn_status tarn__labelled_first(int32_t *first, const tarn_config *config, const tarn_vocab *vocab) TARN_CHECKED;

// Hooks of entries (task/task.h).
tarn_status tarn__labelled_batches(tarn__batcher_options *options, const tarn_config *config, const tarn__shard *shard,
                                   const tarn_vocab *vocab) TARN_CHECKED;
int64_t tarn__labelled_predictions(const tarn_config *config, int64_t rows, int64_t sentences);
tarn_status tarn__labelled_count(tarn__task_tally *tally, const tarn_config *config, const tarn__shard *shard,
                                 const tarn_vocab *vocab) TARN_CHECKED;
void tarn__labelled_tally(tarn__task_tally *tally, const tarn__batch *batch, const void *answers);
// Bytes that tarn__labelled_count() allocates for a set.
size_t tarn__labelled_bytes(const tarn__shard *shard);
// More hooks: checks of a description except head.pool, the matrices, the head of classes (labelled_head.c).
tarn_status tarn__labelled_resolve(tarn_config *config, const tarn__task_keys *keys) TARN_CHECKED;
// Parts of that for tasks with embeddings of their own: checks of the embeddings, and of all else.
tarn_status tarn__labelled_check_embeddings(const tarn_config *config, const tarn__task_keys *keys) TARN_CHECKED;
tarn_status tarn__labelled_check(tarn_config *config, const tarn__task_keys *keys) TARN_CHECKED;
tarn_status tarn__labelled_tables(const tarn__task_site *site, tarn__task_weights *weights) TARN_CHECKED;
tarn_status tarn__labelled_outputs(const tarn__task_site *site, tarn__task_weights *weights,
                                   int64_t outputs) TARN_CHECKED;
tarn_status tarn__labelled_classes(const tarn__task_site *site, tarn__task_weights *weights) TARN_CHECKED;
// The input of the output table: for rows that represent sentences or words, and for any rows of states.
tarn__tensor *tarn__labelled_pooled(tarn__graph *graph, const tarn__task_loss *from);
tarn__tensor *tarn__labelled_input(tarn__graph *graph, tarn__tensor *states, const tarn__task_weights *weights);
tarn__tensor *tarn__labelled_class_loss(tarn__graph *graph, const tarn__task_loss *from);

// The tallied answers, in the memory of the tally.
struct tarn__agreement;
void tarn__labelled_answers(struct tarn__agreement *agreement, const tarn__task_tally *tally);

#endif
