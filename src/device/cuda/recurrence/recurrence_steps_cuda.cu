// The stepwise loop: for each step one product and one kernel.
#include "device/cuda/product.h"
#include "device/cuda/recurrence/recurrence_units.h"

enum { THREADS = 128 };

// One step of a side. Sequences are by their place in the order, in which those that run are a prefix.
typedef struct step_work {
  tarn__loop l;
  int side;
  int64_t t, running;
  bool product;          // u has been computed; else it is zero
  int64_t u_ld, u_step;  // from one sequence to the next, from one number to the next
  int64_t operand_ld, operand_step;
} step_work;

template <typename T>
static __device__ __forceinline__ void set_operand(const step_work &w, int64_t place, int64_t i, float x) {
  tarn__set((T *)w.l.operand + place * w.operand_ld + i * w.operand_step, x);
}

// What the loop begins with, and the operand of the first product.
template <typename T>
static __global__ void begin_kernel(step_work w, bool lstm) {
  const int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, place = at / w.l.n, j = at % w.l.n;
  if (place >= w.l.sequences) return;
  const tarn__at where = tarn__place_of(w.l, w.l.side[w.side], w.l.order[place], 0);
  const float *begin = w.l.begin.data ? w.l.begin.data + where.begin * w.l.begin.ld : (const float *)nullptr;
  w.l.state[at] = begin ? begin[j] : 0.0f;
  if (lstm) w.l.cell_state[at] = begin ? begin[w.l.n + j] : 0.0f;
  set_operand<T>(w, place, j, w.l.state[at]);
}

static __global__ void end_kernel(step_work w, bool lstm) {
  const int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, place = at / w.l.n, j = at % w.l.n;
  if (place >= w.l.sequences) return;
  float *end = w.l.end.data + tarn__place_of(w.l, w.l.side[w.side], w.l.order[place], 0).end * w.l.end.ld;
  end[j] = w.l.state[at];
  if (lstm) end[w.l.n + j] = w.l.cell_state[at];
}

// Forward and tangents: a thread has one unit of one sequence.
template <typename T, tarn__cell CELL, bool TANGENT>
static __global__ void step_kernel(step_work w) {
  constexpr int GATES = tarn__gates_of<CELL>;
  const int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, place = at / w.l.n, j = at % w.l.n;
  if (place >= w.running) return;
  const tarn__side &d = w.l.side[w.side];
  const tarn__at where = tarn__place_of(w.l, d, w.l.order[place], w.t);
  float u[GATES], h = w.l.state[at], c = CELL == TARN__CELL_LSTM ? w.l.cell_state[at] : 0.0f;
  for (int k = 0; k < GATES; k++) u[k] = w.product ? w.l.u[place * w.u_ld + (k * w.l.n + j) * w.u_step] : 0.0f;
  if constexpr (TANGENT)
    h = tarn__tangent_unit<T, CELL>(w.l, d, where, j, u, h, &c);
  else
    h = tarn__forward_unit<T, CELL>(w.l, d, where, j, u, h, &c);
  w.l.state[at] = h;
  if (CELL == TARN__CELL_LSTM) w.l.cell_state[at] = c;
  set_operand<T>(w, place, j, h);
}

template <typename T, tarn__cell CELL>
static __global__ void back_step_kernel(step_work w) {
  constexpr int GATES = tarn__gates_of<CELL>;
  const int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, place = at / w.l.n, j = at % w.l.n;
  if (place >= w.running) return;
  const tarn__side &d = w.l.side[w.side];
  float du[GATES], dh = w.l.state[at], dc = CELL == TARN__CELL_LSTM ? w.l.cell_state[at] : 0.0f;
  tarn__backward_unit<T, CELL>(w.l, d, tarn__place_of(w.l, d, w.l.order[place], w.t), j, du, &dh, &dc);
  w.l.state[at] = dh;
  if (CELL == TARN__CELL_LSTM) w.l.cell_state[at] = dc;
  for (int k = 0; k < GATES; k++) {
    const int64_t i = k * w.l.n + j;
    set_operand<T>(w, place, i, du[k]);
    if (d.bias_sums) d.bias_sums[place * w.l.width + i] += du[k];
  }
}

template <typename T, tarn__cell CELL>
static tarn_status run_step(const step_work *w, tarn__pass pass, cudaStream_t stream) {
  const unsigned blocks = tarn__blocks(w->running * w->l.n, THREADS), threads = THREADS;
  if (pass == TARN__PASS_BACKWARD)
    TARN__LAUNCH((back_step_kernel<T, CELL>), blocks, threads, 0, stream, *w);
  else if (pass == TARN__PASS_TANGENT)
    TARN__LAUNCH((step_kernel<float, CELL, true>), blocks, threads, 0, stream, *w);
  else
    TARN__LAUNCH((step_kernel<T, CELL, false>), blocks, threads, 0, stream, *w);
  return TARN_STATUS_OK;
}

