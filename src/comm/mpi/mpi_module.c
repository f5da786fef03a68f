// The module of one MPI (module.h): compiled into a shared object for each MPI that was found at configuration.
//
// All calls are nonblocking, with our own waiting: MPI's waiting burns a core, which on a machine with fewer cores than
// ranks is needed by the other rank.
#include "comm/mpi/module.h"

#include <limits.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static MPI_Comm ranks = MPI_COMM_NULL, beats = MPI_COMM_NULL;
static int rank_count, own_rank;
static char line[MPI_MAX_ERROR_STRING + 64], beat_line[MPI_MAX_ERROR_STRING + 64];
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
static const atomic_int *lost;  // NULL: none
static bool given_up;
static const char LOST[] = "another rank is lost";

static void take(void) { pthread_mutex_lock(&one_at_a_time); }

static int give(int code) {
  pthread_mutex_unlock(&one_at_a_time);
  return code;
}

// A call of MPI, and its code.
#define ALONE(call) (take(), give(call))

// The message of a failure, NULL for none.
static const char *outcome_in(char out[MPI_MAX_ERROR_STRING + 64], const char *call, int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  if (code == MPI_SUCCESS) return NULL;
  ALONE(MPI_Error_string(code, text, &length));
  text[strcspn(text, "\n")] = '\0';  // MPICH appends a call stack to its message
  snprintf(out, MPI_MAX_ERROR_STRING + 64, "%s: %s", call, text);
  return out;
}

static const char *outcome(const char *call, int code) {
  given_up = given_up || code != MPI_SUCCESS;
  return outcome_in(line, call, code);
}

static bool gives_up(void) {
  given_up = given_up || (lost && atomic_load_explicit(lost, memory_order_relaxed));
  return given_up;
}

static _Thread_local bool is_patient;

static void patient(bool is) { is_patient = is; }

enum { SPINS = 20000, YIELDS = 2000 };

// Waits for a request: first briefly without yielding the core, as ranks with equal work are almost simultaneous, then
// yielding, and after some milliseconds mostly asleep.
static const char *wait_for(MPI_Request *request, const char *call, int code) {
  for (int64_t turn = 0; code == MPI_SUCCESS; turn++) {
    int done = 0;
    code = ALONE(MPI_Test(request, &done, MPI_STATUS_IGNORE));
    if (done) break;
    if (gives_up()) return LOST;
    if (turn < SPINS && !is_patient) continue;
    if (turn < SPINS + YIELDS && !is_patient)
      sched_yield();
    else
      nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
  }
  return outcome(call, code);
}

static void finish(void) {
  int initialised = 0, finalised = 0;
  MPI_Initialized(&initialised);
  MPI_Finalized(&finalised);
  if (initialised && !finalised && !given_up) MPI_Finalize();
}

static const char *join(int *rank, int *size) {
  int initialised = 0, level = 0;
  if (given_up) return "this process has given up the other ranks";
  const char *failed = outcome("MPI_Initialized", MPI_Initialized(&initialised));
  if (failed) return failed;
  if (!initialised) {
    failed = outcome("MPI_Init_thread", MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level));
    if (failed) return failed;
    atexit(finish);
    // Open MPI reports errors of all nonblocking calls on MPI_COMM_WORLD.
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    if (level < MPI_THREAD_SERIALIZED)
      return "MPI_Init_thread: this MPI cannot be called by a process that has threads";
  }
  failed = outcome("MPI_Comm_dup", MPI_Comm_dup(MPI_COMM_WORLD, &ranks));
  if (failed) return failed;
  failed = outcome("MPI_Comm_dup", MPI_Comm_dup(MPI_COMM_WORLD, &beats));
  if (failed) return failed;
  MPI_Comm_set_errhandler(ranks, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(beats, MPI_ERRORS_RETURN);
  MPI_Comm_rank(ranks, rank);
  MPI_Comm_size(ranks, size);
  rank_count = *size;
  own_rank = *rank;
  return NULL;
}

static bool leave(void) {
  const bool abandoned = gives_up();
  lost = NULL;
  if (abandoned) return false;
  if (ranks != MPI_COMM_NULL) MPI_Comm_free(&ranks);
  if (beats != MPI_COMM_NULL) MPI_Comm_free(&beats);
  return true;
}

// The buffer that gather and broadcast pass to MPI, piece by piece, instead of the caller's memory, which may be freed
// before MPI is done with an abandoned call.
static char stage[1 << 20];

static size_t piece_of(size_t left, size_t most) { return left < most ? left : most; }

static const char *gather(void *all, const void *own, size_t bytes) {
  const size_t most = sizeof stage / (size_t)(rank_count + 1);
  for (size_t at = 0; at < bytes;) {
    const size_t piece = piece_of(bytes - at, most);
    MPI_Request request;
    if (gives_up()) return LOST;
    memcpy(stage, (const char *)own + at, piece);
    const char *failed = wait_for(
        &request, "MPI_Iallgather",
        ALONE(MPI_Iallgather(stage, (int)piece, MPI_BYTE, stage + piece, (int)piece, MPI_BYTE, ranks, &request)));
    if (failed) return failed;
    for (int r = 0; r < rank_count; r++)
      memcpy((char *)all + (size_t)r * bytes + at, stage + (size_t)(r + 1) * piece, piece);
    at += piece;
  }
  return NULL;
}

