// Plain C reference: one sentence after another, one step at a time.
#include "device/reference/reference_kernels.h"
#include "graph/entries.h"
#include "graph/tangents.h"
#include "ops/recurrence.h"

#include <math.h>
#include <string.h>

typedef TARN_REAL real;

static real sigmoid(real x) { return (real)(1.0 / (1.0 + exp(-(double)x))); }

static real hyperbolic(real x) { return (real)tanh((double)x); }

// Element 0 of a row of a band.
static real *row_of(const tarn__recurrence_band *band, int64_t row) {
  return (real *)band->data + tarn__recurrence_at(band, row);
}

// u = W h + b; h NULL: zeros.
static void recur(real *u, const tarn__tensor *weight, const real *bias, const real *h) {
  if (weight->param->entries > 0) {
    const tarn__entries w = tarn__entries_at(weight->param, weight->data);
    for (int64_t i = 0; i < weight->rows; i++) {
      u[i] = bias ? bias[i] : 0;
      for (int32_t e = w.starts[i]; h && e < w.starts[i + 1]; e++)
        u[i] += ((const real *)w.values)[e] * h[w.columns[e]];
    }
    return;
  }
  for (int64_t i = 0; i < weight->rows; i++) {
    real sum = bias ? bias[i] : 0;
    for (int64_t j = 0; h && j < weight->cols; j++) sum += ((const real *)weight->data)[i * weight->cols + j] * h[j];
    u[i] = sum;
  }
}

// The leak of unit j; leaks NULL: that of all units.
static real leak_of(const tarn__recurrence_spec *spec, const tarn__tensor *leaks, int64_t j) {
  return leaks ? ((const real *)leaks->data)[j] : (real)spec->leak;
}

// One unit of one step; returns h'. Gate k is at u[k * hidden], where its value overwrites it. c: the cell of LSTM, in
// and out. `extra` returns what the forward pass keeps in addition to the gates.
static real step(const tarn__recurrence_spec *spec, real leak, const real *x, real *u, real h, real *c, real *extra) {
  const int64_t n = spec->hidden;
  if (spec->cell == TARN__CELL_ECHO) {
    const real z = x[0] + u[0];
    u[0] = !spec->relu ? hyperbolic(z) : z < 0 ? 0 : z;
    return (1 - leak) * h + leak * u[0];
  }
  if (spec->cell == TARN__CELL_GRU) {
    *extra = u[2 * n];
    u[0] = sigmoid(x[0] + u[0]);
    u[n] = sigmoid(x[n] + u[n]);
    u[2 * n] = hyperbolic(x[2 * n] + u[0] * *extra);
    return (1 - u[n]) * u[2 * n] + u[n] * h;
  }
  u[0] = sigmoid(x[0] + u[0]);
  u[n] = sigmoid(x[n] + u[n]);
  u[2 * n] = hyperbolic(x[2 * n] + u[2 * n]);
  u[3 * n] = sigmoid(x[3 * n] + u[3 * n]);
  *extra = *c = u[n] * *c + u[0] * u[2 * n];
  return u[3 * n] * hyperbolic(*c);
}

typedef struct direction {
  const tarn__recurrence_spec *spec;
  const tarn__tensor *weight, *leaks;
  const real *bias;  // for forward, or NULL
  real *dbias;       // for backward, or NULL
  tarn__recurrence_band x, y, gates, extra, dy, dx, du;
  // For sentences with initial states of their own, rows [gates * hidden] and [tarn__recurrence_cache_width()] each.
  tarn__recurrence_band first, start, end;
  bool reverse, accumulate;
  real *u, *h, *c, *more;  // scratch: [gates * hidden], [hidden] each
} direction;

static tarn__recurrence_band whole(const tarn__tensor *tensor) { return tarn__recurrence_band_of(tensor, 0, 0); }

static bool is_lstm(const direction *d) { return d->spec->cell == TARN__CELL_LSTM; }

