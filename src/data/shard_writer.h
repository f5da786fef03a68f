// Writes a shard pair by pair, in constant memory: ids and offsets wait in temporary files next to the shard until the
// header can be written.
#ifndef TARN_DATA_SHARD_WRITER_H
#define TARN_DATA_SHARD_WRITER_H

#include <stdint.h>

#include "base/status.h"
#include "data/image_cut.h"
#include "data/shard_index.h"
#include "tarn/vocab.h"

typedef struct tarn__shard_writer tarn__shard_writer;

// `target_vocab` may be the same as `source_vocab`. If `source_vocab` is NULL, the shard is that of a text.
tarn_status tarn__shard_writer_open(tarn__shard_writer **writer, const char *prefix, const tarn_vocab *source_vocab,
                                    const tarn_vocab *target_vocab) TARN_CHECKED;

// Appends a pair of sentences without their ends, which are added; each has at least one id. The source of a text is
// ignored.
tarn_status tarn__shard_writer_put(tarn__shard_writer *writer, const int32_t *source, int64_t source_length,
                                   const int32_t *target, int64_t target_length) TARN_CHECKED;

// Call before the first row: the rows of a text are windows of a stream. No end of sentence is added to them, and their
// ids may contain it anywhere.
void tarn__shard_writer_continues(tarn__shard_writer *writer);

// The bytes of the file if it were written now.
int64_t tarn__shard_writer_bytes(const tarn__shard_writer *writer);

// Sets the length of a stream's text, each line end counted as one.
void tarn__shard_writer_measure(tarn__shard_writer *writer, int64_t bytes, int64_t characters);

// Call before the first row: the rows of a text are packed whole sentences. The ids of a row contain the ends of its
// sentences except the last, which is added as usual.
void tarn__shard_writer_packs(tarn__shard_writer *writer);

// Call before the first row, in place of the functions for sentences: the rows are images of one size, which have
// classes (tarn__shard_writer_label()). The vocabulary is that of patches.
void tarn__shard_writer_images(tarn__shard_writer *writer, tarn__image_size size);
// Appends an image [height, width, channels].
tarn_status tarn__shard_writer_put_image(tarn__shard_writer *writer, const uint8_t *pixels) TARN_CHECKED;

// Properties of the rows of a text besides their tokens; absent ones are NULL or 0. Arrays have one entry per row.
typedef struct tarn__shard_labels {
  const char *const *names;  // [classes], 2 .. TARN__SHARD_CLASSES_MOST of them: UTF-8 without control characters
  int32_t classes;
  const int32_t *labels;  // classes
  // Instead of labels, one entry per token: the class of the word that begins at it, or -1 if none does.
  const int32_t *word_labels;
  const float *numbers;     // instead of classes
  const int32_t *segments;  // starts of second sentences; a row with two has an end of sentence before it
} tarn__shard_labels;
// Sets the labels, after the last row; they are borrowed until the writer is closed. With labels, rows may contain ends
// of sentences (before second sentences); one is added to each, as usual.
void tarn__shard_writer_label(tarn__shard_writer *writer, const tarn__shard_labels *labels);

// Writes the file, atomically, and closes the writer, also on failure. At least one pair is needed.
tarn_status tarn__shard_writer_commit(tarn__shard_writer **writer) TARN_CHECKED;
// The same for a part of a set whose index will be at the writer's path: the file is named after that path, the number
// of the part (from 1) and its hash, and `entry` receives its entry in the index. An existing file of that name has the
// same contents.
tarn_status tarn__shard_writer_commit_part(tarn__shard_writer **writer, tarn__index_entry *entry,
                                           int number) TARN_CHECKED;
void tarn__shard_writer_abort(tarn__shard_writer **writer);

#endif
