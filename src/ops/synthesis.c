#include "ops/synthesis.h"

#include "graph/tangents.h"
#include "ops/linear.h"
#include "ops/offsets.h"

// Fails with INTERNAL unless the sentences cover all rows and are no longer than planned.
static tarn_status check(const tarn__node *node) {
  const tarn__synthesis_spec *spec = node->attr;
  const tarn__tensor *offsets = node->in[TARN__SYNTHESIS_OFFSETS];
  TARN_TRY(tarn__offsets_check(offsets, node->in[TARN__SYNTHESIS_X]->rows, node->op->name, "sentences"));
  for (int64_t s = 0; s + 1 < offsets->cols; s++)
    TARN_REQUIRE(offsets->host[s + 1] - offsets->host[s] <= spec->longest, INTERNAL,
                 "%s: sentence %lld has %d tokens; the plan allows %lld", node->op->name, (long long)s,
                 (int)(offsets->host[s + 1] - offsets->host[s]), (long long)spec->longest);
  return TARN_STATUS_OK;
}

// Pairs of a token and one that it sees: exact if the offsets are known, else a bound.
static double pairs(const tarn__node *node) {
  const tarn__synthesis_spec *spec = node->attr;
  const tarn__tensor *offsets = node->in[TARN__SYNTHESIS_OFFSETS];
  const int32_t *offset = offsets->host;
  if (!offset) return (double)node->in[TARN__SYNTHESIS_X]->rows * (double)spec->longest;
  double sum = 0.0;
  for (int64_t s = 0; s + 1 < offsets->cols; s++) {
    const double n = offset[s + 1] - offset[s];
    sum += spec->causal ? n * (n + 1.0) / 2.0 : n * n;
  }
  return sum;
}

// Multiplications per pair: its logit, its score.
static double logit_terms(const tarn__node *node) {
  const tarn__synthesis_spec *spec = node->attr;
  return spec->form == TARN__SYNTHESIS_DENSE ? (double)node->in[TARN__SYNTHESIS_SOURCE]->cols : 0.0;
}

static double score_terms(const tarn__node *node) {
  return node->in[TARN__SYNTHESIS_MIX] ? (double)((const tarn__synthesis_spec *)node->attr)->d : 0.0;
}

static double flops(const tarn__node *node) {
  const double d = (double)((const tarn__synthesis_spec *)node->attr)->d;
  return 2.0 * pairs(node) * (logit_terms(node) + score_terms(node) + d);
}

// Logits and scores again and the gradient of the weights; then the products for the wanted gradients.
static double backward_flops(const tarn__node *node) {
  const double d = (double)((const tarn__synthesis_spec *)node->attr)->d;
  double terms = logit_terms(node) + score_terms(node) + d;
  if (node->out[TARN__SYNTHESIS_DX]) terms += d + 2.0 * score_terms(node);
  if (node->out[TARN__SYNTHESIS_DSOURCE]) terms += logit_terms(node);
  if (node->dparam[TARN__SYNTHESIS_DWEIGHT]) terms += logit_terms(node);
  return 2.0 * pairs(node) * terms;
}

static const tarn__op op_backward = {
    .id = TARN__OP_SYNTHESIS_BACKWARD, .name = "synthesis_backward", .flops = backward_flops, .check = check};

static void grad(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *x = node->in[TARN__SYNTHESIS_X], *source = node->in[TARN__SYNTHESIS_SOURCE];
  const tarn__tensor *weight = node->in[TARN__SYNTHESIS_WEIGHT], *bias = node->in[TARN__SYNTHESIS_BIAS];
  const tarn__tensor *mix = node->in[TARN__SYNTHESIS_MIX];
  tarn__node *back = tarn__graph_node(graph, &op_backward, sizeof(tarn__synthesis_spec));
  *(tarn__synthesis_spec *)back->attr = *(const tarn__synthesis_spec *)node->attr;
  for (int i = 0; i <= TARN__SYNTHESIS_OFFSETS; i++) back->in[i] = node->in[i];
  back->in[TARN__SYNTHESIS_DY] = node->out[0]->grad;
  if (x->needs_grad) back->out[TARN__SYNTHESIS_DX] = tarn__grad_into(graph, x, &back->in[TARN__SYNTHESIS_PREVIOUS_X]);
  if (source && source->needs_grad)
    back->out[TARN__SYNTHESIS_DSOURCE] = tarn__grad_into(graph, source, &back->in[TARN__SYNTHESIS_PREVIOUS_SOURCE]);
  if (weight && weight->needs_grad) back->dparam[TARN__SYNTHESIS_DWEIGHT] = weight->param;
  if (bias && bias->needs_grad) back->dparam[TARN__SYNTHESIS_DBIAS] = bias->param;
  const bool mixes = mix && mix->needs_grad;
  if (mixes)
    back->out[TARN__SYNTHESIS_DMIX] =
        tarn__graph_tensor(graph, graph->dtype == TARN__F64 ? TARN__F64 : TARN__F32, 1, 2, "gradient of a mix");
  tarn__graph_emit(graph, back);
  // A row of numbers as a vector, whose gradient is that of the bias of one row.
  if (mixes) tarn__linear_dz(graph, back->out[TARN__SYNTHESIS_DMIX], NULL, mix->param, TARN__IDENTITY);
}

