#include "decode/caches.h"

#include "base/memory.h"

tarn_status tarn__caches_open(tarn__caches *caches, const tarn__device *device, tarn__device_stream *stream, int layers,
                              const size_t *row_bytes, tarn__region *region) {
  *caches = (tarn__caches){.device = device, .stream = stream, .region = region};
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)layers, sizeof *caches->rows));
  caches->rows = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)layers, sizeof *caches->row_bytes));
  caches->row_bytes = memory;
  for (int l = 0; l < layers; l++) caches->row_bytes[l] = row_bytes[l];
  caches->layers = layers;
  return TARN_STATUS_OK;
}

void tarn__caches_drop(tarn__caches *caches) {
  for (int l = 0; l < caches->layers; l++) {
    tarn__region_free(caches->region, caches->rows[l]);
    caches->rows[l] = NULL;
  }
  tarn__free(caches->numbers);
  caches->numbers = NULL;
  caches->capacity = caches->used = 0;
}

void tarn__caches_close(tarn__caches *caches) {
  tarn__caches_drop(caches);
  tarn__free(caches->rows);
  tarn__free(caches->row_bytes);
  *caches = (tarn__caches){0};
}

void tarn__caches_reset(tarn__caches *caches) { caches->used = 0; }

// Gives every row in `seen` its index among the kept rows, in numbers[old]; the others get -1. Returns the number of
// kept rows.
static int64_t number_rows(const tarn__caches *caches, const int32_t *seen, size_t count) {
  for (int64_t i = 0; i < caches->used; i++) caches->numbers[i] = -1;
  for (size_t i = 0; i < count; i++) caches->numbers[seen[i]] = 0;
  int32_t kept = 0;
  for (int64_t i = 0; i < caches->used; i++)
    if (caches->numbers[i] == 0) caches->numbers[i] = kept++;
  return kept;
}

// Copies the kept rows of a layer to the front of `to`, which may be the layer's own matrix.
static tarn_status sweep(const tarn__caches *caches, int layer, void *to) {
  const tarn__device *device = caches->device;
  const size_t row = caches->row_bytes[layer];
  if (row == 0 || caches->used == 0) return TARN_STATUS_OK;
  return device->type->move_rows(device, caches->stream, to, caches->rows[layer], row, caches->numbers, caches->used);
}

// Moves the kept rows into new matrices of `capacity` rows. After a failure the caches are unchanged.
static tarn_status move_all(tarn__caches *caches, int64_t capacity, int64_t kept) {
  void *memory = NULL;
  void *numbers = NULL;
  void **fresh = NULL;
  tarn_status status = tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)caches->layers, sizeof *fresh);
  fresh = memory;
  if (status == TARN_STATUS_OK)
    status = tarn__alloc(&numbers, TARN__MEMORY_OTHER, (size_t)capacity, sizeof *caches->numbers);
  for (int l = 0; l < caches->layers && status == TARN_STATUS_OK; l++)
    if (caches->row_bytes[l] > 0)
      status = tarn__region_alloc(caches->region, &fresh[l], TARN__MEMORY_ACTIVATION, (size_t)capacity,
                                  caches->row_bytes[l]);
  for (int l = 0; l < caches->layers && kept > 0 && status == TARN_STATUS_OK; l++) status = sweep(caches, l, fresh[l]);
  if (status != TARN_STATUS_OK) {
    for (int l = 0; fresh && l < caches->layers; l++) tarn__region_free(caches->region, fresh[l]);
    tarn__free(fresh);
    tarn__free(numbers);
    return status;
  }
  for (int l = 0; l < caches->layers; l++) {
    tarn__region_free(caches->region, caches->rows[l]);
    caches->rows[l] = fresh[l];
  }
  tarn__free(fresh);
  tarn__free(caches->numbers);
  caches->numbers = numbers;
  caches->capacity = capacity;
  return TARN_STATUS_OK;
}

tarn_status tarn__caches_reserve(tarn__caches *caches, int64_t rows, int32_t *seen, size_t count) {
  if (caches->used + rows <= caches->capacity) return TARN_STATUS_OK;
  int64_t kept = caches->used > 0 ? number_rows(caches, seen, count) : 0;
  int64_t need = kept + rows;
  TARN_REQUIRE(need < INT32_MAX / 2, MEMORY, "too many hypotheses are decoded together: %lld rows", (long long)need);
  if (need > caches->capacity / 2) {
    // The numbers of the sweep are also needed after the move.
    int64_t used = caches->used;
    for (size_t i = 0; i < count && used > 0; i++) seen[i] = caches->numbers[seen[i]];
    TARN_TRY(move_all(caches, 2 * need, kept));
  } else {
    for (int l = 0; l < caches->layers; l++) TARN_TRY(sweep(caches, l, caches->rows[l]));
    for (size_t i = 0; i < count; i++) seen[i] = caches->numbers[seen[i]];
  }
  caches->used = kept;
  return TARN_STATUS_OK;
}
