#include "ops/pixels.h"

// Data do not depend on a parameter.
static void no_gradient(tarn__graph *graph, tarn__node *node) {
  (void)graph;
  (void)node;
}

static const tarn__op op_pixels = {.id = TARN__OP_PIXELS, .name = "pixels", .grad = no_gradient, .cheap = true};

tarn__tensor *tarn__pixels(tarn__graph *graph, tarn__tensor *bytes, tarn__tensor *ids, int64_t width) {
  if (bytes->dtype != TARN__I32 || ids->dtype != TARN__I32 || width < 1 ||
      bytes->cols != tarn__pixel_words(ids->cols * width))
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "pixels: %lld integers are not %lld rows of %lld bytes",
                     (long long)bytes->cols, (long long)ids->cols, (long long)width);
  tarn__node *node = tarn__graph_node(graph, &op_pixels, 0);
  node->in[TARN__PIXELS_BYTES] = bytes;
  node->in[TARN__PIXELS_IDS] = ids;
  tarn__tensor *x = node->out[0] = tarn__graph_tensor(graph, graph->dtype, ids->cols, width, "pixels");
  tarn__graph_emit(graph, node);
  return x;
}
