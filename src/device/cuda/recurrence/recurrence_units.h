// One unit of one step of a recurrence: ops/recurrence.h has the equations. All reads of a unit come before its writes,
// because gates may lie over x, and the gradient of x over the gates.
#ifndef TARN_DEVICE_CUDA_RECURRENCE_RECURRENCE_UNITS_H
#define TARN_DEVICE_CUDA_RECURRENCE_RECURRENCE_UNITS_H

#include "device/cuda/recurrence/recurrence_loop.h"

template <tarn__cell CELL>
static constexpr int tarn__gates_of = CELL == TARN__CELL_GRU    ? 3
                                      : CELL == TARN__CELL_LSTM ? 4
                                                                : 1;

static __device__ __forceinline__ float tarn__sigmoid_of(float x) { return 1.0f / (1.0f + expf(-x)); }

// Where a sequence is at a step.
typedef struct tarn__at {
  int64_t row, before;      // of the forward pass; before: of the step before, not if it is the first
  int64_t moved;            // row of the tangents
  int64_t sentence, begin;  // begin: row of tarn__loop.begin
  int64_t end;              // row of tarn__loop.end
  bool first;
} tarn__at;

static __device__ __forceinline__ tarn__at tarn__place_of(const tarn__loop &l, const tarn__side &d, int64_t number,
                                                          int64_t t) {
  tarn__at at;
  const int64_t direction = number / l.sentences;
  at.sentence = number % l.sentences;
  at.row = d.reverse ? l.offsets[at.sentence + 1] - 1 - t : l.offsets[at.sentence] + t;
  at.before = d.reverse ? at.row + 1 : at.row - 1;
  at.moved = direction * l.rows + at.row;
  at.begin = direction * l.begin.rows + at.sentence;
  at.end = direction * l.end.rows + at.sentence;
  at.first = t == 0;
  return at;
}

static __device__ __forceinline__ int64_t tarn__length_of(const tarn__loop &l, int64_t number) {
  const int64_t s = number % l.sentences;
  return l.offsets[s + 1] - l.offsets[s];
}

template <typename T>
static __device__ __forceinline__ float tarn__lane_get(const tarn__lane &lane, int64_t row, int64_t i) {
  return tarn__get(((const T *)lane.data)[row * lane.ld + i]);
}
template <typename T>
static __device__ __forceinline__ void tarn__lane_set(const tarn__lane &lane, int64_t row, int64_t i, float x) {
  if (lane.data) tarn__set((T *)lane.data + row * lane.ld + i, x);
}

// u: the sums of the weights and biases; they become the gates. c: the cell of an LSTM, in and out. Returns the state;
// *extra: what a backward pass needs besides the gates.
template <tarn__cell CELL>
static __device__ __forceinline__ float tarn__unit(const float *x, float *u, float h, float *c, float *extra, bool relu,
                                                   float leak) {
  *extra = 0.0f;
  if constexpr (CELL == TARN__CELL_ECHO) {
    const float z = x[0] + u[0];
    u[0] = !relu ? tanhf(z) : z < 0.0f ? 0.0f : z;
    return (1.0f - leak) * h + leak * u[0];
  } else if constexpr (CELL == TARN__CELL_GRU) {
    *extra = u[2];
    u[0] = tarn__sigmoid_of(x[0] + u[0]);
    u[1] = tarn__sigmoid_of(x[1] + u[1]);
    u[2] = tanhf(x[2] + u[0] * *extra);
    return (1.0f - u[1]) * u[2] + u[1] * h;
  } else {
    u[0] = tarn__sigmoid_of(x[0] + u[0]);
    u[1] = tarn__sigmoid_of(x[1] + u[1]);
    u[2] = tanhf(x[2] + u[2]);
    u[3] = tarn__sigmoid_of(x[3] + u[3]);
    *extra = *c = u[1] * *c + u[0] * u[2];
    return u[3] * tanhf(*c);
  }
}

