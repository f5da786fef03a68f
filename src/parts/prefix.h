// Sentences that begin with a source, all of which sees itself, and go on with a target that sees the source and its
// own earlier tokens: those of a prefix language model. The rows of each side also stand by themselves, packed.
#ifndef TARN_PARTS_PREFIX_H
#define TARN_PARTS_PREFIX_H

#include "graph/graph.h"

typedef struct tarn__prefix {
  tarn__tensor *source_rows, *target_rows;      // I32, numbers of the rows of each side among all
  tarn__tensor *source_places, *target_places;  // offsets [1, R + 1]: of each of all rows its row of that side, or none
  tarn__tensor *source_offsets;                 // of sentences among the rows of the source
  int64_t source_longest;
} tarn__prefix;

// The rows of both sides [S, d] and [T, d] in their places among all, [S + T, d].
tarn__tensor *tarn__prefix_join(tarn__graph *graph, const tarn__prefix *prefix, tarn__tensor *source,
                                tarn__tensor *target);

#endif
