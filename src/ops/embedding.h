// Shared by the files of the op embedding: attributes, indices of inputs and outputs.
#ifndef TARN_OPS_EMBEDDING_H
#define TARN_OPS_EMBEDDING_H

#include "ops/dropout.h"
#include "ops/ops.h"

typedef struct tarn__embedding_attr {
  double scale;
  double steps;  // of sinusoids: dimensions between the frequencies 1 and 1/10000, for tarn__embedding_turns()
  tarn__dropout dropout;
  uint32_t shift, shift_site;  // of tarn__embedding_shifted(), in training; else 0
  int64_t first;               // sinusoids of a sentence begin at this position, of tarn__embedding_from(); else 0
} tarn__embedding_attr;

// positions may be NULL; learned, their table, too: then they are sinusoids. An untrained table without rows counts as
// zeros for all ids: only positions are looked up.
enum { TARN__EMBEDDING_IDS, TARN__EMBEDDING_POSITIONS, TARN__EMBEDDING_TABLE, TARN__EMBEDDING_LEARNED };
// Either of the two tables; the ids are its row numbers.
enum { TARN__EMBEDDING_BACKWARD_IDS, TARN__EMBEDDING_BACKWARD_DY };

// Angle of dimension i of position 1, in turns: frequency / (2 pi). `steps` is how many dimensions
// lie between the frequencies 1 and 1/10000.
static inline double tarn__embedding_turns(int64_t i, double steps) {
  return exp(-(double)i * log(10000.0) / steps) / 6.283185307179586476925;
}

// The shift of the positions of the sentence whose first row is `first`: uniform in 0 .. attr->shift, by (seed, step,
// site, first row), so that every row of a sentence gets the same number.
static inline int64_t tarn__embedding_shift(const tarn__embedding_attr *attr, const tarn__exec *exec, int64_t first) {
  if (attr->shift == 0) return 0;
  const uint32_t counter[4] = {0, (uint32_t)first, attr->shift_site, exec->step};
  const uint32_t key[2] = {(uint32_t)exec->seed, (uint32_t)(exec->seed >> 32)};
  uint32_t words[4];
  tarn__philox(words, counter, key);
  return (int64_t)((uint64_t)words[0] * ((uint64_t)attr->shift + 1) >> 32);
}

// tarn__embedding() with sinusoids whose positions are shifted in training, by a number in 0 .. shift drawn for each
// sentence and step (SHAPE: Kiyono et al. 2021). A sentence begins where its positions do: the row with position 0 is
// `position` rows before. shift < 2^31.
tarn__tensor *tarn__embedding_shifted(tarn__graph *graph, tarn__tensor *ids, tarn__tensor *positions,
                                      tarn__param *table, double scale, int64_t shift, double dropout);

// tarn__embedding() with sinusoids whose positions begin at `first`, 0 .. 2^24.
tarn__tensor *tarn__embedding_from(tarn__graph *graph, tarn__tensor *ids, tarn__tensor *positions, tarn__param *table,
                                   double scale, int64_t first, double dropout);

// tarn__embedding() with sinusoids as in Marian and in the formula of Vaswani et al. 2017: frequencies exp(-i ln(10000)
// / (d/2)).
tarn__tensor *tarn__embedding_paper(tarn__graph *graph, tarn__tensor *ids, tarn__tensor *positions, tarn__param *table,
                                    double scale, double dropout);

#endif
