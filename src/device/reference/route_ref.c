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

// The most probable expert but for those in `taken`.
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

// Rows by expert from the choices, which stand where the places go.
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
    real *p = kept ? (real *)kept->data + r * experts : node->scratch;
    row_probabilities(p, exec, node, r);
    choose(chosen, p, experts, choices);
    for (int64_t j = 0; j < choices; j++) sum += gates[j] = p[chosen[j]];
    for (int64_t j = 0; attr->spec.normalise && j < choices; j++) gates[j] /= sum;
    for (int64_t j = 0; j < choices; j++) places[r * choices + j] = -2 - chosen[j];
  }
  give_places(places, node->out[TARN__ROUTE_OFFSETS]->data, rows, choices, experts, attr->room);
  return TARN_STATUS_OK;
}

// A row of probabilities, of forward and of backward too.
size_t TARN__REF(tarn__route_ref_scratch)(const tarn__node *node, int threads) {
  (void)threads;
  return 2 * (size_t)node->in[TARN__ROUTE_WEIGHT]->rows * sizeof(real);
}

// The gradient of row r with respect to its logits. first: how many rows have each expert as their first choice.
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

tarn_status TARN__REF(tarn__route_backward_ref)(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *x = node->in[TARN__ROUTE_X], *weight = node->in[TARN__ROUTE_WEIGHT], *dx = node->out[0];
  const tarn__route_attr *attr = node->attr;
  const int64_t experts = weight->rows, d = x->cols;
  real *first = node->scratch, *dlogits = first + experts;
  tarn__param *param = node->dparam[0];
  real *dweight = param ? param->training.grad : NULL;
  if (param && !tarn__param_accumulate(param)) memset(dweight, 0, (size_t)(experts * d) * sizeof(real));
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

tarn_status TARN__REF(tarn__gather_rows_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *x = node->in[TARN__GATHER_X], *places = node->in[TARN__GATHER_PLACES];
  for (int64_t i = 0; i < places->rows * places->cols; i++) {
    const int32_t place = ((const int32_t *)places->data)[i];
    for (int64_t c = 0; place >= 0 && c < x->cols; c++)
      ((real *)node->out[0]->data)[place * x->cols + c] = ((const real *)x->data)[i / places->cols * x->cols + c];
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