// u = states W^T of the running sequences; backward states += du W.
static tarn_status multiply(const step_work *w, bool backward, tarn__dtype dtype, const tarn__sparse_rows *sparse,
                            cudaStream_t stream) {
  const tarn__loop *l = &w->l;
  if (sparse && sparse->starts) {
    tarn__sparse_product p = {};
    p.matrix = *sparse;
    p.a = l->operand;
    p.a_ld = w->operand_step;
    p.count = w->running;
    p.c = backward ? l->state : l->u;
    p.c_ld = backward ? l->n : w->u_ld;
    p.c_step = backward ? 1 : w->u_step;
    p.accumulate = backward;
    return tarn__cuda_sparse_product(&p, dtype, stream);
  }
  tarn__product p = {};
  p.m = w->running;
  p.n = backward ? l->n : l->width;
  p.k = backward ? l->width : l->n;
  p.a = l->operand;
  p.b = l->side[w->side].weight->data;
  p.c = backward ? l->state : l->u;
  p.lda = p.k;
  p.ldb = l->n;
  p.ldc = p.n;
  p.transpose_b = !backward;
  p.dtype = dtype;
  p.out = TARN__F32;
  p.fp32 = l->fp32;
  p.alpha = 1.0f;
  p.beta = backward ? 1.0f : 0.0f;
  p.batch = 1;
  return tarn__cuda_product(&p, stream);
}

// Sequences that have more than t rows.
static int64_t running_at(const tarn__loop *l, const int32_t *offsets, int64_t t) {
  int64_t running = 0;
  for (int64_t s = 0; s < l->sentences; s++) running += offsets[s + 1] - offsets[s] > t;
  return running * (l->sequences / l->sentences);
}

static tarn_status run_side(step_work *w, tarn__pass pass, tarn__dtype dtype, const int32_t *offsets,
                            const tarn__sparse_rows *sparse, cudaStream_t stream) {
  const tarn__loop *l = &w->l;
  const bool backward = pass == TARN__PASS_BACKWARD, lstm = l->cell == TARN__CELL_LSTM;
  const unsigned blocks = tarn__blocks(l->sequences * l->n, THREADS), threads = THREADS;
  int64_t steps = 0;
  for (int64_t s = 0; s < l->sentences; s++)
    if (offsets[s + 1] - offsets[s] > steps) steps = offsets[s + 1] - offsets[s];
  if (dtype == TARN__BF16)
    TARN__LAUNCH(begin_kernel<tarn__bf16>, blocks, threads, 0, stream, *w, lstm);
  else
    TARN__LAUNCH(begin_kernel<float>, blocks, threads, 0, stream, *w, lstm);
  for (int64_t i = 0; i < steps; i++) {
    w->t = backward ? steps - 1 - i : i;
    w->running = running_at(l, offsets, w->t);
    w->product = !backward && (w->t > 0 || l->begin.data);  // from states of zero none is needed
    if (w->product) TARN_TRY(multiply(w, false, dtype, sparse, stream));
    TARN_TRY(TARN__BY_KIND(run_step, dtype, l->cell, w, pass, stream));
    if (backward && w->t > 0) TARN_TRY(multiply(w, true, dtype, sparse, stream));
  }
  if (l->end.data) TARN__LAUNCH(end_kernel, blocks, threads, 0, stream, *w, lstm);
  return TARN_STATUS_OK;
}

tarn_status tarn__loop_steps(const tarn__loop *l, tarn__pass pass, tarn__dtype dtype, const int32_t *offsets,
                             const tarn__sparse_rows *sparse, cudaStream_t stream) {
  if (l->sequences == 0) return TARN_STATUS_OK;
  step_work w = {};
  w.l = *l;
  for (int i = 0; i < l->sides; i++) {
    // Sparse products read and write sequences side by side.
    const bool is_sparse = sparse[i].starts != NULL;
    w.side = i;
    w.u_ld = is_sparse ? 1 : l->width;
    w.u_step = is_sparse ? l->sequences : 1;
    w.operand_ld = is_sparse ? 1 : pass == TARN__PASS_BACKWARD ? l->width : l->n;
    w.operand_step = w.u_step;
    if (l->side[i].bias_sums)
      TARN__CUDA(cudaMemsetAsync(l->side[i].bias_sums, 0, (size_t)(l->sequences * l->width) * sizeof(float), stream),
                 "clearing sums");
    TARN_TRY(run_side(&w, pass, dtype, offsets, &sparse[i], stream));
  }
  return TARN_STATUS_OK;
}
