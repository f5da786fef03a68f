// Rows of a matrix by number.
#include <string.h>

#include "ops/ops.h"

// Copying is the same for every device and dtype.
static tarn_status select_rows(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *x = node->in[0], *rows = node->in[1];
  const size_t bytes = (size_t)x->cols * tarn__dtype_size(x->dtype);
  const int32_t *numbers = rows->data;
  char *out = node->out[0]->data;
  for (int64_t i = 0; i < rows->cols; i++) {
    TARN_REQUIRE(numbers[i] >= 0 && numbers[i] < x->rows, INTERNAL, "there is no row %d to select", numbers[i]);
    memcpy(out + (size_t)i * bytes, (const char *)x->data + (size_t)numbers[i] * bytes, bytes);
  }
  return TARN_STATUS_OK;
}

static const tarn__op op_select_rows = {
    .name = "select_rows", .reference_f32 = select_rows, .reference_f64 = select_rows, .cpu = select_rows};

tarn__tensor *tarn__select_rows(tarn__graph *graph, tarn__tensor *x, tarn__tensor *rows) {
  if (rows->dtype != TARN__I32)
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "select_rows: the numbers of rows are not integers");
  tarn__node *node = tarn__graph_node(graph, &op_select_rows, 0);
  node->in[0] = x;
  node->in[1] = rows;
  tarn__tensor *out = node->out[0] = tarn__graph_tensor(graph, x->dtype, rows->cols, x->cols, "selected rows");
  tarn__graph_emit(graph, node);
  return out;
}
