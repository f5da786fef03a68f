#include "ops/route.h"

#include <math.h>
#include <string.h>

#include "device/reference/reference_kernels.h"

typedef TARN_REAL real;

static double jitter(const tarn__route_attr *attr, const tarn__exec *exec, int64_t row, int64_t column) {
  if (!attr->noisy) return 1.0;
  uint16_t numbers[TARN__DROPOUT_BLOCK];
  tarn__dropout_block(numbers, exec, attr->site, (uint32_t)row, (uint32_t)(column / TARN__DROPOUT_BLOCK));
  return tarn__route_jitter(attr->spec.noise, numbers[column % TARN__DROPOUT_BLOCK]);
}

// The most probable expert not in `taken`.
static int32_t best_of(const real *p, int64_t experts, const int32_t *taken, int64_t count) {
  int32_t best = -1;
  for (int32_t e = 0; e < experts; e++) {
    bool is_taken = false;
    for (int64_t j = 0; j < count; j++) is_taken = is_taken || taken[j] == e;
    if (!is_taken && (best < 0 || p[e] > p[best])) best = e;
  }
  return best;
}

static void choose(int32_t *chosen, const real *p, int64_t experts, int64_t choices) {
  for (int64_t j = 0; j < choices; j++) chosen[j] = best_of(p, experts, chosen, j);
}

// The probabilities of row r.
static void row_probabilities(real *p, const tarn__exec *exec, const tarn__node *node, int64_t r) {
  const tarn__tensor *x = node->in[TARN__ROUTE_X], *weight = node->in[TARN__ROUTE_WEIGHT];
  const tarn__route_attr *attr = node->attr;
  const real *row = (const real *)x->data + r * x->cols, *w = weight->data;
  real most = -INFINITY, sum = 0;
  for (int64_t e = 0; e < weight->rows; e++) {
    p[e] = 0;
    for (int64_t c = 0; c < x->cols; c++) p[e] += row[c] * (real)jitter(attr, exec, r, c) * w[e * x->cols + c];
    if (p[e] > most) most = p[e];
  }
  for (int64_t e = 0; e < weight->rows; e++) sum += p[e] = (real)exp((double)(p[e] - most));
  for (int64_t e = 0; e < weight->rows; e++) p[e] /= sum;
}

// --- noisy gating

// The quantities of a row: c, a = x noise^T, n, and h = c + n s.
typedef struct noisy {
  const real *c, *a, *n;
  real *h;
} noisy;

static real noise_of(real a) { return (real)tarn__route_softplus((double)a); }

static noisy read_noisy(const real *kept, real *h, int64_t experts) {
  const noisy row = {kept, kept + experts, kept + 2 * experts, h};
  for (int64_t e = 0; e < experts; e++) h[e] = row.c[e] + row.n[e] * noise_of(row.a[e]);
  return row;
}

static real dot(const real *x, const real *w, int64_t n) {
  real sum = 0;
  for (int64_t c = 0; c < n; c++) sum += x[c] * w[c];
  return sum;
}

static real normal(const tarn__route_attr *attr, const tarn__exec *exec, int64_t row, int64_t e) {
  uint16_t numbers[TARN__DROPOUT_BLOCK];
  const int64_t at = 2 * e % TARN__DROPOUT_BLOCK;
  tarn__dropout_block(numbers, exec, attr->site, (uint32_t)row, (uint32_t)(2 * e / TARN__DROPOUT_BLOCK));
  return (real)tarn__route_normal(numbers[at], numbers[at + 1]);
}

static noisy make_noisy(real *kept, real *h, const tarn__exec *exec, const tarn__node *node, int64_t r) {
  const tarn__tensor *x = node->in[TARN__ROUTE_X], *weight = node->in[TARN__ROUTE_WEIGHT];
  const real *row = (const real *)x->data + r * x->cols, *w = weight->data, *v = node->in[TARN__ROUTE_NOISE]->data;
  for (int64_t e = 0; e < weight->rows; e++) {
    kept[e] = dot(row, w + e * x->cols, x->cols);
    kept[weight->rows + e] = dot(row, v + e * x->cols, x->cols);
    kept[2 * weight->rows + e] = normal(node->attr, exec, r, e);
  }
  return read_noisy(kept, h, weight->rows);
}

