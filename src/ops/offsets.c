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

tarn_status tarn__numbers_check(const tarn__tensor *numbers, int64_t rows, const char *op, const char *what) {
  const int32_t *number = numbers->host;
  if (numbers->source) return TARN_STATUS_OK;  // a node computes them, whose op answers for their range
  TARN_REQUIRE(number || numbers->cols == 0, INTERNAL, "%s: there are no numbers of a %s", op, what);
  for (int64_t i = 0; i < numbers->cols; i++)
    TARN_REQUIRE(number[i] >= 0 && number[i] < rows, INTERNAL, "%s: %s %lld is %d; expected 0 to %lld", op, what,
                 (long long)i, (int)number[i], (long long)rows - 1);
  return TARN_STATUS_OK;
}

// The sum of length - distance for the distances 1 to `most` that are less than the length.
static double taps_on_one_side(int64_t length, int64_t most) {
  const int64_t count = most < length ? most : length - 1;
  return count > 0 ? (double)count * ((double)length - (double)(count + 1) / 2.0) : 0.0;
}

double tarn__offsets_taps(const tarn__tensor *offsets, int64_t rows, int64_t width, int64_t before) {
  const int32_t *offset = offsets ? offsets->host : NULL;
  if (!offset) return (double)rows * (double)width;
  double sum = 0.0;
  for (int64_t s = 0; s + 1 < offsets->cols; s++) {
    const int64_t length = offset[s + 1] - offset[s];
    sum += (double)length + taps_on_one_side(length, before) + taps_on_one_side(length, width - 1 - before);
  }
  return sum;
}

double tarn__ranges_rows(const tarn__tensor *ranges, int64_t bound) {
  if (!ranges->host) return (double)(ranges->cols / 2) * (double)bound;
  double rows = 0.0;
  for (int64_t i = 0; i + 1 < ranges->cols; i += 2) rows += ranges->host[i + 1] - ranges->host[i];
  return rows;
}
