#include "dynamics/cell.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/threads.h"
#include "dynamics/sums.h"
#include "init/spectral_radius.h"
#include "model/model.h"
#include "ops/recurrence.h"

enum {
  TOGETHER = 4,       // vectors per pass of a product over the matrix
  WORTH_IT = 1 << 15  // multiplications per step above which threads share them
};

int64_t tarn__cell_gates(const tarn__cell_map *cell) { return tarn__recurrence_gates(&cell->spec); }
int64_t tarn__cell_width(const tarn__cell_map *cell) {
  return tarn__recurrence_cache_width(cell->spec.cell, cell->spec.hidden);
}

static tarn_status copy_param(double **out, const tarn__param *param) {
  void *memory, *values;
  const size_t count = (size_t)param->rows * (size_t)param->cols;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, count, sizeof(double)));
  *out = memory;
  TARN_TRY(tarn__alloc(&values, TARN__MEMORY_OTHER, count, sizeof(float)));
  const tarn_status status = tarn__param_get(param, values);
  for (size_t i = 0; i < count; i++) (*out)[i] = (double)((const float *)values)[i];
  tarn__free(values);
  return status;
}

void tarn__cell_describe(tarn__cell_map *cell, const tarn__node *node) {
  *cell = (tarn__cell_map){.spec = *(const tarn__recurrence_spec *)node->attr, .factor = 1.0};
  if (cell->spec.directions == 2) cell->spec.reverse = false;
  cell->spec.directions = 1;
}

tarn_status tarn__cell_open(tarn__cell_map *cell, const tarn__node *node) {
  tarn__cell_describe(cell, node);
  const tarn__tensor *bias = node->in[TARN__RECURRENCE_BIASES];
  tarn_status status = copy_param(&cell->weight, node->in[TARN__RECURRENCE_WEIGHTS]->param);
  if (status == TARN_STATUS_OK && bias) status = copy_param(&cell->bias, bias->param);
  if (status != TARN_STATUS_OK) tarn__cell_close(cell);
  return status;
}

void tarn__cell_close(tarn__cell_map *cell) {
  tarn__free(cell->weight);
  tarn__free(cell->bias);
  tarn__free(cell->noise_in);
  tarn__sparse_close(&cell->sparse);
  *cell = (tarn__cell_map){0};
}

tarn_status tarn__cell_radius(double *radius, const tarn__cell_map *cell) {
  if (cell->weight)
    TARN_TRY(tarn__spectral_radius_dense(radius, cell->weight, cell->spec.hidden));
  else
    TARN_TRY(tarn__spectral_radius(radius, &cell->sparse));
  *radius *= fabs(cell->factor);
  return TARN_STATUS_OK;
}

// y[v][i] = weight[i] . x[v] of `count` vectors, at most TOGETHER.
static void multiply(double *y, const tarn__cell_map *cell, const double *const *x, int count) {
  enum { LANES = 4 };
  const int64_t n = cell->spec.hidden, rows = tarn__cell_gates(cell) * n, whole = n - n % LANES;
  for (int64_t i = 0; i < rows; i++) {
    const double *w = cell->weight + i * n;
    double sums[TOGETHER][LANES] = {{0}};
    for (int64_t c = 0; c < whole; c += LANES)
      for (int v = 0; v < TOGETHER; v++)
        for (int l = 0; l < LANES; l++) sums[v][l] += w[c + l] * x[v][c + l];
    for (int v = 0; v < count; v++) {
      double sum = (sums[v][0] + sums[v][2]) + (sums[v][1] + sums[v][3]);
      for (int64_t c = whole; c < n; c++) sum += w[c] * x[v][c];
      y[v * rows + i] = cell->factor * sum;
    }
  }
}

static void multiply_sparse(double *y, const tarn__cell_map *cell, const double *x) {
  tarn__sparse_product(y, &cell->sparse, x);
  for (int64_t i = 0; i < cell->spec.hidden; i++) y[i] *= cell->factor;
}

// The recurrent products of all states and, after them, perturbations.
static void multiply_all(const tarn__cell_run *run, const double *state, const double *perturbations,
                         int64_t directions) {
  const tarn__cell_map *cell = run->cell;
  const int64_t width = tarn__cell_width(cell), rows = tarn__cell_gates(cell) * cell->spec.hidden;
  const int64_t count = (1 + directions) * run->systems, groups = (count + TOGETHER - 1) / TOGETHER;
#pragma omp parallel for schedule(static) num_threads(tarn__threads()) if (count * rows * cell->spec.hidden >= WORTH_IT)
  for (int64_t g = 0; g < groups; g++) {
    const double *x[TOGETHER];
    const int64_t first = g * TOGETHER;
    const int now = (int)(count - first < TOGETHER ? count - first : TOGETHER);
    for (int v = 0; v < TOGETHER; v++) {
      const int64_t at = first + (v < now ? v : 0);
      x[v] = at < run->systems ? state + at * width : perturbations + (at - run->systems) * width;
    }
    if (cell->weight)
      multiply(run->work + first * rows, cell, x, now);
    else
      for (int v = 0; v < now; v++) multiply_sparse(run->work + (first + v) * rows, cell, x[v]);
  }
}

