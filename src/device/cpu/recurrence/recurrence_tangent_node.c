// The time loop of the tangents of recurrences. At each step one product multiplies the tangents of all running
// sentences, in all directions, by the recurrent weights, and one pass over them computes the rest. No bit of a row
// depends on the other rows or on threads.
#include <string.h>

#include "device/cpu/cpu_kernels.h"
#include "device/cpu/gemm/gemm.h"
#include "device/cpu/gemm/spmm.h"
#include "device/cpu/isa/isa.h"
#include "device/cpu/recurrence/recurrence_tangent_kernels.h"
#include "graph/tangents.h"

enum { LEAST_WORK = 1 << 14 };  // numbers of a step from which several threads compute the part after the product

// Scratch, allocated sequentially; with base NULL it is only counted.
typedef struct room {
  char *base;
  size_t used;
} room;

static void *take(room *r, int64_t count, size_t size) {
  void *at = r->base ? r->base + r->used : NULL;
  r->used += ((size_t)count * size + 63) & ~(size_t)63;
  return at;
}

// One direction of the text.
typedef struct job {
  const tarn__node *node;
  const tarn__tensor *weight;
  tarn__recurrence_push push;
  int64_t sentences;
  int32_t *running, *rows;  // (sentences)
  float *operand, *u;       // of the running rows: states, and their product
  tarn__gemm product;
  void *packed, *product_scratch;
  tarn__spmm_rows sparse;
  float *panel;  // NULL: the product is dense
} job;

static const tarn__tensor *output_of(const tarn__node *node) { return node->out[TARN__RECURRENCE_TANGENT_DY]; }

// In CSR format: a dense product is impossible, and entries need not be searched.
static bool is_stored(const tarn__tensor *weight) { return weight->param->entries > 0; }

// If the weight is sparse, adds room for its entries; the dense product is used for weights that turn out to have more.
static void lay_out_sparse(job *j, room *r) {
  if (!tarn__recurrence_sparse(j->weight)) return;
  if (is_stored(j->weight)) {
    j->sparse = tarn__spmm_of(j->weight);
    j->panel = take(r, tarn__spmm_scratch(j->sparse.cols), sizeof(float));
    return;
  }
  j->sparse.n = j->sparse.cols = j->weight->cols;
  j->sparse.room = tarn__spmm_room(j->sparse.n, j->weight->param->reservoir->sparsity);
  j->sparse.starts = take(r, j->sparse.n + 1, sizeof *j->sparse.starts);
  j->sparse.columns = take(r, j->sparse.room, sizeof *j->sparse.columns);
  j->sparse.values = take(r, j->sparse.room, sizeof *j->sparse.values);
  j->panel = take(r, tarn__spmm_scratch(j->sparse.n), sizeof(float));
}

static job job_of(const tarn__node *node, int direction, room *r, int threads) {
  const tarn__recurrence_spec *spec = node->attr;
  const tarn__tensor *y = node->in[TARN__RECURRENCE_TANGENT_Y], *start = node->in[TARN__RECURRENCE_TANGENT_START];
  const tarn__tensor *extra = node->in[TARN__RECURRENCE_TANGENT_EXTRA];
  const bool echo = spec->cell == TARN__CELL_ECHO;
  const int64_t n = spec->hidden;
  job j = {.node = node,
           .weight = node->in[TARN__RECURRENCE_TANGENT_WEIGHTS + direction],
           .sentences = node->in[TARN__RECURRENCE_TANGENT_OFFSETS]->cols - 1};
  const int64_t width = j.weight->rows, directions = tarn__tangent_directions(output_of(node), y->rows);
  const int64_t most = j.sentences * directions;
  j.running = take(r, j.sentences, sizeof *j.running);
  j.rows = take(r, j.sentences, sizeof *j.rows);
  j.operand = take(r, most * n, sizeof(float));
  j.u = take(r, most * width, sizeof(float));
  j.push = (tarn__recurrence_push){
      .spec = *spec,
      .directions = directions,
      .block = y->rows,
      .sentences = j.running,
      .rows = j.rows,
      .u = j.u,
      .state = take(r, most * n, sizeof(float)),
      .cell = spec->cell == TARN__CELL_LSTM ? take(r, most * n, sizeof(float)) : NULL,
      .y = tarn__recurrence_band_of(y, direction, n),
      .gates = tarn__recurrence_band_of(node->in[TARN__RECURRENCE_TANGENT_GATES], direction, width),
      .extra = tarn__recurrence_band_of(echo ? NULL : extra, direction, n),
      .leaks = echo && extra ? extra->data : NULL,
      .dx = tarn__recurrence_band_of(node->in[TARN__RECURRENCE_TANGENT_DX], direction, width),
      .dy = tarn__recurrence_band_of(output_of(node), direction, n),
      .start = start ? start->data : NULL,
      .start_ld = start ? start->cols : 0};
  j.product = (tarn__gemm){.m = most,
                           .n = width,
                           .k = n,
                           .a = j.operand,
                           .b = j.weight->data,
                           .c = j.u,
                           .lda = n,
                           .ldb = n,
                           .ldc = width,
                           .dtype = TARN__F32,
                           .fp32 = node->fp32,
                           .c_dtype = TARN__F32,
                           .transpose_b = true};
  lay_out_sparse(&j, r);
  if (is_stored(j.weight)) return j;
  j.product.packed = j.packed = take(r, (int64_t)tarn__gemm_pack_bytes(&j.product), 1);
  // When memory is only counted, the product is still treated as packed.
  tarn__gemm counted = j.product;
  counted.packed = &counted;
  j.product_scratch = take(r, (int64_t)tarn__gemm_scratch_most(&counted, threads, false), 1);
  return j;
}

