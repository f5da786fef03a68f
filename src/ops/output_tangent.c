#include "ops/output_tangent.h"

#include "graph/tangents.h"

static const tarn__op op_tangent = {.id = TARN__OP_OUTPUT_TANGENT,
                                    .name = "output_tangent",
                                    .in_place = true,
                                    .inplace_out = TARN__OUTPUT_TANGENT_RESULT,
                                    .inplace_in = TARN__OUTPUT_TANGENT_D};

void tarn__output_tangent(tarn__graph *graph, tarn__output_tangent_attr attr, tarn__tensor *d, tarn__tensor *saved,
                          tarn__tensor *targets, tarn__tensor *result, tarn__tensor *rows) {
  tarn__node *push = tarn__graph_node(graph, &op_tangent, sizeof attr);
  *(tarn__output_tangent_attr *)push->attr = attr;
  push->in[TARN__OUTPUT_TANGENT_D] = d;
  push->in[TARN__OUTPUT_TANGENT_SAVED] = saved;
  push->in[TARN__OUTPUT_TANGENT_TARGETS] = targets;
  push->out[TARN__OUTPUT_TANGENT_RESULT] = result->tangent = tarn__tangent_new(graph, result, "tangent of output");
  if (rows) push->out[TARN__OUTPUT_TANGENT_ROWS] = rows->tangent = tarn__tangent_new(graph, rows, "tangent of losses");
  tarn__graph_emit(graph, push);
}
