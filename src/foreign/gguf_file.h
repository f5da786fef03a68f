// GGUF, the files of llama.cpp (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md), versions 2 and 3 in
// little-endian: keys with values, then tensors in F32, F16, BF16 or Q8_0, whose first size is that of a row.
#ifndef TARN_FOREIGN_GGUF_FILE_H
#define TARN_FOREIGN_GGUF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "foreign/hf_tensors.h"

typedef enum tarn__gguf_type {
  TARN__GGUF_UINT8,
  TARN__GGUF_INT8,
  TARN__GGUF_UINT16,
  TARN__GGUF_INT16,
  TARN__GGUF_UINT32,
  TARN__GGUF_INT32,
  TARN__GGUF_FLOAT32,
  TARN__GGUF_BOOL,
  TARN__GGUF_STRING,
  TARN__GGUF_ARRAY,
  TARN__GGUF_UINT64,
  TARN__GGUF_INT64,
  TARN__GGUF_FLOAT64,
  TARN__GGUF_TYPES
} tarn__gguf_type;

// A key. An array has `count` elements of type `element`; other values are one element of their type.
typedef struct tarn__gguf_key {
  const char *name;
  tarn__gguf_type type, element;
  uint64_t count;
  const uint8_t *data;  // the elements, which were checked to be inside the file
} tarn__gguf_key;

typedef struct tarn__gguf_file {
  const char *path;
  tarn__gguf_key *keys;
  size_t key_count;
  tarn__arena arena;
} tarn__gguf_file;

// Zero-initialise both. Opens a file and fills in its tensors; every count, length, offset and type is checked. Fails
// with IO, MEMORY, or DATA. Close it even after a failure.
tarn_status tarn__gguf_open(tarn__gguf_file *file, tarn__hf_tensors *tensors, const char *path) TARN_CHECKED;
void tarn__gguf_close(tarn__gguf_file *file);

// A key of this name; NULL: there is none.
const tarn__gguf_key *tarn__gguf_find(const tarn__gguf_file *file, const char *name);
// Element `index` of a key as a number; strings are 0.
double tarn__gguf_number(const tarn__gguf_key *key, uint64_t index);
// A text: of a key, or the next element of an array of them, of which *at is the place (at first key->data). It is not
// zero-terminated.
const char *tarn__gguf_next_text(const uint8_t **at, size_t *length);

#endif
