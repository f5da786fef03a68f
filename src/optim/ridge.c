#include "optim/ridge.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/memory.h"
#include "device/transfer.h"

// An odd number of cache lines, so that a column of many samples does not fall into a few sets of the cache.
static int64_t pitch_of(int64_t wide) { return ((wide + 7) / 8 | 1) * 8; }

static tarn_status open_sums(tarn__ridge *ridge, const tarn__device *device, int64_t inputs, int64_t outputs,
                             bool classes) {
  const int64_t width = inputs + outputs, wide = classes ? inputs : width, pitch = pitch_of(wide);
  const size_t waiting = (size_t)(TARN__RIDGE_PIECE * pitch);
  *ridge = (tarn__ridge){.device = device,
                         .inputs = inputs,
                         .outputs = outputs,
                         .width = width,
                         .classes = classes,
                         .wide = wide,
                         .pitch = pitch};
  void *memory;
  TARN_TRY(tarn__device_allocate(device, &memory, TARN__MEMORY_OTHER, (size_t)((inputs + 1) * width) + waiting,
                                 sizeof(double)));
  ridge->products = memory;
  ridge->totals = ridge->products + inputs * width;
  ridge->waiting = ridge->totals + width;
  ridge->filling = ridge->waiting;
  ridge->solved_totals = ridge->totals;
  if (tarn__device_is_host(device)) return TARN_STATUS_OK;
  ridge->filling = NULL;
  const size_t values = classes ? 0 : waiting;  // rows of classes are in the device's memory
  tarn_status status = tarn__alloc(&memory, TARN__MEMORY_OTHER, values + (size_t)width, sizeof(double));
  if (status != TARN_STATUS_OK) {
    tarn__ridge_close(ridge);
    return status;
  }
  ridge->filling = memory;
  ridge->solved_totals = ridge->filling + values;
  return TARN_STATUS_OK;
}

tarn_status tarn__ridge_open(tarn__ridge *ridge, const tarn__device *device, int64_t inputs, int64_t outputs) {
  return open_sums(ridge, device, inputs, outputs, false);
}

tarn_status tarn__ridge_open_classes(tarn__ridge *ridge, const tarn__device *device, int64_t inputs, int64_t outputs) {
  return open_sums(ridge, device, inputs, outputs, true);
}

size_t tarn__ridge_bytes(const tarn__device *device, int64_t inputs, int64_t outputs) {
  size_t n = (size_t)inputs, m = (size_t)outputs;
  size_t sums = (n + 1) * (n + m) + TARN__RIDGE_PIECE * (size_t)pitch_of(inputs), solving = n * (n + m);
  // The host's copy of the sums, and the device's copy of the matrix to factor.
  size_t copies = tarn__device_is_host(device) ? 0 : (n + 1) * (n + m) + n * n;
  return (sums + solving + copies) * sizeof(double);
}

void tarn__ridge_close(tarn__ridge *ridge) {
  if (ridge->filling != ridge->waiting) tarn__free(ridge->filling);
  if (ridge->device) tarn__device_free(ridge->device, ridge->products);
  *ridge = (tarn__ridge){0};
}

// Adds the waiting samples.
static tarn_status flush(tarn__ridge *ridge) {
  const size_t bytes = (size_t)(ridge->waiting_count * ridge->pitch) * sizeof *ridge->waiting;
  if (ridge->filling != ridge->waiting && bytes > 0 && !ridge->classes)
    TARN_TRY(tarn__device_put(ridge->device, ridge->waiting, ridge->filling, bytes));
  TARN_TRY(ridge->device->type->ridge_add(ridge->device, ridge));
  ridge->count += ridge->waiting_count;
  ridge->waiting_count = 0;
  return TARN_STATUS_OK;
}

static tarn_status flush_full(tarn__ridge *ridge) {
  return ridge->waiting_count == TARN__RIDGE_PIECE ? flush(ridge) : TARN_STATUS_OK;
}

