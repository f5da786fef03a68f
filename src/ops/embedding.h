// What the files of the op embedding share: attributes, places of inputs and outputs.
#ifndef TARN_OPS_EMBEDDING_H
#define TARN_OPS_EMBEDDING_H

#include "ops/dropout.h"
#include "ops/ops.h"

typedef struct tarn__embedding_attr {
  double scale;
  double steps;  // of sinusoids: from the frequency 1 to 1/10000, as tarn__embedding_turns() takes them
  tarn__dropout dropout;
} tarn__embedding_attr;

// positions may be NULL; learned, a table of them, too: then they are sinusoids.
enum { TARN__EMBEDDING_IDS, TARN__EMBEDDING_POSITIONS, TARN__EMBEDDING_TABLE, TARN__EMBEDDING_LEARNED };
// Either of the two tables; the numbers of its rows are the ids.
enum { TARN__EMBEDDING_BACKWARD_IDS, TARN__EMBEDDING_BACKWARD_DY };

// Angle of dimension i of position 1, in turns: frequency / (2 pi). `steps` is how many dimensions
// lie between the frequencies 1 and 1/10000.
static inline double tarn__embedding_turns(int64_t i, double steps) {
  return exp(-(double)i * log(10000.0) / steps) / 6.283185307179586476925;
}

// tarn__embedding() with sinusoids as in Marian and in the formula of Vaswani et al. 2017: frequencies exp(-i ln(10000)
// / (d/2)).
tarn__tensor *tarn__embedding_paper(tarn__graph *graph, tarn__tensor *ids, tarn__tensor *positions, tarn__param *table,
                                    double scale, double dropout);

#endif
