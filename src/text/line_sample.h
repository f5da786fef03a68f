// A sample of the lines of a text of any length in bounded memory: every line is kept with the same probability, and
// those that are kept come in their order. Each line draws a number, and lines whose number is below a threshold are
// kept; the threshold is 1 until the room is full, and is lowered then. So a text for which the room suffices is kept
// whole, and the sample is a function of the text and of the room.
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
  char *text;  // the kept lines, one behind the other
  size_t text_used, text_capacity;
  struct tarn__sampled_line *lines;  // [kept]
  size_t lines_capacity;
  int64_t next;    // to be taken
  size_t next_at;  // its text
} tarn__line_sample;

// `room`: bytes that the lines may have together, each counted with 32 more.
void tarn__line_sample_open(tarn__line_sample *sample, size_t room);
void tarn__line_sample_close(tarn__line_sample *sample);

// A line of less than half of the room.
tarn_status tarn__line_sample_put(tarn__line_sample *sample, const char *text, size_t length) TARN_CHECKED;
// Gives the kept lines one by one; *text is NULL behind the last one. Nothing may be put afterwards.
void tarn__line_sample_take(tarn__line_sample *sample, const char **text, size_t *length);

#endif
