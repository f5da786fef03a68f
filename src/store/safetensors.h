// Files of named tensors in the safetensors format (https://github.com/huggingface/safetensors): 8 bytes length of the
// header (little-endian), the header in JSON, then the bytes of the tensors without gaps. Reading is memory-mapped.
#ifndef TARN_STORE_SAFETENSORS_H
#define TARN_STORE_SAFETENSORS_H

#include <stdint.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"

enum { TARN__TENSOR_DIMS = 8 };  // most dimensions of a tensor

// The source of a tensor that is not stored in one place: read() provides bytes [first, first + bytes) for writing.
// Implementations append their state.
typedef struct tarn__stored_source {
  tarn_status (*read)(const struct tarn__stored_source *source, void *to, size_t first, size_t bytes);
} tarn__stored_source;

// One tensor, to be written or as read.
typedef struct tarn__stored {
  const char *name;
  const char *dtype;  // "F32", "BF16", "U8", ...: a word of the format
  int dims;           // 0 .. TARN__TENSOR_DIMS
  int64_t shape[TARN__TENSOR_DIMS];
  const void *data;  // row-major, little-endian
  size_t bytes;
  const struct tarn__device *device;  // for writing: the device whose memory has `data`; NULL: the host's
  const tarn__stored_source *source;  // for writing: replaces `data`; NULL: none
} tarn__stored;

// A string of the metadata.
typedef struct tarn__stored_text {
  const char *key, *text;
} tarn__stored_text;

// Zero-initialise or open. All pointers live until close.
typedef struct tarn__safetensors {
  tarn__stored *tensors;  // sorted by name
  size_t count;
  tarn__stored_text *texts;  // sorted by key
  size_t text_count;
  char *path;
  tarn__map map;
  struct json_t *json;
} tarn__safetensors;

// Opens and checks a file: lengths, types, shapes, offsets (inside the file, no overlap, no gap), names (no duplicate).
// Fails with DATA, IO or MEMORY, and leaves it closed.
tarn_status tarn__safetensors_open(tarn__safetensors *file, const char *path) TARN_CHECKED;
void tarn__safetensors_close(tarn__safetensors *file);

// By name; NULL if there is none.
const tarn__stored *tarn__safetensors_find(const tarn__safetensors *file, const char *name);
const char *tarn__safetensors_text(const tarn__safetensors *file, const char *key);

// Writes a file atomically. Tensors are laid out in the given order, wide types before narrow ones, so each is aligned
// to its element size; the first one is aligned to 64 bytes.
tarn_status tarn__safetensors_write(const char *path, const tarn__stored *tensors, size_t count,
                                    const tarn__stored_text *texts, size_t text_count) TARN_CHECKED;
// The same for tensors partly in a map: fails with IO, and writes nothing, if its file changed meanwhile.
tarn_status tarn__safetensors_write_mapped(const char *path, const tarn__stored *tensors, size_t count,
                                           const tarn__stored_text *texts, size_t text_count,
                                           const tarn__map *map) TARN_CHECKED;

// The header of a file whose values follow: writes it to a fresh writer. `data` is ignored; places[i] is the offset in
// the file of the values of tensor i.
tarn_status tarn__safetensors_begin(tarn__writer *writer, uint64_t *places, const tarn__stored *tensors, size_t count,
                                    const tarn__stored_text *texts, size_t text_count) TARN_CHECKED;

// The hash of all contents of a file (names, types, shapes, values, metadata except the key `except`), independent of
// order and layout, so that a copy made by another tool has the same hash. `map`: the map with the tensors, NULL if
// they are in memory.
tarn_status tarn__safetensors_hash(char hash[TARN__HASH_TEXT], const tarn__stored *tensors, size_t count,
                                   const tarn__stored_text *texts, size_t text_count, const char *except,
                                   const tarn__map *map) TARN_CHECKED;

#endif