static void begin_sentence(const direction *d, int64_t s) {
  const size_t bytes = (size_t)d->spec->hidden * sizeof *d->h;
  const real *start = d->start.data ? row_of(&d->start, s) : NULL;
  memset(d->c, 0, bytes);
  memset(d->h, 0, bytes);
  if (start) memcpy(d->h, start, bytes);
  if (start && is_lstm(d)) memcpy(d->c, start + d->spec->hidden, bytes);
}

static void end_sentence(const direction *d, int64_t s) {
  const size_t bytes = (size_t)d->spec->hidden * sizeof *d->h;
  if (!d->end.data) return;
  memcpy(row_of(&d->end, s), d->h, bytes);
  if (is_lstm(d)) memcpy(row_of(&d->end, s) + d->spec->hidden, d->c, bytes);
}

static void forward_sentence(const direction *d, int64_t s, int64_t begin, int64_t end) {
  const int64_t n = d->spec->hidden, width = d->weight->rows;
  begin_sentence(d, s);
  for (int64_t t = begin; t < end; t++) {
    const int64_t r = d->reverse ? begin + end - 1 - t : t;
    recur(d->u, d->weight, d->bias, t > begin || d->start.data ? d->h : NULL);
    for (int64_t j = 0; j < n; j++)
      d->h[j] =
          step(d->spec, leak_of(d->spec, d->leaks, j), row_of(&d->x, r) + j, d->u + j, d->h[j], &d->c[j], &d->more[j]);
    memcpy(row_of(&d->y, r), d->h, (size_t)n * sizeof *d->h);
    if (d->gates.data) memcpy(row_of(&d->gates, r), d->u, (size_t)width * sizeof *d->u);
    if (d->extra.data) memcpy(row_of(&d->extra, r), d->more, (size_t)n * sizeof *d->more);
  }
  end_sentence(d, s);
}

tarn_status TARN__REF(tarn__recurrence_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__recurrence_spec *spec = node->attr;
  const int64_t n = spec->hidden, width = tarn__recurrence_gates(spec) * n;
  const int32_t *offsets = node->in[TARN__RECURRENCE_OFFSETS]->data;
  real *u = node->scratch;
  for (int i = 0; i < spec->directions; i++) {
    const tarn__tensor *bias = node->in[TARN__RECURRENCE_BIASES + i];
    direction d = {.spec = spec,
                   .weight = node->in[TARN__RECURRENCE_WEIGHTS + i],
                   .leaks = node->in[TARN__RECURRENCE_LEAKS],
                   .bias = bias ? bias->data : NULL,
                   .x = tarn__recurrence_band_of(node->in[TARN__RECURRENCE_X], i, width),
                   .y = tarn__recurrence_band_of(node->out[TARN__RECURRENCE_Y], i, n),
                   .gates = tarn__recurrence_band_of(node->out[TARN__RECURRENCE_GATES], i, width),
                   .extra = tarn__recurrence_band_of(node->out[TARN__RECURRENCE_EXTRA], i, n),
                   .start = whole(node->in[TARN__RECURRENCE_START]),
                   .end = whole(node->in[TARN__RECURRENCE_END]),
                   .reverse = tarn__recurrence_reverse(spec, i),
                   .u = u,
                   .h = u + width,
                   .c = u + width + n,
                   .more = u + width + 2 * n};
    for (int64_t s = 0; s + 1 < node->in[TARN__RECURRENCE_OFFSETS]->cols; s++)
      forward_sentence(&d, s, offsets[s], offsets[s + 1]);
  }
  return TARN_STATUS_OK;
}

