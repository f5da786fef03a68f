// The sentences of a prefix language model: source and target as one sequence (parts/prefix.h).
#ifndef TARN_MODEL_JOINED_H
#define TARN_MODEL_JOINED_H

#include "model/model.h"
#include "parts/prefix.h"

typedef struct tarn__joined {
  tarn__packed packed;              // without ids
  const int32_t *target_positions;  // [rows of the target], behind those of the source; NULL where the graph is planned
  tarn__prefix prefix;
} tarn__joined;

tarn__joined tarn__joined_of(tarn__graph *graph, const tarn__packed *source, const tarn__packed *target);

#endif
