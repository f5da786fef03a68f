// The time loop of recurrences: it determines which sentences run, assigns threads, and alternates products and
// kernels.
//
// A direction's time loop processes the sentences by decreasing length, so that those still running at a step are a
// prefix: one product multiplies their states by the recurrent weights, and one pass over them computes the rest.
// Nothing is computed for sentences that have ended. Sentences may be distributed to threads, each with a time loop of
// its own, without synchronisation before the end; no bit of a row depends on that.
// States and the gradients that flow back in time are carried in fp32 (products read them rounded to the activations'
// type).
#include <omp.h>
#include <string.h>

#include "device/cpu/cpu_kernels.h"
#include "device/cpu/gemm/gemm.h"
#include "device/cpu/gemm/spmm.h"
#include "device/cpu/isa/isa.h"
#include "device/cpu/recurrence/recurrence_kernels.h"

enum {
  LEAST_SENTENCES = 16,  // per thread with a time loop of its own: fewer make its products too narrow
  LEAST_WORK = 1 << 14,  // units of a step from which several threads compute the part after the product
  UNITS = 32,            // threads compute multiples of this: a cache line of BF16
  PAGE_BYTES = 4096
};

// A time loop: sentences number `group`, `group` + groups, .. by decreasing length, in one direction.
typedef struct job {
  const tarn__exec *exec;
  const tarn__node *node;
  const tarn__recurrence_spec *spec;
  const int32_t *offsets;
  const int32_t *sentences;  // (count)
  int32_t *rows;             // (count) scratch
  int64_t count, width;      // width: gates * hidden
  int direction, threads;
  bool reverse;
  tarn__gemm product;
  void *product_scratch;
  const tarn__spmm_rows *sparse;  // the weight, if a sparse product is faster; else NULL
  float *panel;                   // scratch of that
  tarn__recurrence_step step;
} job;

// The division of the work: directions * groups time loops, each by one thread, or all threads on one loop at a time.
typedef struct cut {
  int64_t sentences, most;  // maximum per group
  int groups, tasks, threads;
  bool backward;
} cut;

static cut cut_of(const tarn__recurrence_spec *spec, int64_t sentences, int threads, bool backward) {
  cut c = {.sentences = sentences, .groups = threads / spec->directions, .threads = 1, .backward = backward};
  if (c.groups > sentences / LEAST_SENTENCES) c.groups = (int)(sentences / LEAST_SENTENCES);
  if (c.groups < 1) c.groups = 1;
  c.tasks = c.groups * spec->directions;
  if (c.tasks == 1) c.threads = threads;
  c.most = (sentences + c.groups - 1) / c.groups;
  return c;
}

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

// Rows whose distance is a whole number of pages map to the same few sets of the L1 cache.
static int64_t leading(int64_t cols, tarn__dtype dtype) {
  const int64_t size = (int64_t)tarn__dtype_size(dtype);
  return cols * size % PAGE_BYTES == 0 ? cols + 64 / size : cols;
}

static const tarn__tensor *weight_of(const tarn__node *node, int direction, bool backward) {
  return node->in[(backward ? TARN__RECURRENCE_BACK_WEIGHTS : TARN__RECURRENCE_WEIGHTS) + direction];
}

// Whether it is in CSR format: a dense product is impossible, and the forward pass need not search for entries.
static bool is_stored(const tarn__tensor *weight) { return weight->param->entries > 0; }

// The product of a step of all sentences, without its operands: u = h W^T + b, or backward dh += du W.
static tarn__gemm product_of(const tarn__node *node, const tarn__recurrence_spec *spec, int direction, const cut *c) {
  const tarn__tensor *weight = weight_of(node, direction, c->backward);
  const int64_t n = spec->hidden, width = weight->rows;
  tarn__gemm g = {.m = c->most,
                  .n = c->backward ? n : width,
                  .k = c->backward ? width : n,
                  .b = weight->data,
                  .ldb = n,
                  .lda = leading(c->backward ? width : n, weight->dtype),
                  .dtype = weight->dtype,
                  .fp32 = node->fp32,
                  .c_dtype = TARN__F32,
                  .transpose_b = !c->backward,
                  .accumulate = c->backward};
  g.ldc = g.n;
  if (c->backward) return g;
  const tarn__tensor *bias = node->in[TARN__RECURRENCE_BIASES + direction];
  g.bias = bias ? bias->data : NULL;
  g.packed = weight->param->decoding.packed;
  g.int8 = weight->param->decoding.rounding == TARN__ROUNDING_INT8;
  g.int4 = weight->param->decoding.rounding == TARN__ROUNDING_INT4;
  return g;
}

