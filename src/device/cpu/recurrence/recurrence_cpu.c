// Fast kernels: everything in a time step except its product, in one pass in registers.
#include "device/cpu/isa/vec_cpu.h"
#include "device/cpu/recurrence/recurrence_kernels.h"
#include "ops/recurrence.h"

typedef tarn__vec vec;
typedef tarn__recurrence_step step;

// n lanes from column `column` on of a row of a band.
TARN__VEC_INLINE vec get(const tarn__recurrence_band *band, tarn__dtype dtype, int64_t row, int64_t column, int64_t n) {
  return tarn__vec_read_first(band->data, dtype, tarn__recurrence_at(band, row) + column, n);
}

TARN__VEC_INLINE void put(const tarn__recurrence_band *band, tarn__dtype dtype, int64_t row, int64_t column, vec v,
                          int64_t n) {
  tarn__vec_write_first(band->data, dtype, tarn__recurrence_at(band, row) + column, v, n);
}

TARN__VEC_INLINE vec get_f32(const float *from, int64_t at, int64_t n) {
  return tarn__vec_read_first(from, TARN__F32, at, n);
}

TARN__VEC_INLINE void put_f32(float *to, int64_t at, vec v, int64_t n) {
  tarn__vec_write_first(to, TARN__F32, at, v, n);
}

// Forward: h' of n units from j on; row i of the scratch is row r.
TARN__VEC_INLINE vec gru(const step *s, tarn__dtype dtype, int64_t i, int64_t r, int64_t j, int64_t n) {
  const int64_t h = s->spec.hidden;
  const float *u = s->u + i * s->u_ld + j;
  const vec reset = tarn__vec_sigmoid(get(&s->x, dtype, r, j, n) + get_f32(u, 0, n));
  const vec keep = tarn__vec_sigmoid(get(&s->x, dtype, r, j + h, n) + get_f32(u, h, n));
  const vec from_state = get_f32(u, 2 * h, n);
  const vec candidate = tarn__vec_tanh(tarn__vec_fma(reset, from_state, get(&s->x, dtype, r, j + 2 * h, n)));
  if (s->gates.data) {
    put(&s->gates, dtype, r, j, reset, n);
    put(&s->gates, dtype, r, j + h, keep, n);
    put(&s->gates, dtype, r, j + 2 * h, candidate, n);
    put(&s->extra, dtype, r, j, from_state, n);
  }
  return tarn__vec_fma(keep, get_f32(s->state, i * s->state_ld + j, n) - candidate, candidate);
}

TARN__VEC_INLINE vec lstm(const step *s, tarn__dtype dtype, int64_t i, int64_t r, int64_t j, int64_t n) {
  const int64_t h = s->spec.hidden;
  const float *u = s->u + i * s->u_ld + j;
  const vec input = tarn__vec_sigmoid(get(&s->x, dtype, r, j, n) + get_f32(u, 0, n));
  const vec forget = tarn__vec_sigmoid(get(&s->x, dtype, r, j + h, n) + get_f32(u, h, n));
  const vec candidate = tarn__vec_tanh(get(&s->x, dtype, r, j + 2 * h, n) + get_f32(u, 2 * h, n));
  const vec output = tarn__vec_sigmoid(get(&s->x, dtype, r, j + 3 * h, n) + get_f32(u, 3 * h, n));
  const vec cell = tarn__vec_fma(forget, get_f32(s->cell, i * h + j, n), input * candidate);
  put_f32(s->cell, i * h + j, cell, n);
  if (s->gates.data) {
    put(&s->gates, dtype, r, j, input, n);
    put(&s->gates, dtype, r, j + h, forget, n);
    put(&s->gates, dtype, r, j + 2 * h, candidate, n);
    put(&s->gates, dtype, r, j + 3 * h, output, n);
    put(&s->extra, dtype, r, j, cell, n);
  }
  return output * tarn__vec_tanh(cell);
}

TARN__VEC_INLINE vec leak_of(const step *s, int64_t j, int64_t n) {
  return s->leaks ? get_f32(s->leaks, j, n) : tarn__vec_all((float)s->spec.leak);
}

TARN__VEC_INLINE vec echo(const step *s, tarn__dtype dtype, int64_t i, int64_t r, int64_t j, int64_t n) {
  const vec leak = leak_of(s, j, n);
  const vec sum = get(&s->x, dtype, r, j, n) + get_f32(s->u + i * s->u_ld, j, n);
  // A ReLU that propagates NaN, so that divergence is detected.
  const vec value = s->spec.relu ? tarn__vec_select(sum < 0.0f, (vec){0}, sum) : tarn__vec_tanh(sum);
  if (s->gates.data) put(&s->gates, dtype, r, j, value, n);
  return tarn__vec_fma(1.0f - leak, get_f32(s->state, i * s->state_ld + j, n), leak * value);
}

