// Inside of choosing from logits that are in memory (ops/ops.h: tarn__best_rows(), tarn__pick_rows()).
//   best_rows   in: logits [N, V]                        out: log-probabilities [N, best + 1], ids [N, best]
//   pick_rows   in: logits [N, V], ids [M, K], numbers   out: log-probabilities [M, K + 1]
#ifndef TARN_OPS_PICK_H
#define TARN_OPS_PICK_H

#include "graph/graph.h"

enum { TARN__PICK_LOGITS, TARN__PICK_IDS, TARN__PICK_NUMBERS };

// Of pick_rows; best_rows has that of output_top.
typedef struct tarn__pick_attr {
  int32_t always;
} tarn__pick_attr;

#endif