// Input `i` of gates and units of a system: everything except the product.
static double input_of(const tarn__cell_run *run, int64_t system, int64_t iteration, int64_t i) {
  const tarn__cell_map *cell = run->cell;
  const int64_t all = tarn__cell_gates(cell) * cell->spec.hidden;
  if (run->noise) return cell->noise_in[i] * run->noise[system * run->iterations + iteration];
  if (!run->inputs) return 0.0;
  const int64_t first = run->offsets[system], last = run->offsets[system + 1] - 1;
  // Systems that have ended continue with their last input.
  const int64_t ahead = first + iteration < last ? first + iteration : last;
  return run->inputs[(cell->spec.reverse ? first + last - ahead : ahead) * all + i];
}

static double bias_of(const tarn__cell_map *cell, int64_t i) { return cell->bias ? cell->bias[i] : 0.0; }
static double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

// The perturbations of a system and their products.
typedef struct moved {
  double *first;           // of direction j: first + j * stride
  const double *products;  // of direction j: products + j * product_stride
  int64_t count, stride, product_stride;
} moved;

static void step_echo(const tarn__cell_map *cell, double *h, const double *p, const double *x, const moved *m) {
  const double a = cell->spec.leak;
  for (int64_t i = 0; i < cell->spec.hidden; i++) {
    const double z = x[i] + p[i] + bias_of(cell, i);
    const double f = cell->spec.relu ? (z > 0.0 ? z : 0.0 * z) : tanh(z);
    const double slope = cell->spec.relu ? (double)(z > 0.0) : 1.0 - f * f;
    h[i] = (1.0 - a) * h[i] + a * f;
    for (int64_t j = 0; j < m->count; j++) {
      double *v = m->first + j * m->stride + i;
      *v = (1.0 - a) * *v + a * slope * m->products[j * m->product_stride + i];
    }
  }
}

static void step_gru(const tarn__cell_map *cell, double *h, const double *p, const double *x, const moved *m) {
  const int64_t n = cell->spec.hidden;
  for (int64_t i = 0; i < n; i++) {
    const double r = sigmoid(x[i] + p[i] + bias_of(cell, i));
    const double z = sigmoid(x[n + i] + p[n + i] + bias_of(cell, n + i));
    const double inner = p[2 * n + i] + bias_of(cell, 2 * n + i);
    const double c = tanh(x[2 * n + i] + r * inner);
    for (int64_t j = 0; j < m->count; j++) {
      double *v = m->first + j * m->stride + i;
      const double *dp = m->products + j * m->product_stride + i;
      const double dr = r * (1.0 - r) * dp[0], dz = z * (1.0 - z) * dp[n];
      const double dc = (1.0 - c * c) * (dr * inner + r * dp[2 * n]);
      *v = (1.0 - z) * dc + z * *v + (h[i] - c) * dz;
    }
    h[i] = (1.0 - z) * c + z * h[i];
  }
}

static void step_lstm(const tarn__cell_map *cell, double *h, const double *p, const double *x, const moved *m) {
  const int64_t n = cell->spec.hidden;
  double *cells = h + n;
  for (int64_t k = 0; k < n; k++) {
    const double i = sigmoid(x[k] + p[k] + bias_of(cell, k));
    const double f = sigmoid(x[n + k] + p[n + k] + bias_of(cell, n + k));
    const double g = tanh(x[2 * n + k] + p[2 * n + k] + bias_of(cell, 2 * n + k));
    const double o = sigmoid(x[3 * n + k] + p[3 * n + k] + bias_of(cell, 3 * n + k));
    const double c = f * cells[k] + i * g, t = tanh(c);
    for (int64_t j = 0; j < m->count; j++) {
      double *v = m->first + j * m->stride + k;
      const double *dp = m->products + j * m->product_stride + k;
      const double di = i * (1.0 - i) * dp[0], df = f * (1.0 - f) * dp[n];
      const double dg = (1.0 - g * g) * dp[2 * n], gates = o * (1.0 - o) * dp[3 * n];
      v[n] = f * v[n] + cells[k] * df + g * di + i * dg;
      *v = gates * t + o * (1.0 - t * t) * v[n];
    }
    cells[k] = c;
    h[k] = o * t;
  }
}

tarn_status tarn__cell_step(void *memory, double *state, double *perturbations, int64_t directions, int64_t iteration) {
  const tarn__cell_run *run = memory;
  const tarn__cell_map *cell = run->cell;
  const int64_t width = tarn__cell_width(cell), all = tarn__cell_gates(cell) * cell->spec.hidden;
  multiply_all(run, state, perturbations, directions);
#pragma omp parallel for schedule(static) \
    num_threads(tarn__threads()) if ((1 + directions) * run->systems * all >= 4096)
  for (int64_t s = 0; s < run->systems; s++) {
    double *p = run->work + s * all, *h = state + s * width;
    const moved m = {perturbations ? perturbations + s * width : NULL, run->work + (run->systems + s) * all, directions,
                     run->systems * width, run->systems * all};
    // Separate from the product, because a GRU's reset gate multiplies only the product.
    double *x = run->work + (1 + directions) * run->systems * all + s * all;
    for (int64_t i = 0; i < all; i++) x[i] = input_of(run, s, iteration, i);
    if (cell->spec.cell == TARN__CELL_ECHO) step_echo(cell, h, p, x, &m);
    if (cell->spec.cell == TARN__CELL_GRU) step_gru(cell, h, p, x, &m);
    if (cell->spec.cell == TARN__CELL_LSTM) step_lstm(cell, h, p, x, &m);
  }
  return TARN_STATUS_OK;
}
