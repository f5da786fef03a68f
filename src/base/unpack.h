// Compressed text: the output of gzip, xz and zstd is decompressed while it is read, whatever the file's name.
#ifndef TARN_BASE_UNPACK_H
#define TARN_BASE_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

// The bytes that a step may consume and produce; it advances the pointers.
typedef struct tarn__unpack_step {
  const uint8_t *in;
  size_t in_size;
  uint8_t *out;
  size_t out_size;
  bool last;        // no bytes follow `in`
  bool over;        // set by the step: the compressed text has ended, and `in` is not part of it
  tarn_status why;  // set by the step if the bytes may be valid: MEMORY, or UNSUPPORTED if they need too much
} tarn__unpack_step;

// One format. `open` is NULL if its library was missing at build time.
typedef struct tarn__unpack_kind {
  const char *name, *package;  // "gzip"; Debian's package of the library
  const char *magic;           // the first bytes
  size_t magic_size;
  tarn_status (*open)(void **state);
  // Consumes and produces what it can. Returns NULL, or a text that says what is wrong with the bytes.
  const char *(*step)(void *state, tarn__unpack_step *step);
  void (*close)(void *state);  // accepts NULL
} tarn__unpack_kind;

extern const tarn__unpack_kind tarn__unpack_gzip, tarn__unpack_xz, tarn__unpack_zstd;

// The kind that begins with these bytes, or NULL. *open: more bytes are needed to know.
const tarn__unpack_kind *tarn__unpack_find(const void *bytes, size_t size, bool *open);

#endif
