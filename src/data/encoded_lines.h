// The lines of a text file as token ids: read in order, encoded by all threads of the pool, a block at a time. What
// comes out does not depend on the number of threads, and the memory is that of a block and of the longest line.
#ifndef TARN_DATA_ENCODED_LINES_H
#define TARN_DATA_ENCODED_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/threads.h"
#include "tarn/vocab.h"
#include "text/line_block.h"
#include "text/lines.h"

// A line; its ids are valid until the next call.
typedef struct tarn__encoded_line {
  const int32_t *ids;  // [count], without an end of sentence
  int64_t count;
  int64_t number;    // of the line in its file, from 1
  const char *text;  // [length] what was encoded
  size_t length;
  size_t parts, broken;  // as in tarn_vocab_ids
  bool more;             // a part of a line that goes on with the next one (tarn__lines.parts)
} tarn__encoded_line;

// Zero-initialise or open; close accepts both.
typedef struct tarn__encoded_lines {
  tarn__lines lines;  // its counts are of what was read so far, which is ahead of what was given
  // Private.
  const tarn_vocab *vocab;
  tarn__line_block block;
  tarn__encoded_line *items;  // [block.count]
  size_t items_capacity, next;
  struct tarn__encoded_room *rooms;  // one a thread
  int threads;
  tarn__failure failure;  // of reading what is behind the block
} tarn__encoded_lines;

// The vocabulary must stay open. As tarn__lines_open().
tarn_status tarn__encoded_lines_open(tarn__encoded_lines *encoded, const tarn_vocab *vocab, const char *path,
                                     bool strict) TARN_CHECKED;
void tarn__encoded_lines_close(tarn__encoded_lines *encoded);

// Gives the next line; NULL after the last one. Fails as tarn__lines_next() and tarn_vocab_encode() do; the lines
// before the one at fault are given first.
tarn_status tarn__encoded_lines_next(tarn__encoded_lines *encoded, const tarn__encoded_line **line) TARN_CHECKED;

#endif
