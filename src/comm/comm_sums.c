// Sums over ranks, by the functions of an entry: each rank offers the others, in its room (send buffer), its values of
// their parts, and adds their values of its own part, in the order of the ranks. A room holds a piece of every part, so
// large arrays take several rounds.
#include <string.h>

#include "comm/comm.h"
#include "device/dtype.h"

enum { LINE = 32, CHUNK = 512 };  // elements: 64 bytes of the smallest type, and elements added at a time

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

int64_t tarn__comm_part(int64_t count, int size, int rank) {
  const int64_t lines = (count + LINE - 1) / LINE;
  return smaller(lines * rank / size * LINE, count);
}

// The coding of an array in a room: unchanged, or fp32 as bf16.
typedef enum coding { COPIED, ROUNDED } coding;

static void pack(void *room, const char *values, int64_t count, size_t element, coding how) {
  if (how == COPIED) {
    memcpy(room, values, (size_t)count * element);
    return;
  }
  const float *from = (const float *)(const void *)values;
  uint16_t *to = room;
  for (int64_t i = 0; i < count; i++) to[i] = tarn__bf16_from_f32(from[i]);
}

static void unpack(char *values, const void *room, int64_t count, size_t element, coding how) {
  if (how == COPIED) {
    memcpy(values, room, (size_t)count * element);
    return;
  }
  float *to = (float *)(void *)values;
  const uint16_t *from = room;
  for (int64_t i = 0; i < count; i++) to[i] = tarn__bf16_to_f32(from[i]);
}

static void add_some(float *sums, const float *values, int64_t count) {
  for (int64_t i = 0; i < count; i++) sums[i] += values[i];
}

static void add_rounded(float *sums, const uint16_t *values, int64_t count) {
  for (int64_t i = 0; i < count; i++) sums[i] += tarn__bf16_to_f32(values[i]);
}

// own = the sum of all ranks' values, in order; those of others begin at `first` in their pieces.
static void add(const tarn__comm *comm, float *own, int64_t first, int64_t count, coding how) {
  float sums[CHUNK];
  uint16_t rounded[CHUNK];
  for (int64_t at = 0; at < count; at += CHUNK) {
    const int64_t some = smaller(count - at, CHUNK);
    if (how == ROUNDED) pack(rounded, (const char *)(own + at), some, sizeof *rounded, how);
    for (int r = 0; r < comm->size; r++) {
      const void *from = r != comm->rank  ? (const char *)comm->pieces[r] + (first + at) * (how == ROUNDED ? 2 : 4)
                         : how == ROUNDED ? (const void *)rounded
                                          : (const void *)(own + at);
      if (r == 0)
        unpack((char *)sums, from, some, sizeof *sums, how);
      else if (how == ROUNDED)
        add_rounded(sums, from, some);
      else
        add_some(sums, from, some);
    }
    memcpy(own + at, sums, (size_t)some * sizeof *sums);
  }
}

static void round_all(float *values, int64_t count) {
  for (int64_t i = 0; i < count; i++) values[i] = tarn__bf16_to_f32(tarn__bf16_from_f32(values[i]));
}

// The transfer of an array.
typedef struct journey {
  size_t element, sent;  // bytes of an element, in the array and in a room
  size_t stride;         // bytes of a room per rank
  coding how;
} journey;

typedef enum work { PACK, ADD, UNPACK } work;

// Processes the next elements of a rank, from `walk` on. `room`: the address of the first; ADD needs none.
static void work_on(const tarn__comm *comm, tarn__comm_walk *walk, const journey *j, void *room, int64_t count,
                    work what) {
  for (int64_t done = 0; done < count;) {
    while (walk->at == walk->span->count) {
      walk->span++;
      walk->at = 0;
    }
    const int64_t some = smaller(walk->span->count - walk->at, count - done);
    char *values = (char *)walk->span->values + (size_t)walk->at * j->element;
    char *there = what == ADD ? NULL : (char *)room + (size_t)done * j->sent;
    if (what == PACK)
      pack(there, values, some, j->element, j->how);
    else if (what == UNPACK)
      unpack(values, there, some, j->element, j->how);
    else
      add(comm, (float *)(void *)values, done, some, j->how);
    if (what == ADD && j->how == ROUNDED) round_all((float *)(void *)values, some);
    done += some;
    walk->at += some;
  }
}