// Logits and scores again; for each direction their tangents, and two means.
static double tangent_flops(const tarn__node *node) {
  const double d = (double)((const tarn__synthesis_spec *)node->attr)->d;
  const double directions = (double)tarn__tangent_directions(node->out[0], node->in[TARN__SYNTHESIS_X]->rows);
  const double logits = node->in[TARN__SYNTHESIS_TANGENT_SOURCE] ? logit_terms(node) : 0.0;
  const double moving = logits + 2.0 * score_terms(node) + 2.0 * d;
  return 2.0 * pairs(node) * (logit_terms(node) + score_terms(node) + directions * moving);
}

static const tarn__op op_tangent = {
    .id = TARN__OP_SYNTHESIS_TANGENT, .name = "synthesis_tangent", .flops = tangent_flops, .check = check};

static void tangent(tarn__graph *graph, tarn__node *node) {
  const tarn__synthesis_spec *spec = node->attr;
  const tarn__tensor *weight = node->in[TARN__SYNTHESIS_WEIGHT];
  tarn__tensor *x = node->in[TARN__SYNTHESIS_X], *source = node->in[TARN__SYNTHESIS_SOURCE], *y = node->out[0];
  // The weights do not depend on the tokens: linear in x.
  if (spec->form == TARN__SYNTHESIS_RANDOM && !node->in[TARN__SYNTHESIS_MIX]) {
    y->tangent = tarn__synthesis(graph, x->tangent, (tarn__synthesis_logits){.weight = weight->param},
                                 tarn__tangent_offsets(graph, node->in[TARN__SYNTHESIS_OFFSETS]), *spec);
    return;
  }
  tarn__node *push = tarn__graph_node(graph, &op_tangent, sizeof *spec);
  *(tarn__synthesis_spec *)push->attr = *spec;
  for (int i = 0; i <= TARN__SYNTHESIS_OFFSETS; i++) push->in[i] = node->in[i];
  push->in[TARN__SYNTHESIS_TANGENT_X] = x->tangent;
  push->in[TARN__SYNTHESIS_TANGENT_SOURCE] = source ? source->tangent : NULL;
  push->out[0] = y->tangent = tarn__tangent_new(graph, y, "tangent of synthesis");
  tarn__graph_emit(graph, push);
}

static const tarn__op op_synthesis = {.id = TARN__OP_SYNTHESIS,
                                      .name = "synthesis",
                                      .grad = grad,
                                      .tangent = tangent,
                                      .flops = flops,
                                      .cheap = true,
                                      .check = check};

// Checks the ranges, the rows that they name, and the number of places.
static tarn_status check_rows(const tarn__node *node) {
  const tarn__synthesis_spec *spec = node->attr;
  const tarn__tensor *ranges = node->in[TARN__SYNTHESIS_RANGES];
  const int64_t rows = node->in[TARN__SYNTHESIS_X]->rows;
  TARN_TRY(tarn__ranges_check(node->in[TARN__SYNTHESIS_LIST], ranges, rows, node->in[TARN__SYNTHESIS_CACHE]->rows,
                              node->op->name));
  for (int64_t i = 0; i < rows; i++)
    TARN_REQUIRE(ranges->host[2 * i + 1] - ranges->host[2 * i] <= spec->longest, INTERNAL,
                 "%s: row %lld sees %d rows; the plan allows %lld", node->op->name, (long long)i,
                 (int)(ranges->host[2 * i + 1] - ranges->host[2 * i]), (long long)spec->longest);
  return TARN_STATUS_OK;
}

static double rows_seen(const tarn__node *node) {
  return tarn__ranges_rows(node->in[TARN__SYNTHESIS_RANGES], ((const tarn__synthesis_spec *)node->attr)->longest);
}

static double rows_flops(const tarn__node *node) {
  const double d = (double)((const tarn__synthesis_spec *)node->attr)->d;
  return 2.0 * rows_seen(node) * (logit_terms(node) + score_terms(node) + d);
}

