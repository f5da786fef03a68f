// The only op that differentiation itself needs: sum = a + b, element-wise, overwriting a.
#include "graph/add.h"

#include "graph/tangents.h"

static void tangent(tarn__graph *graph, tarn__node *node) {
  tarn__tangent_add(graph, node->out[0], node->in[0]->tangent);
  tarn__tangent_add(graph, node->out[0], node->in[1]->tangent);
}

const tarn__op tarn__op_add = {
    .id = TARN__OP_ADD, .name = "add", .tangent = tangent, .in_place = true, .inplace_out = 0, .inplace_in = 0};
