// A communicator that sums in the memory of the shadow device, for tests.
#ifndef TARN_TESTS_RANKS_REACHING_RANKS_H
#define TARN_TESTS_RANKS_REACHING_RANKS_H

#include <stdlib.h>

#include "comm/comm.h"
#include "shadow_device.h"

static int reached;  // calls of rank 0

static inline bool reach(const tarn__comm *comm, const tarn__device *device) {
  (void)comm;
  return device == &shadow_device;
}

static inline tarn_status sum_there(tarn__comm *comm, const tarn__comm_place *place, const tarn__comm_span *spans,
                                    const int64_t *numbers, tarn_precision travel, bool gathers) {
  const tarn__device_type *type = place->device->type;
  int64_t count = 0, elements = 0;
  for (int r = 0; r < comm->size; r++) count += numbers[r];
  for (int64_t i = 0; i < count; i++) elements += spans[i].count;
  tarn__comm_span *copies = calloc((size_t)count + 1, sizeof *copies);
  float *values = calloc((size_t)elements + 1, sizeof *values), *next = values;
  tarn_status status = copies && values ? TARN_STATUS_OK : tarn__fail(TARN_STATUS_MEMORY, "out of memory");
  for (int64_t i = 0; i < count && status == TARN_STATUS_OK; next += spans[i++].count) {
    copies[i] = (tarn__comm_span){.values = next, .count = spans[i].count};
    if (spans[i].values)
      status = tarn__fail(TARN_STATUS_INTERNAL, "a copy for a communicator that needs none");
    else if (spans[i].count > 0)
      status =
          type->copy_out(place->device, place->stream, next, spans[i].there, (size_t)spans[i].count * sizeof *next);
  }
  if (status == TARN_STATUS_OK) status = tarn__comm_sum_spans(comm, NULL, copies, numbers, travel, gathers);
  for (int64_t i = 0; i < count && status == TARN_STATUS_OK; i++)
    if (spans[i].count > 0)
      status = type->copy_in(place->device, place->stream, spans[i].there, copies[i].values,
                             (size_t)spans[i].count * sizeof *next);
  free(copies);
  free(values);
  if (comm->rank == 0) reached++;
  return status;
}

#endif
