// What the files of the op cache_append share: attributes, places of inputs.
#ifndef TARN_OPS_CACHE_H
#define TARN_OPS_CACHE_H

#include "graph/graph.h"

// Of cache_append for caches that several tensors fill side by side: `cols` columns of x [R, *] from `column` on go to
// the columns of the cache from `to` on. The rest is as with tarn__cache_append().
tarn__tensor *tarn__cache_append_columns(tarn__graph *graph, tarn__tensor *x, int64_t column, int64_t cols,
                                         tarn__tensor *cache, int64_t to, int64_t first_row);

typedef struct tarn__cache_attr {
  int64_t column, first_row, cols, to;
} tarn__cache_attr;

enum { TARN__CACHE_X, TARN__CACHE_CACHE };

#endif
