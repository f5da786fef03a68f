#include "comm/comm.h"

#include <stdio.h>
#include <string.h>

#include "tarn/text.h"

// A new entry is a file and a line here.
static const tarn__comm_kind *const kinds[] = {&tarn__comm_self};

enum { KINDS = sizeof kinds / sizeof *kinds };

tarn_status tarn__comm_open(tarn__comm **comm, const char *name) {
  const char *names[KINDS];
  char all[256] = "";
  *comm = NULL;
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

static tarn_status note(tarn__comm *comm, tarn_status status) {
  comm->failed = comm->failed || status != TARN_STATUS_OK;
  return status;
}

tarn_status tarn__comm_sum(tarn__comm *comm, float *values, int64_t count) {
  return note(comm, comm->kind->sum(comm, values, count));
}

tarn_status tarn__comm_sum_doubles(tarn__comm *comm, double *values, int64_t count) {
  return note(comm, comm->kind->sum_doubles(comm, values, count));
}

tarn_status tarn__comm_any(tarn__comm *comm, bool *is) {
  double ranks = *is ? 1.0 : 0.0;
  TARN_TRY(tarn__comm_sum_doubles(comm, &ranks, 1));
  *is = ranks > 0;
  return TARN_STATUS_OK;
}

tarn_status tarn__comm_gather(tarn__comm *comm, void *all, const void *own, size_t bytes) {
  return note(comm, comm->kind->gather(comm, all, own, bytes));
}

tarn_status tarn__comm_broadcast(tarn__comm *comm, void *data, size_t bytes) {
  return note(comm, comm->kind->broadcast(comm, data, bytes));
}

tarn_status tarn__comm_barrier(tarn__comm *comm) { return note(comm, comm->kind->barrier(comm)); }

void tarn__comm_fail(tarn__comm *comm, tarn_status status) {
  char line[1024];
  if (comm->rank == 0)
    snprintf(line, sizeof line, "%s", tarn_error_message());
  else
    snprintf(line, sizeof line, "rank %d: %s", comm->rank, tarn_error_message());
  comm->kind->fail(comm, status, line);
}
