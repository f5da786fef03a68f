// The queue of sentences or prompts that the decoders of a run share, each on its own thread.
#ifndef TARN_DECODE_QUEUE_H
#define TARN_DECODE_QUEUE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/work.h"

struct tarn__item_options;  // decoder.h
struct tarn__translation;

// A sentence or prompt to process.
typedef struct tarn__item {
  const int32_t *ids;  // [length]; a prompt may be empty
  int64_t length;
  int64_t index;          // of its result
  const int32_t *prefix;  // [prefix_length] tokens with which a translation begins
  int64_t prefix_length;
  const struct tarn__forced *forced;  // what the translation has to contain (forced.h); NULL: nothing
  // For sampling: the inputs of the random number generator.
  uint64_t key;
  uint32_t sample;
  int64_t samples;                       // of a feed: how many are drawn of this text; 0: no sample
  const struct tarn__item_options *own;  // in place of the decoder's options; NULL: none
} tarn__item;

// Where decoders take further items while they run, so that they join those at work, and where their results go. The
// decoders call it on their own threads, one at a time.
typedef struct tarn__feed {
  // The next item, whose ids and options live until it is done. False: none waits at the moment.
  bool (*next)(void *user, tarn__item *item);
  // An item is done: its result, which is valid during the call, or NULL and the status of its failure.
  void (*done)(void *user, const tarn__item *item, tarn_status status, const struct tarn__translation *result);
  void *user;
  bool whole;  // they are called on the thread of tarn__crew_feed() alone: its decoders do not divide the items
} tarn__feed;

// What a decoder has at work of a feed.
typedef struct tarn__at_work {
  int64_t items, hypotheses;
} tarn__at_work;

// The remaining items: items[next] .. items[count - 1].
typedef struct tarn__queue {
  pthread_mutex_t lock;
  const tarn__item *items;
  int64_t count, next;
  // A decoder that has both has its share and takes no more, if decoders divide what there is: so a few items are
  // divided, too.
  tarn__at_work share;
  bool divides;
  // Progress, in the weight of items: length plus one. NULL: not reported.
  tarn__work *work;
  double weight;
  _Atomic int64_t finished;
  // In place of items and results; NULL: there is none.
  const tarn__feed *feed;
  tarn__item fed;  // taken from it, and waiting for room, if `holds`
  bool holds;
  bool refused;            // a decoder has no room for it
  bool closed;             // nothing more is taken from the feed
  int decoders, idle;      // that share the feed, each on its own thread; without work, and not called
  int parts;               // into which the samples of a text are divided
  tarn__at_work *at_work;  // [decoders]
  tarn__at_work few;       // at work; a single decoder that has them all takes more until it has both
  bool over;               // the decoders leave what is at work to a single one
  int64_t calls;           // of idle decoders, as there is work for them
  pthread_cond_t changed;
} tarn__queue;

// The next item, which stays in the queue until it is taken; NULL: there is none. With the lock held.
const tarn__item *tarn__queue_peek(tarn__queue *queue);
void tarn__queue_take(tarn__queue *queue);

// Of a feed that several decoders share, with the lock held: whether it is the turn of the one at this place, which has
// so much at work, to take the next item. The one that has least takes it; if few are at work, and a single one has
// them all, that one. Where it is another's turn, that one is at work and will ask, or is called.
bool tarn__queue_turn(tarn__queue *queue, int place, const tarn__at_work *own);
// Whether a decoder that has so much at work has its share. Of a feed, only one decoder alone has one.
bool tarn__queue_has_share(const tarn__queue *queue, const tarn__at_work *own);
// Whether the next item is a sample of the same text as the last one, and in the same part of them.
bool tarn__queue_follows(tarn__queue *queue, const tarn__item *last);

// Of a feed, whether a decoder is to leave its items at work for now: one alone when it has its share, or no room, and
// more wait, so that others help it, and one of several when these are idle, so that it gets their threads.
bool tarn__queue_leaves(tarn__queue *queue, const tarn__at_work *own);
// Waits until there may be work for a decoder that has none; false: it is to end.
bool tarn__queue_wait(tarn__queue *queue);
// A decoder that had to end does no more.
void tarn__queue_fail(tarn__queue *queue, tarn_status status);

// An item of the feed is done.
void tarn__queue_done(tarn__queue *queue, const tarn__item *item, tarn_status status,
                      const struct tarn__translation *result);

// Reports items of this weight as finished.
void tarn__queue_finish(tarn__queue *queue, int64_t weight);
// Empties the queue after a failure, so that other decoders stop as well.
void tarn__queue_stop(tarn__queue *queue);

#endif
