// The communicator of one rank.
#include <string.h>

#include "base/memory.h"
#include "comm/comm.h"

static tarn_status open_self(tarn__comm **comm) {
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof **comm));
  *comm = memory;
  **comm = (tarn__comm){.kind = &tarn__comm_self, .size = 1};
  return TARN_STATUS_OK;
}

static void close_self(tarn__comm *comm) { tarn__free(comm); }

static tarn_status sum_doubles(tarn__comm *comm, double *values, int64_t count) {
  (void)comm, (void)values, (void)count;
  return TARN_STATUS_OK;
}

static tarn_status gather(tarn__comm *comm, void *all, const void *own, size_t bytes) {
  (void)comm;
  memcpy(all, own, bytes);
  return TARN_STATUS_OK;
}

static tarn_status broadcast(tarn__comm *comm, int root, void *data, size_t bytes) {
  (void)comm, (void)root, (void)data, (void)bytes;
  return TARN_STATUS_OK;
}

static tarn_status barrier(tarn__comm *comm) {
  (void)comm;
  return TARN_STATUS_OK;
}

// There is no other rank to inform.
static bool fail(tarn__comm *comm, tarn_status status, const char *line) {
  (void)comm, (void)status, (void)line;
  return false;
}

const tarn__comm_kind tarn__comm_self = {.name = "self",
                                         .in_order = true,
                                         .open = open_self,
                                         .close = close_self,
                                         .sum_doubles = sum_doubles,
                                         .gather = gather,
                                         .broadcast = broadcast,
                                         .barrier = barrier,
                                         .fail = fail};