// The backward pass of one unit of one step. du: the gradients of the sums of the gates, followed at du[gates * hidden]
// by that of the contribution of the weights to the last gate of GRU. dh and dc: of the states; in: for this step, out:
// for the previous one.
static void step_back(const tarn__recurrence_spec *spec, real leak, const real *gate, real extra, real h, real c,
                      real *du, real *dh, real *dc) {
  const int64_t n = spec->hidden;
  if (spec->cell == TARN__CELL_ECHO) {
    const real f = gate[0];
    du[0] = leak * *dh * (!spec->relu ? 1 - f * f : f > 0 ? 1 : 0);
    *dh *= 1 - leak;
    return;
  }
  if (spec->cell == TARN__CELL_GRU) {
    const real r = gate[0], z = gate[n], m = gate[2 * n];
    du[2 * n] = *dh * (1 - z) * (1 - m * m);
    du[n] = *dh * (h - m) * z * (1 - z);
    du[0] = du[2 * n] * extra * r * (1 - r);
    du[3 * n] = du[2 * n] * r;
    *dh *= z;
    return;
  }
  const real i = gate[0], f = gate[n], g = gate[2 * n], o = gate[3 * n], bent = hyperbolic(extra);
  const real d = *dc + *dh * o * (1 - bent * bent);
  du[0] = d * g * i * (1 - i);
  du[n] = d * c * f * (1 - f);
  du[2 * n] = d * i * (1 - g * g);
  du[3 * n] = *dh * bent * o * (1 - o);
  *dc = d * f;
  *dh = 0;
}

// dh += W^T du, the gradient of the previous state.
static void recur_back(real *dh, const tarn__tensor *weight, const real *du) {
  if (weight->param->entries > 0) {
    const tarn__entries w = tarn__entries_at(weight->param, weight->data);
    for (int64_t i = 0; i < weight->rows; i++)
      for (int32_t e = w.starts[i]; e < w.starts[i + 1]; e++) dh[w.columns[e]] += ((const real *)w.values)[e] * du[i];
    return;
  }
  for (int64_t i = 0; i < weight->rows; i++)
    for (int64_t j = 0; j < weight->cols; j++) dh[j] += ((const real *)weight->data)[i * weight->cols + j] * du[i];
}

static void backward_sentence(const direction *d, int64_t s, int64_t begin, int64_t end) {
  const int64_t n = d->spec->hidden, width = d->weight->rows;
  const real *start = d->start.data ? row_of(&d->start, s) : NULL;
  if (d->first.data) memset(row_of(&d->first, s), 0, (size_t)width * sizeof *d->u);
  memset(d->h, 0, (size_t)n * sizeof *d->h);
  memset(d->c, 0, (size_t)n * sizeof *d->c);
  for (int64_t t = end - 1; t >= begin; t--) {
    const int64_t r = d->reverse ? begin + end - 1 - t : t, before = d->reverse ? r + 1 : r - 1;
    const bool first = t == begin;
    const real *h = first ? start : row_of(&d->y, before), *c = NULL;  // NULL: zero
    if (is_lstm(d)) c = !first ? row_of(&d->extra, before) : start ? start + n : NULL;
    for (int64_t j = 0; j < n; j++) {
      d->h[j] += row_of(&d->dy, r)[j];
      step_back(d->spec, leak_of(d->spec, d->leaks, j), row_of(&d->gates, r) + j,
                d->extra.data ? row_of(&d->extra, r)[j] : 0, h ? h[j] : 0, c ? c[j] : 0, d->u + j, &d->h[j], &d->c[j]);
    }
    for (int64_t i = 0; d->dx.data && i < width; i++)
      row_of(&d->dx, r)[i] = d->u[i] + (d->accumulate ? row_of(&d->dx, r)[i] : 0);
    if (d->spec->cell == TARN__CELL_GRU) memcpy(d->u + 2 * n, d->u + 3 * n, (size_t)n * sizeof *d->u);
    for (int64_t i = 0; d->dbias && i < width; i++) d->dbias[i] += d->u[i];
    for (int64_t i = 0; d->du.data && i < width; i++) row_of(&d->du, r)[i] = first ? 0 : d->u[i];
    if (first && d->first.data) memcpy(row_of(&d->first, s), d->u, (size_t)width * sizeof *d->u);
    recur_back(d->h, d->weight, d->u);
  }
}

