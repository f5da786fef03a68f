// Communicator `mpi`: the processes that mpirun or srun started together. MPI itself is called by a module that is
// loaded here (mpi/module.h), Open MPI's or MPICH's, whichever started the process.
//
// Each call begins with a status word of every rank: it continues, with which call of what size, or it cannot. So the
// others learn of a failure at their next call of any kind, and no call of MPI is left waiting. Sums (comm_sums.c)
// replace MPI_Allreduce: they send as few bytes as the best algorithms, and the bits depend only on the number of
// ranks, not on the MPI or the network.
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/load_module.h"
#include "base/memory.h"
#include "comm/comm.h"
#include "comm/launcher.h"
#include "comm/mpi/module.h"
#include "comm/shared_rooms.h"

enum { LINE = 1024, ROOM = 1 << 20 };

// Seconds between two heartbeats of the ranks, and of silence after which one is lost by default (TARN_RANK_TIMEOUT).
static const double TURN = 2.0 / 3, PATIENCE = 60;

// The status word with which a rank begins a call.
typedef struct word {
  int64_t status, call, size;
} word;

typedef struct mpi_comm {
  tarn__comm comm;
  const tarn__mpi_module *module;
  bool broken;  // a call of MPI has failed: the others are unreachable
  bool said;    // this rank has sent its failure, or received one
  word *words;  // [size], then the messages of all ranks, allocated in advance so that beginning a call never runs out
                // of memory
  char *lines;
  tarn__shared_rooms shared;  // open if all ranks are on one machine
  char *inbox;                // [ROOM], otherwise: data received
  void *memory;               // of `words`, `inbox` and the communicator's arrays
  double *doubles;            // [double_count], of sums
  size_t double_count;
  tarn__member *members;  // [size]
  char *pairs;            // memory of the heartbeats with each rank
  atomic_int lost;        // set by the watch
  char refusal[128];      // rank 0's answer to the first call; "" for none
} mpi_comm;

static tarn_status broke(mpi_comm *c, const char *why) {
  char rank[TARN__RANK_TEXT];
  const char *line = tarn__watch_await(c->comm.watch);
  c->broken = true;
  if (line) return tarn__fail(TARN_STATUS_IO, "%s", line);
  return tarn__fail(TARN_STATUS_IO, "%s: %s: %s", tarn__comm_rank_text(&c->comm, c->comm.rank, rank),
                    c->module->library, why);
}

// All ranks send their messages; that of the first failed rank is taken by all.
static tarn_status hear(mpi_comm *c, int first, tarn_status status, const char *own) {
  char line[LINE] = "";
  if (own) snprintf(line, sizeof line, "%s", own);
  c->said = true;
  const char *why = c->module->gather(c->lines, line, LINE);
  if (why) return broke(c, why);
  c->lines[(size_t)(first + 1) * LINE - 1] = '\0';
  return tarn__fail(status, "%s", c->lines + (size_t)first * LINE);
}

// Begins a call; `line`: the message of this rank's failure with `own.status`, else NULL.
static tarn_status begin(mpi_comm *c, word own, const char *line) {
  if (c->said || c->broken) return tarn__fail(TARN_STATUS_INTERNAL, "a rank speaks to others after a failure");
  word *all = c->words;
  if (*c->refusal && !line) {
    own.status = TARN_STATUS_USAGE;
    line = c->refusal;
  }
  const double begun = tarn__seconds();
  atomic_thread_fence(memory_order_seq_cst);  // the contents of the rooms become visible before the word
  tarn__watch_enter(c->comm.watch);
  const char *why = c->module->gather(all, &own, sizeof own);
  atomic_thread_fence(memory_order_seq_cst);
  c->comm.traffic.waited += tarn__seconds() - begun;
  c->comm.traffic.sent += (int64_t)sizeof own * (c->comm.size - 1);
  if (why) return broke(c, why);
  for (int r = 0; r < c->comm.size; r++)
    if (all[r].status != TARN_STATUS_OK) return hear(c, r, (tarn_status)all[r].status, line);
  for (int r = 0; r < c->comm.size; r++)
    if (all[r].call != own.call || all[r].size != own.size)
      return tarn__fail(TARN_STATUS_INTERNAL, "rank %d makes call %c of %lld bytes, rank %d %c of %lld", c->comm.rank,
                        (int)own.call, (long long)own.size, r, (int)all[r].call, (long long)all[r].size);
  return TARN_STATUS_OK;
}

