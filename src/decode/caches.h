// The state that decoder layers keep of earlier tokens while a batch is decoded (keys and values of self-attention,
// inputs of a convolution, states of a recurrence): one matrix per decoder layer, with rows of the layer's own width.
// Every step appends a row per running hypothesis to all of them; nothing is moved when hypotheses fork or die. When
// the capacity is exhausted, rows that no running hypothesis uses are swept out, or the matrices grow, whichever leaves
// at least half of the capacity free. So each row is moved about once.
#ifndef TARN_DECODE_CACHES_H
#define TARN_DECODE_CACHES_H

#include <stddef.h>
#include <stdint.h>

#include "base/region.h"
#include "device/device.h"

// Zero-initialise; tarn__caches_open() sets device, layers, row_bytes and region. The region must outlive the caches.
typedef struct tarn__caches {
  const tarn__device *device;
  tarn__device_stream *stream;  // on which rows are written, read and moved
  void **rows;                  // [layers], each [capacity] rows; NULL for layers without state
  size_t *row_bytes;            // [layers], 0 for layers without state
  int layers;
  int64_t capacity, used;  // rows
  int32_t *numbers;        // [capacity], scratch of a sweep
  tarn__region *region;    // source of the matrices: device memory
} tarn__caches;

// row_bytes [layers] is copied. After a failure too, tarn__caches_close() frees all memory.
tarn_status tarn__caches_open(tarn__caches *caches, const tarn__device *device, tarn__device_stream *stream, int layers,
                              const size_t *row_bytes, tarn__region *region) TARN_CHECKED;
void tarn__caches_close(tarn__caches *caches);

// Discards all rows and keeps the memory.
void tarn__caches_reset(tarn__caches *caches);
// Discards all rows and returns the memory.
void tarn__caches_drop(tarn__caches *caches);

// Makes room for `rows` more rows after the used ones. `seen` [count] lists all rows that are still needed, in any
// order and with repetitions; a sweep keeps their order and updates the numbers here.
tarn_status tarn__caches_reserve(tarn__caches *caches, int64_t rows, int32_t *seen, size_t count) TARN_CHECKED;

#endif
