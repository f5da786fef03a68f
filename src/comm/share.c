#include "comm/share.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { UNIT = 8, PIECE = 1 << 18 };
static const int64_t END = -1;  // instead of the size of the first parcel

tarn_status tarn__share_open(tarn__share *share, tarn__comm *comm) {
  void *memory;
  *share = (tarn__share){0};
  if (!comm || comm->size == 1) return TARN_STATUS_OK;
  const size_t ranks = comm->rank == 0 ? (size_t)comm->size : 1;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, ranks, 2 * sizeof(tarn__buffer) + sizeof(tarn__share_reader)));
  share->comm = comm;
  share->parcels = memory;
  share->answers = share->parcels + ranks;
  share->readers = (tarn__share_reader *)(void *)(share->answers + ranks);
  return TARN_STATUS_OK;
}

void tarn__share_close(tarn__share *share) {
  const int buffers = !share->comm ? 0 : share->comm->rank == 0 ? 2 * share->comm->size : 2;
  for (int i = 0; i < buffers; i++) tarn__buffer_close(&share->parcels[i]);
  tarn__free(share->parcels);
  tarn__free(share->room);
  *share = (tarn__share){0};
}

typedef struct weighed {
  int64_t work, item;
} weighed;

static int heavy_first(const void *a, const void *b) {
  const weighed *x = a, *y = b;
  if (x->work != y->work) return x->work < y->work ? 1 : -1;
  return (x->item > y->item) - (x->item < y->item);
}

tarn_status tarn__share_items(int32_t *whose, const int64_t *work, int64_t count, int ranks) {
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)count, sizeof(weighed)));
  weighed *order = memory;
  for (int64_t i = 0; i < count; i++) order[i] = (weighed){work[i], i};
  qsort(order, (size_t)count, sizeof *order, heavy_first);
  for (int64_t i = 0; i < count; i++) {
    const int32_t place = (int32_t)(i % ranks);
    whose[order[i].item] = i / ranks % 2 == 0 ? place : ranks - 1 - place;
  }
  tarn__free(order);
  return TARN_STATUS_OK;
}

void tarn__share_put(tarn__buffer *to, const void *elements, int64_t count, size_t size) {
  static const char zeros[UNIT];
  const size_t bytes = (size_t)count * size;
  if (bytes == 0) return;
  tarn__buffer_put(to, elements, bytes);
  tarn__buffer_put(to, zeros, (UNIT - bytes % UNIT) % UNIT);
}

tarn_status tarn__share_take(void *elements, tarn__share_reader *from, int64_t count, size_t size) {
  const size_t bytes = ((size_t)count * size + UNIT - 1) / UNIT * UNIT;
  TARN_REQUIRE(count >= 0 && bytes <= from->left, INTERNAL, "ranks do not share the same work");
  memcpy(elements, &from->bytes, sizeof from->bytes);
  if (bytes > 0) from->bytes += bytes;
  from->left -= bytes;
  return TARN_STATUS_OK;
}

void tarn__share_begin(tarn__share *share) {
  for (int r = 0; r < share->comm->size; r++) tarn__buffer_reset(&share->parcels[r]);
}

static tarn_status make_room(tarn__share *share, size_t bytes) {
  return tarn__grow(&share->room, &share->room_bytes, bytes, 1);
}

// Sends rank 0's bytes to rank `to`; the others only take part in the calls.
static tarn_status send(tarn__share *share, int to, int64_t bytes) {
  tarn__comm *comm = share->comm;
  for (int64_t at = 0; at < bytes; at += PIECE) {
    const size_t piece = (size_t)(bytes - at < PIECE ? bytes - at : PIECE);
    char *from = comm->rank == 0 ? share->parcels[to].data + at : share->room;
    TARN_TRY(tarn__comm_broadcast(comm, from, piece));
    if (comm->rank != to) continue;
    tarn__buffer_put(&share->parcels[0], from, piece);
    TARN_TRY(share->parcels[0].status);
  }
  return TARN_STATUS_OK;
}

