// Tangents of a model's final ops: one op in three forms.
//   LOG_PROBABILITIES  dp [k R, V] = d - sum over words of exp(saved) d: d [k R, V] is that of the logits, and
//                      saved [R, V] the log-probabilities
//   LOSS               dloss [k, 2], F64, of both losses of output_loss: sums over rows and words of
//                      (exp(saved) - wanted) d; and those of the rows, [k R, 2] or NULL
//   SQUARES            dloss [k, 2], F64, two times the sum over rows of 2 (saved - value) d: d [k R, 1] is that of the
//                      numbers saved [R, 1]
#ifndef TARN_OPS_OUTPUT_TANGENT_H
#define TARN_OPS_OUTPUT_TANGENT_H

#include "graph/graph.h"

typedef enum tarn__output_tangent_form {
  TARN__OUTPUT_TANGENT_LOG_PROBABILITIES,
  TARN__OUTPUT_TANGENT_LOSS,
  TARN__OUTPUT_TANGENT_SQUARES
} tarn__output_tangent_form;

typedef struct tarn__output_tangent_attr {
  double smoothing;  // LOSS
  int64_t form;      // as wide as the smoothing, so that no byte is unset
} tarn__output_tangent_attr;

// TARGETS: words or values of the rows; LOG_PROBABILITIES: NULL.
enum { TARN__OUTPUT_TANGENT_D, TARN__OUTPUT_TANGENT_SAVED, TARN__OUTPUT_TANGENT_TARGETS };
enum { TARN__OUTPUT_TANGENT_RESULT, TARN__OUTPUT_TANGENT_ROWS };

// Appends a node with the tangents of `result` and `rows` (NULL: not wanted).
void tarn__output_tangent(tarn__graph *graph, tarn__output_tangent_attr attr, tarn__tensor *d, tarn__tensor *saved,
                          tarn__tensor *targets, tarn__tensor *result, tarn__tensor *rows);

#endif
