#include "init/entries_init.h"

#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "device/transfer.h"

// A host copy of the values.
static tarn_status fetch(void **memory, tarn__entries *entries, const tarn__param *param, bool filled) {
  const size_t bytes = tarn__param_value_bytes(param);
  TARN_TRY(tarn__alloc(memory, TARN__MEMORY_OTHER, bytes, 1));
  *entries = tarn__entries_at(param, *memory);
  const tarn_status status = filled ? tarn__device_get(param->device, *memory, param->value, bytes) : TARN_STATUS_OK;
  if (status != TARN_STATUS_OK) tarn__free(*memory);
  return status;
}

static tarn_status put(tarn__param *param, void *memory) {
  const tarn_status status = tarn__device_put(param->device, param->value, memory, tarn__param_value_bytes(param));
  tarn__free(memory);
  return status;
}

static float rounded(const tarn__param *param, float value) {
  return param->dtype == TARN__BF16 ? tarn__bf16_to_f32(tarn__bf16_from_f32(value)) : value;
}

static void store(const tarn__param *param, const tarn__entries *entries, int64_t at, int64_t column, float value) {
  entries->columns[at] = (int32_t)column;
  if (param->dtype == TARN__F64)
    ((double *)entries->values)[at] = (double)value;
  else
    ((float *)entries->values)[at] = value;
}

// Compares bits, independently of the thread's treatment of denormal numbers.
static bool is_zero(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits << 1 == 0;
}

tarn_status tarn__entries_set(tarn__param *param, const tarn__sparse *matrix) {
  const int64_t n = matrix->n;
  void *memory;
  tarn__entries entries;
  TARN_REQUIRE(n == param->rows && n == param->cols && matrix->starts[n] <= param->entries, INTERNAL,
               "%s: %" PRId64 " entries of %" PRId64 " units, and room for %" PRId64, param->name, matrix->starts[n], n,
               param->entries);
  TARN_TRY(fetch(&memory, &entries, param, false));
  int64_t at = 0;
  for (int64_t i = 0; i < n; i++) {
    for (int64_t e = matrix->starts[i]; e < matrix->starts[i + 1]; e++) {
      const float value = rounded(param, (float)matrix->values[e]);
      if (!is_zero(value)) store(param, &entries, at++, matrix->columns[e], value);
    }
    entries.starts[i + 1] = (int32_t)at;
  }
  return put(param, memory);
}

tarn_status tarn__entries_append(tarn__param *param, size_t first, const float *values, size_t count) {
  void *memory;
  tarn__entries entries;
  TARN_TRY(fetch(&memory, &entries, param, first > 0));
  // Until all rows are complete, the last start is the number of entries.
  int64_t at = entries.starts[param->rows];
  tarn_status status = TARN_STATUS_OK;
  for (size_t i = 0; i < count && status == TARN_STATUS_OK; i++) {
    const int64_t row = (int64_t)(first + i) / param->cols, column = (int64_t)(first + i) % param->cols;
    if (column == 0) entries.starts[row] = (int32_t)at;
    const float value = rounded(param, values[i]);
    if (is_zero(value)) continue;
    if (at == param->entries)
      status =
          tarn__fail(TARN_STATUS_DATA, "%s has more entries that are not 0 than the %" PRId64 " that it has room for",
                     param->name, param->entries);
    else
      store(param, &entries, at++, column, value);
  }
  entries.starts[param->rows] = (int32_t)at;
  if (status == TARN_STATUS_OK) return put(param, memory);
  tarn__free(memory);
  return status;
}

tarn_status tarn__entries_get(const tarn__param *param, float *values) {
  void *memory;
  tarn__entries entries;
  TARN_TRY(fetch(&memory, &entries, param, true));
  memset(values, 0, (size_t)(param->rows * param->cols) * sizeof *values);
  for (int64_t i = 0; i < param->rows; i++)
    for (int32_t e = entries.starts[i]; e < entries.starts[i + 1]; e++)
      values[i * param->cols + entries.columns[e]] =
          param->dtype == TARN__F64 ? (float)((double *)entries.values)[e] : ((float *)entries.values)[e];
  tarn__free(memory);
  return TARN_STATUS_OK;
}

tarn_status tarn__entries_hash(char text[TARN__HASH_TEXT], const tarn__sparse *matrix) {
  tarn__hasher *hasher;
  void *memory;
  const size_t n = (size_t)matrix->n;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, n, sizeof(float)));
  float *row = memory;
  tarn_status status = tarn__hasher_open(&hasher);
  for (size_t i = 0; i < n && status == TARN_STATUS_OK; i++) {
    const int64_t first = matrix->starts[i], last = matrix->starts[i + 1];
    for (int64_t e = first; e < last; e++) row[matrix->columns[e]] = (float)matrix->values[e];
    tarn__hasher_add(hasher, row, n * sizeof *row);
    for (int64_t e = first; e < last; e++) row[matrix->columns[e]] = 0.0f;
  }
  if (status == TARN_STATUS_OK) tarn__hasher_text(text, hasher, NULL, 0);
  tarn__hasher_close(&hasher);
  tarn__free(memory);
  return status;
}
