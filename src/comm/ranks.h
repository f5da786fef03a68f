// Inside of tarn_ranks: a communicator for those who know the library by its public headers alone.
#ifndef TARN_COMM_RANKS_H
#define TARN_COMM_RANKS_H

#include "comm/comm.h"
#include "tarn/process.h"

struct tarn_ranks {
  tarn__comm *comm;
};

// NULL where there are none.
tarn__comm *tarn__ranks_comm(const tarn_ranks *ranks);
// Fails with USAGE where there are several: `call` is not shared.
tarn_status tarn__ranks_must_be_one(const tarn_ranks *ranks, const char *call) TARN_CHECKED;

#endif
