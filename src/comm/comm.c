#include "comm/comm.h"

#include <stdio.h>
#include <string.h>

#include "comm/launcher.h"
#include "tarn/text.h"

// A new entry needs a file and a line here.
static const tarn__comm_kind *const kinds[] = {&tarn__comm_self, &tarn__comm_mpi, &tarn__comm_nccl};

enum { KINDS = sizeof kinds / sizeof *kinds };

tarn_status tarn__comm_open(tarn__comm **comm, const char *name) {
  const char *names[KINDS];
  char all[256] = "";
  *comm = NULL;
  if (!name) name = tarn__launcher_find().size > 1 ? tarn__comm_mpi.name : tarn__comm_self.name;
  for (size_t i = 0; i < KINDS; i++) {
    if (strcmp(kinds[i]->name, name) == 0) return kinds[i]->open(comm);
    names[i] = kinds[i]->name;
    const size_t used = strlen(all);
    snprintf(all + used, sizeof all - used, "%s%s", i > 0 ? ", " : "", names[i]);
  }
  const char *near = tarn_text_nearest(name, names, KINDS);
  return tarn__fail(TARN_STATUS_USAGE, "the communicator \"%s\" is not built in: expected %s%s%s%s", name, all,
                    near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

void tarn__comm_close(tarn__comm **comm) {
  if (*comm) (*comm)->kind->close(*comm);
  *comm = NULL;
}

tarn_status tarn__comm_sum_doubles(tarn__comm *comm, double *values, int64_t count) {
  return tarn__comm_note(comm, comm->kind->sum_doubles(comm, values, count));
}

tarn_status tarn__comm_any(tarn__comm *comm, bool *is) {
  double ranks = *is ? 1.0 : 0.0;
  TARN_TRY(tarn__comm_sum_doubles(comm, &ranks, 1));
  *is = ranks > 0;
  return TARN_STATUS_OK;
}

tarn_status tarn__comm_gather(tarn__comm *comm, void *all, const void *own, size_t bytes) {
  return tarn__comm_note(comm, comm->kind->gather(comm, all, own, bytes));
}

tarn_status tarn__comm_broadcast_from(tarn__comm *comm, int root, void *data, size_t bytes) {
  return tarn__comm_note(comm, comm->kind->broadcast(comm, root, data, bytes));
}

tarn_status tarn__comm_broadcast(tarn__comm *comm, void *data, size_t bytes) {
  return tarn__comm_broadcast_from(comm, 0, data, bytes);
}

void tarn__comm_patient(tarn__comm *comm, bool is) {
  if (comm->kind->patient) comm->kind->patient(comm, is);
}

tarn_status tarn__comm_barrier(tarn__comm *comm) { return tarn__comm_note(comm, comm->kind->barrier(comm)); }

const char *tarn__comm_rank_text(const tarn__comm *comm, int rank, char text[TARN__RANK_TEXT]) {
  snprintf(text, TARN__RANK_TEXT, "rank %d%s%s", rank, comm->members ? " on " : "",
           comm->members ? comm->members[rank].host : "");
  return text;
}

void tarn__comm_go_on(tarn__comm *comm, const char *text) { tarn__watch_go_on(comm->watch, text); }

bool tarn__comm_fail(tarn__comm *comm, tarn_status status) {
  char line[1024], rank[TARN__RANK_TEXT];
  if (comm->rank == 0)
    snprintf(line, sizeof line, "%s", tarn_error_message());
  else
    snprintf(line, sizeof line, "%s: %s", tarn__comm_rank_text(comm, comm->rank, rank), tarn_error_message());
  const bool heard = comm->kind->fail(comm, status, line);
  return (heard && comm->rank > 0) || tarn__watch_line(comm->watch);
}
