// Reads a text file line by line: LF or CRLF, an initial byte order mark is dropped, invalid UTF-8 is replaced. Files
// that are not text are refused (text/text_check.h).
#ifndef TARN_TEXT_LINES_H
#define TARN_TEXT_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/input.h"
#include "base/status.h"
#include "text/repair.h"

// Zero-initialise or open; close accepts both.
typedef struct tarn__lines {
  const char *path;        // borrowed from the caller of open, or "standard input"
  int64_t number;          // lines delivered so far: the number of the last one, from 1
  size_t length;           // bytes of the last line in the file, without its end
  int64_t replaced;        // lines with replaced invalid UTF-8 so far
  int64_t replaced_bytes;  // invalid bytes in them
  bool more;               // the last one is a part of a line that the next one continues
  bool open_end;           // the last line of the file has no line end; known once it was delivered
  // Set these after opening.
  bool raw;        // invalid UTF-8 is kept
  bool verbatim;   // all other bytes are kept too: a byte order mark, and a CR before a line end
  size_t longest;  // bytes of a line; a longer one is refused, at the cost of its first bytes only. 0: no limit
  bool parts;      // a longer one is delivered in parts, cut by tarn__cut() (text/cut.h)
  bool prompt;     // the writer of a pipe, or a typing user, may wait for an answer (text/line_block.h)
  // Private.
  tarn__input input;
  char *buffer;
  size_t capacity, start, end;
  tarn__repaired repaired;
  bool strict, ended;
} tarn__lines;

// The path may be that of a pipe or a device; "-" and "/dev/stdin" are standard input, from its current position.
// `strict` makes invalid UTF-8 an error that names file and line.
tarn_status tarn__lines_open(tarn__lines *lines, const char *path, bool strict) TARN_CHECKED;
void tarn__lines_close(tarn__lines *lines);

// Returns the next line without its end, valid until the next call; *text is NULL after the last line. A last line
// without an end counts. Fails with DATA if the file is no text (UTF-16, compressed, a shard, or with a zero byte), or
// if a line is longer than `longest`.
tarn_status tarn__lines_next(tarn__lines *lines, const char **text, size_t *length) TARN_CHECKED;

// Whether the next line, a part of it, or the end arrives within so many milliseconds.
bool tarn__lines_is_ready(const tarn__lines *lines, int milliseconds);

// The share of the file delivered so far, 0 .. 1; NAN for a pipe or device.
double tarn__lines_share(const tarn__lines *lines);

#endif
