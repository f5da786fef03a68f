// Work that ranks share: rank 0 has it and wants the results, the others help.
//
// It goes in rounds. Rank 0 fills a parcel for every rank, its own too; each reads its parcel and fills an answer; rank
// 0 has the answers of all. Both are bytes of any number. They live until the next round, and travel in pieces, so
// that no rank holds more than what its part of a round takes. What an item comes to must not depend on who computes
// it; then rank 0, which takes the answers in the order of the items, has the same for any number of ranks.
#ifndef TARN_COMM_SHARE_H
#define TARN_COMM_SHARE_H

#include "base/buffer.h"
#include "comm/comm.h"

// A parcel or an answer that is being read.
typedef struct tarn__share_reader {
  const char *bytes;
  size_t left;
} tarn__share_reader;

// Zero-initialise or open.
typedef struct tarn__share {
  tarn__comm *comm;             // NULL: this process is alone, and no other call than close may be made
  tarn__buffer *parcels;        // [ranks] on rank 0; elsewhere the one that came
  tarn__buffer *answers;        // [ranks] on rank 0; elsewhere the own one
  tarn__share_reader *readers;  // [ranks] of the answers, on rank 0
  char *room;                   // for pieces of all ranks
  size_t room_bytes;
} tarn__share;

// With one rank, or none (`comm` NULL), share->comm stays NULL. The communicator must outlive it.
tarn_status tarn__share_open(tarn__share *share, tarn__comm *comm) TARN_CHECKED;
void tarn__share_close(tarn__share *share);

// Whose is what: item i of count, which takes work[i], is rank whose[i]'s. By falling work, there and back through the
// ranks, so that all have nearly as much and equally many.
tarn_status tarn__share_items(int32_t *whose, const int64_t *work, int64_t count, int ranks) TARN_CHECKED;

// Appends `count` elements of `size` bytes, which begin at a multiple of eight bytes. Failures stay in the buffer, and
// deal() and collect() tell of them.
void tarn__share_put(tarn__buffer *to, const void *elements, int64_t count, size_t size);
// *elements, a pointer to them, are the next `count`, valid as long as what is read. Fails with INTERNAL where there
// are fewer.
tarn_status tarn__share_take(void *elements, tarn__share_reader *from, int64_t count, size_t size) TARN_CHECKED;

// Rank 0, before it fills the parcels of a round.
void tarn__share_begin(tarn__share *share);
// Hands out the parcels that rank 0 has filled; *parcel is this rank's. *more: false, and there is none, where rank 0
// has called tarn__share_end() instead. The answer is empty.
tarn_status tarn__share_deal(tarn__share *share, tarn__share_reader *parcel, bool *more) TARN_CHECKED;
// The answer that this rank fills. Where all know without parcels what is theirs, a round is a filled answer, emptied
// before (tarn__buffer_reset()), and collect().
tarn__buffer *tarn__share_answer(tarn__share *share);
// Ends the round: rank 0 has share->readers of the answers of all.
tarn_status tarn__share_collect(tarn__share *share) TARN_CHECKED;
// Rank 0 has no further round.
tarn_status tarn__share_end(tarn__share *share) TARN_CHECKED;

#endif
