// The table of comparisons under a sequential design.
#ifndef TARN_TOOLS_SEQUENTIAL_TEXT_H
#define TARN_TOOLS_SEQUENTIAL_TEXT_H

#include "tarn/lab/sequential.h"
#include "text_table.h"

// The row of heads, above the names with this one.
void sequential_text_heads(text_table *table, const char *first);
// A row: name, looks, seeds, difference, interval, p of difference and equivalence, and `words`. `digits` after the
// point; below 0: four in all.
void sequential_text_row(text_table *table, const char *name, const tarn_sequential_verdict *verdict,
                         const tarn_sequential_design *design, int digits, const char *words);

#endif