size_t tarn__cpu_recurrence_tangent_scratch(const tarn__node *node, int threads) {
  const tarn__recurrence_spec *spec = node->attr;
  room most = {0};
  for (int d = 0; d < spec->directions; d++) {
    room r = {0};
    (void)job_of(node, d, &r, threads);
    if (r.used > most.used) most = r;
  }
  return most.used;
}

// Finds the sentences that have a step t, and their rows; returns their number.
static int64_t find_running(const job *j, const int32_t *offsets, int32_t t, bool reverse) {
  int64_t count = 0;
  for (int32_t s = 0; s < j->sentences; s++) {
    if (offsets[s + 1] - offsets[s] <= t) continue;
    j->running[count] = s;
    j->rows[count++] = reverse ? offsets[s + 1] - 1 - t : offsets[s] + t;
  }
  return count;
}

static void run_product(job *j, int64_t count, int threads) {
  const int64_t per_sentence = j->push.directions * j->push.spec.hidden;
  for (int64_t i = 0; i < count; i++)
    memcpy(j->operand + i * per_sentence, j->push.state + j->running[i] * per_sentence,
           (size_t)per_sentence * sizeof(float));
  if (j->panel) {
    const tarn__spmm product = {.matrix = &j->sparse,
                                .a = j->operand,
                                .m = count * j->push.directions,
                                .lda = j->product.lda,
                                .ldc = j->product.ldc,
                                .dtype = TARN__F32,
                                .c = j->u,
                                .scratch = j->panel};
    tarn__spmm_run(&product, threads);
    return;
  }
  j->product.m = count * j->push.directions;
  tarn__gemm_run(&j->product, threads, j->product_scratch);
}

// Copies the tangents of states to carried ones, or back: `carried` [directions * its rows, *] has those of sentence s
// and direction k in row k * `rows` + s.
static void carry(const job *j, float *carried, int64_t rows, int64_t cols, bool back) {
  const int64_t n = j->push.spec.hidden;
  for (int64_t number = 0; number < j->sentences * j->push.directions; number++) {
    const int64_t s = number / j->push.directions, k = number % j->push.directions;
    float *row = carried + (k * rows + s) * cols;
    float *parts[2] = {j->push.state + number * n, j->push.cell ? j->push.cell + number * n : NULL};
    for (int part = 0; part < 2 && parts[part]; part++)
      memcpy(back ? row + part * n : parts[part], back ? parts[part] : row + part * n, (size_t)n * sizeof *row);
  }
}

static void begin(const job *j) {
  const tarn__tensor *start = j->node->in[TARN__RECURRENCE_TANGENT_START];
  const tarn__tensor *dstart = j->node->in[TARN__RECURRENCE_TANGENT_DSTART];
  const size_t bytes = (size_t)(j->sentences * j->push.directions * j->push.spec.hidden) * sizeof(float);
  memset(j->push.state, 0, bytes);
  if (j->push.cell) memset(j->push.cell, 0, bytes);
  if (dstart) carry(j, dstart->data, start->rows, dstart->cols, false);
}

static void run_direction(job *j, int direction, int threads) {
  const tarn__recurrence_tangent_kernels *kernels = TARN__TABLE_NOW(tarn__recurrence_tangent_kernels);
  const tarn__tensor *dend = j->node->out[TARN__RECURRENCE_TANGENT_DEND];
  const bool reverse = tarn__recurrence_reverse(&j->push.spec, direction);
  const bool begins = j->node->in[TARN__RECURRENCE_TANGENT_DSTART] == NULL;  // from zero states
  const int32_t *offsets = j->node->in[TARN__RECURRENCE_TANGENT_OFFSETS]->data;
  begin(j);
  for (int32_t t = 0;; t++) {
    const int64_t count = find_running(j, offsets, t, reverse), steps = count * j->push.directions;
    if (steps == 0) break;
    if (t == 0 && begins)
      memset(j->u, 0, (size_t)(steps * j->weight->rows) * sizeof *j->u);
    else
      run_product(j, count, threads);
    j->push.before = t == 0 ? 0 : reverse ? 1 : -1;
#pragma omp parallel for num_threads(threads) schedule(static) if (steps * j->weight->rows >= LEAST_WORK)
    for (int64_t i = 0; i < steps; i++) kernels->step(&j->push, i);
  }
  if (dend && j->push.directions > 0) carry(j, dend->data, dend->rows / j->push.directions, dend->cols, true);
}

tarn_status tarn__cpu_recurrence_tangent(const tarn__exec *exec, const tarn__node *node) {
  const tarn__recurrence_spec *spec = node->attr;
  for (int d = 0; d < spec->directions; d++) {
    room r = {.base = node->scratch};
    job j = job_of(node, d, &r, exec->threads);
    if (j.panel && !is_stored(j.weight) &&
        !tarn__spmm_take(&j.sparse, j.weight->data, j.weight->dtype, false, exec->threads))
      j.panel = NULL;
    if (!j.panel) tarn__gemm_pack(j.packed, &j.product, exec->threads);
    run_direction(&j, d, exec->threads);
  }
  return TARN_STATUS_OK;
}
