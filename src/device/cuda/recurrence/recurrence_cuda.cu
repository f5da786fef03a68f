// The nodes of recurrences over whole sentences: forward, backward and tangents.
#include "device/cuda/cuda_kernels.h"
#include "device/cuda/output/output_rows.h"
#include "device/cuda/recurrence/recurrence_units.h"

extern "C" {
#include "graph/tangents.h"
}

// Offsets in the scratch.
typedef struct layout {
  size_t order, weight[2], state, cell_state, u, operand, sparse[2], bias_sums[2], partial, bytes;
} layout;

static tarn__lane lane_of(const tarn__tensor *tensor, int direction, int64_t width) {
  tarn__lane lane = {};
  if (!tensor) return lane;
  lane.ld = tensor->cols;
  if (tensor->data) lane.data = (char *)tensor->data + (size_t)(direction * width) * tarn__dtype_size(tensor->dtype);
  return lane;
}

static tarn__states states_of(const tarn__tensor *tensor, int64_t directions) {
  tarn__states states = {};
  if (!tensor) return states;
  states.data = (float *)tensor->data;
  states.ld = tensor->cols;
  states.rows = directions > 0 ? tensor->rows / directions : 0;
  return states;
}

// What all passes have in common; `sequences`: of each sentence.
static tarn__loop loop_of(const tarn__node *node, const tarn__tensor *offsets, int first_weight, int64_t rows,
                          const tarn__tensor *leaks, int64_t directions) {
  const tarn__recurrence_spec *spec = (const tarn__recurrence_spec *)node->attr;
  tarn__loop l = {};
  l.cell = spec->cell;
  l.n = spec->hidden;
  l.width = tarn__recurrence_gates(spec) * spec->hidden;
  l.sides = spec->directions;
  l.relu = spec->relu;
  l.leak = (float)spec->leak;
  l.leaks = leaks ? (const float *)leaks->data : NULL;
  l.offsets = (const int32_t *)offsets->data;
  l.sentences = offsets->cols - 1;
  l.sequences = directions * l.sentences;
  l.rows = rows;
  l.fp32 = node->fp32;
  for (int i = 0; i < l.sides; i++) {
    l.side[i].weight = node->in[first_weight + i];
    l.side[i].reverse = tarn__recurrence_reverse(spec, i);
  }
  return l;
}

static bool is_stored(const tarn__tensor *weight) { return weight->param->entries > 0; }

// All weights have one shape, but each may be stored in its own way.
static bool is_resident(const tarn__loop *l) {
  bool resident = true;
  for (int i = 0; i < l->sides; i++) resident = resident && tarn__loop_resident(l->side[i].weight);
  return resident;
}

static layout layout_of(const tarn__loop *l, tarn__pass pass, tarn__dtype dtype, tarn__param *const *biases) {
  const bool backward = pass == TARN__PASS_BACKWARD, resident = is_resident(l);
  const int64_t states = resident ? 0 : l->sequences * l->n, wide = resident ? 0 : l->sequences * l->width;
  layout a = {};
  bool summed = false;
  a.order = tarn__room_after(&a.bytes, l->sequences, sizeof(int32_t));
  a.state = tarn__room_after(&a.bytes, states, sizeof(float));
  a.cell_state = tarn__room_after(&a.bytes, l->cell == TARN__CELL_LSTM ? states : 0, sizeof(float));
  a.u = tarn__room_after(&a.bytes, backward ? 0 : wide, sizeof(float));
  a.operand = tarn__room_after(&a.bytes, backward ? wide : states, tarn__dtype_size(dtype));
  for (int i = 0; i < l->sides; i++) {
    const tarn__tensor *weight = l->side[i].weight;
    a.weight[i] = tarn__room_after(&a.bytes, resident && !backward ? l->n * l->width : 0, tarn__dtype_size(dtype));
    a.sparse[i] = tarn__room_after(&a.bytes, backward ? (int64_t)tarn__sparse_transpose_bytes(weight) : 0, 1);
    const bool sums = biases && biases[i];
    const int64_t rows = resident ? tarn__loop_blocks(l) : l->sequences;
    a.bias_sums[i] = tarn__room_after(&a.bytes, sums ? rows * l->width : 0, sizeof(float));
    summed = summed || sums;
  }
  a.partial = tarn__room_after(&a.bytes, summed ? (int64_t)tarn__column_sums_bytes(l->width) : 0, 1);
  return a;
}