// The softmax of the chosen h.
static void noisy_gates(real *gates, const real *h, const int32_t *chosen, int64_t choices) {
  real sum = 0;
  for (int64_t j = 0; j < choices; j++) sum += gates[j] = (real)exp((double)(h[chosen[j]] - h[chosen[0]]));
  for (int64_t j = 0; j < choices; j++) gates[j] /= sum;
}

// Sorts rows by expert from the choices, which are in `places`.
static void give_places(int32_t *places, int32_t *offsets, int64_t rows, int64_t choices, int64_t experts,
                        int64_t room) {
  int32_t next = 0;
  for (int32_t e = 0; e < experts; e++) {
    int64_t taken = 0;
    offsets[e] = next;
    for (int64_t j = 0; j < choices; j++)
      for (int64_t r = 0; r < rows; r++)
        if (places[r * choices + j] == -2 - e) places[r * choices + j] = taken++ < room ? next++ : -1;
  }
  offsets[experts] = next;
}

tarn_status TARN__REF(tarn__route_ref)(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *kept = node->out[TARN__ROUTE_PROBABILITIES];
  const tarn__route_attr *attr = node->attr;
  const int64_t rows = node->in[TARN__ROUTE_X]->rows, experts = node->in[TARN__ROUTE_WEIGHT]->rows;
  const int64_t choices = attr->spec.choices;
  int32_t *places = node->out[TARN__ROUTE_PLACES]->data, chosen[TARN__ROUTE_MOST_CHOICES];
  for (int64_t r = 0; r < rows; r++) {
    real *gates = (real *)node->out[TARN__ROUTE_GATES]->data + r * choices, sum = 0;
    if (node->in[TARN__ROUTE_NOISE]) {
      real *h = node->scratch;
      make_noisy(kept ? (real *)kept->data + r * 3 * experts : h + experts, h, exec, node, r);
      choose(chosen, h, experts, choices);
      noisy_gates(gates, h, chosen, choices);
    } else {
      real *p = kept ? (real *)kept->data + r * experts : node->scratch;
      row_probabilities(p, exec, node, r);
      choose(chosen, p, experts, choices);
      for (int64_t j = 0; j < choices; j++) sum += gates[j] = p[chosen[j]];
      for (int64_t j = 0; attr->spec.normalise && j < choices; j++) gates[j] /= sum;
    }
    for (int64_t j = 0; j < choices; j++) places[r * choices + j] = -2 - chosen[j];
  }
  give_places(places, node->out[TARN__ROUTE_OFFSETS]->data, rows, choices, experts, attr->room);
  return TARN_STATUS_OK;
}

// Rows of probabilities, for forward and backward; for noisy gating, sums in double.
size_t TARN__REF(tarn__route_ref_scratch)(const tarn__node *node, int threads) {
  (void)threads;
  const size_t experts = (size_t)node->in[TARN__ROUTE_WEIGHT]->rows;
  return node->in[TARN__ROUTE_NOISE] ? experts * (2 * sizeof(double) + 4 * sizeof(real)) : 2 * experts * sizeof(real);
}

// The gradient of row r with respect to its logits. first: number of rows per expert for which it is the first choice.
static void row_gradient(real *dlogits, const tarn__node *node, const real *first, int64_t r) {
  const tarn__route_attr *attr = node->attr;
  const int64_t rows = node->in[TARN__ROUTE_X]->rows, experts = node->in[TARN__ROUTE_WEIGHT]->rows;
  const int64_t choices = attr->spec.choices;
  const real *p = (const real *)node->in[TARN__ROUTE_P]->data + r * experts;
  const real *dgates = (const real *)node->in[TARN__ROUTE_DGATES]->data + r * choices;
  const double balance = attr->spec.balance * attr->spec.share * (double)experts / ((double)rows * (double)rows);
  int32_t chosen[TARN__ROUTE_MOST_CHOICES];
  choose(chosen, p, experts, choices);
  real sum = 0, mean = 0, dot = 0;
  for (int64_t j = 0; j < choices; j++) sum += p[chosen[j]];
  for (int64_t j = 0; j < choices; j++) mean += dgates[j] * p[chosen[j]] / sum;
  for (int64_t e = 0; e < experts; e++) dlogits[e] = (real)balance * first[e];
  for (int64_t j = 0; j < choices; j++)
    dlogits[chosen[j]] += attr->spec.normalise ? (dgates[j] - mean) / sum : dgates[j];
  for (int64_t e = 0; e < experts; e++) dot += p[e] * dlogits[e];
  for (int64_t e = 0; e < experts; e++) dlogits[e] = p[e] * (dlogits[e] - dot);
}