// Bytes that the product needs for any number of running sentences.
static size_t product_scratch(tarn__gemm g, int threads) {
  size_t most = 0;
  const int64_t count = g.m;
  if (!g.packed) g.packed = &most;  // B will be packed
  for (g.m = 1; g.m <= count; g.m++) {
    size_t bytes = tarn__gemm_scratch(&g, threads);
    if (bytes > most) most = bytes;
  }
  return most;
}

// Lays out a time loop's scratch.
static void lay_out(job *j, room *r, const cut *c) {
  const int64_t n = j->spec->hidden, most = c->most;
  const bool lstm = j->spec->cell == TARN__CELL_LSTM;
  tarn__recurrence_step *s = &j->step;
  const tarn__dtype dtype = weight_of(j->node, j->direction, c->backward)->dtype;
  const tarn__gemm g = j->product = product_of(j->node, j->spec, j->direction, c);
  j->width = c->backward ? g.k : g.n;
  j->rows = take(r, most, sizeof *j->rows);
  s->dtype = dtype;
  s->operand_ld = g.lda;
  s->operand = take(r, most * g.lda, tarn__dtype_size(dtype));
  // Forward in F32 the product reads the states directly.
  const bool same = !c->backward && dtype == TARN__F32;
  s->state_ld = same ? g.lda : n;
  s->state = same ? s->operand : take(r, most * n, sizeof(float));
  s->cell = lstm ? take(r, most * n, sizeof(float)) : NULL;
  s->u = c->backward ? NULL : take(r, most * j->width, sizeof(float));
  s->sums = c->backward ? take(r, j->width, sizeof(float)) : NULL;
  const tarn__tensor *weight = weight_of(j->node, j->direction, c->backward);
  j->product_scratch = is_stored(weight) ? NULL : take(r, (int64_t)product_scratch(g, c->threads), 1);
  if (tarn__recurrence_sparse(weight)) j->panel = take(r, tarn__spmm_scratch(n), sizeof(float));
}

static const tarn__tensor *offsets_of(const tarn__node *node, bool backward) {
  return node->in[backward ? TARN__RECURRENCE_BACK_OFFSETS : TARN__RECURRENCE_OFFSETS];
}

// State shared by all time loops of a node.
typedef struct shared {
  cut cut;
  int64_t *keys;       // (sentences) scratch of sorting
  int32_t *sentences;  // (sentences) group after group
  const void *packed[2];
  tarn__spmm_rows sparse[2];  // of weights multiplied in sparse form
  bool is_sparse[2];
  job *jobs;
} shared;

static shared share(const tarn__node *node, room *r, int threads, bool backward) {
  const tarn__recurrence_spec *spec = node->attr;
  shared all = {.cut = cut_of(spec, offsets_of(node, backward)->cols - 1, threads, backward)};
  all.keys = take(r, all.cut.sentences, sizeof *all.keys);
  all.sentences = take(r, all.cut.sentences, sizeof *all.sentences);
  all.jobs = take(r, all.cut.tasks, sizeof *all.jobs);
  for (int d = 0; d < spec->directions; d++) {
    const tarn__gemm g = product_of(node, spec, d, &all.cut);
    const tarn__tensor *weight = weight_of(node, d, backward);
    tarn__spmm_rows *rows = &all.sparse[d];
    const bool stored = is_stored(weight);
    if (!stored) all.packed[d] = g.packed ? g.packed : take(r, (int64_t)tarn__gemm_pack_bytes(&g), 1);
    if (stored && !backward) *rows = tarn__spmm_of(weight);
    if (!tarn__recurrence_sparse(weight) || (stored && !backward)) continue;
    rows->n = rows->cols = spec->hidden;
    rows->room = stored ? weight->param->entries : tarn__spmm_room(rows->n, weight->param->reservoir->sparsity);
    rows->starts = take(r, rows->n + 1, sizeof *rows->starts);
    rows->columns = take(r, rows->room, sizeof *rows->columns);
    rows->values = take(r, rows->room, sizeof *rows->values);
  }
  return all;
}

static job job_of(const tarn__exec *exec, const tarn__node *node, const shared *all, room *r, int task) {
  const tarn__recurrence_spec *spec = node->attr;
  const int groups = all->cut.groups;
  job j = {.exec = exec, .node = node, .spec = spec, .direction = task / groups, .threads = all->cut.threads};
  j.reverse = tarn__recurrence_reverse(spec, j.direction);
  lay_out(&j, r, &all->cut);
  return j;
}