static __device__ __forceinline__ float tarn__leak_of(const tarn__loop &l, int64_t j) {
  return l.leaks ? l.leaks[j] : l.leak;
}

// Unit j of a step of the forward pass, with the sums u of the weights.
template <typename T, tarn__cell CELL>
static __device__ __forceinline__ float tarn__forward_unit(const tarn__loop &l, const tarn__side &d, const tarn__at &at,
                                                           int64_t j, float *u, float h, float *c) {
  constexpr int GATES = tarn__gates_of<CELL>;
  float x[GATES], extra;
  for (int k = 0; k < GATES; k++) {
    x[k] = tarn__lane_get<T>(d.x, at.row, k * l.n + j);
    if (d.bias) u[k] += d.bias[k * l.n + j];
  }
  const float state = tarn__unit<CELL>(x, u, h, c, &extra, l.relu, tarn__leak_of(l, j));
  tarn__lane_set<T>(d.y, at.row, j, state);
  for (int k = 0; k < GATES; k++) tarn__lane_set<T>(d.gates, at.row, k * l.n + j, u[k]);
  tarn__lane_set<T>(d.extra, at.row, j, extra);
  return state;
}

// What a unit kept in the forward pass, and its states before the step.
typedef struct tarn__kept {
  float gate[4], extra, h, c;
} tarn__kept;

template <typename T, tarn__cell CELL>
static __device__ __forceinline__ tarn__kept tarn__kept_of(const tarn__loop &l, const tarn__side &d, const tarn__at &at,
                                                           int64_t j) {
  constexpr int GATES = tarn__gates_of<CELL>;
  const float *start = l.start.data ? l.start.data + at.sentence * l.start.ld : (const float *)nullptr;
  tarn__kept kept = {};
  for (int k = 0; k < GATES; k++) kept.gate[k] = tarn__lane_get<T>(d.gates, at.row, k * l.n + j);
  if (CELL != TARN__CELL_ECHO) {
    kept.extra = tarn__lane_get<T>(d.extra, at.row, j);
    kept.h = !at.first ? tarn__lane_get<T>(d.y, at.before, j) : start ? start[j] : 0.0f;
  }
  if (CELL == TARN__CELL_LSTM)
    kept.c = !at.first ? tarn__lane_get<T>(d.extra, at.before, j) : start ? start[l.n + j] : 0.0f;
  return kept;
}

// The slope of an echo state unit at its value.
static __device__ __forceinline__ float tarn__echo_slope(bool relu, float f) {
  return !relu ? 1.0f - f * f : f > 0.0f ? 1.0f : 0.0f;
}

// The tangent of unit j, with the sums u of the weights and the tangents of the states before.
template <typename T, tarn__cell CELL>
static __device__ __forceinline__ float tarn__tangent_unit(const tarn__loop &l, const tarn__side &d, const tarn__at &at,
                                                           int64_t j, const float *u, float dh, float *dc) {
  constexpr int GATES = tarn__gates_of<CELL>;
  const tarn__kept kept = tarn__kept_of<T, CELL>(l, d, at, j);
  const float *gate = kept.gate;
  float moved[GATES], result;
  for (int k = 0; k < GATES; k++) moved[k] = d.dx.data ? tarn__lane_get<T>(d.dx, at.moved, k * l.n + j) : 0.0f;
  if constexpr (CELL == TARN__CELL_ECHO) {
    const float leak = tarn__leak_of(l, j);
    result = (1.0f - leak) * dh + leak * (moved[0] + u[0]) * tarn__echo_slope(l.relu, gate[0]);
  } else if constexpr (CELL == TARN__CELL_GRU) {
    const float r = gate[0], z = gate[1], m = gate[2];
    const float dr = r * (1.0f - r) * (moved[0] + u[0]), dz = z * (1.0f - z) * (moved[1] + u[1]);
    const float dm = (1.0f - m * m) * (moved[2] + dr * kept.extra + r * u[2]);
    result = (1.0f - z) * dm + z * dh + dz * (kept.h - m);
  } else {
    const float i = gate[0], f = gate[1], g = gate[2], o = gate[3], bent = tanhf(kept.extra);
    const float di = i * (1.0f - i) * (moved[0] + u[0]), df = f * (1.0f - f) * (moved[1] + u[1]);
    const float dg = (1.0f - g * g) * (moved[2] + u[2]), dout = o * (1.0f - o) * (moved[3] + u[3]);
    *dc = df * kept.c + f * *dc + di * g + i * dg;
    result = dout * bent + o * (1.0f - bent * bent) * *dc;
  }
  tarn__lane_set<T>(d.dy, at.moved, j, result);
  return result;
}