// The rival of expert e among the k + 1 largest h (`chosen`): the k-th largest of the others.
static int32_t rival_of(const int32_t *chosen, int64_t choices, int32_t e) {
  for (int64_t j = 0; j < choices; j++)
    if (chosen[j] == e) return chosen[choices];
  return chosen[choices - 1];
}

// Derivatives of both losses with respect to the importance and the load of each expert.
static void loss_derivatives(double *importance, double *load, const tarn__node *node, real *h) {
  const tarn__route_attr *attr = node->attr;
  const int64_t experts = node->in[TARN__ROUTE_WEIGHT]->rows, choices = attr->spec.choices;
  int32_t chosen[TARN__ROUTE_MOST_CHOICES + 1];
  real gates[TARN__ROUTE_MOST_CHOICES];
  for (int64_t e = 0; e < experts; e++) importance[e] = load[e] = 0.0;
  for (int64_t r = 0; r < node->in[TARN__ROUTE_X]->rows; r++) {
    const noisy row = read_noisy((const real *)node->in[TARN__ROUTE_P]->data + r * 3 * experts, h, experts);
    choose(chosen, h, experts, choices + 1);
    noisy_gates(gates, h, chosen, choices);
    for (int64_t j = 0; j < choices; j++) importance[chosen[j]] += (double)gates[j];
    for (int32_t e = 0; e < experts; e++)
      load[e] += tarn__route_below((double)((row.c[e] - h[rival_of(chosen, choices, e)]) / noise_of(row.a[e])));
  }
  tarn__route_variation(importance, experts, attr->spec.importance * attr->spec.share);
  tarn__route_variation(load, experts, attr->spec.load * attr->spec.share);
}

// The gradients of row r with respect to c and a.
static void noisy_gradient(real *dc, real *da, real *h, const tarn__node *node, const double *importance,
                           const double *load, int64_t r) {
  const tarn__route_attr *attr = node->attr;
  const int64_t experts = node->in[TARN__ROUTE_WEIGHT]->rows, choices = attr->spec.choices;
  const noisy row = read_noisy((const real *)node->in[TARN__ROUTE_P]->data + r * 3 * experts, h, experts);
  const real *dgates = (const real *)node->in[TARN__ROUTE_DGATES]->data + r * choices;
  int32_t chosen[TARN__ROUTE_MOST_CHOICES + 1];
  real gates[TARN__ROUTE_MOST_CHOICES], mean = 0;
  choose(chosen, h, experts, choices + 1);
  noisy_gates(gates, h, chosen, choices);
  for (int64_t j = 0; j < choices; j++) mean += gates[j] * (dgates[j] + (real)importance[chosen[j]]);
  // First dc is the gradient of h, and da the separate gradient of s; then the separate gradient of c is added to dc.
  for (int64_t e = 0; e < experts; e++) dc[e] = da[e] = 0;
  for (int64_t j = 0; j < choices; j++) dc[chosen[j]] = gates[j] * (dgates[j] + (real)importance[chosen[j]] - mean);
  for (int32_t e = 0; e < experts; e++) {
    const int32_t rival = rival_of(chosen, choices, e);
    const real s = noise_of(row.a[e]), z = (row.c[e] - h[rival]) / s;
    dc[rival] -= (real)(load[e] * tarn__route_density((double)z)) / s;
  }
  for (int32_t e = 0; e < experts; e++) {
    const real s = noise_of(row.a[e]), z = (row.c[e] - h[rival_of(chosen, choices, e)]) / s;
    const real own = (real)(load[e] * tarn__route_density((double)z)) / s;
    da[e] = (dc[e] * row.n[e] - own * z) * (real)tarn__route_sigmoid((double)row.a[e]);
    dc[e] += own;
  }
}