static tarn_status hand(tarn__comm *comm, const int64_t *bytes, size_t stride, bool all) {
  TARN_TRY(tarn__comm_note(comm, (all ? comm->kind->spread : comm->kind->exchange)(comm, bytes, stride)));
  comm->turn = !comm->turn;
  for (int r = 0; r < comm->size; r++)
    if (r != comm->rank) comm->traffic.sent += bytes[all ? comm->rank : r];
  return TARN_STATUS_OK;
}

// One round: as much of each rank's part as a room holds. *more: whether any part has more.
static tarn_status run_round(tarn__comm *comm, const journey *j, const int64_t *counts, int64_t at, bool sums,
                             bool gathers) {
  tarn__comm_walk *walks = comm->walks, own = walks[comm->rank];
  const int64_t most = (int64_t)(j->stride / j->sent), me = comm->rank;
  int64_t *bytes = comm->bytes;
  for (int r = 0; r < comm->size; r++) {
    const int64_t left = counts[r] > at ? counts[r] - at : 0;
    bytes[r] = smaller(left, most) * (int64_t)j->sent;
  }
  for (int r = 0; sums && r < comm->size; r++) {
    tarn__comm_walk from = walks[r];  // gathered elements go to the same place
    if (r != me)
      work_on(comm, &from, j, (char *)comm->room[comm->turn] + (size_t)r * j->stride, bytes[r] / (int64_t)j->sent,
              PACK);
    if (r != me && !gathers) walks[r] = from;
  }
  if (sums) {
    TARN_TRY(hand(comm, bytes, j->stride, false));
    work_on(comm, &walks[me], j, NULL, bytes[me] / (int64_t)j->sent, ADD);
  }
  if (!gathers) return TARN_STATUS_OK;
  work_on(comm, &own, j, (char *)comm->room[comm->turn] + (size_t)me * j->stride, bytes[me] / (int64_t)j->sent, PACK);
  walks[me] = own;
  TARN_TRY(hand(comm, bytes, j->stride, true));
  for (int r = 0; r < comm->size; r++)
    if (r != me) work_on(comm, &walks[r], j, (void *)(uintptr_t)comm->pieces[r], bytes[r] / (int64_t)j->sent, UNPACK);
  return TARN_STATUS_OK;
}

// The walks are at their beginnings. *payload: bytes of the array.
static tarn_status run(tarn__comm *comm, journey *j, const int64_t *counts, bool sums, bool gathers, int64_t *payload) {
  const size_t line = LINE * j->sent;
  j->stride = comm->room_bytes / (size_t)comm->size / line * line;
  TARN_REQUIRE(j->stride > 0, UNSUPPORTED, "%d ranks are more than sums are made for", comm->size);
  int64_t longest = 0;
  for (int r = 0; r < comm->size; r++) {
    if (counts[r] > longest) longest = counts[r];
    *payload += counts[r] * (int64_t)j->sent;
  }
  for (int64_t at = 0; at < longest; at += (int64_t)(j->stride / j->sent))
    TARN_TRY(run_round(comm, j, counts, at, sums, gathers));
  return TARN_STATUS_OK;
}

static journey journey_of(tarn_precision travel) {
  const bool rounds = travel == TARN_PRECISION_BF16;
  return (journey){
      .element = sizeof(float), .sent = rounds ? sizeof(uint16_t) : sizeof(float), .how = rounds ? ROUNDED : COPIED};
}

