// The documented example series.
#include <math.h>

#include "base/memory.h"
#include "base/work.h"
#include "series/table.h"

void tarn_series_recipe_default(tarn_series_recipe *recipe, tarn_series_system system) {
  bool lorenz = system == TARN_SERIES_LORENZ;
  *recipe = (tarn_series_recipe){.system = system,
                                 .rows = lorenz ? 10000 : 5000,
                                 .discard = 1000,
                                 .dt = lorenz ? 0.02 : 1,
                                 .substeps = lorenz ? 4 : 10,
                                 .tau = 17};
}

static void lorenz_slope(double d[3], const double u[3]) {
  d[0] = 10 * (u[1] - u[0]);
  d[1] = u[0] * (28 - u[2]) - u[1];
  d[2] = u[0] * u[1] - 8.0 / 3 * u[2];
}

static void lorenz_step(double u[3], double h) {
  double k[4][3], at[3];
  const double share[4] = {0, 0.5, 0.5, 1};
  for (int s = 0; s < 4; s++) {
    for (int i = 0; i < 3; i++) at[i] = s ? u[i] + share[s] * h * k[s - 1][i] : u[i];
    lorenz_slope(k[s], at);
  }
  for (int i = 0; i < 3; i++) u[i] += h / 6 * (k[0][i] + 2 * k[1][i] + 2 * k[2][i] + k[3][i]);
}

static void note(tarn__work *work, const tarn_series_recipe *r, int64_t row) {
  const double done = (double)(row + r->discard);
  tarn__work_at(work, done, done / (double)(r->rows + r->discard));
}

static void lorenz(tarn_series *series, const tarn_series_recipe *r, tarn__work *work) {
  double u[3] = {1, 1, 1}, h = r->dt / (double)r->substeps;
  for (int64_t row = -r->discard; row < r->rows; row++) {
    if (row > -r->discard)
      for (int64_t s = 0; s < r->substeps; s++) lorenz_step(u, h);
    for (int i = 0; i < 3 && row >= 0; i++) series->values[row * 3 + i] = u[i];
    note(work, r, row);
  }
}

static double mackey_glass_slope(double x, double delayed) { return 0.2 * delayed / (1 + pow(delayed, 10)) - 0.1 * x; }

// The last `delay` + 1 values and slopes in rings; slot t % (delay + 1) belongs to step t.
static void mackey_glass(tarn_series *series, const tarn_series_recipe *r, double *past, double *slopes, int64_t delay,
                         tarn__work *work) {
  double x = 1.2, h = r->dt / (double)r->substeps;
  int64_t slots = delay + 1, step = 0;
  for (int64_t i = 0; i < slots; i++) past[i] = x;  // constant before the beginning
  for (int64_t row = -r->discard; row < r->rows; row++) {
    for (int64_t s = 0; s < r->substeps && row > -r->discard; s++, step++) {
      int64_t old = (step + 1) % slots, next = (step + 2) % slots;  // of step - delay and step - delay + 1
      double d0 = past[old], d1 = past[next];
      double k1 = mackey_glass_slope(x, d0);
      past[step % slots] = x;
      slopes[step % slots] = k1;
      double half = step < delay ? d0 : 0.5 * (d0 + d1) + h / 8 * (slopes[old] - slopes[next]);
      double k2 = mackey_glass_slope(x + h / 2 * k1, half);
      double k3 = mackey_glass_slope(x + h / 2 * k2, half);
      double k4 = mackey_glass_slope(x + h * k3, d1);
      x += h / 6 * (k1 + 2 * k2 + 2 * k3 + k4);
    }
    if (row >= 0) series->values[row] = x;
    note(work, r, row);
  }
}

static tarn_status check(const tarn_series_recipe *r, double *delay) {
  TARN_REQUIRE(r->system == TARN_SERIES_MACKEY_GLASS || r->system == TARN_SERIES_LORENZ, USAGE, "an unknown system");
  TARN_REQUIRE(r->rows >= 1 && r->rows <= 100000000 && r->discard >= 0 && r->discard <= 100000000, USAGE,
               "rows must be 1 .. 10^8 and discarded rows 0 .. 10^8");
  TARN_REQUIRE(isfinite(r->dt) && r->dt > 0 && r->substeps >= 1 && r->substeps <= 1000000, USAGE,
               "dt must be above 0 and steps in it 1 .. 10^6");
  *delay = round(r->tau * (double)r->substeps / r->dt);
  TARN_REQUIRE(r->system == TARN_SERIES_LORENZ || (*delay >= 2 && *delay <= 1e7 &&
                                                   fabs(*delay * r->dt / (double)r->substeps - r->tau) < 1e-9 * r->tau),
               USAGE, "tau must be a multiple of dt / substeps, 2 to 10^7 times");
  return TARN_STATUS_OK;
}

tarn_status tarn_series_generate(tarn_series **series, const tarn_series_recipe *recipe) {
  const char *const names[] = {"x", "y", "z"};
  const bool is_lorenz = recipe->system == TARN_SERIES_LORENZ;
  double delay = 0;
  tarn__work work;
  *series = NULL;
  TARN_TRY(check(recipe, &delay));
  TARN_TRY(tarn__series_new(series, recipe->rows, is_lorenz ? 3 : 1, names));
  if (is_lorenz) {
    tarn__work_begin(&work, "integrating", "rows");
    lorenz(*series, recipe, &work);
    tarn__work_end(&work);
  } else {
    void *rings;
    size_t slots = (size_t)delay + 1;
    tarn_status status = tarn__alloc(&rings, TARN__MEMORY_OTHER, 2 * slots, sizeof(double));
    if (status != TARN_STATUS_OK) {
      tarn_series_close(series);
      return status;
    }
    tarn__work_begin(&work, "integrating", "rows");
    mackey_glass(*series, recipe, rings, (double *)rings + slots, (int64_t)delay, &work);
    tarn__work_end(&work);
    tarn__free(rings);
  }
  for (int64_t i = 0; i < recipe->rows * (*series)->columns; i++) {
    if (isfinite((*series)->values[i])) continue;
    tarn_series_close(series);
    return tarn__fail(TARN_STATUS_NUMERIC, "the series leaves the finite numbers; take more steps in dt");
  }
  return TARN_STATUS_OK;
}
