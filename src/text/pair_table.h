// Merges of byte-pair encoding: the token that two neighbours become, and its priority.
#ifndef TARN_TEXT_PAIR_TABLE_H
#define TARN_TEXT_PAIR_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "tarn/vocab.h"

typedef struct tarn__merge {
  int32_t left, right, product;
} tarn__merge;

// Zero-initialise. The number of a merge is its rank: lower ones come first.
typedef struct tarn__pair_table {
  tarn__merge *merges;
  size_t capacity;
  tarn__index index;  // by pair
} tarn__pair_table;

void tarn__pair_table_close(tarn__pair_table *table);

// Adds the next merge; *fresh is false, and nothing happens, if the pair exists already.
tarn_status tarn__pair_table_add(tarn__pair_table *table, bool *fresh, const tarn__merge *merge) TARN_CHECKED;

// Applies the merge of lowest rank, at its leftmost place, to ids[0 .. *count-1] until there is none, in n log n steps.
tarn_status tarn__pair_table_apply(const tarn__pair_table *table, int32_t *ids, size_t *count) TARN_CHECKED;

#endif
