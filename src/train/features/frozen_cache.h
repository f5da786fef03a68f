// The outputs of the frozen bottom (model/model.h) for every source token of the training data, in a memory-mapped file
// of the run directory (train.cache_frozen):
//
//   header   128 bytes: magic, version, bytes of a number, rows, columns, key; zeros
//   rows     for every source token in the order of the shard: d_model numbers in the model's precision (fp32 or bf16);
//            zeros for sentences that training skips
//   hash     8 bytes: XXH3 of each row in turn, seeded with the hash so far, which starts at 0
//
// The key is a hash of everything that determines the bits of a row: the description of the model, the recipes and
// hashes of the frozen parameters, the contents of the shard, the instruction set, the compiler and the version of the
// program. Threads are not included, because the bits of a row do not depend on them.
#ifndef TARN_TRAIN_FEATURES_FROZEN_CACHE_H
#define TARN_TRAIN_FEATURES_FROZEN_CACHE_H

#include "base/file.h"
#include "data/batch.h"
#include "model/model.h"

// Zero-initialise or open.
typedef struct tarn__frozen_cache {
  tarn__param table;  // [source tokens of the shard, d_model]; value: in the map (host memory), NULL until it is read
  int32_t *first;     // [pairs] the row of the first source token of each pair
  char key[TARN__HASH_TEXT];
  tarn__map map;
} tarn__frozen_cache;

// Sets shapes and offsets, without values: enough for planning. Fails with USAGE if there are more tokens than ids can
// number.
tarn_status tarn__frozen_cache_open(tarn__frozen_cache *cache, const tarn__model *model,
                                    const tarn__shard *shard) TARN_CHECKED;
void tarn__frozen_cache_close(tarn__frozen_cache *cache);

// Computes the key; the model must have its frozen values.
tarn_status tarn__frozen_cache_key(tarn__frozen_cache *cache, const tarn__model *model,
                                   const tarn__shard *shard) TARN_CHECKED;
size_t tarn__frozen_cache_row_bytes(const tarn__frozen_cache *cache);
// Size of the whole file in bytes.
size_t tarn__frozen_cache_bytes(const tarn__frozen_cache *cache);
// Maps the file and checks all of it: size, header, key and hash. *why is NULL if it is usable, else a reason in words
// ("it is damaged"); then nothing is mapped. Fails with IO if the file cannot be read.
tarn_status tarn__frozen_cache_read(tarn__frozen_cache *cache, const char *path, const char **why) TARN_CHECKED;

// Writes the file in the order of its rows; it exists only after commit, and then it is complete.
typedef struct tarn__frozen_writer {
  tarn__writer *file;
  size_t row_bytes;
  int64_t rows;  // written so far
  uint64_t hash;
} tarn__frozen_writer;
tarn_status tarn__frozen_writer_open(tarn__frozen_writer *writer, const tarn__frozen_cache *cache,
                                     const char *path) TARN_CHECKED;
tarn_status tarn__frozen_writer_put(tarn__frozen_writer *writer, const void *rows, int64_t count) TARN_CHECKED;
tarn_status tarn__frozen_writer_commit(tarn__frozen_writer *writer, const tarn__frozen_cache *cache) TARN_CHECKED;
void tarn__frozen_writer_abort(tarn__frozen_writer *writer);

// The rows of a batch's source tokens: ids [batch->source.rows].
void tarn__frozen_cache_ids(const tarn__frozen_cache *cache, int32_t *ids, const tarn__batch *batch);

#endif
