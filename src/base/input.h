// The bytes of a file, pipe or device that is read from beginning to end. Data compressed by gzip, xz or zstd,
// recognised by its first bytes, is decompressed transparently.
#ifndef TARN_BASE_INPUT_H
#define TARN_BASE_INPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

// Zero-initialise or open; close accepts both.
typedef struct tarn__input {
  const char *path;  // borrowed from the caller of open, or "standard input"
  bool open;
  double given;  // bytes delivered so far
  // Private.
  int fd;
  double taken, whole;              // bytes read of the file, and its size; 0: unknown
  struct tarn__input_pack *packed;  // NULL: not compressed
} tarn__input;

// "-" and "/dev/stdin" are standard input, from its current position.
tarn_status tarn__input_open(tarn__input *input, const char *path) TARN_CHECKED;
void tarn__input_close(tarn__input *input);

// Reads the available bytes, at most `size` > 0: from a pipe those that have arrived, but at least one; *got is 0 at
// the end. Fails with IO; for compressed bytes also with DATA (truncated, damaged, followed by other bytes, or
// compressed more strongly than any text), UNSUPPORTED (this build cannot decompress them, or they need more than 128
// MB of memory) or MEMORY.
tarn_status tarn__input_read(tarn__input *input, void *bytes, size_t size, size_t *got) TARN_CHECKED;

// Whether bytes, or the end, arrive within so many milliseconds. Files are always ready.
bool tarn__input_is_ready(const tarn__input *input, int milliseconds);

// The share of the file read so far, 0 .. 1; NAN for a pipe or device.
double tarn__input_share(const tarn__input *input);

#endif
