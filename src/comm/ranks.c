#include "comm/ranks.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "comm/launcher.h"

int tarn_ranks_started(void) { return tarn__launcher_find().size; }

tarn_status tarn_ranks_open(tarn_ranks **ranks, const char *comm) {
  void *memory;
  *ranks = NULL;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof **ranks));
  tarn_ranks *opened = memory;
  const tarn_status status = tarn__comm_open(&opened->comm, comm);
  if (status == TARN_STATUS_OK)
    *ranks = opened;
  else
    tarn__free(opened);
  return status;
}

void tarn_ranks_close(tarn_ranks **ranks) {
  if (*ranks) tarn__comm_close(&(*ranks)->comm);
  tarn__free(*ranks);
  *ranks = NULL;
}

tarn__comm *tarn__ranks_comm(const tarn_ranks *ranks) { return ranks ? ranks->comm : NULL; }

tarn_status tarn__ranks_must_be_one(const tarn_ranks *ranks, const char *call) {
  TARN_REQUIRE(tarn_ranks_count(ranks) == 1, USAGE, "%s is not shared by ranks: it is for one process", call);
  return TARN_STATUS_OK;
}

int tarn_ranks_rank(const tarn_ranks *ranks) { return ranks ? ranks->comm->rank : 0; }
int tarn_ranks_count(const tarn_ranks *ranks) { return ranks ? ranks->comm->size : 1; }

bool tarn_ranks_leave(tarn_ranks *ranks, tarn_status status, const char *line) {
  char kept[1024];
  if (!ranks) return false;
  if (line) {
    snprintf(kept, sizeof kept, "%s", line);  // it may be the message that is lost now
    status = tarn__fail(status, "%s", kept);
  }
  return tarn__comm_fail(ranks->comm, status);
}

void tarn_ranks_abandon(void) { tarn__launcher_abandon(); }

tarn_status tarn_ranks_meet(tarn_ranks *ranks) { return ranks ? tarn__comm_barrier(ranks->comm) : TARN_STATUS_OK; }

bool tarn_ranks_fail(const char *name, tarn_status status, const char *line) {
  const tarn__launcher launcher = tarn__launcher_find();
  tarn__comm *comm;
  bool told = false;
  char kept[1024];
  snprintf(kept, sizeof kept, "%s", line);  // it may be the message that is lost now
  if (launcher.size > 1 && !(name && strcmp(name, tarn__comm_self.name) == 0)) {
    if (tarn__comm_open(&comm, name) != TARN_STATUS_OK) {
      tarn__member here;
      tarn__member_here(&here);
      status = tarn__fail(status, "rank %d on %s: %s", launcher.rank, here.host, kept);
      return false;
    }
    status = tarn__fail(status, "%s", kept);
    told = tarn__comm_fail(comm, status);
    tarn__comm_close(&comm);
  }
  status = tarn__fail(status, "%s", kept);
  return told;
}
