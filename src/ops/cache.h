// Shared by the files of the op cache_append: attributes, indices of inputs.
#ifndef TARN_OPS_CACHE_H
#define TARN_OPS_CACHE_H

#include "graph/graph.h"

// For caches that several tensors fill side by side: copies `cols` columns of x [R, *] from `column` on to the columns
// of the cache from `to` on, otherwise like tarn__cache_append().
tarn__tensor *tarn__cache_append_columns(tarn__graph *graph, tarn__tensor *x, int64_t column, int64_t cols,
                                         tarn__tensor *cache, int64_t to, int64_t first_row);

typedef struct tarn__cache_attr {
  int64_t column, first_row, cols, to;
} tarn__cache_attr;

enum { TARN__CACHE_X, TARN__CACHE_CACHE };

#endif
