// Lines of a text file that are processed together, copied so that they persist.
#ifndef TARN_TEXT_LINE_BLOCK_H
#define TARN_TEXT_LINE_BLOCK_H

#include "text/lines.h"

// Zero-initialise; may be reused.
typedef struct tarn__line_block {
  const char **lines;  // [count], without a zero byte at their ends
  size_t *lengths;
  bool *more;  // a part of a line, which the next one continues (tarn__lines.parts)
  size_t count;
  // Private.
  char *bytes;
  size_t bytes_capacity, lines_capacity, lengths_capacity, more_capacity;
} tarn__line_block;

// Replaces the contents by the next lines: at most `most`, and none after the one that fills `bytes` bytes; fewer only
// at the end of the file, or if lines are `prompt` and no further one arrives for 20 ms, or 200 ms in all for a block.
// So a single typed or piped line is answered, and a program that writes as fast as it can fills whole blocks. If a
// line cannot be read, the contents are the lines before it.
tarn_status tarn__line_block_read(tarn__line_block *block, tarn__lines *lines, size_t most, size_t bytes) TARN_CHECKED;
void tarn__line_block_close(tarn__line_block *block);

#endif