tarn_status tarn__ridge_add(tarn__ridge *ridge, const double *x, const double *y) {
  double *z = ridge->filling + ridge->waiting_count++ * ridge->pitch;
  memcpy(z, x, (size_t)ridge->inputs * sizeof *z);
  memcpy(z + ridge->inputs, y, (size_t)ridge->outputs * sizeof *z);
  return flush_full(ridge);
}

tarn_status tarn__ridge_add_rows(tarn__ridge *ridge, const void *rows, tarn__dtype dtype, int64_t first, int64_t count,
                                 const int32_t *classes) {
  for (int64_t done = 0; done < count;) {
    const int64_t room = TARN__RIDGE_PIECE - ridge->waiting_count, left = count - done, now = left < room ? left : room;
    TARN_TRY(ridge->device->type->ridge_take(ridge->device, ridge, rows, dtype, first + done, now));
    memcpy(ridge->waiting_classes + ridge->waiting_count, classes + done, (size_t)now * sizeof *classes);
    ridge->waiting_count += now;
    done += now;
    TARN_TRY(flush_full(ridge));
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__ridge_change(tarn__ridge *ridge, tarn_status (*change)(void *user, double *numbers, int64_t count),
                               void *user) {
  TARN_TRY(flush(ridge));
  const int64_t n = (ridge->inputs + 1) * ridge->width;
  const size_t bytes = (size_t)n * sizeof(double);
  tarn__host_room room = {0};
  void *sums;
  tarn_status status = tarn__device_read(ridge->device, &sums, ridge->products, bytes, &room);
  if (status == TARN_STATUS_OK) status = change(user, sums, n);
  if (status == TARN_STATUS_OK && sums != ridge->products)
    status = tarn__device_put(ridge->device, ridge->products, sums, bytes);
  tarn__host_room_close(&room);
  return status;
}

static tarn_status add_to(void *user, double *numbers, int64_t count) {
  double *sums = user;
  for (int64_t i = 0; i < count; i++) sums[i] += numbers[i];
  return TARN_STATUS_OK;
}

static tarn_status add_all(void *user, double *numbers, int64_t count) {
  (void)count;
  return tarn__ridge_change(user, add_to, numbers);
}

tarn_status tarn__ridge_merge(tarn__ridge *ridge, tarn__ridge *other) {
  TARN_TRY(tarn__ridge_change(ridge, add_all, other));
  ridge->count += other->count;
  return TARN_STATUS_OK;
}

// The centred sums of x on and right of the diagonal.
static void fill_matrix(double *a, const tarn__ridge *ridge, const double *products, double penalty) {
  int64_t n = ridge->inputs;
  for (int64_t i = 0; i < n; i++) {
    double mean = ridge->solved_totals[i] / (double)ridge->count;
    for (int64_t j = i; j < n; j++) a[i * n + j] = products[i * ridge->width + j] - mean * ridge->solved_totals[j];
    a[i * n + i] += penalty;
  }
}

static void fill_targets(double *b, const tarn__ridge *ridge, const double *products) {
  int64_t n = ridge->inputs;
  for (int64_t i = 0; i < n; i++) {
    double mean = ridge->solved_totals[i] / (double)ridge->count;
    for (int64_t o = 0; o < ridge->outputs; o++)
      b[o * n + i] = products[i * ridge->width + n + o] - mean * ridge->solved_totals[n + o];
  }
}

// b becomes the solution of U'U x = b.
static void substitute(double *b, const double *u, int64_t n) {
  for (int64_t k = 0; k < n; k++) {
    b[k] /= u[k * n + k];
    for (int64_t i = k + 1; i < n; i++) b[i] -= u[k * n + i] * b[k];
  }
  for (int64_t k = n - 1; k >= 0; k--) {
    for (int64_t j = k + 1; j < n; j++) b[k] -= u[k * n + j] * b[j];
    b[k] /= u[k * n + k];
  }
}

// Replaces the upper triangle of A = U'U by U; *fails: a pivot is not above `least`. `apart` is memory for A on the
// device, or A itself.
static tarn_status factorise(double *a, double *apart, const tarn__ridge *ridge, double least, bool *fails) {
  const size_t bytes = (size_t)(ridge->inputs * ridge->inputs) * sizeof *a;
  if (apart != a) TARN_TRY(tarn__device_put(ridge->device, apart, a, bytes));
  bool done;
  TARN_TRY(ridge->device->type->cholesky(ridge->device, &done, apart, ridge->inputs, least));
  *fails = !done;
  return apart != a ? tarn__device_get(ridge->device, a, apart, bytes) : TARN_STATUS_OK;
}

static tarn_status factor(double *a, double *apart, double *used, const tarn__ridge *ridge, const double *products) {
  int64_t n = ridge->inputs;
  for (int attempt = 0; attempt < 40; attempt++) {
    double trace = 0, largest = 0;
    bool fails;
    fill_matrix(a, ridge, products, *used);
    for (int64_t i = 0; i < n; i++) {
      trace += a[i * n + i];
      largest = fmax(largest, a[i * n + i]);
    }
    TARN_REQUIRE(isfinite(trace), NUMERIC, "the sums of the regression are not finite");
    TARN_TRY(factorise(a, apart, ridge, 8 * DBL_EPSILON * largest, &fails));
    if (!fails) return TARN_STATUS_OK;
    *used = fmax(10 * *used, fmax(DBL_EPSILON * trace / (double)n, DBL_MIN / DBL_EPSILON));
  }
  return tarn__fail(TARN_STATUS_NUMERIC, "the regression fails even with the ridge %g", *used);
}

static void solve_outputs(double *weights, double *bias, const double *a, double *b, const tarn__ridge *ridge) {
  const int64_t n = ridge->inputs, outputs = ridge->outputs;
  const double *totals = ridge->solved_totals;
#pragma omp parallel for schedule(static) if (n >= 128 && outputs > 1)
  for (int64_t o = 0; o < outputs; o++) {
    substitute(b + o * n, a, n);
    bias[o] = totals[n + o] / (double)ridge->count;
    for (int64_t i = 0; i < n; i++) {
      weights[i * outputs + o] = b[o * n + i];
      bias[o] -= totals[i] / (double)ridge->count * b[o * n + i];
    }
  }
}

// With the host's view of the products.
static tarn_status solve_on(double *weights, double *bias, double *used, const tarn__ridge *ridge,
                            const double *products) {
  const tarn__device *device = ridge->device;
  const int64_t n = ridge->inputs;
  void *memory, *apart = NULL;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)(n * (n + ridge->outputs)), sizeof(double)));
  double *a = memory, *b = a + n * n;
  tarn_status status = TARN_STATUS_OK;
  if (!tarn__device_is_host(device))
    status = tarn__device_allocate(device, &apart, TARN__MEMORY_OTHER, (size_t)(n * n), sizeof(double));
  if (status == TARN_STATUS_OK) status = factor(a, apart ? apart : a, used, ridge, products);
  if (status == TARN_STATUS_OK) {
    fill_targets(b, ridge, products);
    solve_outputs(weights, bias, a, b, ridge);
  }
  if (apart) tarn__device_free(device, apart);
  tarn__free(memory);
  return status;
}

tarn_status tarn__ridge_solve(double *weights, double *bias, double *used, tarn__ridge *ridge, double penalty) {
  TARN_TRY(flush(ridge));
  TARN_REQUIRE(ridge->count > 0, DATA, "a regression needs at least one sample");
  *used = penalty;
  const tarn__device *device = ridge->device;
  if (ridge->solved_totals != ridge->totals)
    TARN_TRY(
        tarn__device_get(device, ridge->solved_totals, ridge->totals, (size_t)ridge->width * sizeof *ridge->totals));
  tarn__host_room room = {0};
  void *products;
  const size_t bytes = (size_t)(ridge->inputs * ridge->width) * sizeof *ridge->products;
  tarn_status status = tarn__device_read(device, &products, ridge->products, bytes, &room);
  if (status == TARN_STATUS_OK) status = solve_on(weights, bias, used, ridge, products);
  tarn__host_room_close(&room);
  return status;
}