// The seen rows of the cache, and at most a row of terms of the weights for each.
static double rows_bytes(const tarn__node *node) {
  const tarn__synthesis_spec *spec = node->attr;
  const tarn__tensor *cache = node->in[TARN__SYNTHESIS_CACHE], *y = node->out[0];
  const double size = (double)tarn__dtype_size(y->dtype);
  const double weights = spec->form == TARN__SYNTHESIS_DENSE    ? (double)spec->longest * logit_terms(node)
                         : spec->form == TARN__SYNTHESIS_RANDOM ? rows_seen(node) * (double)spec->heads
                                                                : 0.0;
  return size * (rows_seen(node) * (double)cache->cols + weights) + 2.0 * tarn__tensor_bytes(y) +
         tarn__tensor_bytes(node->in[TARN__SYNTHESIS_SOURCE]);
}

static const tarn__op op_rows = {.id = TARN__OP_SYNTHESIS_ROWS,
                                 .name = "synthesis_rows",
                                 .flops = rows_flops,
                                 .bytes = rows_bytes,
                                 .check = check_rows};

// Whether the sources of the logits have the shapes for the form, with `rows` rows.
static bool logits_fit(const tarn__synthesis_logits *l, int64_t rows, const tarn__synthesis_spec *spec) {
  const bool dense = spec->form == TARN__SYNTHESIS_DENSE, random = spec->form == TARN__SYNTHESIS_RANDOM;
  if (spec->heads < 1 || spec->d < 1 || spec->d % spec->heads != 0 || spec->longest < 0 || spec->longest > spec->places)
    return false;
  if (random != (l->source == NULL) || (dense || random) != (l->weight != NULL) || (l->bias && !dense)) return false;
  if (l->mix && (l->mix->rows != 1 || l->mix->cols != 2)) return false;
  if (random) return l->weight->rows == spec->heads * spec->places && l->weight->cols == spec->places;
  if (l->source->rows != rows || l->source->cols % spec->heads != 0) return false;
  const int64_t width = l->source->cols / spec->heads;
  if (dense)
    return l->weight->rows == spec->heads * spec->places && l->weight->cols == width &&
           (!l->bias || (l->bias->rows == 1 && l->bias->cols == l->weight->rows));
  return spec->left > 0 && spec->left < width && (width - spec->left) * spec->left >= spec->places;
}

static tarn__node *new_node(tarn__graph *graph, const tarn__op *op, tarn__tensor *x, tarn__synthesis_logits logits,
                            tarn__synthesis_spec spec, bool fits) {
  fits = fits && logits_fit(&logits, x->rows, &spec) && (!logits.source || logits.source->dtype == x->dtype);
  if (!fits) tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "%s: its inputs do not fit together", op->name);
  tarn__node *node = tarn__graph_node(graph, op, sizeof spec);
  *(tarn__synthesis_spec *)node->attr = spec;
  node->in[TARN__SYNTHESIS_X] = x;
  node->in[TARN__SYNTHESIS_SOURCE] = logits.source;
  if (logits.weight) node->in[TARN__SYNTHESIS_WEIGHT] = tarn__graph_param(graph, logits.weight);
  if (logits.bias) node->in[TARN__SYNTHESIS_BIAS] = tarn__graph_param(graph, logits.bias);
  if (logits.mix) node->in[TARN__SYNTHESIS_MIX] = tarn__graph_param(graph, logits.mix);
  node->out[0] = tarn__graph_tensor(graph, x->dtype, x->rows, spec.d, "synthesis");
  return node;
}

tarn__tensor *tarn__synthesis(tarn__graph *graph, tarn__tensor *x, tarn__synthesis_logits logits, tarn__tensor *offsets,
                              tarn__synthesis_spec spec) {
  const bool fits = x->cols == (logits.mix ? 3 : 1) * spec.d && offsets->dtype == TARN__I32;
  tarn__node *node = new_node(graph, &op_synthesis, x, logits, spec, fits);
  node->in[TARN__SYNTHESIS_OFFSETS] = offsets;
  tarn__graph_emit(graph, node);
  return node->out[0];
}

tarn__tensor *tarn__synthesis_rows(tarn__graph *graph, tarn__tensor *x, tarn__synthesis_logits logits,
                                   tarn__tensor *cache, tarn__tensor *rows, tarn__tensor *ranges,
                                   tarn__synthesis_spec spec) {
  const bool fits = cache->cols == (logits.mix ? 2 : 1) * spec.d && x->cols >= spec.d && cache->dtype == x->dtype &&
                    rows->dtype == TARN__I32 && ranges->dtype == TARN__I32 && ranges->cols == 2 * x->rows;
  tarn__node *node = new_node(graph, &op_rows, x, logits, spec, fits);
  node->in[TARN__SYNTHESIS_CACHE] = cache;
  node->in[TARN__SYNTHESIS_LIST] = rows;
  node->in[TARN__SYNTHESIS_RANGES] = ranges;
  tarn__graph_emit(graph, node);
  return node->out[0];
}
