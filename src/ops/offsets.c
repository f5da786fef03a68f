#include "ops/offsets.h"

tarn_status tarn__offsets_check(const tarn__tensor *offsets, int64_t rows, const char *op, const char *what) {
  const int32_t *offset = offsets->host;
  const int64_t n = offsets->cols - 1;
  TARN_REQUIRE(offset, INTERNAL, "%s: there are no offsets of %s", op, what);
  TARN_REQUIRE(offset[0] == 0 && offset[n] == rows, INTERNAL, "%s: offsets of %s go from %d to %d; expected 0 to %lld",
               op, what, (int)offset[0], (int)offset[n], (long long)rows);
  for (int64_t s = 0; s < n; s++)
    TARN_REQUIRE(offset[s] <= offset[s + 1], INTERNAL, "%s: offsets of %s fall at sequence %lld", op, what,
                 (long long)s);
  return TARN_STATUS_OK;
}

tarn_status tarn__ranges_check(const tarn__tensor *list, const tarn__tensor *ranges, int64_t count, int64_t rows,
                               const char *op) {
  const int32_t *row = list->host, *range = ranges->host;
  for (int64_t i = 0; i < count; i++) {
    TARN_REQUIRE(range[2 * i] >= 0 && range[2 * i] < range[2 * i + 1] && range[2 * i + 1] <= list->cols, INTERNAL,
                 "%s: row %lld has the range %d to %d of %lld", op, (long long)i, (int)range[2 * i],
                 (int)range[2 * i + 1], (long long)list->cols);
    for (int32_t j = range[2 * i]; j < range[2 * i + 1]; j++)
      TARN_REQUIRE(row[j] >= 0 && row[j] < rows, INTERNAL, "%s: row %lld names row %d of %lld", op, (long long)i,
                   (int)row[j], (long long)rows);
  }
  return TARN_STATUS_OK;
}

double tarn__offsets_taps(const tarn__tensor *offsets, int64_t rows, int64_t width, int64_t before) {
  const int32_t *offset = offsets ? offsets->host : NULL;
  if (!offset) return (double)rows * (double)width;
  double sum = 0.0;
  for (int64_t s = 0; s + 1 < offsets->cols; s++)
    for (int64_t k = 0; k < width; k++) {
      const int64_t distance = k < before ? before - k : k - before;
      const int64_t length = offset[s + 1] - offset[s];
      if (distance < length) sum += (double)(length - distance);
    }
  return sum;
}
