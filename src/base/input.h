// The bytes of a file, pipe or device that is read from beginning to end. Data compressed by gzip, xz or zstd,
// recognised by its first bytes, is decompressed on the way.
#ifndef TARN_BASE_INPUT_H
#define TARN_BASE_INPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

// Zero-initialise or open; close accepts both.
typedef struct tarn__input {
  const char *path;  // borrowed from the caller of open, or "standard input"
  bool open;
  double given;  // bytes that were given so far
  // Private.
  int fd;
  double taken, whole;              // bytes of the file that were read, and that it has; 0: not known
  struct tarn__input_pack *packed;  // NULL: not compressed
} tarn__input;

// "-" and "/dev/stdin" are standard input, from where it stands.
tarn_status tarn__input_open(tarn__input *input, const char *path) TARN_CHECKED;
void tarn__input_close(tarn__input *input);

// Reads what is there, at most `size` > 0 bytes: from a pipe what has come so far, but at least one byte; *got is 0 at
// the end. Fails with IO; for compressed bytes also with DATA (truncated, damaged, followed by something else, or
// compressed more strongly than any text), UNSUPPORTED (this build cannot decompress them, or they ask for more than
// 128 MB of memory) or MEMORY.
tarn_status tarn__input_read(tarn__input *input, void *bytes, size_t size, size_t *got) TARN_CHECKED;

// Whether bytes, or the end, will be there within so many milliseconds. Files never keep waiting.
bool tarn__input_is_ready(const tarn__input *input, int milliseconds);

// How much of the file was read, 0 .. 1; NAN for a pipe or device.
double tarn__input_share(const tarn__input *input);

#endif