static tarn_status begin_call(mpi_comm *c, char call, size_t bytes) {
  return begin(c, (word){.call = call, .size = (int64_t)bytes}, NULL);
}

// --- sums: where all ranks see each other's rooms, they read them; elsewhere MPI carries what is in them ---

static tarn_status exchange(tarn__comm *comm, const int64_t *bytes, size_t stride) {
  mpi_comm *c = (mpi_comm *)comm;
  int64_t all = 0;
  for (int r = 0; r < comm->size; r++) all += bytes[r];
  TARN_TRY(begin_call(c, 'x', (size_t)all));
  if (tarn__shared_rooms_open(&c->shared)) {
    for (int r = 0; r < comm->size; r++)
      comm->pieces[r] = c->shared.rooms[r] + (size_t)comm->turn * comm->room_bytes + (size_t)comm->rank * stride;
    return TARN_STATUS_OK;
  }
  const char *why = c->module->exchange(c->inbox, comm->room[comm->turn], bytes, stride, comm->rank);
  for (int r = 0; r < comm->size; r++) comm->pieces[r] = c->inbox + (size_t)(r * bytes[comm->rank]);
  return why ? broke(c, why) : TARN_STATUS_OK;
}

static tarn_status spread(tarn__comm *comm, const int64_t *bytes, size_t stride) {
  mpi_comm *c = (mpi_comm *)comm;
  int64_t all = 0;
  for (int r = 0; r < comm->size; r++) all += bytes[r];
  TARN_TRY(begin_call(c, 's', (size_t)all));
  const bool shared = tarn__shared_rooms_open(&c->shared);
  for (int r = 0; r < comm->size; r++)
    comm->pieces[r] =
        (shared ? c->shared.rooms[r] + (size_t)comm->turn * comm->room_bytes : c->inbox) + (size_t)r * stride;
  if (shared) return TARN_STATUS_OK;
  const char *own = (const char *)comm->room[comm->turn] + (size_t)comm->rank * stride;
  const char *why = c->module->spread(c->inbox, own, bytes, stride, comm->rank);
  return why ? broke(c, why) : TARN_STATUS_OK;
}

// Few numbers: each rank gathers those of all, and adds them.
static tarn_status sum_doubles(tarn__comm *comm, double *values, int64_t count) {
  mpi_comm *c = (mpi_comm *)comm;
  const size_t bytes = (size_t)count * sizeof *values;
  TARN_TRY(tarn__grow(&c->doubles, &c->double_count, (size_t)(count * comm->size), sizeof *values));
  TARN_TRY(begin_call(c, 'd', bytes));
  const char *why = c->module->gather(c->doubles, values, bytes);
  if (why) return broke(c, why);
  comm->traffic.sent += (int64_t)bytes * (comm->size - 1);
  for (int64_t i = 0; i < count; i++) {
    values[i] = c->doubles[i];
    for (int64_t r = 1; r < comm->size; r++) values[i] += c->doubles[r * count + i];
  }
  return TARN_STATUS_OK;
}

static tarn_status gather(tarn__comm *comm, void *all, const void *own, size_t bytes) {
  mpi_comm *c = (mpi_comm *)comm;
  TARN_TRY(begin_call(c, 'g', bytes));
  const char *why = c->module->gather(all, own, bytes);
  comm->traffic.sent += (int64_t)bytes * (comm->size - 1);
  return why ? broke(c, why) : TARN_STATUS_OK;
}

static tarn_status broadcast(tarn__comm *comm, int root, void *data, size_t bytes) {
  mpi_comm *c = (mpi_comm *)comm;
  TARN_TRY(begin_call(c, 'b', bytes));
  const char *why = c->module->broadcast(root, data, bytes);
  if (comm->rank == root) comm->traffic.sent += (int64_t)bytes * (comm->size - 1);
  return why ? broke(c, why) : TARN_STATUS_OK;
}

static tarn_status barrier(tarn__comm *comm) { return begin_call((mpi_comm *)comm, 'w', 0); }

static void patient(tarn__comm *comm, bool is) { ((mpi_comm *)comm)->module->patient(is); }

static bool fail(tarn__comm *comm, tarn_status status, const char *line) {
  mpi_comm *c = (mpi_comm *)comm;
  // The message of an earlier rank may replace this rank's.
  if (!c->said && !c->broken && begin(c, (word){.status = status}, line) == TARN_STATUS_OK) return false;
  return c->said && !c->broken;
}

