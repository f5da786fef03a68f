#include "text/line_block.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"

static const double PAUSE = 0.02, WAIT = 0.2;  // seconds

static tarn_status read_line(tarn__line_block *block, size_t *used, tarn__lines *lines, bool *ended) {
  const char *line;
  size_t length;
  TARN_TRY(tarn__lines_next(lines, &line, &length));
  *ended = !line;
  if (!line) return TARN_STATUS_OK;
  TARN_TRY(tarn__grow(&block->lengths, &block->lengths_capacity, block->count + 1, sizeof *block->lengths));
  TARN_TRY(tarn__grow(&block->more, &block->more_capacity, block->count + 1, sizeof *block->more));
  TARN_TRY(tarn__grow(&block->bytes, &block->bytes_capacity, *used + length + 1, 1));
  memcpy(block->bytes + *used, line, length);
  *used += length;
  block->more[block->count] = lines->more;
  block->lengths[block->count++] = length;
  return TARN_STATUS_OK;
}

// Whether no further line arrives for now. *left is the remaining waiting time in seconds.
static bool runs_dry(const tarn__lines *lines, double *left) {
  if (tarn__lines_is_ready(lines, 0)) return false;
  const double begun = tarn__seconds(), wait = fmin(*left, PAUSE);
  const bool ready = wait > 0 && tarn__lines_is_ready(lines, (int)ceil(1000.0 * wait));
  *left -= tarn__seconds() - begun;
  return !ready;
}

tarn_status tarn__line_block_read(tarn__line_block *block, tarn__lines *lines, size_t most, size_t bytes) {
  size_t used = 0;
  bool ended = false;
  tarn_status status = TARN_STATUS_OK;
  block->count = 0;
  double left = WAIT;
  while (status == TARN_STATUS_OK && !ended && block->count < most && used < bytes) {
    if (lines->prompt && block->count > 0 && runs_dry(lines, &left)) break;
    status = read_line(block, &used, lines, &ended);
  }
  tarn_status grown = tarn__grow(&block->lines, &block->lines_capacity, block->count, sizeof *block->lines);
  if (grown != TARN_STATUS_OK) {
    block->count = 0;
    return grown;
  }
  const char *line = block->bytes;
  for (size_t i = 0; i < block->count; line += block->lengths[i++]) block->lines[i] = line;
  return status;
}

void tarn__line_block_close(tarn__line_block *block) {
  tarn__free(block->bytes);
  tarn__free(block->lines);
  tarn__free(block->lengths);
  tarn__free(block->more);
  *block = (tarn__line_block){0};
}
