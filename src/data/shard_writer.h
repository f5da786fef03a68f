// Writes a shard pair by pair, in memory that does not grow: ids and offsets wait in files beside the shard until the
// header can be written.
#ifndef TARN_DATA_SHARD_WRITER_H
#define TARN_DATA_SHARD_WRITER_H

#include <stdint.h>

#include "base/status.h"
#include "data/shard_index.h"
#include "tarn/vocab.h"

typedef struct tarn__shard_writer tarn__shard_writer;

// `target_vocab` may be the same as `source_vocab`. A `source_vocab` of NULL makes the shard of a text.
tarn_status tarn__shard_writer_open(tarn__shard_writer **writer, const char *prefix, const tarn_vocab *source_vocab,
                                    const tarn_vocab *target_vocab) TARN_CHECKED;

// Appends a pair of sentences without their ends, which are added; each has at least one id. The source of a text is
// not looked at.
tarn_status tarn__shard_writer_put(tarn__shard_writer *writer, const int32_t *source, int64_t source_length,
                                   const int32_t *target, int64_t target_length) TARN_CHECKED;

// Makes the rows of a text windows of a stream, before the first: no end of sentence is added to them, and their ids
// may hold it anywhere.
void tarn__shard_writer_continues(tarn__shard_writer *writer);

// Bytes that the file would have.
int64_t tarn__shard_writer_bytes(const tarn__shard_writer *writer);

// Says how long the text of a stream is, its line ends counted as one each.
void tarn__shard_writer_measure(tarn__shard_writer *writer, int64_t bytes, int64_t characters);

// Makes the rows of a text whole sentences that are packed together, before the first: the ids of a row hold the ends
// of its sentences but the last, which is added as ever.
void tarn__shard_writer_packs(tarn__shard_writer *writer);

// What is known of the rows of a text beside their tokens; what is not is NULL or 0. Arrays have one entry a row.
typedef struct tarn__shard_labels {
  const char *const *names;  // [classes], 2 .. TARN__SHARD_CLASSES_MOST of them: UTF-8 without control characters
  int32_t classes;
  const int32_t *labels;  // classes
  // In place of labels, one entry a token: the class of the word that begins at it, -1: none does.
  const int32_t *word_labels;
  const float *numbers;     // in place of classes
  const int32_t *segments;  // where second sentences begin; a row with two holds an end of sentence before it
} tarn__shard_labels;
// Gives them, after the last row; they are borrowed until the writer is closed. Where there are any, the rows that are
// put may hold ends of sentences (before second sentences); one is added to each, as ever.
void tarn__shard_writer_label(tarn__shard_writer *writer, const tarn__shard_labels *labels);

// Writes the file, atomically, and closes the writer, also on failure. At least one pair is needed.
tarn_status tarn__shard_writer_commit(tarn__shard_writer **writer) TARN_CHECKED;
// The same for a part of a set whose index will stand at the writer's path: the file is named after that, the number of
// the part (from 1) and its hash, and `entry` is what the index says of it. A file of that name has the same contents.
tarn_status tarn__shard_writer_commit_part(tarn__shard_writer **writer, tarn__index_entry *entry,
                                           int number) TARN_CHECKED;
void tarn__shard_writer_abort(tarn__shard_writer **writer);

#endif
