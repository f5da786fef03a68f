// Writes a set row by row: one shard if it is small, as data/shard_writer.h does, else several with an index.
//
// Parts are named after their contents, so preparing a set again leaves the old one intact until the new index, written
// last, replaces it; then the files that no index names are removed.
#ifndef TARN_DATA_PARTS_WRITER_H
#define TARN_DATA_PARTS_WRITER_H

#include "data/shard_writer.h"

// The kinds of rows of a set.
typedef enum tarn__set_rows { TARN__SET_SENTENCES, TARN__SET_PACKED, TARN__SET_WINDOWS } tarn__set_rows;

typedef struct tarn__parts_writer tarn__parts_writer;

// As tarn__shard_writer_open(). A part has at most `most` bytes, or a single row. The vocabularies must stay open.
tarn_status tarn__parts_writer_open(tarn__parts_writer **writer, const char *prefix, const tarn_vocab *source_vocab,
                                    const tarn_vocab *target_vocab, tarn__set_rows rows, int64_t most) TARN_CHECKED;

// As tarn__shard_writer_put(). Fails with DATA if there would be too many parts.
tarn_status tarn__parts_writer_put(tarn__parts_writer *writer, const int32_t *source, int64_t source_length,
                                   const int32_t *target, int64_t target_length) TARN_CHECKED;

// Sets the length of a stream's text so far, before its rows and at the end.
void tarn__parts_writer_measure(tarn__parts_writer *writer, int64_t bytes, int64_t characters);

// As tarn__shard_writer_images() and tarn__shard_writer_put_image(), for a set of one shard, opened for sentences.
void tarn__parts_writer_images(tarn__parts_writer *writer, tarn__image_size size);
tarn_status tarn__parts_writer_put_image(tarn__parts_writer *writer, const uint8_t *pixels) TARN_CHECKED;

// As tarn__shard_writer_label(), after the last row, for a set of one shard (`most` large enough for all rows).
void tarn__parts_writer_label(tarn__parts_writer *writer, const tarn__shard_labels *labels);

// Files that a commit would write besides an index; 1: a shard and no index.
int tarn__parts_writer_parts(const tarn__parts_writer *writer);

// Writes the rest, and the index if there are several parts, and closes the writer, also on failure. At least one row
// is needed.
tarn_status tarn__parts_writer_commit(tarn__parts_writer **writer) TARN_CHECKED;
// Removes the parts written.
void tarn__parts_writer_abort(tarn__parts_writer **writer);

#endif
