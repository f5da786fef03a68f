// Fast kernels: everything in a time step of a tangent except its product, in one pass in registers.
#include "device/cpu/isa/vec_cpu.h"
#include "device/cpu/recurrence/recurrence_tangent_kernels.h"

typedef tarn__vec vec;

// Inputs and outputs of a step of one direction of a sentence, each from its first unit on.
typedef struct place {
  int64_t hidden;
  const float *gates, *extra;  // of the forward pass
  const float *h, *c;          // the previous states; NULL: zero
  const float *dx, *u;         // dx NULL: zero
  const float *leaks;          // NULL: all units have the spec's leak
  float *state, *cell, *dy;
} place;

TARN__VEC_INLINE vec get(const float *from, int64_t at, int64_t n) {
  return from ? tarn__vec_read_first(from, TARN__F32, at, n) : (vec){0};
}

// The tangent of the sum of a gate, at element `at`.
TARN__VEC_INLINE vec sum_of(const place *p, int64_t at, int64_t n) { return get(p->dx, at, n) + get(p->u, at, n); }

// 1 - x^2
TARN__VEC_INLINE vec tanh_slope(vec x) { return tarn__vec_fma(-x, x, tarn__vec_all(1.0f)); }

// For each cell: the tangent of h' of n units from j on.
TARN__VEC_INLINE vec gru(const place *p, int64_t j, int64_t n) {
  const int64_t h = p->hidden;
  const vec reset = get(p->gates, j, n), keep = get(p->gates, j + h, n), candidate = get(p->gates, j + 2 * h, n);
  const vec dreset = sum_of(p, j, n) * reset * (1.0f - reset), dkeep = sum_of(p, j + h, n) * keep * (1.0f - keep);
  vec moved = tarn__vec_fma(dreset, get(p->extra, j, n), get(p->dx, j + 2 * h, n));
  moved = tarn__vec_fma(reset, get(p->u, j + 2 * h, n), moved) * tanh_slope(candidate);
  const vec dh = tarn__vec_fma(keep, get(p->state, j, n) - moved, moved);
  return tarn__vec_fma(dkeep, get(p->h, j, n) - candidate, dh);
}

TARN__VEC_INLINE vec lstm(const place *p, int64_t j, int64_t n) {
  const int64_t h = p->hidden;
  const vec input = get(p->gates, j, n), forget = get(p->gates, j + h, n), candidate = get(p->gates, j + 2 * h, n);
  const vec output = get(p->gates, j + 3 * h, n), bent = tarn__vec_tanh(get(p->extra, j, n));
  const vec dinput = sum_of(p, j, n) * input * (1.0f - input);
  const vec dforget = sum_of(p, j + h, n) * forget * (1.0f - forget);
  const vec dcandidate = sum_of(p, j + 2 * h, n) * tanh_slope(candidate);
  const vec doutput = sum_of(p, j + 3 * h, n) * output * (1.0f - output);
  vec dc = tarn__vec_fma(forget, get(p->cell, j, n), dforget * get(p->c, j, n));
  dc = tarn__vec_fma(dinput, candidate, tarn__vec_fma(input, dcandidate, dc));
  tarn__vec_write_first(p->cell, TARN__F32, j, dc, n);
  return tarn__vec_fma(output * tanh_slope(bent), dc, doutput * bent);
}

TARN__VEC_INLINE vec echo(const place *p, const tarn__recurrence_spec *spec, int64_t j, int64_t n) {
  const vec leak = p->leaks ? get(p->leaks, j, n) : tarn__vec_all((float)spec->leak);
  const vec value = get(p->gates, j, n), moved = leak * sum_of(p, j, n);
  const vec df = spec->relu ? tarn__vec_select(value > 0.0f, moved, (vec){0}) : moved * tanh_slope(value);
  return tarn__vec_fma(1.0f - leak, get(p->state, j, n), df);
}

TARN__VEC_INLINE void units(const place *p, const tarn__recurrence_spec *spec, tarn__cell cell) {
#define STEP(j, n)                                                         \
  do {                                                                     \
    const vec state = cell == TARN__CELL_GRU    ? gru(p, (j), (n))         \
                      : cell == TARN__CELL_LSTM ? lstm(p, (j), (n))        \
                                                : echo(p, spec, (j), (n)); \
    tarn__vec_write_first(p->state, TARN__F32, (j), state, (n));           \
    tarn__vec_write_first(p->dy, TARN__F32, (j), state, (n));              \
  } while (0)
  TARN__VEC_EACH(0, p->hidden, STEP);
#undef STEP
}

static float *row_of(const tarn__recurrence_band *band, int64_t row) {
  return band->data ? (float *)band->data + tarn__recurrence_at(band, row) : NULL;
}

static void step(const tarn__recurrence_push *push, int64_t number) {
  const int64_t i = number / push->directions, k = number % push->directions, n = push->spec.hidden;
  const int64_t row = push->rows[i], s = push->sentences[i], at = (s * push->directions + k) * n;
  const float *start = push->start ? push->start + s * push->start_ld : NULL;
  const bool first = push->before == 0, is_lstm = push->spec.cell == TARN__CELL_LSTM;
  const place p = {.hidden = n,
                   .gates = row_of(&push->gates, row),
                   .extra = row_of(&push->extra, row),
                   .h = first ? start : row_of(&push->y, row + push->before),
                   .c = !is_lstm ? NULL
                        : !first ? row_of(&push->extra, row + push->before)
                        : start  ? start + n
                                 : NULL,
                   .dx = row_of(&push->dx, k * push->block + row),
                   .u = push->u + number * tarn__recurrence_gates(&push->spec) * n,
                   .leaks = push->leaks,
                   .state = push->state + at,
                   .cell = push->cell ? push->cell + at : NULL,
                   .dy = row_of(&push->dy, k * push->block + row)};
  if (push->spec.cell == TARN__CELL_GRU)
    units(&p, &push->spec, TARN__CELL_GRU);
  else if (is_lstm)
    units(&p, &push->spec, TARN__CELL_LSTM);
  else
    units(&p, &push->spec, TARN__CELL_ECHO);
}

const tarn__recurrence_tangent_kernels TARN__FAST(tarn__recurrence_tangent_kernels) = {step};
