// Calls a device's optimiser on a list of parameters, for tests.
#ifndef TARN_TESTS_LIST_OPTIMISER_H
#define TARN_TESTS_LIST_OPTIMISER_H

#include "device/transfer.h"
#include "optim/adam.h"

// The optimiser's calls on a list; they must not fail. Each waits for the device.
static inline void list_done(const tarn__device *device, tarn__param_table *table) {
  assert_int_equal(tarn__device_synchronise(device), TARN_STATUS_OK);
  tarn__param_table_close(device, table);
}

static inline void step_list(const tarn__device *device, tarn__param *const *list, size_t count,
                             const tarn__adam_options *options, int64_t step, double factor, int threads) {
  tarn__param_table table = {.params = list, .count = count};
  assert_int_equal(tarn__adam_step(device, &table, options, step, factor, NULL, threads), TARN_STATUS_OK);
  list_done(device, &table);
}

static inline double list_norm(const tarn__device *device, tarn__param *const *list, size_t count, int threads) {
  tarn__param_table table = {.params = list, .count = count};
  void *there;
  double norm;
  assert_int_equal(tarn__device_allocate(device, &there, TARN__MEMORY_OTHER, 1, sizeof norm), TARN_STATUS_OK);
  assert_int_equal(tarn__param_table_refresh(device, &table), TARN_STATUS_OK);
  assert_int_equal(device->type->grad_norm(device, there, &table, threads), TARN_STATUS_OK);
  assert_int_equal(tarn__device_get(device, &norm, there, sizeof norm), TARN_STATUS_OK);
  tarn__device_free(device, there);
  list_done(device, &table);
  return norm;
}

static inline void list_sum_add(const tarn__device *device, tarn__param *const *list, size_t count) {
  tarn__param_table table = {.params = list, .count = count};
  assert_int_equal(tarn__param_table_refresh(device, &table), TARN_STATUS_OK);
  assert_int_equal(device->type->grad_sum_add(device, &table, 1), TARN_STATUS_OK);
  list_done(device, &table);
}

#endif