// --- the module ---

static tarn_status no_module(const char *kind, const char *why) {
  return tarn__fail(TARN_STATUS_UNSUPPORTED,
                    "the module of %s for communicator mpi cannot be loaded: %s (docs/ranks.md says how it is built, "
                    "installed and found)",
                    kind, why);
}

static tarn_status load(const tarn__mpi_module **module, const char *kind) {
  char file[64];
  const char *why;
  snprintf(file, sizeof file, "tarn-mpi-%s.so", kind);
  // MPI's plug-ins look up its symbols globally.
  void *library = tarn__module_load(
      &(tarn__module_place){file, "TARN_MPI_MODULES", TARN_MODULE_FOLDER, RTLD_NOW | RTLD_GLOBAL}, &why);
  if (!library) return no_module(kind, why);
  void *symbol = dlsym(library, TARN__MPI_SYMBOL);
  if (!symbol) return no_module(kind, "it is no module of tarn");
  *module = symbol;
  if ((*module)->interface != TARN__MPI_INTERFACE) return no_module(kind, "it is of another version of tarn");
  return TARN_STATUS_OK;
}

// srun without process management would start as many trainings of one rank.
static tarn_status check_size(const mpi_comm *c) {
  const int started = tarn__launcher_find().size;
  if (started == c->comm.size) return TARN_STATUS_OK;
  return tarn__fail(TARN_STATUS_USAGE,
                    "%d processes were started together, but %s sees %d: start them with the mpirun of that MPI, or "
                    "with srun --mpi=pmix (Open MPI) or --mpi=pmi2 (MPICH)",
                    started, c->module->library, c->comm.size);
}

// Ranks on one machine share their rooms. All have them, or none has.
static tarn_status share_rooms(mpi_comm *c) {
  void *memory;
  tarn__shared_place own;
  const size_t size = (size_t)c->comm.size;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, size, sizeof own));
  tarn__shared_place *all = memory;
  tarn__shared_rooms_make(&c->shared, &own, 2 * ROOM);
  const char *why = c->module->gather(all, &own, sizeof own);
  double missing = !why && tarn__shared_rooms_see(&c->shared, all, c->comm.rank, c->comm.size) ? 0.0 : 1.0;
  tarn__free(memory);
  if (why) return broke(c, why);
  TARN_TRY(sum_doubles(&c->comm, &missing, 1));
  if (missing > 0) tarn__shared_rooms_close(&c->shared);
  c->comm.apart = missing > 0;
  return TARN_STATUS_OK;
}

static tarn_status take_memory(mpi_comm *c) {
  const size_t size = (size_t)c->comm.size;
  void *memory;
  TARN_TRY(tarn__alloc(
      &memory, TARN__MEMORY_OTHER, size,
      sizeof *c->words + LINE + sizeof *c->comm.pieces + 2 * sizeof *c->comm.counts + sizeof *c->comm.walks));
  c->memory = memory;
  c->words = memory;
  c->comm.pieces = (const void **)(c->words + size);
  c->comm.counts = (int64_t *)(c->comm.pieces + size);
  c->comm.bytes = c->comm.counts + size;
  c->comm.walks = (tarn__comm_walk *)(c->comm.bytes + size);
  c->lines = (char *)(c->comm.walks + size);
  c->comm.room_bytes = ROOM;
  if (size > 1) TARN_TRY(share_rooms(c));
  char *rooms = tarn__shared_rooms_open(&c->shared) ? c->shared.rooms[c->comm.rank] : NULL;
  if (!rooms) {
    TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 3, ROOM));
    rooms = memory;
    c->inbox = rooms + 2 * (size_t)ROOM;
  }
  for (int k = 0; k < 2; k++) c->comm.room[k] = rooms + (size_t)k * ROOM;
  return TARN_STATUS_OK;
}

static const char *beat(void *user, int rank, const tarn__beat *own, bool *sent, tarn__beat *newest, bool *came) {
  const mpi_comm *c = user;
  _Static_assert(sizeof *own == TARN__MPI_BEAT, "the module sends as much");
  return c->module->beat(c->pairs + (size_t)rank * c->module->room_bytes, rank, own, sent, newest, came);
}