// Runs the loop, whose sides have been set, with the scratch of the node.
static tarn_status run(tarn__loop *l, tarn__pass pass, const tarn__node *node, const tarn__tensor *offsets,
                       const layout *a, cudaStream_t stream) {
  const tarn__dtype dtype = node->out[0] ? node->out[0]->dtype : node->in[0]->dtype;
  char *scratch = (char *)node->scratch;
  const bool resident = is_resident(l);
  l->order = (const int32_t *)(scratch + a->order);
  TARN_TRY(tarn__loop_order((int32_t *)(scratch + a->order), l, stream));
  if (resident) {
    for (int i = 0; i < l->sides; i++) {
      const tarn__tensor *weight = l->side[i].weight;
      l->side[i].resident = pass == TARN__PASS_BACKWARD ? weight->data : scratch + a->weight[i];
      if (pass != TARN__PASS_BACKWARD)
        TARN_TRY(tarn__loop_transpose(scratch + a->weight[i], weight->data, dtype, l->width, l->n, stream));
    }
    return tarn__loop_run(l, pass, dtype, stream);
  }
  tarn__sparse_rows sparse[2] = {};
  for (int i = 0; i < l->sides; i++) {
    const tarn__tensor *weight = l->side[i].weight;
    if (!is_stored(weight)) continue;
    if (pass == TARN__PASS_BACKWARD)
      TARN_TRY(tarn__sparse_transpose(&sparse[i], weight, scratch + a->sparse[i], stream));
    else
      sparse[i] = tarn__sparse_of(weight);
  }
  if (pass == TARN__PASS_FORWARD && tarn__reservoir_fits(l)) return tarn__reservoir_run(l, dtype, sparse, stream);
  l->state = (float *)(scratch + a->state);
  l->cell_state = (float *)(scratch + a->cell_state);
  l->u = (float *)(scratch + a->u);
  l->operand = scratch + a->operand;
  return tarn__loop_steps(l, pass, dtype, offsets->host, sparse, stream);
}

// --- forward

static tarn__loop forward_loop(const tarn__node *node) {
  const tarn__tensor *x = node->in[TARN__RECURRENCE_X];
  tarn__loop l = loop_of(node, node->in[TARN__RECURRENCE_OFFSETS], TARN__RECURRENCE_WEIGHTS, x->rows,
                         node->in[TARN__RECURRENCE_LEAKS], 1);
  l.start = l.begin = states_of(node->in[TARN__RECURRENCE_START], 1);
  l.end = states_of(node->in[TARN__RECURRENCE_END], 1);
  for (int i = 0; i < l.sides; i++) {
    const tarn__tensor *bias = node->in[TARN__RECURRENCE_BIASES + i];
    l.side[i].bias = bias ? (const float *)bias->data : NULL;
    l.side[i].x = lane_of(x, i, l.width);
    l.side[i].y = lane_of(node->out[TARN__RECURRENCE_Y], i, l.n);
    l.side[i].gates = lane_of(node->out[TARN__RECURRENCE_GATES], i, l.width);
    l.side[i].extra = lane_of(node->out[TARN__RECURRENCE_EXTRA], i, l.n);
  }
  return l;
}

static size_t forward_scratch(const tarn__node *node, int threads) {
  (void)threads;
  const tarn__loop l = forward_loop(node);
  return layout_of(&l, TARN__PASS_FORWARD, node->in[TARN__RECURRENCE_X]->dtype, NULL).bytes;
}

static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
  tarn__loop l = forward_loop(node);
  const layout a = layout_of(&l, TARN__PASS_FORWARD, node->in[TARN__RECURRENCE_X]->dtype, NULL);
  return run(&l, TARN__PASS_FORWARD, node, node->in[TARN__RECURRENCE_OFFSETS], &a, tarn__cuda_stream(exec->stream));
}

// --- backward

static tarn__loop backward_loop(const tarn__node *node) {
  const tarn__recurrence_spec *spec = (const tarn__recurrence_spec *)node->attr;
  const bool echo = spec->cell == TARN__CELL_ECHO;
  const tarn__tensor *dy = node->in[TARN__RECURRENCE_BACK_DY], *extra = node->in[TARN__RECURRENCE_BACK_EXTRA];
  tarn__loop l = loop_of(node, node->in[TARN__RECURRENCE_BACK_OFFSETS], TARN__RECURRENCE_BACK_WEIGHTS, dy->rows,
                         echo ? extra : NULL, 1);
  l.start = states_of(node->in[TARN__RECURRENCE_BACK_START], 1);
  l.accumulate = node->in[TARN__RECURRENCE_BACK_PREVIOUS] != NULL;
  for (int i = 0; i < l.sides; i++) {
    l.side[i].y = lane_of(node->in[TARN__RECURRENCE_BACK_Y], i, l.n);
    l.side[i].gates = lane_of(node->in[TARN__RECURRENCE_BACK_GATES], i, l.width);
    l.side[i].extra = lane_of(echo ? NULL : extra, i, l.n);
    l.side[i].dy = lane_of(dy, i, l.n);
    l.side[i].dx = lane_of(node->out[TARN__RECURRENCE_BACK_DX], i, l.width);
    l.side[i].du = lane_of(node->out[TARN__RECURRENCE_BACK_DU], i, l.width);
    l.side[i].first = lane_of(node->out[TARN__RECURRENCE_BACK_FIRST], 0, l.width);
  }
  return l;
}

