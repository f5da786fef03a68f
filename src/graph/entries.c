#include "graph/entries.h"

#include <math.h>

static size_t value_size(const tarn__param *param) {
  return param->dtype == TARN__F64 ? sizeof(double) : sizeof(float);
}

size_t tarn__param_value_bytes(const tarn__param *param) {
  if (param->entries == 0) return (size_t)(param->rows * param->cols) * tarn__dtype_size(param->dtype);
  return tarn__entries_aligned((size_t)(param->rows + 1) * sizeof(int32_t)) +
         tarn__entries_aligned((size_t)param->entries * sizeof(int32_t)) + (size_t)param->entries * value_size(param);
}

// The largest m with m (2 n - 1 - m) <= entries, solved as a quadratic: edges of a new unit in a scale-free graph.
static int64_t edges_of_new_unit(int64_t n, double share) {
  const double b = 2.0 * (double)n - 1.0, root = b * b - 4.0 * share * (double)n * (double)n;
  const int64_t m = root > 0 ? llround((b - sqrt(root)) / 2.0) : n - 1;
  return m < 1 ? 1 : m > n - 1 ? n - 1 : m;
}

int64_t tarn__reservoir_degree(int64_t n, const tarn__reservoir *reservoir) {
  const double share = 1.0 - reservoir->sparsity;
  const int64_t degree = llround(share * (double)n), half = llround(share * (double)n / 2.0);
  switch (reservoir->topology) {
    case TARN__TOPOLOGY_RING:
      return degree < 1 ? 1 : degree > n ? n : degree;
    case TARN__TOPOLOGY_SMALL_WORLD:
      return half < 1 ? 1 : half > (n - 1) / 2 ? (n - 1) / 2 : half;
    case TARN__TOPOLOGY_SCALE_FREE:
      return edges_of_new_unit(n, share);
    case TARN__TOPOLOGY_RANDOM:
      break;
  }
  return 0;
}

double tarn__reservoir_entries(int64_t n, const tarn__reservoir *reservoir) {
  const double units = (double)n, degree = (double)tarn__reservoir_degree(n, reservoir);
  switch (reservoir->topology) {
    case TARN__TOPOLOGY_RING:
      return units * degree;
    case TARN__TOPOLOGY_SMALL_WORLD:
      return units * 2.0 * degree;
    case TARN__TOPOLOGY_SCALE_FREE:
      return degree * (2.0 * units - 1.0 - degree);
    case TARN__TOPOLOGY_RANDOM:
      break;
  }
  return (1.0 - reservoir->sparsity) * units * units;
}

int64_t tarn__entries_room(double expected) { return (int64_t)ceil(expected + 8.0 * sqrt(expected)) + 64; }

int64_t tarn__reservoir_room(int64_t n, const tarn__reservoir *reservoir) {
  const double entries = tarn__reservoir_entries(n, reservoir);
  if (reservoir->topology != TARN__TOPOLOGY_RANDOM) return (int64_t)entries;
  const int64_t room = tarn__entries_room(entries);
  return room < n * n ? room : n * n;
}