tarn_status TARN__REF(tarn__recurrence_backward_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__recurrence_spec *spec = node->attr;
  const int64_t n = spec->hidden, width = tarn__recurrence_gates(spec) * n;
  const tarn__tensor *starts = node->in[TARN__RECURRENCE_BACK_OFFSETS];
  const int32_t *offsets = starts->data;
  real *u = node->scratch;
  for (int i = 0; i < spec->directions; i++) {
    tarn__param *bias = node->dparam[i];
    const bool echo = spec->cell == TARN__CELL_ECHO;
    const tarn__tensor *extra = node->in[TARN__RECURRENCE_BACK_EXTRA];  // ECHO: leaks
    direction d = {.spec = spec,
                   .weight = node->in[TARN__RECURRENCE_BACK_WEIGHTS + i],
                   .leaks = echo ? extra : NULL,
                   .dbias = bias ? bias->training.grad : NULL,
                   .y = tarn__recurrence_band_of(node->in[TARN__RECURRENCE_BACK_Y], i, n),
                   .gates = tarn__recurrence_band_of(node->in[TARN__RECURRENCE_BACK_GATES], i, width),
                   .extra = tarn__recurrence_band_of(echo ? NULL : extra, i, n),
                   .dy = tarn__recurrence_band_of(node->in[TARN__RECURRENCE_BACK_DY], i, n),
                   .dx = tarn__recurrence_band_of(node->out[TARN__RECURRENCE_BACK_DX], i, width),
                   .du = tarn__recurrence_band_of(node->out[TARN__RECURRENCE_BACK_DU], i, width),
                   .first = whole(node->out[TARN__RECURRENCE_BACK_FIRST]),
                   .start = whole(node->in[TARN__RECURRENCE_BACK_START]),
                   .reverse = tarn__recurrence_reverse(spec, i),
                   .accumulate = node->in[TARN__RECURRENCE_BACK_PREVIOUS] != NULL,
                   .u = u,
                   .h = u + width + n,
                   .c = u + width + 2 * n};
    if (bias && !tarn__param_accumulate(bias)) memset(d.dbias, 0, (size_t)width * sizeof *d.dbias);
    for (int64_t s = 0; s + 1 < starts->cols; s++) backward_sentence(&d, s, offsets[s], offsets[s + 1]);
  }
  return TARN_STATUS_OK;
}

// The tangent of one unit of one step; returns dh'. du: the contribution of the weights to the tangents dx (NULL: zero)
// of the sums of the gates. h and c: the previous states.
static real step_tangent(const tarn__recurrence_spec *spec, real leak, const real *gate, real extra, real h, real c,
                         const real *dx, const real *du, real dh, real *dc) {
  const int64_t n = spec->hidden;
  real moved[4] = {0};
  for (int64_t k = 0; dx && k < tarn__recurrence_gates(spec); k++) moved[k] = dx[k * n];
  if (spec->cell == TARN__CELL_ECHO) {
    const real f = gate[0];
    return (1 - leak) * dh + leak * (moved[0] + du[0]) * (!spec->relu ? 1 - f * f : f > 0 ? 1 : 0);
  }
  if (spec->cell == TARN__CELL_GRU) {
    const real r = gate[0], z = gate[n], m = gate[2 * n];
    const real dr = r * (1 - r) * (moved[0] + du[0]), dz = z * (1 - z) * (moved[1] + du[n]);
    const real dm = (1 - m * m) * (moved[2] + dr * extra + r * du[2 * n]);
    return (1 - z) * dm + z * dh + dz * (h - m);
  }
  const real i = gate[0], f = gate[n], g = gate[2 * n], o = gate[3 * n], bent = hyperbolic(extra);
  const real di = i * (1 - i) * (moved[0] + du[0]), df = f * (1 - f) * (moved[1] + du[n]);
  const real dg = (1 - g * g) * (moved[2] + du[2 * n]), dout = o * (1 - o) * (moved[3] + du[3 * n]);
  *dc = df * c + f * *dc + di * g + i * dg;
  return dout * bent + o * (1 - bent * bent) * *dc;
}

