// What tasks with labels share: batches with labels, the rows that stand for sentences or words, the head above them,
// and the answers, of which measures need all.
#ifndef TARN_TASK_LABELLED_H
#define TARN_TASK_LABELLED_H

#include "task/task.h"

// The names of head.labels: separated by bars, a bar in a name is doubled. Zero-initialise or open; close accepts both.
typedef struct tarn__label_names {
  char **names;
  int32_t count;
  // Private.
  char *text;
} tarn__label_names;
// `labels` NULL: none. Fails with DATA for an empty name, or MEMORY.
tarn_status tarn__label_names_open(tarn__label_names *names, const char *labels) TARN_CHECKED;
void tarn__label_names_close(tarn__label_names *names);
// The place of each name among those of `labels`; -1: it is none of them. Of equal ones there the first counts.
tarn_status tarn__label_places(int32_t *places, const char *labels, const char *const *names,
                               int32_t count) TARN_CHECKED;
// The text of names, none of which begins with a bar: behind another name it would be taken for the end of that one.
// To be freed with tarn__free().
tarn_status tarn__label_names_join(char **labels, const char *const *names, int32_t count) TARN_CHECKED;

// The classes of a shard, the training set's. Fails as tarn__shard_open() does, or with DATA where it has none.
tarn_status tarn__labels_of_shard(char **labels, const char *prefix) TARN_CHECKED;

// The rows that stand for packed sentences: the first of each, or the last. The mean of a sentence has none.
void tarn__pooled_rows(int32_t *rows, const int32_t *offsets, int64_t sentences, tarn_pool pool);
// The rows that stand for the words of a sentence, which begin at tokens first[0 .. words-1] and of which the last one
// ends before token `end`: their first tokens, or their last ones.
void tarn__word_rows(int32_t *rows, const int32_t *first, int64_t words, int32_t end, tarn_pool pool);
// The token in front of each sentence: what a masked model has there, or a language model; -1: none. Fails with USAGE
// where the head reads a token that the vocabulary has not, `name` being its file.
tarn_status tarn__labelled_first(int32_t *first, const tarn_config *config, const tarn_vocab *vocab) TARN_CHECKED;

// For entries (task/task.h).
tarn_status tarn__labelled_batches(tarn__batcher_options *options, const tarn_config *config, const tarn__shard *shard,
                                   const tarn_vocab *vocab) TARN_CHECKED;
int64_t tarn__labelled_predictions(const tarn_config *config, int64_t rows, int64_t sentences);
tarn_status tarn__labelled_count(tarn__task_tally *tally, const tarn_config *config, const tarn__shard *shard,
                                 const tarn_vocab *vocab) TARN_CHECKED;
void tarn__labelled_tally(tarn__task_tally *tally, const tarn__batch *batch, const void *answers);
// Bytes that tarn__labelled_count() takes for a set.
size_t tarn__labelled_bytes(const tarn__shard *shard);
// The same: checks of a description but for head.pool, the matrices, the head of classes (labelled_head.c).
tarn_status tarn__labelled_resolve(tarn_config *config, const tarn__task_keys *keys) TARN_CHECKED;
tarn_status tarn__labelled_tables(const tarn__task_site *site, tarn__task_weights *weights) TARN_CHECKED;
tarn_status tarn__labelled_outputs(const tarn__task_site *site, tarn__task_weights *weights,
                                   int64_t outputs) TARN_CHECKED;
tarn_status tarn__labelled_classes(const tarn__task_site *site, tarn__task_weights *weights) TARN_CHECKED;
// What the output table reads: of rows that stand for sentences or words, and of any rows of states.
tarn__tensor *tarn__labelled_pooled(tarn__graph *graph, const tarn__task_loss *from);
tarn__tensor *tarn__labelled_input(tarn__graph *graph, tarn__tensor *states, const tarn__task_weights *weights);
tarn__tensor *tarn__labelled_class_loss(tarn__graph *graph, const tarn__task_loss *from);

// The answers that were tallied, in the memory of the tally.
struct tarn__agreement;
void tarn__labelled_answers(struct tarn__agreement *agreement, const tarn__task_tally *tally);

#endif
