// Inside of drawing the next token (ops/ops.h: tarn__sample_rows()).
//   sample   in: values, ids or NULL, draws   out: log-probabilities [N, 2], ids [N, 1]
#ifndef TARN_OPS_SAMPLE_H
#define TARN_OPS_SAMPLE_H

#include <string.h>

#include "graph/graph.h"
#include "ops/ops.h"
#include "ops/sampler.h"

enum { TARN__SAMPLE_VALUES, TARN__SAMPLE_IDS, TARN__SAMPLE_DRAWS };

typedef tarn__sample_spec tarn__sample_attr;

// How a draw is made.
static inline TARN__HOST_DEVICE tarn__sampling tarn__draw_how(const int32_t *draw) {
  tarn__sampling how;
  memcpy(&how, draw + TARN__DRAW_HOW, sizeof how);
  return how;
}

// Candidates of a row.
static inline int64_t tarn__sample_width(const tarn__node *node) {
  return node->in[TARN__SAMPLE_IDS] ? node->in[TARN__SAMPLE_IDS]->cols : node->in[TARN__SAMPLE_VALUES]->cols;
}

// One draw from the log-probabilities `row` of the row that it names. `room`: for the candidates of a row. The result
// goes to *id and values [2].
void tarn__sample_draw(const tarn__node *node, int64_t draw, const float *row, tarn__candidate *room, int32_t *id,
                       float *values);

#endif
