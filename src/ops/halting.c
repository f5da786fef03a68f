#include "ops/halting.h"

#include "graph/tangents.h"

static const tarn__op op_backward = {.id = TARN__OP_HALTING_BACKWARD, .name = "halting_backward"};

static void grad(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *z = node->in[TARN__HALTING_Z], *before = node->in[TARN__HALTING_BEFORE];
  tarn__tensor *dz = NULL, *dbefore = NULL;
  tarn__node *back = tarn__graph_node(graph, &op_backward, sizeof(tarn__halting_spec));
  *(tarn__halting_spec *)back->attr = *(const tarn__halting_spec *)node->attr;
  back->in[TARN__HALTING_Z] = z;
  back->in[TARN__HALTING_BEFORE] = before;
  back->in[TARN__HALTING_AFTER] = node->out[TARN__HALTING_SUM];
  back->in[TARN__HALTING_DWEIGHT] = node->out[TARN__HALTING_WEIGHT]->grad;
  back->in[TARN__HALTING_DSUM] = node->out[TARN__HALTING_SUM]->grad;
  if (z->needs_grad)
    dz = back->out[TARN__HALTING_DZ] = tarn__graph_tensor(graph, z->dtype, z->rows, 1, "gradient of halting");
  if (before && before->needs_grad)
    dbefore = back->out[TARN__HALTING_DBEFORE] =
        tarn__graph_tensor(graph, before->dtype, before->rows, 1, "gradient of a sum of halting");
  tarn__graph_emit(graph, back);
  if (dz) tarn__grad_add(graph, z, dz);
  if (dbefore) tarn__grad_add(graph, before, dbefore);
}

static const tarn__op op_tangent = {.id = TARN__OP_HALTING_TANGENT, .name = "halting_tangent"};

static void tangent(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *before = node->in[TARN__HALTING_BEFORE];
  tarn__tensor *weight = node->out[TARN__HALTING_WEIGHT], *sum = node->out[TARN__HALTING_SUM];
  tarn__node *push = tarn__graph_node(graph, &op_tangent, 0);
  push->in[TARN__HALTING_Z] = node->in[TARN__HALTING_Z];
  push->in[TARN__HALTING_BEFORE] = before;
  push->in[TARN__HALTING_AFTER] = sum;
  push->in[TARN__HALTING_TANGENT_Z] = node->in[TARN__HALTING_Z]->tangent;
  push->in[TARN__HALTING_TANGENT_BEFORE] = before ? before->tangent : NULL;
  push->out[TARN__HALTING_WEIGHT] = weight->tangent = tarn__tangent_new(graph, weight, "tangent of a step's weight");
  push->out[TARN__HALTING_SUM] = sum->tangent = tarn__tangent_new(graph, sum, "tangent of a sum of halting");
  tarn__graph_emit(graph, push);
}

static const tarn__op op_halting = {
    .id = TARN__OP_HALTING, .name = "halting", .grad = grad, .tangent = tangent, .cheap = true};

tarn__halted tarn__halting(tarn__graph *graph, tarn__tensor *z, tarn__tensor *before, tarn__halting_spec spec) {
  const tarn__dtype dtype = z->dtype == TARN__F64 ? TARN__F64 : TARN__F32;
  if (z->cols != 1 || (before && (before->rows != z->rows || before->dtype != dtype)) ||
      !(spec.threshold > 0.0 && spec.threshold < 1.0))
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "halting: its inputs do not fit together");
  tarn__node *node = tarn__graph_node(graph, &op_halting, sizeof spec);
  *(tarn__halting_spec *)node->attr = spec;
  node->in[TARN__HALTING_Z] = z;
  node->in[TARN__HALTING_BEFORE] = before;
  const tarn__halted halted = {.weight = tarn__graph_tensor(graph, dtype, z->rows, 1, "weights of a step"),
                               .sum = tarn__graph_tensor(graph, dtype, z->rows, 1, "sums of halting"),
                               .runs = tarn__graph_tensor(graph, dtype, z->rows, 1, "rows that run"),
                               .rests = tarn__graph_tensor(graph, dtype, z->rows, 1, "rows that rest")};
  node->out[TARN__HALTING_WEIGHT] = halted.weight;
  node->out[TARN__HALTING_SUM] = halted.sum;
  node->out[TARN__HALTING_RUNS] = halted.runs;
  node->out[TARN__HALTING_RESTS] = halted.rests;
  tarn__graph_emit(graph, node);
  halted.runs->keep = halted.weight->needs_grad;  // for tarn__halting_visit()
  halted.runs->needs_grad = halted.rests->needs_grad = false;
  return halted;
}

static double total_of(const void *values, tarn__dtype dtype, int64_t count) {
  double sum = 0.0;
  for (int64_t i = 0; i < count; i++)
    sum += dtype == TARN__F64 ? ((const double *)values)[i] : (double)((const float *)values)[i];
  return sum;
}

tarn_status tarn__halting_visit(const tarn__graph *graph, tarn__halting_visitor *visit, void *user) {
  tarn__host_room room = {0};
  tarn_status status = TARN_STATUS_OK;
  const size_t count = graph->training ? graph->forward_count : 0;
  for (size_t i = 0; i < count && status == TARN_STATUS_OK; i++) {
    const tarn__node *node = graph->nodes[i];
    if (node->op != &op_halting || !node->out[TARN__HALTING_RUNS]->keep) continue;
    const tarn__tensor *runs = node->out[TARN__HALTING_RUNS];
    const tarn__halting_spec *spec = node->attr;
    void *values;
    status = tarn__graph_read(graph, &values, runs, &room);
    if (status == TARN_STATUS_OK)
      visit(user, spec->owner, !node->in[TARN__HALTING_BEFORE], total_of(values, runs->dtype, runs->rows), runs->rows);
  }
  tarn__host_room_close(&room);
  return status;
}