static real *cleared_gradient(tarn__param *param) {
  if (!param) return NULL;
  if (!tarn__param_accumulate(param))
    memset(param->training.grad, 0, (size_t)(param->rows * param->cols) * sizeof(real));
  return param->training.grad;
}

static tarn_status noisy_backward(const tarn__node *node) {
  const tarn__tensor *x = node->in[TARN__ROUTE_X], *weight = node->in[TARN__ROUTE_WEIGHT], *dx = node->out[0];
  const int64_t experts = weight->rows, d = x->cols;
  const real *w = weight->data, *v = node->in[TARN__ROUTE_NOISE]->data;
  double *importance = node->scratch, *load = importance + experts;
  real *h = (real *)(void *)(load + experts), *dc = h + experts, *da = dc + experts;
  real *dweight = cleared_gradient(node->dparam[0]), *dnoise = cleared_gradient(node->dparam[1]);
  loss_derivatives(importance, load, node, h);
  for (int64_t r = 0; r < x->rows; r++) {
    noisy_gradient(dc, da, h, node, importance, load, r);
    for (int64_t c = 0; c < d; c++) {
      const real value = ((const real *)x->data)[r * d + c];
      real sum = 0;
      for (int64_t e = 0; e < experts; e++) {
        sum += dc[e] * w[e * d + c] + da[e] * v[e * d + c];
        if (dweight) dweight[e * d + c] += dc[e] * value;
        if (dnoise) dnoise[e * d + c] += da[e] * value;
      }
      if (!dx) continue;
      real *out = (real *)dx->data + r * d + c;
      *out = (node->in[TARN__ROUTE_PREVIOUS] ? *out : 0) + sum;
    }
  }
  return TARN_STATUS_OK;
}

tarn_status TARN__REF(tarn__route_backward_ref)(const tarn__exec *exec, const tarn__node *node) {
  if (node->in[TARN__ROUTE_NOISE]) return noisy_backward(node);
  const tarn__tensor *x = node->in[TARN__ROUTE_X], *weight = node->in[TARN__ROUTE_WEIGHT], *dx = node->out[0];
  const tarn__route_attr *attr = node->attr;
  const int64_t experts = weight->rows, d = x->cols;
  real *first = node->scratch, *dlogits = first + experts;
  real *dweight = cleared_gradient(node->dparam[0]);
  memset(first, 0, (size_t)experts * sizeof(real));
  for (int64_t r = 0; r < x->rows; r++)
    first[best_of((const real *)node->in[TARN__ROUTE_P]->data + r * experts, experts, NULL, 0)] += 1;
  for (int64_t r = 0; r < x->rows; r++) {
    row_gradient(dlogits, node, first, r);
    for (int64_t c = 0; c < d; c++) {
      const real factor = (real)jitter(attr, exec, r, c), value = ((const real *)x->data)[r * d + c];
      real sum = 0;
      for (int64_t e = 0; e < experts; e++) sum += dlogits[e] * ((const real *)weight->data)[e * d + c];
      for (int64_t e = 0; dweight && e < experts; e++) dweight[e * d + c] += dlogits[e] * value * factor;
      if (!dx) continue;
      real *out = (real *)dx->data + r * d + c;
      *out = (node->in[TARN__ROUTE_PREVIOUS] ? *out : 0) + sum * factor;
    }
  }
  return TARN_STATUS_OK;
}

// The tangent of the gates of row r from that of its logits, in dp, which is overwritten.
static void row_tangent(real *dgates, real *dp, const tarn__node *node, int64_t r) {
  const tarn__route_attr *attr = node->attr;
  const int64_t experts = node->in[TARN__ROUTE_WEIGHT]->rows, choices = attr->spec.choices;
  const real *p = (const real *)node->in[TARN__ROUTE_P]->data + r * experts;
  int32_t chosen[TARN__ROUTE_MOST_CHOICES];
  real mean = 0, sum = 0, moved = 0;
  choose(chosen, p, experts, choices);
  for (int64_t e = 0; e < experts; e++) mean += p[e] * dp[e];
  for (int64_t e = 0; e < experts; e++) dp[e] = p[e] * (dp[e] - mean);
  for (int64_t j = 0; j < choices; j++) sum += p[chosen[j]], moved += dp[chosen[j]];
  for (int64_t j = 0; j < choices; j++) {
    const real own = dp[chosen[j]];
    dgates[j] = attr->spec.normalise ? (own - p[chosen[j]] / sum * moved) / sum : own;
  }
}