// One sentence of one direction, whose rows of tangents begin at `rows`. d->h and d->c are the tangents of the states.
static void tangent_sentence(const direction *d, int64_t s, int64_t begin, int64_t end, int64_t rows) {
  const int64_t n = d->spec->hidden;
  const real *start = d->start.data ? row_of(&d->start, s) : NULL;
  for (int64_t t = begin; t < end; t++) {
    const int64_t r = d->reverse ? begin + end - 1 - t : t, before = d->reverse ? r + 1 : r - 1;
    const real *h = t > begin ? row_of(&d->y, before) : start, *c = NULL;  // NULL: zero
    if (is_lstm(d)) c = t > begin ? row_of(&d->extra, before) : start ? start + n : NULL;
    recur(d->u, d->weight, NULL, d->h);
    for (int64_t j = 0; j < n; j++)
      d->h[j] = step_tangent(d->spec, leak_of(d->spec, d->leaks, j), row_of(&d->gates, r) + j,
                             d->extra.data ? row_of(&d->extra, r)[j] : 0, h ? h[j] : 0, c ? c[j] : 0,
                             d->dx.data ? row_of(&d->dx, rows + r) + j : NULL, d->u + j, d->h[j], &d->c[j]);
    memcpy(row_of(&d->dy, rows + r), d->h, (size_t)n * sizeof *d->h);
  }
}

tarn_status TARN__REF(tarn__recurrence_tangent_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__recurrence_spec *spec = node->attr;
  const int64_t n = spec->hidden, width = tarn__recurrence_gates(spec) * n;
  const tarn__tensor *starts = node->in[TARN__RECURRENCE_TANGENT_OFFSETS], *y = node->in[TARN__RECURRENCE_TANGENT_Y];
  const tarn__tensor *start = node->in[TARN__RECURRENCE_TANGENT_START];
  const tarn__tensor *dstart = node->in[TARN__RECURRENCE_TANGENT_DSTART];
  const tarn__tensor *dy = node->out[TARN__RECURRENCE_TANGENT_DY], *dend = node->out[TARN__RECURRENCE_TANGENT_DEND];
  const int64_t sentences = starts->cols - 1, directions = tarn__tangent_directions(dy, y->rows);
  const tarn__tensor *extra = node->in[TARN__RECURRENCE_TANGENT_EXTRA];  // ECHO: leaks
  const bool echo = spec->cell == TARN__CELL_ECHO;
  const int64_t carried = start ? start->rows : 0, ends = dend && directions > 0 ? dend->rows / directions : 0;
  const int32_t *offsets = starts->data;
  real *u = node->scratch;
  for (int i = 0; i < spec->directions; i++) {
    direction d = {.spec = spec,
                   .weight = node->in[TARN__RECURRENCE_TANGENT_WEIGHTS + i],
                   .y = tarn__recurrence_band_of(y, i, n),
                   .gates = tarn__recurrence_band_of(node->in[TARN__RECURRENCE_TANGENT_GATES], i, width),
                   .leaks = echo ? extra : NULL,
                   .extra = tarn__recurrence_band_of(echo ? NULL : extra, i, n),
                   .dx = tarn__recurrence_band_of(node->in[TARN__RECURRENCE_TANGENT_DX], i, width),
                   .dy = tarn__recurrence_band_of(dy, i, n),
                   .start = whole(start),
                   .reverse = tarn__recurrence_reverse(spec, i),
                   .u = u,
                   .h = u + width,
                   .c = u + width + n};
    direction carry = {.spec = spec, .start = whole(dstart), .end = whole(dend), .h = d.h, .c = d.c};
    for (int64_t at = 0; at < directions * sentences; at++) {
      const int64_t k = at / sentences, s = at % sentences;
      begin_sentence(&carry, k * carried + s);
      tangent_sentence(&d, s, offsets[s], offsets[s + 1], k * y->rows);
      end_sentence(&carry, k * ends + s);
    }
  }
  return TARN_STATUS_OK;
}