static const char *broadcast(int root, void *data, size_t bytes) {
  for (size_t at = 0; at < bytes;) {
    const size_t piece = piece_of(bytes - at, sizeof stage);
    MPI_Request request;
    if (gives_up()) return LOST;
    if (own_rank == root) memcpy(stage, (char *)data + at, piece);
    const char *failed =
        wait_for(&request, "MPI_Ibcast", ALONE(MPI_Ibcast(stage, (int)piece, MPI_BYTE, root, ranks, &request)));
    if (failed) return failed;
    if (own_rank != root) memcpy((char *)data + at, stage, piece);
    at += piece;
  }
  return NULL;
}

// Counts and displacements of all ranks for MPI: for sending, then for receiving.
static const char *places(int **counts, size_t most) {
  static int *all;
  if (most > INT_MAX / (size_t)rank_count) return "more bytes than an MPI call takes";
  if (!all) all = malloc(4 * (size_t)rank_count * sizeof *all);
  *counts = all;
  return all ? NULL : "no memory for the counts of an MPI call";
}

static const char *exchange(void *in, const void *out, const int64_t *bytes, size_t stride, int me) {
  MPI_Request request;
  int *counts;
  const char *failed = gives_up() ? LOST : places(&counts, stride);
  if (failed) return failed;
  int *from = counts + rank_count, *gets = from + rank_count, *to = gets + rank_count;
  for (int r = 0; r < rank_count; r++) {
    counts[r] = r == me ? 0 : (int)bytes[r];
    from[r] = r * (int)stride;
    gets[r] = r == me ? 0 : (int)bytes[me];
    to[r] = r * (int)bytes[me];
  }
  return wait_for(&request, "MPI_Ialltoallv",
                  ALONE(MPI_Ialltoallv(out, counts, from, MPI_BYTE, in, gets, to, MPI_BYTE, ranks, &request)));
}

static const char *spread(void *in, const void *own, const int64_t *bytes, size_t stride, int me) {
  MPI_Request request;
  int *counts;
  const char *failed = gives_up() ? LOST : places(&counts, stride);
  if (failed) return failed;
  int *to = counts + rank_count;
  for (int r = 0; r < rank_count; r++) {
    counts[r] = (int)bytes[r];
    to[r] = r * (int)stride;
  }
  return wait_for(&request, "MPI_Iallgatherv",
                  ALONE(MPI_Iallgatherv(own, counts[me], MPI_BYTE, in, counts, to, MPI_BYTE, ranks, &request)));
}

static void heed(const atomic_int *flag) { lost = flag; }

// --- beats ---

typedef struct pair {
  bool begun, sending;
  MPI_Request send, receive;
  char out[TARN__MPI_BEAT], in[TARN__MPI_BEAT];
} pair;

static int receive_next(pair *p, int rank) {
  const int code = ALONE(MPI_Irecv(p->in, TARN__MPI_BEAT, MPI_BYTE, rank, 0, beats, &p->receive));
  if (code != MPI_SUCCESS) p->receive = MPI_REQUEST_NULL;
  return code;
}

static const char *beat(void *room, int rank, const void *own, bool *sent, void *newest, bool *came) {
  pair *p = room;
  int code = MPI_SUCCESS, done = 1;
  *came = *sent = false;
  if (!p->begun) code = receive_next(p, rank);
  p->begun = true;
  while (code == MPI_SUCCESS && done) {
    code = ALONE(MPI_Test(&p->receive, &done, MPI_STATUS_IGNORE));
    if (code != MPI_SUCCESS || !done) break;
    *came = true;
    memcpy(newest, p->in, sizeof p->in);
    code = receive_next(p, rank);
  }
  if (code != MPI_SUCCESS) return outcome_in(beat_line, "MPI_Irecv", code);
  done = 0;
  if (p->sending) code = ALONE(MPI_Test(&p->send, &done, MPI_STATUS_IGNORE));
  p->sending = p->sending && !done;
  if (code == MPI_SUCCESS && own && !p->sending) {
    memcpy(p->out, own, sizeof p->out);
    code = ALONE(MPI_Isend(p->out, TARN__MPI_BEAT, MPI_BYTE, rank, 0, beats, &p->send));
    *sent = p->sending = code == MPI_SUCCESS;
  }
  return outcome_in(beat_line, "MPI_Isend", code);
}

static void end_beats(void *room) {
  pair *p = room;
  if (!p->begun || gives_up()) return;
  take();
  if (p->receive != MPI_REQUEST_NULL) {
    MPI_Cancel(&p->receive);
    MPI_Wait(&p->receive, MPI_STATUS_IGNORE);  // its buffer is freed next
  }
  if (p->sending) MPI_Wait(&p->send, MPI_STATUS_IGNORE);  // a small message is sent without the receiver
  give(0);
}

extern const tarn__mpi_module tarn_mpi_module;
__attribute__((visibility("default"))) const tarn__mpi_module tarn_mpi_module = {.interface = TARN__MPI_INTERFACE,
                                                                                 .library = TARN_MPI_LIBRARY,
                                                                                 .join = join,
                                                                                 .leave = leave,
                                                                                 .gather = gather,
                                                                                 .broadcast = broadcast,
                                                                                 .exchange = exchange,
                                                                                 .spread = spread,
                                                                                 .heed = heed,
                                                                                 .beat = beat,
                                                                                 .end_beats = end_beats,
                                                                                 .room_bytes = sizeof(pair),
                                                                                 .patient = patient};
