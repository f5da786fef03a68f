// A translation in the making, as a Levenshtein Transformer edits it (Gu et al. 2019), independent of any model: tokens
// between two borders, which stay. An iteration deletes tokens, inserts placeholders, and puts words in their place; it
// is the last one if it changes nothing.
#ifndef TARN_DECODE_DRAFT_H
#define TARN_DECODE_DRAFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

// Zero-initialise, or begin.
typedef struct tarn__draft {
  int32_t *ids;     // [length], the first and the last are borders
  float *values;    // [length] log-probabilities of the words when they were put in; borders 0
  int64_t length;   // 2 or more
  int64_t holes;    // placeholders among them
  int32_t *before;  // [before_length] the tokens at the start of the iteration
  int64_t before_length;
  int64_t iterations;  // so far
  bool done;
  int32_t *spare_ids;
  float *spare_values;
  size_t ids_room, values_room, before_room, spare_ids_room, spare_values_room;
} tarn__draft;

// An empty sentence: the two borders.
tarn_status tarn__draft_begin(tarn__draft *draft, int32_t first, int32_t last) TARN_CHECKED;
void tarn__draft_close(tarn__draft *draft);

// Begins an iteration.
tarn_status tarn__draft_iterate(tarn__draft *draft) TARN_CHECKED;
// deleted [length - 2]: whether each token but the borders is deleted.
void tarn__draft_delete(tarn__draft *draft, const int32_t *deleted);
// gaps [length - 1]: how many placeholders are inserted behind each token but the last; the draft gets at most
// `longest` tokens, with its borders (what is too many is left out at the end).
tarn_status tarn__draft_insert(tarn__draft *draft, const int32_t *gaps, int32_t placeholder,
                               int64_t longest) TARN_CHECKED;
// Puts words [holes] and their log-probabilities in the place of all placeholders.
void tarn__draft_fill(tarn__draft *draft, int32_t placeholder, const int32_t *words, const float *values);
// Ends an iteration: done if nothing has changed, or after `most` iterations.
void tarn__draft_judge(tarn__draft *draft, int64_t most);

#endif