TARN__VEC_INLINE void forward_cell(const step *s, tarn__dtype dtype, tarn__cell cell, int64_t first, int64_t last) {
  for (int64_t i = 0; i < s->count; i++) {
    const int64_t r = s->rows[i];
#define STEP(j, n)                                                                                          \
  do {                                                                                                      \
    const vec state = cell == TARN__CELL_GRU    ? gru(s, dtype, i, r, (j), (n))                             \
                      : cell == TARN__CELL_LSTM ? lstm(s, dtype, i, r, (j), (n))                            \
                                                : echo(s, dtype, i, r, (j), (n));                           \
    put_f32(s->state, i * s->state_ld + (j), state, (n));                                                   \
    if (dtype == TARN__BF16) tarn__vec_write_first(s->operand, dtype, i * s->operand_ld + (j), state, (n)); \
    put(&s->y, dtype, r, (j), state, (n));                                                                  \
  } while (0)
    TARN__VEC_EACH(first, last, STEP);
#undef STEP
  }
}

// 1 - x^2
TARN__VEC_INLINE vec tanh_slope(vec x) { return tarn__vec_fma(-x, x, tarn__vec_all(1.0f)); }

// Backward, for n units from j on: writes du of gate k to the operand and dx, and adds it to the sums.
TARN__VEC_INLINE void give(const step *s, tarn__dtype dtype, int64_t i, int64_t r, int64_t at, vec dx, vec du,
                           int64_t n) {
  tarn__vec_write_first(s->operand, dtype, i * s->operand_ld + at, du, n);
  if (s->dx.data) put(&s->dx, dtype, r, at, s->accumulate ? get(&s->dx, dtype, r, at, n) + dx : dx, n);
  if (s->du.data) put(&s->du, dtype, r, at, s->before == 0 ? (vec){0} : du, n);
  if (s->before == 0 && s->first.data) put(&s->first, dtype, s->sentences[i], at, du, n);
  if (s->sums) put_f32(s->sums, at, get_f32(s->sums, at, n) + du, n);
}

// The previous state, or its cell state; in a sentence's start, which has both, it begins at column `at`.
TARN__VEC_INLINE vec before(const step *s, const tarn__recurrence_band *band, tarn__dtype dtype, int64_t i, int64_t r,
                            int64_t at, int64_t j, int64_t n) {
  if (s->before != 0) return get(band, dtype, r + s->before, j, n);
  return s->start ? get_f32(s->start + s->sentences[i] * s->start_ld + at, j, n) : (vec){0};
}

// dh in: of this step's state; returned: the part of it that reaches the previous state without the weights.
TARN__VEC_INLINE vec gru_back(const step *s, tarn__dtype dtype, int64_t i, int64_t r, int64_t j, vec dh, int64_t n) {
  const int64_t h = s->spec.hidden;
  const vec reset = get(&s->gates, dtype, r, j, n), keep = get(&s->gates, dtype, r, j + h, n);
  const vec candidate = get(&s->gates, dtype, r, j + 2 * h, n);
  const vec dcandidate = dh * (1.0f - keep) * tanh_slope(candidate);
  const vec dreset = dcandidate * get(&s->extra, dtype, r, j, n) * reset * (1.0f - reset);
  const vec dkeep = dh * (before(s, &s->y, dtype, i, r, 0, j, n) - candidate) * keep * (1.0f - keep);
  give(s, dtype, i, r, j, dreset, dreset, n);
  give(s, dtype, i, r, j + h, dkeep, dkeep, n);
  give(s, dtype, i, r, j + 2 * h, dcandidate, dcandidate * reset, n);
  return dh * keep;
}

