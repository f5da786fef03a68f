#include "ops/sentence_product.h"

#include "graph/tangents.h"
#include "ops/offsets.h"
#include "ops/repeat.h"

static bool is_outer(const tarn__node *node) {
  return node->op->id == TARN__OP_SENTENCE_OUTER || node->op->id == TARN__OP_SENTENCE_OUTER_BACKWARD;
}

// Fails with INTERNAL unless the sentences cover all rows and none is longer than planned.
static tarn_status check(const tarn__node *node) {
  const tarn__tensor *a = node->in[TARN__SENTENCE_A], *offsets = node->in[TARN__SENTENCE_OFFSETS];
  const int64_t longest = ((const tarn__sentence_spec *)node->attr)->longest;
  TARN_TRY(tarn__offsets_check(offsets, a->rows, node->op->name, "sentences"));
  for (int64_t s = 0; s + 1 < offsets->cols; s++)
    TARN_REQUIRE(offsets->host[s + 1] - offsets->host[s] <= longest, INTERNAL,
                 "%s: sentence %lld has %d rows; the plan allows %lld", node->op->name, (long long)s,
                 (int)(offsets->host[s + 1] - offsets->host[s]), (long long)longest);
  return TARN_STATUS_OK;
}

// Each of the three products has one multiplication for every row, column of x and row of z of its head.
static double flops(const tarn__node *node) {
  const tarn__sentence_spec *spec = node->attr;
  const tarn__tensor *a = node->in[TARN__SENTENCE_A];
  tarn__sentence_task tasks[2];
  return 2.0 * tarn__sentence_tasks(tasks, node) * (double)a->rows * (double)(a->cols / spec->heads) * (double)spec->d;
}

static const tarn__op op_outer_backward = {
    .id = TARN__OP_SENTENCE_OUTER_BACKWARD, .name = "sentence_outer_backward", .flops = flops, .check = check};
static const tarn__op op_product_backward = {
    .id = TARN__OP_SENTENCE_PRODUCT_BACKWARD, .name = "sentence_product_backward", .flops = flops, .check = check};

static void grad(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *a = node->in[TARN__SENTENCE_A], *factor = node->in[TARN__SENTENCE_FACTOR];
  tarn__node *back =
      tarn__graph_node(graph, is_outer(node) ? &op_outer_backward : &op_product_backward, sizeof(tarn__sentence_spec));
  *(tarn__sentence_spec *)back->attr = *(const tarn__sentence_spec *)node->attr;
  back->in[TARN__SENTENCE_A] = a;
  if (a->needs_grad) back->in[TARN__SENTENCE_FACTOR] = factor;
  back->in[TARN__SENTENCE_OFFSETS] = node->in[TARN__SENTENCE_OFFSETS];
  back->in[TARN__SENTENCE_DY] = node->out[0]->grad;
  if (a->needs_grad) back->out[TARN__SENTENCE_DA] = tarn__grad_into(graph, a, &back->in[TARN__SENTENCE_PREVIOUS_A]);
  if (factor->needs_grad)
    back->out[TARN__SENTENCE_DFACTOR] = tarn__grad_into(graph, factor, &back->in[TARN__SENTENCE_PREVIOUS_FACTOR]);
  tarn__graph_emit(graph, back);
}

static void tangent(tarn__graph *graph, tarn__node *node);

static const tarn__op op_outer = {.id = TARN__OP_SENTENCE_OUTER,
                                  .name = "sentence_outer",
                                  .grad = grad,
                                  .tangent = tangent,
                                  .flops = flops,
                                  .check = check};
static const tarn__op op_product = {.id = TARN__OP_SENTENCE_PRODUCT,
                                    .name = "sentence_product",
                                    .grad = grad,
                                    .tangent = tangent,
                                    .flops = flops,
                                    .check = check};

static tarn__tensor *build(tarn__graph *graph, const tarn__op *op, tarn__tensor *a, tarn__tensor *factor,
                           tarn__tensor *offsets, tarn__sentence_spec spec) {
  const bool outer = op == &op_outer;
  const int64_t h = spec.heads > 0 ? a->cols / spec.heads : 0, sentences = offsets->cols - 1;
  bool fits = h > 0 && a->cols == spec.heads * h && spec.d > 0 && spec.d % spec.heads == 0 && spec.longest >= 0 &&
              a->dtype == factor->dtype && offsets->dtype == TARN__I32 && sentences >= 0;
  fits = fits && (outer ? factor->rows == a->rows && spec.column >= 0 && spec.column <= factor->cols - spec.d
                        : factor->rows == sentences * h && factor->cols == spec.d && spec.column == 0);
  if (!fits) tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "%s: its inputs do not fit together", op->name);
  tarn__node *node = tarn__graph_node(graph, op, sizeof spec);
  *(tarn__sentence_spec *)node->attr = spec;
  node->in[TARN__SENTENCE_A] = a;
  node->in[TARN__SENTENCE_FACTOR] = factor;
  node->in[TARN__SENTENCE_OFFSETS] = offsets;
  node->out[0] = tarn__graph_tensor(graph, a->dtype, outer ? sentences * h : a->rows, spec.d, op->name);
  tarn__graph_emit(graph, node);
  return node->out[0];
}

// The products of each factor's directions with the other factor.
static void tangent(tarn__graph *graph, tarn__node *node) {
  const tarn__sentence_spec *spec = node->attr;
  tarn__tensor *a = node->in[TARN__SENTENCE_A], *factor = node->in[TARN__SENTENCE_FACTOR], *y = node->out[0];
  tarn__tensor *offsets = tarn__tangent_offsets(graph, node->in[TARN__SENTENCE_OFFSETS]);
  if (a->tangent)
    tarn__tangent_add(graph, y, build(graph, node->op, a->tangent, tarn__repeat(graph, factor), offsets, *spec));
  if (factor->tangent)
    tarn__tangent_add(graph, y, build(graph, node->op, tarn__repeat(graph, a), factor->tangent, offsets, *spec));
}

tarn__tensor *tarn__sentence_outer(tarn__graph *graph, tarn__tensor *a, tarn__tensor *x, tarn__tensor *offsets,
                                   tarn__sentence_spec spec) {
  return build(graph, &op_outer, a, x, offsets, spec);
}

tarn__tensor *tarn__sentence_product(tarn__graph *graph, tarn__tensor *a, tarn__tensor *z, tarn__tensor *offsets,
                                     tarn__sentence_spec spec) {
  return build(graph, &op_product, a, z, offsets, spec);
}
