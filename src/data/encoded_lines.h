// The lines of a text file as token ids: read in order by the caller's thread, encoded a block at a time by those of a
// pool, and given in order. What comes out depends neither on the number of threads nor on how far is read ahead. The
// memory is that of the blocks read ahead, and of the longest line.
#ifndef TARN_DATA_ENCODED_LINES_H
#define TARN_DATA_ENCODED_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/threads.h"
#include "data/encode_pool.h"
#include "tarn/vocab.h"
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
  tarn__encode_pool *pool;
  struct tarn__encoded_block *ring;  // blocks that were read, in order
  size_t places;                     // of the ring
  size_t first, count;               // the block at hand, and how many there are from it on
  size_t next;                       // line of the block at hand
  size_t cost, most_cost;            // estimated bytes of the blocks, and when to stop reading ahead
  bool ended;                        // nothing is left to be read
  tarn__failure failure;             // of reading what is behind the blocks
} tarn__encoded_lines;

// Vocabulary and pool must stay open. `memory`: bytes that the blocks read ahead may take; one is read in any case. As
// tarn__lines_open().
tarn_status tarn__encoded_lines_open(tarn__encoded_lines *encoded, const tarn_vocab *vocab, tarn__encode_pool *pool,
                                     size_t memory, const char *path, bool strict) TARN_CHECKED;
void tarn__encoded_lines_close(tarn__encoded_lines *encoded);

// Gives the next line; NULL after the last one. Fails as tarn__lines_next() and tarn_vocab_encode() do; the lines
// before the one at fault are given first.
tarn_status tarn__encoded_lines_next(tarn__encoded_lines *encoded, const tarn__encoded_line **line) TARN_CHECKED;

#endif
