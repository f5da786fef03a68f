// Files of named tensors in the safetensors format (https://github.com/huggingface/safetensors): 8 bytes length of the
// header (little-endian), the header in JSON, then the bytes of the tensors without holes. Reading is memory-mapped.
#ifndef TARN_STORE_SAFETENSORS_H
#define TARN_STORE_SAFETENSORS_H

#include <stdint.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"

enum { TARN__TENSOR_DIMS = 8 };  // most dimensions of a tensor

// Values of a tensor that nobody has in one place: read() brings bytes [first, first + bytes) of them when they are to
// be written. Whoever makes one puts its own state behind this.
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
  const struct tarn__device *device;  // to be written: in whose memory `data` lies; NULL: the host's
  const tarn__stored_source *source;  // to be written: what stands for `data`; NULL: nothing
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

// Opens and checks a file: lengths, types, shapes, offsets (inside the file, no overlap, no hole), names (no
// duplicate). Fails with DATA, IO or MEMORY, and leaves it closed.
tarn_status tarn__safetensors_open(tarn__safetensors *file, const char *path) TARN_CHECKED;
void tarn__safetensors_close(tarn__safetensors *file);

// By name; NULL if there is none.
const tarn__stored *tarn__safetensors_find(const tarn__safetensors *file, const char *name);
const char *tarn__safetensors_text(const tarn__safetensors *file, const char *key);

// Writes a file atomically. Tensors are laid out in the order given, those of wide types before those of narrow ones,
// so that each is aligned to its element size; the first one is aligned to 64 bytes.
tarn_status tarn__safetensors_write(const char *path, const tarn__stored *tensors, size_t count,
                                    const tarn__stored_text *texts, size_t text_count) TARN_CHECKED;
// The same of tensors of which some lie in a map: fails with IO, and writes nothing, if its file changed meanwhile.
tarn_status tarn__safetensors_write_mapped(const char *path, const tarn__stored *tensors, size_t count,
                                           const tarn__stored_text *texts, size_t text_count,
                                           const tarn__map *map) TARN_CHECKED;

// The header of a file whose values follow: puts it into a writer that nothing was put into. `data` is not looked at;
// places[i] is the byte of the file at which the values of tensor i are to begin.
tarn_status tarn__safetensors_begin(tarn__writer *writer, uint64_t *places, const tarn__stored *tensors, size_t count,
                                    const tarn__stored_text *texts, size_t text_count) TARN_CHECKED;

// The hash of everything that a file says (`map`: the map that the tensors lie in, NULL if they lie in memory) (names,
// types, shapes, values, metadata but for the key `except`), whatever the order and layout, so that a copy made by
// another tool has the same hash.
tarn_status tarn__safetensors_hash(char hash[TARN__HASH_TEXT], const tarn__stored *tensors, size_t count,
                                   const tarn__stored_text *texts, size_t text_count, const char *except,
                                   const tarn__map *map) TARN_CHECKED;

#endif
