// The power and scale that convert a least-squares readout into logits (train/features/readout.h).
#include <math.h>

#include "base/memory.h"
#include "train/features/readout.h"

static const double POWERS[] = {0.0, 0.25, 0.5, 0.75, 1.0};
static const double MOST = 1e6;
enum { ROUNDS = 60 };

// Means over the rows, and derivatives of the loss with respect to the scale.
typedef struct point {
  double scale, loss, nll, slope, curvature;
} point;

// Gaps are multiplied by the factor, d = gap factor; logits are log_share + scale d.
static void one_row(point *out, const tarn__calibration_data *data, const double *factors, double scale, int64_t row) {
  const double *gaps = data->gaps + row * data->words, *shares = data->log_shares;
  const int64_t words = data->words, target = data->targets[row];
  double most = -INFINITY, total = 0, first = 0, second = 0, logits = 0, gradient = 0;
  for (int64_t v = 0; v < words; v++) most = fmax(most, shares[v] + scale * gaps[v] * factors[v]);
  for (int64_t v = 0; v < words; v++) {
    const double d = gaps[v] * factors[v], z = shares[v] + scale * d, e = exp(z - most);
    total += e;
    first += e * d;
    second += e * d * d;
    logits += z;
    gradient += d;
  }
  const double all = most + log(total), d = gaps[target] * factors[target], keep = 1 - data->smoothing;
  const double spread = data->smoothing / (double)words;
  first /= total;
  out->nll = all - (shares[target] + scale * d);
  out->loss = keep * out->nll + data->smoothing * all - spread * logits;
  out->slope = first - keep * d - spread * gradient;
  out->curvature = second / total - first * first;
}

static void evaluate(point *mean, point *rows, const tarn__calibration_data *data, const double *factors,
                     double scale) {
#pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < data->rows; r++) one_row(&rows[r], data, factors, scale, r);
  *mean = (point){.scale = scale};
  for (int64_t r = 0; r < data->rows; r++) {
    mean->loss += rows[r].loss / (double)data->rows;
    mean->nll += rows[r].nll / (double)data->rows;
    mean->slope += rows[r].slope / (double)data->rows;
    mean->curvature += rows[r].curvature / (double)data->rows;
  }
}

// The loss is convex in the scale: Newton's method within a bracket of its minimum.
static void minimise(point *best, point *rows, const tarn__calibration_data *data, const double *factors) {
  double low = 0, high = 1;
  evaluate(best, rows, data, factors, high);
  while (best->slope < 0 && high < MOST) {
    low = high;
    high = fmin(2 * high, MOST);
    evaluate(best, rows, data, factors, high);
  }
  if (best->slope < 0) return;
  for (int i = 0; i < ROUNDS && high - low > 1e-6 * high; i++) {
    double next = best->scale - best->slope / best->curvature;
    if (!(next > low && next < high)) next = (low + high) / 2;
    if (fabs(next - best->scale) <= 1e-9 * high) return;
    evaluate(best, rows, data, factors, next);
    *(best->slope < 0 ? &low : &high) = next;
  }
}

tarn_status tarn__calibrate(tarn__calibration *best, const tarn__calibration_data *data) {
  void *memory;
  TARN_REQUIRE(data->rows > 0, DATA, "there is no token to find the scale of the readout by");
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)data->rows, sizeof(point)));
  point *rows = memory;
  tarn_status status = tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)data->words, sizeof(double));
  double *factors = memory;
  *best = (tarn__calibration){.loss = INFINITY};
  for (size_t i = 0; status == TARN_STATUS_OK && i < sizeof POWERS / sizeof *POWERS; i++) {
    point found;
    for (int64_t v = 0; v < data->words; v++) factors[v] = exp(-POWERS[i] * data->log_shares[v]);
    minimise(&found, rows, data, factors);
    if (found.loss < best->loss) *best = (tarn__calibration){POWERS[i], found.scale, found.loss, found.nll};
  }
  if (status == TARN_STATUS_OK) tarn__free(factors);
  tarn__free(rows);
  if (status == TARN_STATUS_OK && !isfinite(best->loss))
    status = tarn__fail(TARN_STATUS_NUMERIC, "the outputs of the regression are not finite numbers");
  return status;
}
