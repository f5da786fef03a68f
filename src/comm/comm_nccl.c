// Communicator `nccl`: the processes of communicator mpi, each with a card of its own. Gradients are summed in the
// memory of the cards, by the device's own means (device/peers.h); everything else is MPI's.
#include "comm/comm.h"
#include "device/peers.h"
#include "tarn/status.h"

// A process joins once: MPI's processes are the same for its whole life.
static struct {
  const tarn__device *device;
  tarn__peers *peers;
} joined;

static bool reaches(const tarn__comm *comm, const tarn__device *device) {
  return comm->size > 1 && device->type->peers_sum;
}

static bool given_up(void *user) { return tarn__watch_line(((tarn__comm *)user)->watch); }

static tarn_status join(tarn__comm *comm, const tarn__device *device) {
  unsigned char identity[TARN__PEERS_ID];
  // On every rank: one without the library fails here, before the others wait for it in peers_join().
  TARN_TRY(device->type->peers_identify(device, identity));
  TARN_TRY(comm->kind->broadcast(comm, 0, identity, sizeof identity));
  TARN_TRY(device->type->peers_join(device, &joined.peers, identity, comm->rank, comm->size));
  joined.device = device;
  return comm->kind->barrier(comm);
}

// Each sum begins with a call of MPI, so that a rank that cannot continue is not waited for.
static tarn_status sum_there(tarn__comm *comm, const tarn__comm_place *place, const tarn__comm_span *spans,
                             const int64_t *numbers, tarn_precision travel, bool gathers) {
  int64_t count = 0, elements = 0, own = 0;
  if (!joined.peers) TARN_TRY(join(comm, place->device));
  TARN_TRY(comm->kind->barrier(comm));
  for (int r = 0; r < comm->size; r++) count += numbers[r];
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)count, sizeof(tarn__peers_span)));
  tarn__peers_span *there = memory;
  for (int64_t i = 0, r = 0, left = numbers[0]; i < count; i++, left--) {
    while (left == 0) left = numbers[++r];
    there[i] = (tarn__peers_span){spans[i].there, spans[i].count};
    elements += spans[i].count;
    if (r == comm->rank) own += spans[i].count;
  }
  const int64_t size = travel == TARN_PRECISION_BF16 ? 2 : 4;
  const tarn_status status = place->device->type->peers_sum(place->device, joined.peers, place->stream,
                                                            &(tarn__peers_sum){.spans = there,
                                                                               .numbers = numbers,
                                                                               .bf16 = travel == TARN_PRECISION_BF16,
                                                                               .gathers = gathers,
                                                                               .given_up = given_up,
                                                                               .user = comm});
  tarn__free(memory);
  const char *line = status == TARN_STATUS_OK ? NULL : tarn__watch_line(comm->watch);
  if (line) return tarn__fail(TARN_STATUS_IO, "%s", line);
  comm->traffic.summed += elements * size;
  comm->traffic.sent += (elements - own) * size + (gathers ? own * size * (comm->size - 1) : 0);
  return status;
}

static void close_nccl(tarn__comm *comm) {
  if (joined.peers) joined.device->type->peers_leave(joined.device, joined.peers);
  joined.peers = NULL;
  tarn__comm_mpi.close(comm);
}

static tarn__comm_kind kind;

static tarn_status open_nccl(tarn__comm **comm) {
  kind = tarn__comm_mpi;
  kind.name = tarn__comm_nccl.name;
  kind.open = open_nccl;
  kind.close = close_nccl;
  kind.reaches = reaches;
  kind.sum_there = sum_there;
  TARN_TRY(tarn__comm_mpi.open(comm));
  (*comm)->kind = &kind;
  return TARN_STATUS_OK;
}

const tarn__comm_kind tarn__comm_nccl = {.name = "nccl", .open = open_nccl};