// Seconds of silence after which a rank is lost: rank 0's environment counts for all.
static double find_patience(mpi_comm *c) {
  const char *text = getenv("TARN_RANK_TIMEOUT");
  if (!text || !*text) return PATIENCE;
  char *end;
  const double seconds = strtod(text, &end);
  if (*end == '\0' && (seconds == 0 || (seconds >= 2 && seconds <= 86400))) return seconds;
  if (c->comm.rank == 0)
    snprintf(c->refusal, sizeof c->refusal,
             "TARN_RANK_TIMEOUT is \"%.40s\": expected seconds from 2 to 86400, or 0 for never", text);
  return PATIENCE;
}

// Collects the members, and starts the watch.
static tarn_status meet(mpi_comm *c) {
  void *memory;
  const size_t size = (size_t)c->comm.size;
  double patience = find_patience(c);
  tarn__member own;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, size, sizeof *c->members));
  c->members = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, size, c->module->room_bytes));
  c->pairs = memory;
  tarn__member_here(&own);
  const char *why = c->module->gather(c->members, &own, sizeof own);
  if (!why) why = c->module->broadcast(0, &patience, sizeof patience);
  if (why) return broke(c, why);
  c->comm.members = c->members;
  if (size == 1) return TARN_STATUS_OK;
  c->module->heed(&c->lost);
  const tarn__watch_setup setup = {.rank = c->comm.rank,
                                   .size = c->comm.size,
                                   .members = c->members,
                                   .turn = TURN,
                                   .patience = patience,
                                   .beat = beat,
                                   .user = c,
                                   .lost = &c->lost};
  return tarn__watch_open(&c->comm.watch, &setup);
}

static tarn_status join(mpi_comm *c) {
  const tarn__launcher launcher = tarn__launcher_find();
  const char *kind = launcher.mpi ? launcher.mpi : "openmpi";
  // UCX, which MPICH may use, writes warnings to standard output, among the results of commands, for example about
  // heartbeats that were never received (watch.h).
  setenv("UCX_LOG_LEVEL", "error", 0);
  TARN_TRY(load(&c->module, kind));
  const char *why = c->module->join(&c->comm.rank, &c->comm.size);
  if (why) return tarn__fail(TARN_STATUS_IO, "%s: %s", c->module->library, why);
  TARN_TRY(check_size(c));
  TARN_TRY(take_memory(c));
  return meet(c);
}

static void close_mpi(tarn__comm *comm) {
  mpi_comm *c = (mpi_comm *)comm;
  tarn__watch_close(&comm->watch);
  for (int r = 0; c->pairs && r < comm->size; r++) c->module->end_beats(c->pairs + (size_t)r * c->module->room_bytes);
  // MPI may still write into the memory of an abandoned call.
  const bool done = !c->module || c->module->leave();
  if (done && c->inbox) tarn__free(c->comm.room[0]);
  if (done) tarn__free(c->pairs);
  tarn__shared_rooms_close(&c->shared);
  tarn__free(c->memory);
  tarn__free(c->doubles);
  tarn__free(c->members);
  tarn__free(c);
}

static tarn_status open_mpi(tarn__comm **comm) {
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(mpi_comm)));
  mpi_comm *c = memory;
  c->comm = (tarn__comm){.kind = &tarn__comm_mpi, .size = 1};
  const tarn_status status = join(c);
  if (status == TARN_STATUS_OK) {
    tarn__launcher_unjoined(false);
    *comm = &c->comm;
    return status;
  }
  // The others may be in a call that this rank does not make: finalising MPI would wait for them.
  static const atomic_int given_up = 1;
  if (c->module && c->comm.size > 1) c->module->heed(&given_up);
  close_mpi(&c->comm);
  tarn__launcher_unjoined(true);
  const tarn__launcher launcher = tarn__launcher_find();
  tarn__member here;
  tarn__member_here(&here);
  return launcher.size > 1 ? tarn__fail_prefix(status, "rank %d on %s: ", launcher.rank, here.host) : status;
}

const tarn__comm_kind tarn__comm_mpi = {.name = "mpi",
                                        .in_order = true,
                                        .open = open_mpi,
                                        .close = close_mpi,
                                        .exchange = exchange,
                                        .spread = spread,
                                        .sum_doubles = sum_doubles,
                                        .gather = gather,
                                        .broadcast = broadcast,
                                        .barrier = barrier,
                                        .patient = patient,
                                        .fail = fail};