TARN__VEC_INLINE vec lstm_back(const step *s, tarn__dtype dtype, int64_t i, int64_t r, int64_t j, vec dh, int64_t n) {
  const int64_t h = s->spec.hidden;
  const vec input = get(&s->gates, dtype, r, j, n), forget = get(&s->gates, dtype, r, j + h, n);
  const vec candidate = get(&s->gates, dtype, r, j + 2 * h, n), output = get(&s->gates, dtype, r, j + 3 * h, n);
  const vec bent = tarn__vec_tanh(get(&s->extra, dtype, r, j, n));
  const vec dcell = tarn__vec_fma(dh * output, tanh_slope(bent), get_f32(s->cell, i * h + j, n));
  const vec dinput = dcell * candidate * input * (1.0f - input);
  const vec dforget = dcell * before(s, &s->extra, dtype, i, r, h, j, n) * forget * (1.0f - forget);
  const vec dcandidate = dcell * input * tanh_slope(candidate);
  const vec doutput = dh * bent * output * (1.0f - output);
  put_f32(s->cell, i * h + j, dcell * forget, n);
  give(s, dtype, i, r, j, dinput, dinput, n);
  give(s, dtype, i, r, j + h, dforget, dforget, n);
  give(s, dtype, i, r, j + 2 * h, dcandidate, dcandidate, n);
  give(s, dtype, i, r, j + 3 * h, doutput, doutput, n);
  return (vec){0};
}

TARN__VEC_INLINE vec echo_back(const step *s, tarn__dtype dtype, int64_t i, int64_t r, int64_t j, vec dh, int64_t n) {
  const vec leak = leak_of(s, j, n);
  const vec value = get(&s->gates, dtype, r, j, n), df = leak * dh;
  const vec du = s->spec.relu ? tarn__vec_select(value > 0.0f, df, (vec){0}) : df * tanh_slope(value);
  give(s, dtype, i, r, j, du, du, n);
  return (1.0f - leak) * dh;
}

TARN__VEC_INLINE void backward_cell(const step *s, tarn__dtype dtype, tarn__cell cell, int64_t first, int64_t last) {
  for (int64_t i = 0; i < s->count; i++) {
    const int64_t r = s->rows[i], at = i * s->state_ld;
#define STEP(j, n)                                                                        \
  do {                                                                                    \
    const vec dh = get_f32(s->state, at + (j), (n)) + get(&s->dy, dtype, r, (j), (n));    \
    const vec rest = cell == TARN__CELL_GRU    ? gru_back(s, dtype, i, r, (j), dh, (n))   \
                     : cell == TARN__CELL_LSTM ? lstm_back(s, dtype, i, r, (j), dh, (n))  \
                                               : echo_back(s, dtype, i, r, (j), dh, (n)); \
    put_f32(s->state, at + (j), rest, (n));                                               \
  } while (0)
    TARN__VEC_EACH(first, last, STEP);
#undef STEP
  }
}

// A separate loop for each cell and type, to avoid branches within the loop.
static void forward(const step *shared, int64_t first, int64_t last) {
  const step own = *shared, *s = &own;  // a local copy, so the compiler knows that no store can change it
  const tarn__cell cell = s->spec.cell;
  if (s->dtype == TARN__BF16) {
    if (cell == TARN__CELL_GRU) forward_cell(s, TARN__BF16, TARN__CELL_GRU, first, last);
    if (cell == TARN__CELL_LSTM) forward_cell(s, TARN__BF16, TARN__CELL_LSTM, first, last);
    if (cell == TARN__CELL_ECHO) forward_cell(s, TARN__BF16, TARN__CELL_ECHO, first, last);
    return;
  }
  if (cell == TARN__CELL_GRU) forward_cell(s, TARN__F32, TARN__CELL_GRU, first, last);
  if (cell == TARN__CELL_LSTM) forward_cell(s, TARN__F32, TARN__CELL_LSTM, first, last);
  if (cell == TARN__CELL_ECHO) forward_cell(s, TARN__F32, TARN__CELL_ECHO, first, last);
}

static void backward(const step *shared, int64_t first, int64_t last) {
  const step own = *shared, *s = &own;
  const tarn__cell cell = s->spec.cell;
  if (s->dtype == TARN__BF16) {
    if (cell == TARN__CELL_GRU) backward_cell(s, TARN__BF16, TARN__CELL_GRU, first, last);
    if (cell == TARN__CELL_LSTM) backward_cell(s, TARN__BF16, TARN__CELL_LSTM, first, last);
    if (cell == TARN__CELL_ECHO) backward_cell(s, TARN__BF16, TARN__CELL_ECHO, first, last);
    return;
  }
  if (cell == TARN__CELL_GRU) backward_cell(s, TARN__F32, TARN__CELL_GRU, first, last);
  if (cell == TARN__CELL_LSTM) backward_cell(s, TARN__F32, TARN__CELL_LSTM, first, last);
  if (cell == TARN__CELL_ECHO) backward_cell(s, TARN__F32, TARN__CELL_ECHO, first, last);
}

const tarn__recurrence_kernels TARN__FAST(tarn__recurrence_kernels) = {.forward = forward, .backward = backward};
