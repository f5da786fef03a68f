// The edits of TER (Snover et al., AMTA 2006): how many words of a hypothesis must be inserted, deleted, substituted,
// or moved in blocks, to make it the reference. Finding the smallest number is NP-hard; this is Tercom's greedy search
// with the limits of sacreBLEU's lib_ter.py, so the numbers equal sacreBLEU's.
#ifndef TARN_EVAL_TER_EDITS_H
#define TARN_EVAL_TER_EDITS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum {
  TARN__TER_BEAM = 25,          // cells of the edit distance on each side of the diagonal
  TARN__TER_BLOCK = 10,         // longest moved block, in words
  TARN__TER_DISTANCE = 50,      // largest distance of a block from its place in the reference, in words
  TARN__TER_CANDIDATES = 1000,  // moves tried per pair; the round that reaches it is abandoned
  TARN__TER_WORDS = 1 << 28     // most words of a line
};

// Arrays kept between pairs; zero-initialise.
typedef struct tarn__ter_edits {
  int32_t *cells;   // rows of the edit distance of the current hypothesis, each with its window only
  int32_t *rows;    // two rows of a candidate
  uint32_t *words;  // the current hypothesis, then a candidate
  int32_t *align;   // for each word of the reference, the last consumed word of the hypothesis, or -1
  int32_t *wrong;   // errors before each word of the hypothesis, then of the reference (prefix sums)
  size_t cells_capacity, rows_capacity, words_capacity, align_capacity, wrong_capacity;
} tarn__ter_edits;
void tarn__ter_edits_close(tarn__ter_edits *edits);

// Sets *number to the edits between two sequences of words, compared by their symbols. Takes O((hypothesis + reference)
// * beam * candidates) time at most. Fails with DATA (too many words) or MEMORY.
tarn_status tarn__ter_edits_count(tarn__ter_edits *edits, int64_t *number, const uint32_t *hypothesis,
                                  size_t hypothesis_count, const uint32_t *reference,
                                  size_t reference_count) TARN_CHECKED;

#endif
