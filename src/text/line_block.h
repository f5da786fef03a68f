// Lines of a text file that are worked on together, copied so that they stay.
#ifndef TARN_TEXT_LINE_BLOCK_H
#define TARN_TEXT_LINE_BLOCK_H

#include "text/lines.h"

// Zero-initialise; may be read into again and again.
typedef struct tarn__line_block {
  const char **lines;  // [count], without a zero byte at their ends
  size_t *lengths;
  size_t count;
  // Private.
  char *bytes;
  size_t bytes_capacity, lines_capacity, lengths_capacity;
} tarn__line_block;

// Replaces the contents by the next lines, at most `most`; fewer only at the end of the file.
tarn_status tarn__line_block_read(tarn__line_block *block, tarn__lines *lines, size_t most) TARN_CHECKED;
void tarn__line_block_close(tarn__line_block *block);

#endif
