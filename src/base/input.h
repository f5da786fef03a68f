// The bytes of a file, pipe or device that is read from its beginning to its end. What gzip, xz or zstd packed is
// unpacked on the way, which its first bytes tell.
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

// Reads what is there, at most `size` > 0 bytes: of a pipe what has come so far, and one byte at least; *got is 0 at
// the end. Fails with IO; of compressed bytes with DATA (cut off, damaged, something behind them, or unpacked to so
// many times their size as no text would be) or UNSUPPORTED (this build cannot unpack them).
tarn_status tarn__input_read(tarn__input *input, void *bytes, size_t size, size_t *got) TARN_CHECKED;

// Whether bytes, or the end, will be there within so many milliseconds. Files never keep waiting.
bool tarn__input_is_ready(const tarn__input *input, int milliseconds);

// How much of the file was read, 0 .. 1; NAN of a pipe or device.
double tarn__input_share(const tarn__input *input);

#endif