static size_t scratch(const tarn__node *node, int threads, bool backward) {
  const tarn__recurrence_spec *spec = node->attr;
  room r = {0};
  shared all = share(node, &r, threads, backward);
  for (int task = 0; task < all.cut.tasks; task++) (void)job_of(NULL, node, &all, &r, task);
  // The scratch of the reference: doubles for a row and a few states. Not needed here, but included to keep the sizes
  // of plans unchanged.
  const size_t row = (size_t)((tarn__recurrence_gates(spec) + 4) * spec->hidden) * sizeof(double);
  return r.used > row ? r.used : row;
}

size_t tarn__cpu_recurrence_scratch(const tarn__node *node, int threads) { return scratch(node, threads, false); }

size_t tarn__cpu_recurrence_backward_scratch(const tarn__node *node, int threads) {
  return scratch(node, threads, true);
}

static void sift(int64_t *heap, int64_t at, int64_t count) {
  for (int64_t child; (child = 2 * at + 1) < count; at = child) {
    if (child + 1 < count && heap[child + 1] > heap[child]) child++;
    if (heap[at] >= heap[child]) return;
    const int64_t kept = heap[at];
    heap[at] = heap[child];
    heap[child] = kept;
  }
}

// Sorts in place in increasing order (heapsort: no memory, no bad case).
static void sort(int64_t *keys, int64_t count) {
  for (int64_t i = count / 2; i-- > 0;) sift(keys, i, count);
  for (int64_t end = count; end-- > 1;) {
    const int64_t most = keys[0];
    keys[0] = keys[end];
    keys[end] = most;
    sift(keys, 0, end);
  }
}

// Sorts the sentences by decreasing length, ties by number, and distributes them to the groups round-robin.
static void deal(const shared *all, const int32_t *offsets) {
  const int64_t n = all->cut.sentences, groups = all->cut.groups;
  for (int64_t s = 0; s < n; s++) all->keys[s] = (INT32_MAX - (int64_t)(offsets[s + 1] - offsets[s])) * 4294967296 + s;
  sort(all->keys, n);
  int64_t at = 0;
  for (int64_t g = 0; g < groups; g++)
    for (int64_t i = g; i < n; i += groups) all->sentences[at++] = (int32_t)(all->keys[i] % 4294967296);
}

// Assigns each job its sentences and its columns of the tensors.
static void assign(job *j, const shared *all, int task) {
  const tarn__node *node = j->node;
  const int d = j->direction, group = task % all->cut.groups;
  const int64_t n = all->cut.sentences, groups = all->cut.groups, hidden = j->spec->hidden;
  const int64_t larger = n % groups;  // the first groups have one sentence more
  j->sentences = all->sentences + group * (n / groups) + (group < larger ? group : larger);
  j->count = n / groups + (group < larger ? 1 : 0);
  j->offsets = offsets_of(node, all->cut.backward)->data;
  j->product.packed = all->packed[d];
  j->sparse = all->is_sparse[d] ? &all->sparse[d] : NULL;
  tarn__recurrence_step *s = &j->step;
  s->spec = *j->spec;
  s->rows = j->rows;
  s->sentences = j->sentences;
  const bool back = all->cut.backward, echo = s->spec.cell == TARN__CELL_ECHO;
  const tarn__tensor *start = node->in[back ? TARN__RECURRENCE_BACK_START : TARN__RECURRENCE_START];
  const tarn__tensor *leaks = echo ? node->in[back ? TARN__RECURRENCE_BACK_LEAKS : TARN__RECURRENCE_LEAKS] : NULL;
  s->leaks = leaks ? leaks->data : NULL;
  s->start = start ? start->data : NULL;
  s->start_ld = start ? start->cols : 0;
  if (!back) {
    s->x = tarn__recurrence_band_of(node->in[TARN__RECURRENCE_X], d, j->width);
    s->y = tarn__recurrence_band_of(node->out[TARN__RECURRENCE_Y], d, hidden);
    s->gates = tarn__recurrence_band_of(node->out[TARN__RECURRENCE_GATES], d, j->width);
    s->extra = tarn__recurrence_band_of(node->out[TARN__RECURRENCE_EXTRA], d, hidden);
    return;
  }
  s->dy = tarn__recurrence_band_of(node->in[TARN__RECURRENCE_BACK_DY], d, hidden);
  s->y = tarn__recurrence_band_of(node->in[TARN__RECURRENCE_BACK_Y], d, hidden);
  s->gates = tarn__recurrence_band_of(node->in[TARN__RECURRENCE_BACK_GATES], d, j->width);
  if (!echo) s->extra = tarn__recurrence_band_of(node->in[TARN__RECURRENCE_BACK_EXTRA], d, hidden);
  s->dx = tarn__recurrence_band_of(node->out[TARN__RECURRENCE_BACK_DX], d, j->width);
  s->du = tarn__recurrence_band_of(node->out[TARN__RECURRENCE_BACK_DU], d, j->width);
  s->first = tarn__recurrence_band_of(node->out[TARN__RECURRENCE_BACK_FIRST], 0, j->width);
  s->accumulate = node->in[TARN__RECURRENCE_BACK_PREVIOUS] != NULL;
  if (!node->dparam[d]) s->sums = NULL;
}