// The backward pass of unit j. du: the gradients of the sums of the weights. dh and dc: of the states after the step
// without those of y; they become what flows to the states before, except through the weights.
template <typename T, tarn__cell CELL>
static __device__ __forceinline__ void tarn__backward_unit(const tarn__loop &l, const tarn__side &d, const tarn__at &at,
                                                           int64_t j, float *du, float *dh, float *dc) {
  constexpr int GATES = tarn__gates_of<CELL>;
  const tarn__kept kept = tarn__kept_of<T, CELL>(l, d, at, j);
  const float *gate = kept.gate;
  float dx[GATES];
  *dh += tarn__lane_get<T>(d.dy, at.row, j);
  if constexpr (CELL == TARN__CELL_ECHO) {
    const float leak = tarn__leak_of(l, j);
    dx[0] = leak * *dh * tarn__echo_slope(l.relu, gate[0]);
    *dh *= 1.0f - leak;
  } else if constexpr (CELL == TARN__CELL_GRU) {
    const float r = gate[0], z = gate[1], m = gate[2];
    dx[2] = *dh * (1.0f - z) * (1.0f - m * m);
    dx[1] = *dh * (kept.h - m) * z * (1.0f - z);
    dx[0] = dx[2] * kept.extra * r * (1.0f - r);
    *dh *= z;
  } else {
    const float i = gate[0], f = gate[1], g = gate[2], o = gate[3], bent = tanhf(kept.extra);
    const float into = *dc + *dh * o * (1.0f - bent * bent);
    dx[0] = into * g * i * (1.0f - i);
    dx[1] = into * kept.c * f * (1.0f - f);
    dx[2] = into * i * (1.0f - g * g);
    dx[3] = *dh * bent * o * (1.0f - o);
    *dc = into * f;
    *dh = 0.0f;
  }
  for (int k = 0; k < GATES; k++) {
    const int64_t at_gate = k * l.n + j;
    du[k] = CELL == TARN__CELL_GRU && k == 2 ? dx[k] * gate[0] : dx[k];
    const float before = l.accumulate && d.dx.data ? tarn__lane_get<T>(d.dx, at.row, at_gate) : 0.0f;
    tarn__lane_set<T>(d.dx, at.row, at_gate, dx[k] + before);
    tarn__lane_set<T>(d.du, at.row, at_gate, at.first ? 0.0f : du[k]);
    if (at.first) tarn__lane_set<T>(d.first, at.sentence, at_gate, du[k]);
  }
}

// Calls f<T, CELL>(...) by the type of the activations and by the cell.
#define TARN__BY_CELL(f, T, cell, ...)                              \
  ((cell) == TARN__CELL_GRU    ? f<T, TARN__CELL_GRU>(__VA_ARGS__)  \
   : (cell) == TARN__CELL_LSTM ? f<T, TARN__CELL_LSTM>(__VA_ARGS__) \
                               : f<T, TARN__CELL_ECHO>(__VA_ARGS__))
#define TARN__BY_KIND(f, dtype, cell, ...) \
  ((dtype) == TARN__BF16 ? TARN__BY_CELL(f, tarn__bf16, cell, __VA_ARGS__) : TARN__BY_CELL(f, float, cell, __VA_ARGS__))

#endif