static void noisy_tangent(real *dgates, const real *dx, const tarn__node *node, int64_t r) {
  const tarn__tensor *weight = node->in[TARN__ROUTE_WEIGHT];
  const int64_t experts = weight->rows, d = weight->cols;
  const int64_t choices = ((const tarn__route_attr *)node->attr)->spec.choices;
  const real *w = weight->data, *v = node->in[TARN__ROUTE_NOISE]->data;
  const noisy row = read_noisy((const real *)node->in[TARN__ROUTE_P]->data + r * 3 * experts, node->scratch, experts);
  int32_t chosen[TARN__ROUTE_MOST_CHOICES];
  real gates[TARN__ROUTE_MOST_CHOICES], mean = 0;
  choose(chosen, row.h, experts, choices);
  noisy_gates(gates, row.h, chosen, choices);
  for (int64_t j = 0; j < choices; j++) {
    const int32_t e = chosen[j];
    dgates[j] = dot(dx, w + e * d, d) + dot(dx, v + e * d, d) * row.n[e] * (real)tarn__route_sigmoid((double)row.a[e]);
    mean += gates[j] * dgates[j];
  }
  for (int64_t j = 0; j < choices; j++) dgates[j] = gates[j] * (dgates[j] - mean);
}

tarn_status TARN__REF(tarn__route_tangent_ref)(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *weight = node->in[TARN__ROUTE_WEIGHT], *dx = node->in[TARN__ROUTE_DX];
  const tarn__route_attr *attr = node->attr;
  const int64_t rows = node->in[TARN__ROUTE_X]->rows, d = weight->cols;
  real *dp = node->scratch;
  for (int64_t row = 0; row < dx->rows; row++) {
    real *dgates = (real *)node->out[0]->data + row * attr->spec.choices;
    if (node->in[TARN__ROUTE_NOISE]) {
      noisy_tangent(dgates, (const real *)dx->data + row * d, node, row % rows);
      continue;
    }
    for (int64_t e = 0; e < weight->rows; e++) {
      dp[e] = 0;
      for (int64_t c = 0; c < d; c++)
        dp[e] += ((const real *)dx->data)[row * d + c] * (real)jitter(attr, exec, row % rows, c) *
                 ((const real *)weight->data)[e * d + c];
    }
    row_tangent(dgates, dp, node, row % rows);
  }
  return TARN_STATUS_OK;
}

tarn_status TARN__REF(tarn__gather_rows_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *x = node->in[TARN__GATHER_X], *places = node->in[TARN__GATHER_PLACES], *y = node->out[0];
  const int64_t y_block = tarn__gather_block(node);
  for (int64_t i = 0; i < x->rows * places->cols; i++) {
    const int64_t row = i / places->cols, block = row / places->rows;
    const int32_t place = ((const int32_t *)places->data)[i % (places->rows * places->cols)];
    if (place < 0) continue;
    real *to = (real *)y->data + (block * y_block + place) * x->cols;
    for (int64_t c = 0; c < x->cols; c++) to[c] = ((const real *)x->data)[row * x->cols + c];
  }
  return TARN_STATUS_OK;
}

tarn_status TARN__REF(tarn__gather_rows_backward_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *dy = node->in[TARN__GATHER_DY], *places = node->in[TARN__GATHER_PLACES], *dx = node->out[0];
  const int64_t d = dx->cols, k = places->cols;
  for (int64_t r = 0; r < dx->rows; r++)
    for (int64_t c = 0; c < d; c++) {
      real sum = node->in[TARN__GATHER_PREVIOUS] ? ((real *)dx->data)[r * d + c] : 0;
      for (int64_t j = 0; j < k; j++) {
        const int32_t place = ((const int32_t *)places->data)[r * k + j];
        if (place >= 0) sum += ((const real *)dy->data)[place * d + c];
      }
      ((real *)dx->data)[r * d + c] = sum;
    }
  return TARN_STATUS_OK;
}
