// Costs of training on several ranks: bytes of gradients, bytes sent, and seconds that each rank waited for others
// during updates. A rank that all others wait for is named.
#ifndef TARN_DIST_RANK_USE_H
#define TARN_DIST_RANK_USE_H

#include <jansson.h>

#include "comm/comm.h"

// The report of a rank.
typedef struct tarn__rank_told {
  double waited;  // seconds
  int64_t sent;   // bytes
} tarn__rank_told;

// Zero-initialise or open. Zero is valid for a single rank.
typedef struct tarn__rank_use {
  tarn__comm *comm;
  tarn__comm_traffic before;        // the newest update
  double begun;                     // it did, in seconds
  double seconds;                   // of the updates since the last line of the log,
  tarn__rank_told own;              // and this rank's waiting and traffic in them
  int64_t reduced;                  // payload of the newest update's gradients
  tarn__rank_told *window, *whole;  // [ranks]: between the last two lines, and since the session began
  double whole_seconds;
  int slow, said;  // the rank that others waited for until the last line, and the one named last; -1: none
} tarn__rank_use;

tarn_status tarn__rank_use_open(tarn__rank_use *use, tarn__comm *comm) TARN_CHECKED;
void tarn__rank_use_close(tarn__rank_use *use);

// Call these before and after an update. `reduced`: bytes of its gradients (gradient_sum.h).
void tarn__rank_use_begin(tarn__rank_use *use);
void tarn__rank_use_end(tarn__rank_use *use, int64_t reduced);
// All ranks call it when rank 0 writes a line of the log: it exchanges the reports and begins the next line. Rank 0
// names the slow rank, if any, unless it was named last.
tarn_status tarn__rank_use_share(tarn__rank_use *use, int64_t update) TARN_CHECKED;
// The rank that all others waited for, -1 if there is none: it waited less than any other by more than a fifth of all
// seconds, if there were at least ten.
int tarn__rank_use_slow(const double *waited, int ranks, double seconds);

// Adds "ranks" to a record of the log, or with `whole` to result.json: nothing with one rank. False: memory ran out.
bool tarn__rank_use_describe(const tarn__rank_use *use, json_t *object, bool whole);

#endif
