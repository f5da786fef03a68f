#include "ops/offsets.h"

tarn_status tarn__offsets_check(const tarn__tensor *offsets, int64_t rows, const char *op, const char *what) {
  const int32_t *offset = offsets->data;
  const int64_t n = offsets->cols - 1;
  TARN_REQUIRE(offset, INTERNAL, "%s: there are no offsets of %s", op, what);
  TARN_REQUIRE(offset[0] == 0 && offset[n] == rows, INTERNAL, "%s: offsets of %s go from %d to %d; expected 0 to %lld",
               op, what, (int)offset[0], (int)offset[n], (long long)rows);
  for (int64_t s = 0; s < n; s++)
    TARN_REQUIRE(offset[s] <= offset[s + 1], INTERNAL, "%s: offsets of %s fall at sequence %lld", op, what,
                 (long long)s);
  return TARN_STATUS_OK;
}
