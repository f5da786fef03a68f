// Reads a text file line by line: LF or CRLF, a byte order mark at the start is left out, invalid UTF-8 is replaced.
// What is no text is refused (text/text_check.h).
#ifndef TARN_TEXT_LINES_H
#define TARN_TEXT_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/status.h"
#include "text/repair.h"

// Zero-initialise or open; close accepts both.
typedef struct tarn__lines {
  const char *path;        // borrowed from the caller of open, or "standard input"
  int64_t number;          // lines given so far: the number of the last one, from 1
  size_t length;           // bytes of the last line as it stands in the file, without its end
  int64_t replaced;        // lines so far in which invalid UTF-8 was replaced
  int64_t replaced_bytes;  // invalid bytes in them
  bool raw;                // set it after opening to be given invalid UTF-8 as it is
  // Private.
  FILE *file;
  char *buffer;
  size_t capacity, start, end;
  tarn__repaired repaired;
  bool strict, ended;
} tarn__lines;

// A path of a pipe or a device is fine; "-" and "/dev/stdin" are standard input, from where it stands. `strict` makes
// invalid UTF-8 an error that names file and line.
tarn_status tarn__lines_open(tarn__lines *lines, const char *path, bool strict) TARN_CHECKED;
void tarn__lines_close(tarn__lines *lines);

// Gives the next line without its end, valid until the next call; *text is NULL after the last line. A last line
// without an end counts as a line. Fails with DATA where the file is no text: UTF-16, compressed, a shard, or with a
// zero byte.
tarn_status tarn__lines_next(tarn__lines *lines, const char **text, size_t *length) TARN_CHECKED;

#endif
