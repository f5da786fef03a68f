// Reads a text file line by line: LF or CRLF, a byte order mark at the start is left out, invalid UTF-8 is replaced.
// What is no text is refused (text/text_check.h).
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
  int64_t number;          // lines given so far: the number of the last one, from 1
  size_t length;           // bytes of the last line as it stands in the file, without its end
  int64_t replaced;        // lines so far in which invalid UTF-8 was replaced
  int64_t replaced_bytes;  // invalid bytes in them
  bool more;               // the last one is a part of a line that goes on with the next one
  bool open_end;           // the last line of the file has no line end; known once it was given
  // To be set after opening.
  bool raw;        // invalid UTF-8 is given as it is
  bool verbatim;   // so are all other bytes: a byte order mark, and a CR before a line end
  size_t longest;  // bytes of a line; a longer one is refused, at the cost of its first bytes only. 0: no limit
  bool parts;      // a longer one is given in parts: cut before a blank, or where tarn__cut() (text/cut.h) does else
  bool prompt;     // who writes into a pipe or types may wait for an answer (text/line_block.h)
  // Private.
  tarn__input input;
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
// zero byte; or where a line is longer than `longest`.
tarn_status tarn__lines_next(tarn__lines *lines, const char **text, size_t *length) TARN_CHECKED;

// Whether the next line, or a part of it, or the end will be there within so many milliseconds.
bool tarn__lines_is_ready(const tarn__lines *lines, int milliseconds);

// How much of the file was given, 0 .. 1; NAN of a pipe or device.
double tarn__lines_share(const tarn__lines *lines);

#endif