static int32_t length_of(const job *j, int64_t i) {
  const int32_t s = j->sentences[i];
  return j->offsets[s + 1] - j->offsets[s];
}

static void find_rows(const job *j, int64_t running, int32_t t) {
  for (int64_t i = 0; i < running; i++) {
    const int32_t s = j->sentences[i];
    j->rows[i] = j->reverse ? j->offsets[s + 1] - 1 - t : j->offsets[s] + t;
  }
}

// Runs a kernel over all units, divided among the threads of this loop.
static void run_kernel(const job *j, void (*kernel)(const tarn__recurrence_step *, int64_t, int64_t)) {
  const int64_t n = j->spec->hidden, parts = (n + UNITS - 1) / UNITS;
  if (j->threads == 1 || j->step.count * n < LEAST_WORK) {
    kernel(&j->step, 0, n);
    return;
  }
#pragma omp parallel num_threads(j->threads)
  {
    const int64_t me = omp_get_thread_num(), all = omp_get_num_threads();
    const int64_t first = parts * me / all * UNITS, last = parts * (me + 1) / all * UNITS;
    if (first < n) kernel(&j->step, first, last < n ? last : n);
  }
}

static void run_product(job *j) {
  if (j->sparse) {
    const tarn__spmm product = {.matrix = j->sparse,
                                .a = j->step.operand,
                                .m = j->step.count,
                                .lda = j->product.lda,
                                .ldc = j->product.ldc,
                                .dtype = j->product.dtype,
                                .bias = j->product.bias,
                                .accumulate = j->product.accumulate,
                                .c = j->product.c,
                                .scratch = j->panel};
    tarn__spmm_run(&product, j->threads);
    return;
  }
  j->product.m = j->step.count;
  j->product.a = j->step.operand;
  tarn__gemm_run(&j->product, j->threads, j->product_scratch);
}

static void clear_states(const job *j) {
  memset(j->step.state, 0, (size_t)(j->count * j->step.state_ld) * sizeof(float));
  if (j->step.cell) memset(j->step.cell, 0, (size_t)(j->count * j->spec->hidden) * sizeof(float));
}

// The initial states of the sentences, and their copy for the first product.
static void begin_states(const job *j) {
  const tarn__recurrence_step *s = &j->step;
  const int64_t n = j->spec->hidden;
  clear_states(j);
  for (int64_t i = 0; s->start && i < j->count; i++) {
    const float *start = s->start + s->sentences[i] * s->start_ld;
    memcpy(s->state + i * s->state_ld, start, (size_t)n * sizeof *start);
    if (s->cell) memcpy(s->cell + i * n, start + n, (size_t)n * sizeof *start);
    uint16_t *operand = s->dtype == TARN__BF16 ? (uint16_t *)s->operand + i * s->operand_ld : NULL;
    for (int64_t k = 0; operand && k < n; k++) operand[k] = tarn__bf16_from_f32(start[k]);
  }
}

// The states of sentences that have ended stay in place.
static void end_states(const job *j) {
  const tarn__recurrence_step *s = &j->step;
  const tarn__tensor *end = j->node->in[TARN__RECURRENCE_END];
  const int64_t n = j->spec->hidden;
  for (int64_t i = 0; end && i < j->count; i++) {
    float *to = (float *)end->data + s->sentences[i] * end->cols;
    memcpy(to, s->state + i * s->state_ld, (size_t)n * sizeof *to);
    if (s->cell) memcpy(to + n, s->cell + i * n, (size_t)n * sizeof *to);
  }
}