static size_t backward_scratch(const tarn__node *node, int threads) {
  (void)threads;
  const tarn__loop l = backward_loop(node);
  return layout_of(&l, TARN__PASS_BACKWARD, node->in[TARN__RECURRENCE_BACK_DY]->dtype, node->dparam).bytes;
}

static tarn_status backward(const tarn__exec *exec, const tarn__node *node) {
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  tarn__loop l = backward_loop(node);
  const layout a = layout_of(&l, TARN__PASS_BACKWARD, node->in[TARN__RECURRENCE_BACK_DY]->dtype, node->dparam);
  char *scratch = (char *)node->scratch;
  const tarn__tensor *first = node->out[TARN__RECURRENCE_BACK_FIRST];
  // A sentence without rows has no first row.
  if (first)
    TARN__CUDA(
        cudaMemsetAsync(first->data, 0, (size_t)(first->rows * first->cols) * tarn__dtype_size(first->dtype), stream),
        "clearing gradients");
  for (int i = 0; i < l.sides; i++)
    if (node->dparam[i]) l.side[i].bias_sums = (float *)(scratch + a.bias_sums[i]);
  TARN_TRY(run(&l, TARN__PASS_BACKWARD, node, node->in[TARN__RECURRENCE_BACK_OFFSETS], &a, stream));
  const int64_t rows = is_resident(&l) ? tarn__loop_blocks(&l) : l.sequences;
  for (int i = 0; i < l.sides; i++)
    if (node->dparam[i])
      TARN_TRY(tarn__cuda_column_sums((float *)node->dparam[i]->training.grad, l.side[i].bias_sums, TARN__F32, l.width,
                                      rows, l.width, NULL, tarn__param_accumulate(node->dparam[i]) != 0,
                                      (float *)(scratch + a.partial), stream));
  return TARN_STATUS_OK;
}

// --- tangents

static tarn__loop tangent_loop(const tarn__node *node) {
  const tarn__recurrence_spec *spec = (const tarn__recurrence_spec *)node->attr;
  const bool echo = spec->cell == TARN__CELL_ECHO;
  const tarn__tensor *y = node->in[TARN__RECURRENCE_TANGENT_Y], *dy = node->out[TARN__RECURRENCE_TANGENT_DY];
  const tarn__tensor *extra = node->in[TARN__RECURRENCE_TANGENT_EXTRA];
  const tarn__tensor *start = node->in[TARN__RECURRENCE_TANGENT_START];
  const int64_t directions = tarn__tangent_directions(dy, y->rows);
  tarn__loop l = loop_of(node, node->in[TARN__RECURRENCE_TANGENT_OFFSETS], TARN__RECURRENCE_TANGENT_WEIGHTS, y->rows,
                         echo ? extra : NULL, directions);
  l.start = states_of(start, 1);
  l.begin = states_of(node->in[TARN__RECURRENCE_TANGENT_DSTART], 1);
  l.begin.rows = start ? start->rows : 0;
  l.end = states_of(node->out[TARN__RECURRENCE_TANGENT_DEND], directions);
  for (int i = 0; i < l.sides; i++) {
    l.side[i].y = lane_of(y, i, l.n);
    l.side[i].gates = lane_of(node->in[TARN__RECURRENCE_TANGENT_GATES], i, l.width);
    l.side[i].extra = lane_of(echo ? NULL : extra, i, l.n);
    l.side[i].dx = lane_of(node->in[TARN__RECURRENCE_TANGENT_DX], i, l.width);
    l.side[i].dy = lane_of(dy, i, l.n);
  }
  return l;
}

static size_t tangent_scratch(const tarn__node *node, int threads) {
  (void)threads;
  const tarn__loop l = tangent_loop(node);
  return layout_of(&l, TARN__PASS_TANGENT, node->in[TARN__RECURRENCE_TANGENT_Y]->dtype, NULL).bytes;
}

static tarn_status tangent(const tarn__exec *exec, const tarn__node *node) {
  tarn__loop l = tangent_loop(node);
  const layout a = layout_of(&l, TARN__PASS_TANGENT, node->in[TARN__RECURRENCE_TANGENT_Y]->dtype, NULL);
  return run(&l, TARN__PASS_TANGENT, node, node->in[TARN__RECURRENCE_TANGENT_OFFSETS], &a,
             tarn__cuda_stream(exec->stream));
}

void tarn__cuda_recurrence_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_RECURRENCE].run = forward;
  kernels[TARN__OP_RECURRENCE].scratch = forward_scratch;
  kernels[TARN__OP_RECURRENCE_BACKWARD].run = backward;
  kernels[TARN__OP_RECURRENCE_BACKWARD].scratch = backward_scratch;
  kernels[TARN__OP_RECURRENCE_TANGENT].run = tangent;
  kernels[TARN__OP_RECURRENCE_TANGENT].scratch = tangent_scratch;
}
