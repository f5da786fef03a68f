#include "ops/fourier.h"

#include "graph/tangents.h"
#include "ops/offsets.h"

static tarn_status check(const tarn__node *node) {
  const tarn__tensor *offsets = node->in[TARN__FOURIER_OFFSETS];
  TARN_TRY(tarn__offsets_check(offsets, node->out[0]->rows, "fourier", "sentences"));
  const int64_t longest = ((const tarn__fourier_attr *)node->attr)->longest;
  for (int64_t s = 0; s + 1 < offsets->cols; s++)
    TARN_REQUIRE(offsets->host[s + 1] - offsets->host[s] <= longest, INTERNAL,
                 "fourier: sentence %lld has %d rows; expected at most %lld", (long long)s,
                 (int)(offsets->host[s + 1] - offsets->host[s]), (long long)longest);
  return TARN_STATUS_OK;
}

// Along the tokens of a sentence.
static double sentence_flops(int64_t n, int64_t d) {
  if (n == 0) return 0.0;
  const double cosines = (double)tarn__fourier_cosines(n) * (double)tarn__fourier_cosines(d);
  const double sines = (double)tarn__fourier_sines(n) * (double)tarn__fourier_sines(d);
  return 2.0 * (double)n * (cosines + sines);
}

// Exact if the offsets are known, else a bound.
static double flops(const tarn__node *node) {
  const tarn__tensor *y = node->out[0], *offsets = node->in[TARN__FOURIER_OFFSETS];
  double sum = 2.0 * (double)y->rows * (double)y->cols * (double)y->cols;
  const int64_t longest = ((const tarn__fourier_attr *)node->attr)->longest;
  if (!offsets->host)
    return sum + (longest ? sentence_flops(longest, y->cols) * (double)y->rows / (double)longest : 0.0);
  for (int64_t s = 0; s + 1 < offsets->cols; s++)
    sum += sentence_flops(offsets->host[s + 1] - offsets->host[s], y->cols);
  return sum;
}

static const tarn__op op_backward = {
    .id = TARN__OP_FOURIER, .name = "fourier_backward", .flops = flops, .check = check};

static void grad(tarn__graph *graph, tarn__node *node) {
  tarn__node *back = tarn__graph_node(graph, &op_backward, sizeof(tarn__fourier_attr));
  *(tarn__fourier_attr *)back->attr = *(const tarn__fourier_attr *)node->attr;
  back->in[TARN__FOURIER_X] = node->out[0]->grad;
  back->in[TARN__FOURIER_OFFSETS] = node->in[TARN__FOURIER_OFFSETS];
  back->out[0] = tarn__grad_into(graph, node->in[TARN__FOURIER_X], &back->in[TARN__FOURIER_PREVIOUS]);
  tarn__graph_emit(graph, back);
}

static void tangent(tarn__graph *graph, tarn__node *node) {
  node->out[0]->tangent = tarn__fourier(graph, node->in[TARN__FOURIER_X]->tangent,
                                        tarn__tangent_offsets(graph, node->in[TARN__FOURIER_OFFSETS]),
                                        ((const tarn__fourier_attr *)node->attr)->longest);
}

static const tarn__op op_fourier = {
    .id = TARN__OP_FOURIER, .name = "fourier", .grad = grad, .tangent = tangent, .flops = flops, .check = check};

tarn__tensor *tarn__fourier(tarn__graph *graph, tarn__tensor *x, tarn__tensor *offsets, int64_t longest) {
  if (offsets->cols < 1 || longest < 0 || x->cols < 1)
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "fourier: its inputs do not fit together");
  tarn__node *node = tarn__graph_node(graph, &op_fourier, sizeof(tarn__fourier_attr));
  *(tarn__fourier_attr *)node->attr = (tarn__fourier_attr){longest};
  node->in[TARN__FOURIER_X] = x;
  node->in[TARN__FOURIER_OFFSETS] = offsets;
  tarn__tensor *y = node->out[0] = tarn__graph_tensor(graph, x->dtype, x->rows, x->cols, "fourier");
  tarn__graph_emit(graph, node);
  return y;
}
