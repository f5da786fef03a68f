// Internals of tarn_ranks: a communicator for users of the public headers.
#ifndef TARN_COMM_RANKS_H
#define TARN_COMM_RANKS_H

#include "comm/comm.h"
#include "tarn/process.h"

struct tarn_ranks {
  tarn__comm *comm;
};

// NULL without ranks.
tarn__comm *tarn__ranks_comm(const tarn_ranks *ranks);
// Fails with USAGE with several ranks: `call` is not shared.
tarn_status tarn__ranks_must_be_one(const tarn_ranks *ranks, const char *call) TARN_CHECKED;

#endif
