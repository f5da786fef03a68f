// A device's optimiser on a list of parameters, for tests.
#ifndef TARN_TESTS_LIST_OPTIMISER_H
#define TARN_TESTS_LIST_OPTIMISER_H

#include "optim/adam.h"

// The optimiser's calls on a list; they must not fail.
static inline void step_list(const tarn__device *device, tarn__param *const *list, size_t count,
                             const tarn__adam_options *options, int64_t step, double factor, int threads) {
  tarn__param_table table = {.params = list, .count = count};
  assert_int_equal(tarn__adam_step(device, &table, options, step, factor, NULL, threads), TARN_STATUS_OK);
}

static inline double list_norm(const tarn__device *device, tarn__param *const *list, size_t count, int threads) {
  const tarn__param_table table = {.params = list, .count = count};
  double norm;
  assert_int_equal(device->type->grad_norm(device, &norm, &table, threads), TARN_STATUS_OK);
  return norm;
}

static inline void list_sum_add(const tarn__device *device, tarn__param *const *list, size_t count) {
  const tarn__param_table table = {.params = list, .count = count};
  assert_int_equal(device->type->grad_sum_add(device, &table, 1), TARN_STATUS_OK);
}

#endif
