// The decoders of a translator or generator: one that computes with all threads, for few items, and one a thread, which
// work on a common queue and never wait for one another before it is empty.
#ifndef TARN_DECODE_CREW_H
#define TARN_DECODE_CREW_H

#include "decode/decoder.h"

// Zero-initialise.
typedef struct tarn__crew {
  const tarn__model *model;
  tarn__decoder_options options;
  int threads;
  tarn__decoder *together;  // computes with all threads
  tarn__decoder **apart;    // [threads] with one thread each; opened when there is use for them
  char *lent;               // memory that is shared out to the decoders
  size_t lent_bytes;
  tarn__item *dealt;  // items in another order
  size_t dealt_room;
} tarn__crew;

// The model must stay open. On failure as well, tarn__crew_close() frees what was taken.
tarn_status tarn__crew_open(tarn__crew *crew, const tarn__model *model, const tarn__decoder_options *options,
                            int threads) TARN_CHECKED;
void tarn__crew_close(tarn__crew *crew);

// As those of a decoder.
void tarn__crew_lend(tarn__crew *crew, void *memory, size_t bytes);
void tarn__crew_reset(tarn__crew *crew);
void tarn__crew_get_stats(const tarn__crew *crew, tarn__decoder_stats *stats);

// Works on all items, in this order where there are many: results[index] of each (tarn__decoder_run()).
tarn_status tarn__crew_run(tarn__crew *crew, const tarn__item *items, int64_t count,
                           tarn__translation *results) TARN_CHECKED;

#endif