static tarn_status send_all(tarn__share *share, int64_t *sizes, bool *more) {
  tarn__comm *comm = share->comm;
  TARN_TRY(tarn__comm_broadcast(comm, sizes, (size_t)comm->size * sizeof *sizes));
  *more = sizes[0] != END;
  if (!*more) return TARN_STATUS_OK;
  if (comm->rank > 0) {
    TARN_TRY(make_room(share, PIECE));
    tarn__buffer_reset(&share->parcels[0]);
  }
  for (int r = 1; r < comm->size; r++) TARN_TRY(send(share, r, sizes[r]));
  return TARN_STATUS_OK;
}

static tarn_status take_sizes(int64_t **sizes, const tarn__comm *comm) {
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)comm->size, sizeof **sizes));
  *sizes = memory;
  return TARN_STATUS_OK;
}

tarn_status tarn__share_deal(tarn__share *share, tarn__share_reader *parcel, bool *more) {
  tarn__comm *comm = share->comm;
  int64_t *sizes;
  *more = false;
  for (int r = 0; r < comm->size && comm->rank == 0; r++) TARN_TRY(share->parcels[r].status);
  TARN_TRY(take_sizes(&sizes, comm));
  for (int r = 0; r < comm->size && comm->rank == 0; r++) sizes[r] = (int64_t)share->parcels[r].used;
  const tarn_status status = send_all(share, sizes, more);
  tarn__free(sizes);
  TARN_TRY(status);
  *parcel = (tarn__share_reader){share->parcels[0].data, share->parcels[0].used};
  tarn__buffer_reset(&share->answers[0]);
  return TARN_STATUS_OK;
}

tarn__buffer *tarn__share_answer(tarn__share *share) { return &share->answers[0]; }

// Receives pieces of all answers but rank 0's own, until the longest is complete.
static tarn_status receive(tarn__share *share, const int64_t *sizes) {
  tarn__comm *comm = share->comm;
  int64_t longest = 0;
  for (int r = 1; r < comm->size; r++) longest = sizes[r] > longest ? sizes[r] : longest;
  const int64_t most = longest < PIECE ? longest : PIECE;
  // The own piece follows those of all.
  TARN_TRY(make_room(share, (size_t)(most * (comm->size + 1))));
  for (int64_t at = 0; at < longest; at += most) {
    const int64_t piece = longest - at < most ? longest - at : most;
    char *own = share->room + piece * comm->size;
    const int64_t left = comm->rank > 0 ? sizes[comm->rank] - at : 0;
    if (left > 0) memcpy(own, share->answers[0].data + at, (size_t)(left < piece ? left : piece));
    TARN_TRY(tarn__comm_gather(comm, share->room, own, (size_t)piece));
    for (int r = 1; r < comm->size && comm->rank == 0; r++)
      if (sizes[r] > at)
        tarn__buffer_put(&share->answers[r], share->room + piece * r,
                         (size_t)(sizes[r] - at < piece ? sizes[r] - at : piece));
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__share_collect(tarn__share *share) {
  tarn__comm *comm = share->comm;
  const int64_t own = (int64_t)share->answers[0].used;
  int64_t *sizes;
  TARN_TRY(share->answers[0].status);
  for (int r = 1; r < comm->size && comm->rank == 0; r++) tarn__buffer_reset(&share->answers[r]);
  TARN_TRY(take_sizes(&sizes, comm));
  tarn_status status = tarn__comm_gather(comm, sizes, &own, sizeof own);
  if (status == TARN_STATUS_OK) status = receive(share, sizes);
  tarn__free(sizes);
  TARN_TRY(status);
  for (int r = 0; r < comm->size && comm->rank == 0; r++) {
    TARN_TRY(share->answers[r].status);
    share->readers[r] = (tarn__share_reader){share->answers[r].data, share->answers[r].used};
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__share_end(tarn__share *share) {
  int64_t *sizes;
  bool more;
  TARN_TRY(take_sizes(&sizes, share->comm));
  sizes[0] = END;
  const tarn_status status = send_all(share, sizes, &more);
  tarn__free(sizes);
  return status;
}