// grad [width, n] += to^T h
static void add_product(real *grad, const real *to, const real *h, int64_t width, int64_t n) {
  for (int64_t i = 0; i < width; i++)
    for (int64_t j = 0; j < n; j++) grad[i * n + j] += to[i] * h[j];
}

tarn_status TARN__REF(tarn__recurrence_dweight_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__recurrence_dweight_attr *attr = node->attr;
  const int64_t n = attr->spec.hidden, width = tarn__recurrence_gates(&attr->spec) * n;
  const tarn__tensor *rows = node->in[TARN__RECURRENCE_DWEIGHT_DU], *first = node->in[TARN__RECURRENCE_DWEIGHT_FIRST];
  const tarn__recurrence_band du = tarn__recurrence_band_of(rows, attr->direction, width);
  const tarn__recurrence_band y = tarn__recurrence_band_of(node->in[TARN__RECURRENCE_DWEIGHT_Y], attr->direction, n);
  const tarn__recurrence_band starts = whole(node->in[TARN__RECURRENCE_DWEIGHT_START]), firsts = whole(first);
  const bool reverse = tarn__recurrence_reverse(&attr->spec, attr->direction);
  real *grad = node->dparam[0]->training.grad;
  if (!tarn__param_accumulate(node->dparam[0])) memset(grad, 0, (size_t)(width * n) * sizeof *grad);
  for (int64_t r = 1; r < rows->rows; r++)
    add_product(grad, row_of(&du, reverse ? r - 1 : r), row_of(&y, reverse ? r : r - 1), width, n);
  for (int64_t s = 0; first && s < first->rows; s++)
    add_product(grad, row_of(&firsts, s), row_of(&starts, s), width, n);
  return TARN_STATUS_OK;
}

tarn_status TARN__REF(tarn__recurrence_rows_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__recurrence_rows_attr *attr = node->attr;
  const int64_t n = attr->spec.hidden, width = tarn__recurrence_gates(&attr->spec) * n;
  const tarn__tensor *bias = node->in[TARN__RECURRENCE_ROWS_BIAS], *cache = node->in[TARN__RECURRENCE_ROWS_CACHE];
  const bool lstm = attr->spec.cell == TARN__CELL_LSTM;
  real *u = node->scratch, *c = u + width, *more = c + n;
  for (int64_t i = 0; i < node->in[TARN__RECURRENCE_ROWS_X]->rows; i++) {
    const int64_t before = tarn__recurrence_row_before(node, i);
    const real *old = before >= 0 ? (const real *)cache->data + before * cache->cols : NULL;
    const real *x = (const real *)node->in[TARN__RECURRENCE_ROWS_X]->data + i * width;
    real *now = (real *)cache->data + (attr->first_row + i) * cache->cols, *y = (real *)node->out[0]->data + i * n;
    recur(u, node->in[TARN__RECURRENCE_ROWS_WEIGHT], bias ? bias->data : NULL, old);
    for (int64_t j = 0; j < n; j++) {
      c[j] = old && lstm ? old[n + j] : 0;
      now[j] = y[j] = step(&attr->spec, leak_of(&attr->spec, node->in[TARN__RECURRENCE_ROWS_LEAKS], j), x + j, u + j,
                           old ? old[j] : 0, &c[j], &more[j]);
      if (lstm) now[n + j] = c[j];
    }
  }
  return TARN_STATUS_OK;
}

size_t TARN__REF(tarn__recurrence_ref_scratch)(const tarn__node *node, int threads) {
  (void)threads;
  const tarn__recurrence_spec *spec = node->attr;
  return (size_t)((tarn__recurrence_gates(spec) + 3) * spec->hidden) * sizeof(real);
}

size_t TARN__REF(tarn__recurrence_rows_ref_scratch)(const tarn__node *node, int threads) {
  (void)threads;
  const tarn__recurrence_spec *spec = &((const tarn__recurrence_rows_attr *)node->attr)->spec;
  return (size_t)((tarn__recurrence_gates(spec) + 2) * spec->hidden) * sizeof(real);
}