// One span for each rank.
static void begin_parts(tarn__comm *comm, void *values, const int64_t *first, size_t element) {
  for (int r = 0; r < comm->size; r++) {
    tarn__comm_walk *walk = &comm->walks[r];
    walk->whole = (tarn__comm_span){(char *)values + (size_t)first[r] * element, first[r + 1] - first[r], NULL};
    walk->span = &walk->whole;
    walk->at = 0;
    comm->counts[r] = walk->whole.count;
  }
}

tarn_status tarn__comm_reduce_scatter(tarn__comm *comm, float *values, const int64_t *first, tarn_precision travel) {
  if (comm->size == 1) return TARN_STATUS_OK;
  journey j = journey_of(travel);
  begin_parts(comm, values, first, sizeof *values);
  return run(comm, &j, comm->counts, true, false, &comm->traffic.summed);
}

tarn_status tarn__comm_all_gather(tarn__comm *comm, void *values, const int64_t *first, size_t element) {
  if (comm->size == 1) return TARN_STATUS_OK;
  journey j = {.element = element, .sent = element, .how = COPIED};
  begin_parts(comm, values, first, element);
  return run(comm, &j, comm->counts, false, true, &comm->traffic.gathered);
}

tarn_status tarn__comm_sum_as(tarn__comm *comm, float *values, int64_t count, tarn_precision travel) {
  if (comm->size == 1) return TARN_STATUS_OK;
  journey j = journey_of(travel);
  for (int r = 0; r < comm->size; r++) {
    const int64_t first = tarn__comm_part(count, comm->size, r), end = tarn__comm_part(count, comm->size, r + 1);
    comm->walks[r].whole = (tarn__comm_span){values + first, end - first, NULL};
    comm->walks[r].span = &comm->walks[r].whole;
    comm->walks[r].at = 0;
    comm->counts[r] = end - first;
  }
  return run(comm, &j, comm->counts, true, true, &comm->traffic.summed);
}

// Copies between the memory of a device and what stands for it in the host's.
static tarn_status copy_spans(const tarn__comm_place *place, const tarn__comm_span *spans, int64_t count, bool out) {
  const tarn__device *device = place->device;
  for (int64_t i = 0; i < count; i++) {
    const size_t bytes = (size_t)spans[i].count * sizeof(float);
    if (!spans[i].there || bytes == 0) continue;
    TARN_TRY(out ? device->type->copy_out(device, place->stream, spans[i].values, spans[i].there, bytes)
                 : device->type->copy_in(device, place->stream, spans[i].there, spans[i].values, bytes));
  }
  return TARN_STATUS_OK;
}

static tarn_status sum_spans(tarn__comm *comm, const tarn__comm_span *spans, const int64_t *numbers,
                             tarn_precision travel, bool gathers) {
  journey j = journey_of(travel);
  for (int r = 0; r < comm->size; r++) {
    comm->walks[r].span = spans;
    comm->walks[r].at = 0;
    comm->counts[r] = 0;
    for (int64_t i = 0; i < numbers[r]; i++) comm->counts[r] += spans++->count;
  }
  return run(comm, &j, comm->counts, true, gathers, &comm->traffic.summed);
}

tarn_status tarn__comm_sum_spans(tarn__comm *comm, const tarn__comm_place *place, const tarn__comm_span *spans,
                                 const int64_t *numbers, tarn_precision travel, bool gathers) {
  int64_t count = 0;
  if (comm->size == 1) return TARN_STATUS_OK;
  for (int r = 0; r < comm->size; r++) count += numbers[r];
  const bool apart = place && !tarn__device_is_host(place->device);
  if (apart && tarn__comm_reaches(comm, place->device))
    return tarn__comm_note(comm, comm->kind->sum_there(comm, place, spans, numbers, travel, gathers));
  if (apart) TARN_TRY(copy_spans(place, spans, count, true));
  TARN_TRY(sum_spans(comm, spans, numbers, travel, gathers));
  return apart ? copy_spans(place, spans, count, false) : TARN_STATUS_OK;
}

tarn_status tarn__comm_sum(tarn__comm *comm, float *values, int64_t count) {
  return tarn__comm_sum_as(comm, values, count, TARN_PRECISION_FP32);
}
