// Work shared by ranks: rank 0 has it and collects the results, the others help.
//
// Work is done in rounds. Rank 0 fills a parcel for every rank, including itself; each reads its parcel and fills an
// answer; rank 0 gets all answers. Both are any number of bytes. They live until the next round, and are sent in
// pieces, so no rank needs more memory than for its part of a round. The result of an item must not depend on the rank
// that computes it; then rank 0, which takes the answers in the order of the items, gets the same results for any
// number of ranks.
#ifndef TARN_COMM_SHARE_H
#define TARN_COMM_SHARE_H

#include "base/buffer.h"
#include "comm/comm.h"

// A parcel or an answer being read.
typedef struct tarn__share_reader {
  const char *bytes;
  size_t left;
} tarn__share_reader;

// Zero-initialise or open.
typedef struct tarn__share {
  tarn__comm *comm;             // NULL: this process is alone, and only close may be called
  tarn__buffer *parcels;        // [ranks] on rank 0; elsewhere the received one
  tarn__buffer *answers;        // [ranks] on rank 0; elsewhere this rank's
  tarn__share_reader *readers;  // [ranks] of the answers, on rank 0
  char *room;                   // for pieces of all ranks
  size_t room_bytes;
} tarn__share;

// With one rank, or none (`comm` NULL), share->comm stays NULL. The communicator must outlive it.
tarn_status tarn__share_open(tarn__share *share, tarn__comm *comm) TARN_CHECKED;
void tarn__share_close(tarn__share *share);

// Assigns item i of count, with the work work[i], to rank whose[i]: by decreasing work, forwards and backwards through
// the ranks, so that all have nearly equal work and numbers.
tarn_status tarn__share_items(int32_t *whose, const int64_t *work, int64_t count, int ranks) TARN_CHECKED;

// Appends `count` elements of `size` bytes, aligned to eight bytes. Failures stay in the buffer, and deal() and
// collect() report them.
void tarn__share_put(tarn__buffer *to, const void *elements, int64_t count, size_t size);
// Sets *elements, a pointer, to the next `count` elements, valid as long as the buffer. Fails with INTERNAL if there
// are fewer.
tarn_status tarn__share_take(void *elements, tarn__share_reader *from, int64_t count, size_t size) TARN_CHECKED;

// Rank 0, before it fills the parcels of a round.
void tarn__share_begin(tarn__share *share);
// Distributes the parcels filled by rank 0; *parcel is this rank's. *more is false, without a parcel, if rank 0 has
// called tarn__share_end() instead. The answer is empty.
tarn_status tarn__share_deal(tarn__share *share, tarn__share_reader *parcel, bool *more) TARN_CHECKED;
// The answer that this rank fills. If all ranks know their part without parcels, a round is: reset the answer
// (tarn__buffer_reset()), fill it, collect().
tarn__buffer *tarn__share_answer(tarn__share *share);
// Ends the round: rank 0 has share->readers of the answers of all.
tarn_status tarn__share_collect(tarn__share *share) TARN_CHECKED;
// Rank 0 has no further round.
tarn_status tarn__share_end(tarn__share *share) TARN_CHECKED;

#endif
