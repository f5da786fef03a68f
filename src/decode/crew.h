// The decoders of a translator or generator: one that uses all threads, for few items, and one per thread. The latter
// share a queue and never wait for each other until it is empty.
#ifndef TARN_DECODE_CREW_H
#define TARN_DECODE_CREW_H

#include "decode/engine.h"

// Zero-initialise.
typedef struct tarn__crew {
  const tarn__model *model;
  tarn__decoder_options options;
  int threads;
  const tarn__engine *engine;
  void *together;  // a decoder of the engine that uses all threads
  void **apart;    // [threads], one thread each; opened when needed
  char *lent;      // memory lent to the decoders in parts
  size_t lent_bytes;
  tarn__item *dealt;  // reordered items
  size_t dealt_room;
  tarn__decoder **fed[2];  // [threads] the decoders of feeds, opened when needed: that search, and that draw
  tarn__at_work *at_work;  // [threads]
} tarn__crew;

// The model must stay open. After a failure too, tarn__crew_close() frees all memory.
tarn_status tarn__crew_open(tarn__crew *crew, const tarn__model *model, const tarn__decoder_options *options,
                            int threads) TARN_CHECKED;
void tarn__crew_close(tarn__crew *crew);

// As for a decoder (decoder.h).
void tarn__crew_lend(tarn__crew *crew, void *memory, size_t bytes);
void tarn__crew_reset(tarn__crew *crew);
void tarn__crew_get_stats(const tarn__crew *crew, tarn__decoder_stats *stats);

// How many decoders process so many items, of so many rows a step together: one per thread, or the one that uses all.
int tarn__crew_decoders(const tarn__model *model, int64_t items, int64_t rows, int threads);

// Processes all items, if there are many in this order: results[index] of each (tarn__decoder_run()).
tarn_status tarn__crew_run(tarn__crew *crew, const tarn__item *items, int64_t count,
                           tarn__translation *results) TARN_CHECKED;

// Processes the items of a feed, each with options of its own, which join those at work at the next step, until it has
// none and all are done; all are drawn, or searches. As long as they are few, a decoder that uses all threads has them,
// else one per thread. The feed's functions are called by one thread at a time. Only for models whose engine is that of
// tokens. Fails with MEMORY, or as the device does; then all items taken from the feed are done, with that status.
tarn_status tarn__crew_feed(tarn__crew *crew, bool draws, const tarn__feed *feed) TARN_CHECKED;

#endif
