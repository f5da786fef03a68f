// Continuous batching of text, what continuations and translations have in common: requests that join a running batch.
// A request is a text, and an item of the decoder (queue.h: tarn__feed) for its search, or one for each of its samples.
// What is drawn and what is searched for is computed by different decoders, which work in turns: a request of the other
// kind waits until those at work are complete.
#ifndef TARN_DECODE_JOINING_H
#define TARN_DECODE_JOINING_H

#include "base/memory.h"
#include "base/threads.h"
#include "decode/decoder.h"
#include "decode/detokenizer.h"

typedef struct tarn__joined tarn__joined;

// A request on its way, the first member of that of its kind. The kind's functions fill in what is above the line.
typedef struct tarn__joined_request {
  tarn__item item;         // its own text, without a sample's number
  tarn__item_options own;  // without a listener
  bool draws;
  int64_t number;  // of items; 0: there is nothing to compute
  bool listens;
  // Of all kinds.
  tarn__joined *in;
  tarn__hypothesis *found;  // [count], of each item one, or all of the only item
  int64_t count;
  int32_t **top_ids;  // [number] those of each item, with own.tops
  float **top_values;
  int64_t handed, active;  // items taken by the decoder, and of these not done
  tarn__failure failure;
  tarn__arena memory;                  // until it is done
  struct tarn__joined_request *after;  // of those that are done, whose arenas the next ones take
} tarn__joined_request;

// One of its items on its way.
typedef struct tarn__joined_item {
  tarn__joined_request *of;
  int64_t number;  // among those of its request
  tarn__item_options own;
  tarn__detokenizer text;
  size_t sent, searched;  // bytes of its text: told, and searched for stop strings
  int64_t tokens;
  int32_t *top_ids;  // [tokens][own.tops]
  float *top_values;
  size_t ids_room, values_room;
} tarn__joined_item;

typedef struct tarn__joined_kind {
  size_t bytes;  // of a request
  // Asks the source for the next request. False: none waits.
  bool (*next)(tarn__joined *joined, tarn__joined_request *request);
  tarn_status (*open)(tarn__joined_request *request) TARN_CHECKED;
  // Begins the text of an item that somebody hears; and tells of a token.
  tarn_status (*begin)(tarn__joined_item *item) TARN_CHECKED;
  tarn_status (*hear)(tarn__joined_item *item, const tarn__heard *heard) TARN_CHECKED;
  // Makes the result, from what was found.
  tarn_status (*result)(tarn__joined_request *request) TARN_CHECKED;
  // Tells the source that it is done; the result is there if the status is OK.
  void (*done)(tarn__joined_request *request, tarn_status status);
  void (*close)(tarn__joined_request *request);
  tarn_status (*feed)(void *owner, bool draws, const tarn__feed *feed) TARN_CHECKED;
} tarn__joined_kind;

// All requests of a call.
struct tarn__joined {
  const tarn__joined_kind *kind;
  void *owner;         // who computes them
  const void *source;  // of the kind
  tarn__arena *kept;   // where the memory of the only request stays, whose functions are called on the thread of
                       // tarn__joined_run(); NULL: there are several
  // Private.
  tarn__joined_request *taken, *spare;  // the last one, if items of it are still to be taken; for the next ones
  bool draws;                           // what the decoder at work does
  tarn__failure failure;                // no request could be taken
  tarn__arena part;                     // what is told of a text, until the next part of any
};

// Computes the requests of a source until none waits and all are done. Fails with MEMORY, or as the device does.
tarn_status tarn__joined_run(tarn__joined *joined) TARN_CHECKED;

// For `hear`: adds a token to the text of the item, and returns what may be told of it, `size` bytes that live until
// the next call. `stopped`: a stop string ends it.
tarn_status tarn__joined_grow(tarn__joined_item *item, const tarn__heard *heard, char **text, size_t *size,
                              bool *stopped) TARN_CHECKED;

#endif
