// A sample of the lines of a text of any length in bounded memory: every line is kept with the same probability, in
// order. Each line draws a number, and lines with a number below a threshold are kept; the threshold is 1 until the
// memory is full, and is lowered then. So a text that fits is kept whole, and the sample is a function of the text and
// of the memory.
#ifndef TARN_TEXT_LINE_SAMPLE_H
#define TARN_TEXT_LINE_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/random.h"
#include "base/status.h"

// Zero-initialise or open; close accepts both. Read the counts, do not write them.
typedef struct tarn__line_sample {
  int64_t given, kept;  // lines
  // Private.
  size_t room;         // bytes
  uint64_t threshold;  // of the numbers
  tarn__random random;
  char *text;  // the kept lines, one after the other
  size_t text_used, text_capacity;
  struct tarn__sampled_line *lines;  // [kept]
  size_t lines_capacity;
  int64_t next;    // the next one to take
  size_t next_at;  // its text
} tarn__line_sample;

// `room`: total bytes of the lines, each counted with 32 more.
void tarn__line_sample_open(tarn__line_sample *sample, size_t room);
void tarn__line_sample_close(tarn__line_sample *sample);

// Adds a line of less than half of `room`.
tarn_status tarn__line_sample_put(tarn__line_sample *sample, const char *text, size_t length) TARN_CHECKED;
// Returns the kept lines one by one; *text is NULL after the last one. Nothing may be added afterwards.
void tarn__line_sample_take(tarn__line_sample *sample, const char **text, size_t *length);

#endif
