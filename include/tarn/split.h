// Parts of text files.
#ifndef TARN_SPLIT_H
#define TARN_SPLIT_H

#include <stdbool.h>
#include <stdint.h>

#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// A part of a text file, for validation and tests, or to make a text smaller: every n-th line, or a range of bytes.

typedef struct tarn_split_options {
  int64_t every;     // lines: of `every` lines one is taken; 0 (default): a range of bytes
  int64_t first;     // the first line taken, 1 .. every; 0 (default): the line `every`. Header lines do not count
  int64_t header;    // lines at the beginning that go into both files; default 0
  const char *rest;  // file for the lines that are not taken; NULL (default): none
  int64_t from;      // bytes, with every 0: those from this one, counted from 0 (default)
  int64_t bytes;     // their number; at least 1
  bool exact;        // fail if the text ends before the range does; false (default): what there is of it is taken
} tarn_split_options;

TARN_API void tarn_split_default(tarn_split_options *options);

typedef struct tarn_split_result {
  int64_t taken, rest;  // lines written to each file, headers not counted; of a range its bytes, and 0
} tarn_split_result;

// Writes a part of `file` to `output` (and `rest`), atomically, creating their folders. Lines are unchanged; the last
// one ends with LF. A range begins and ends between two characters: where it would cut one (UTF-8), the character
// belongs to the later part. Compressed files are decompressed. Fails with USAGE (options; an output that is
// `file` or the other one), IO, or DATA (no text; nothing to take; not all of an exact range). Then no file is changed.
TARN_API tarn_status tarn_split_write(tarn_split_result *result, const char *output, const char *file,
                                      const tarn_split_options *options) TARN_CHECKED;

#ifdef __cplusplus
}
#endif
#endif
