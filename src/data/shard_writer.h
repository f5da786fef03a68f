// Writes a shard pair by pair. Memory grows with the number of pairs, not with their tokens: the ids wait in a file
// beside the shard until the header can be written.
#ifndef TARN_DATA_SHARD_WRITER_H
#define TARN_DATA_SHARD_WRITER_H

#include <stdint.h>

#include "base/status.h"
#include "tarn/vocab.h"

typedef struct tarn__shard_writer tarn__shard_writer;

// `target_vocab` may be the same as `source_vocab`. A `source_vocab` of NULL makes the shard of a text.
tarn_status tarn__shard_writer_open(tarn__shard_writer **writer, const char *prefix, const tarn_vocab *source_vocab,
                                    const tarn_vocab *target_vocab) TARN_CHECKED;

// Appends a pair of sentences without their ends, which are added; each has at least one id. The source of a text is
// not looked at.
tarn_status tarn__shard_writer_put(tarn__shard_writer *writer, const int32_t *source, int64_t source_length,
                                   const int32_t *target, int64_t target_length) TARN_CHECKED;

// Writes the file, atomically, and closes the writer, also on failure. At least one pair is needed.
tarn_status tarn__shard_writer_commit(tarn__shard_writer **writer) TARN_CHECKED;
void tarn__shard_writer_abort(tarn__shard_writer **writer);

#endif
