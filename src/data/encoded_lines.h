// The lines of a text file as token ids: the calling thread reads them in order, the threads of a pool encode them
// block by block, and they are returned in order. The output depends neither on the number of threads nor on the
// read-ahead. The memory is that of the blocks read ahead, and of the longest line.
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
  const char *text;  // [length] the encoded text
  size_t length;
  size_t parts, broken;  // as in tarn_vocab_ids
  bool more;             // a part of a line that the next one continues (tarn__lines.parts)
} tarn__encoded_line;

// Zero-initialise or open; close accepts both.
typedef struct tarn__encoded_lines {
  tarn__lines lines;  // its counts cover all lines read, including those not yet returned
  // Private.
  const tarn_vocab *vocab;
  tarn__encode_pool *pool;
  struct tarn__encoded_block *ring;  // blocks that were read, in order
  size_t places;                     // of the ring
  size_t first, count;               // the current block, and the number of blocks from it on
  size_t next;                       // line of the current block
  size_t cost, most_cost;            // estimated bytes of the blocks, and when to stop reading ahead
  bool ended;                        // the end of the file was reached
  tarn__failure failure;             // of reading after the blocks
} tarn__encoded_lines;

// Vocabulary and pool must stay open. `memory`: bytes for the blocks read ahead; one is always read. Otherwise as
// tarn__lines_open().
tarn_status tarn__encoded_lines_open(tarn__encoded_lines *encoded, const tarn_vocab *vocab, tarn__encode_pool *pool,
                                     size_t memory, const char *path, bool strict) TARN_CHECKED;
void tarn__encoded_lines_close(tarn__encoded_lines *encoded);

// Returns the next line; NULL after the last one. Fails as tarn__lines_next() and tarn_vocab_encode() do, after the
// lines before the faulty one.
tarn_status tarn__encoded_lines_next(tarn__encoded_lines *encoded, const tarn__encoded_line **line) TARN_CHECKED;

#endif
