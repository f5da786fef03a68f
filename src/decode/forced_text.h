// The texts that translations must contain (tarn/translate.h), as phrases of a vocabulary: those of all lines, and
// those that stand in columns of one.
#ifndef TARN_DECODE_FORCED_TEXT_H
#define TARN_DECODE_FORCED_TEXT_H

#include "base/memory.h"
#include "decode/forced.h"
#include "tarn/vocab.h"
#include "text/repair.h"

// Zero-initialise.
typedef struct tarn__forced_text {
  const tarn_vocab *vocab;
  int64_t longest;           // most tokens of the phrases of a sentence
  tarn__forced all;          // of every line
  const char *const *words;  // [count] the texts that were given
  size_t count;
  tarn__forced *lines;  // [sentences] of a call
  size_t lines_room;
  tarn__arena memory, line_memory;  // of `all` and `words`; of `lines`
  tarn_vocab_ids ids;
  tarn__repaired repaired;
} tarn__forced_text;

// Copies the texts of every line. Fails with USAGE (a text has no token, one that is not in the vocabulary, or more
// than fit) or MEMORY. After a failure too, close.
tarn_status tarn__forced_text_open(tarn__forced_text *forced, const char *const *words, size_t count,
                                   const tarn_vocab *vocab, int64_t longest) TARN_CHECKED;
void tarn__forced_text_close(tarn__forced_text *forced);

// Begins a call with at most so many sentences.
tarn_status tarn__forced_text_begin(tarn__forced_text *forced, size_t sentences) TARN_CHECKED;
// The next sentence: `columns` [length] are texts separated by tabs, of which an empty one is none; NULL: it has none
// of its own. `replaced` is set if one had invalid UTF-8, which `strict` refuses. Fails with USAGE, as when it is
// opened, DATA or MEMORY.
tarn_status tarn__forced_text_add(tarn__forced_text *forced, size_t sentence, const char *columns, size_t length,
                                  bool strict, bool *replaced) TARN_CHECKED;

#endif
