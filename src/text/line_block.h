// Lines of a text file that are worked on together, copied so that they stay.
#ifndef TARN_TEXT_LINE_BLOCK_H
#define TARN_TEXT_LINE_BLOCK_H

#include "text/lines.h"

// Zero-initialise; may be read into again and again.
typedef struct tarn__line_block {
  const char **lines;  // [count], without a zero byte at their ends
  size_t *lengths;
  bool *more;  // a part of a line, which goes on with the next one (tarn__lines.parts)
  size_t count;
  // Private.
  char *bytes;
  size_t bytes_capacity, lines_capacity, lengths_capacity, more_capacity;
} tarn__line_block;

// Replaces the contents by the next lines: at most `most`, and none behind the one that fills `bytes` bytes; fewer only
// at the end of the file, and where lines are `prompt` and no further one comes for a while: 20 ms, and 200 ms in all
// for a block. So one line that is typed or sent to a pipe is answered, and a program that writes as fast as it can
// fills whole blocks. Where a line cannot be read, the contents are those before it.
tarn_status tarn__line_block_read(tarn__line_block *block, tarn__lines *lines, size_t most, size_t bytes) TARN_CHECKED;
void tarn__line_block_close(tarn__line_block *block);

#endif