static void run_forward(job *j, const tarn__recurrence_kernels *kernels) {
  tarn__recurrence_step *s = &j->step;
  float *u = (float *)(uintptr_t)s->u;
  int64_t running = j->count;
  begin_states(j);
  j->product.c = u;
  if (!j->product.bias) memset(u, 0, (size_t)j->width * sizeof *u);
  for (int32_t t = 0;; t++) {
    while (running > 0 && length_of(j, running - 1) <= t) running--;
    if (running == 0) break;
    s->count = running;
    find_rows(j, running, t);
    // From a zero state no product is needed.
    const bool product = t > 0 || s->start;
    s->u = product || !j->product.bias ? u : j->product.bias;
    s->u_ld = product ? j->width : 0;
    if (product) run_product(j);
    run_kernel(j, kernels->forward);
  }
  end_states(j);
}

// A sentence without rows has no first row.
static void clear_first(const job *j) {
  const tarn__recurrence_band *first = &j->step.first;
  const size_t size = tarn__dtype_size(j->step.dtype);
  for (int64_t i = j->count; first->data && i-- > 0 && length_of(j, i) == 0;)
    memset((char *)first->data + (size_t)tarn__recurrence_at(first, j->sentences[i]) * size, 0,
           (size_t)j->width * size);
}

static void run_backward(job *j, const tarn__recurrence_kernels *kernels) {
  tarn__recurrence_step *s = &j->step;
  int64_t running = 0;
  clear_states(j);
  if (s->sums) memset(s->sums, 0, (size_t)j->width * sizeof *s->sums);
  clear_first(j);
  j->product.c = s->state;
  for (int32_t t = j->count > 0 ? length_of(j, 0) - 1 : -1; t >= 0; t--) {
    while (running < j->count && length_of(j, running) > t) running++;
    s->count = running;
    find_rows(j, running, t);
    s->before = t == 0 ? 0 : j->reverse ? 1 : -1;
    run_kernel(j, kernels->backward);
    if (t > 0) run_product(j);
  }
}

static void run(const tarn__exec *exec, const tarn__node *node, bool backward, shared *all) {
  const tarn__recurrence_kernels *kernels = TARN__TABLE_NOW(tarn__recurrence_kernels);
  const tarn__recurrence_spec *spec = node->attr;
  room r = {.base = node->scratch};
  *all = share(node, &r, exec->threads, backward);
  for (int task = 0; task < all->cut.tasks; task++) all->jobs[task] = job_of(exec, node, all, &r, task);
  for (int d = 0; d < spec->directions; d++) {
    tarn__gemm g = product_of(node, spec, d, &all->cut);
    const tarn__tensor *weight = weight_of(node, d, backward);
    if (is_stored(weight) && backward) {
      const tarn__spmm_rows stored = tarn__spmm_of(weight);
      tarn__spmm_transpose(&all->sparse[d], &stored);
    }
    all->is_sparse[d] =
        is_stored(weight) || (tarn__recurrence_sparse(weight) &&
                              tarn__spmm_take(&all->sparse[d], weight->data, weight->dtype, backward, exec->threads));
    if (!g.packed && !all->is_sparse[d]) tarn__gemm_pack((void *)(uintptr_t)all->packed[d], &g, exec->threads);
  }
  deal(all, offsets_of(node, backward)->data);
  for (int task = 0; task < all->cut.tasks; task++) assign(&all->jobs[task], all, task);
  void (*loop)(job *, const tarn__recurrence_kernels *) = backward ? run_backward : run_forward;
  if (exec->threads == 1 || all->cut.tasks == 1) {
    for (int task = 0; task < all->cut.tasks; task++) loop(&all->jobs[task], kernels);
    return;
  }
  // With all threads, though some may get no loop: a smaller team would end the others, and the next op would restart
  // them.
#pragma omp parallel for schedule(dynamic, 1) num_threads(exec->threads)
  for (int task = 0; task < all->cut.tasks; task++) loop(&all->jobs[task], kernels);
}

tarn_status tarn__cpu_recurrence(const tarn__exec *exec, const tarn__node *node) {
  shared all;
  run(exec, node, false, &all);
  return TARN_STATUS_OK;
}

tarn_status tarn__cpu_recurrence_backward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__recurrence_spec *spec = node->attr;
  shared all;
  run(exec, node, true, &all);
  // Sums of all time loops, in order.
  for (int d = 0; d < spec->directions; d++) {
    tarn__param *bias = node->dparam[d];
    if (!bias) continue;
    float *grad = bias->training.grad;
    const int64_t width = bias->cols;
    if (!tarn__param_accumulate(bias)) memset(grad, 0, (size_t)width * sizeof *grad);
    for (int group = 0; group < all.cut.groups; group++)
      for (int64_t i = 0; i < width; i++) grad[i] += all.jobs[d * all.cut.groups + group].step.sums[i];
  }
  return TARN_STATUS_OK;
}
