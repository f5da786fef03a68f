#include "text/line_block.h"

#include <string.h>

#include "base/memory.h"

tarn_status tarn__line_block_read(tarn__line_block *block, tarn__lines *lines, size_t most) {
  size_t used = 0;
  block->count = 0;
  while (block->count < most) {
    const char *line;
    size_t length;
    TARN_TRY(tarn__lines_next(lines, &line, &length));
    if (!line) break;
    TARN_TRY(tarn__grow(&block->lengths, &block->lengths_capacity, block->count + 1, sizeof *block->lengths));
    TARN_TRY(tarn__grow(&block->bytes, &block->bytes_capacity, used + length + 1, 1));
    memcpy(block->bytes + used, line, length);
    used += length;
    block->lengths[block->count++] = length;
  }
  TARN_TRY(tarn__grow(&block->lines, &block->lines_capacity, block->count, sizeof *block->lines));
  const char *line = block->bytes;
  for (size_t i = 0; i < block->count; line += block->lengths[i++]) block->lines[i] = line;
  return TARN_STATUS_OK;
}

void tarn__line_block_close(tarn__line_block *block) {
  tarn__free(block->bytes);
  tarn__free(block->lines);
  tarn__free(block->lengths);
  *block = (tarn__line_block){0};
}
