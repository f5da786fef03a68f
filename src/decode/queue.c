#include "decode/queue.h"

const tarn__item *tarn__queue_peek(tarn__queue *queue) {
  if (!queue->feed) return queue->next < queue->count ? &queue->items[queue->next] : NULL;
  if (!queue->holds && !queue->closed) queue->holds = queue->feed->next(queue->feed->user, &queue->fed);
  return queue->holds ? &queue->fed : NULL;
}

void tarn__queue_take(tarn__queue *queue) {
  if (queue->feed)
    queue->holds = queue->refused = false;
  else
    queue->next++;
}

// Wakes the idle decoders, which are not idle from now on.
static void call(tarn__queue *queue) {
  queue->calls++;
  queue->idle = 0;
  pthread_cond_broadcast(&queue->changed);
}

static bool reaches(const tarn__at_work *own, const tarn__at_work *least) {
  return own->items >= least->items && own->hypotheses >= least->hypotheses;
}

bool tarn__queue_has_share(const tarn__queue *queue, const tarn__at_work *own) {
  return queue->divides && reaches(own, &queue->share);
}

bool tarn__queue_turn(tarn__queue *queue, int place, const tarn__at_work *own) {
  tarn__at_work all = *own;
  int holders = own->items > 0;
  bool least = true;
  for (int i = 0; i < queue->decoders; i++) {
    const tarn__at_work *other = &queue->at_work[i];
    if (i == place) continue;
    all.items += other->items;
    all.hypotheses += other->hypotheses;
    holders += other->items > 0;
    least &= own->hypotheses <= other->hypotheses;
  }
  // The last one that has become idle takes what waits: no other would ask for it again.
  if (all.items == 0) return true;
  if (!reaches(&all, &queue->few) && holders == 1 && !queue->refused) return own->items > 0;
  if (!least && queue->idle > 0 && tarn__queue_peek(queue)) call(queue);
  return least || queue->refused;
}

bool tarn__queue_follows(tarn__queue *queue, const tarn__item *last) {
  if (last->samples < 2) return false;
  const int64_t part = (last->samples + queue->parts - 1) / queue->parts;
  const tarn__item *item = tarn__queue_peek(queue);
  return item && item->ids == last->ids && item->length == last->length && item->sample / part == last->sample / part;
}

static void end(tarn__queue *queue) {
  queue->over = true;
  pthread_cond_broadcast(&queue->changed);
}

bool tarn__queue_leaves(tarn__queue *queue, const tarn__at_work *own) {
  bool leaves;
  pthread_mutex_lock(&queue->lock);
  if (queue->decoders == 1) {
    const bool full = queue->divides && queue->refused;
    leaves = (full || tarn__queue_has_share(queue, own)) && tarn__queue_peek(queue);
  } else {
    if (queue->idle == queue->decoders - 1) end(queue);
    leaves = queue->over;
  }
  pthread_mutex_unlock(&queue->lock);
  return leaves;
}

bool tarn__queue_wait(tarn__queue *queue) {
  pthread_mutex_lock(&queue->lock);
  const int64_t calls = queue->calls;
  if (++queue->idle == queue->decoders) {
    if (queue->holds)
      call(queue);
    else
      end(queue);
  }
  while (!queue->over && queue->calls == calls) pthread_cond_wait(&queue->changed, &queue->lock);
  const bool more = !queue->over;
  pthread_mutex_unlock(&queue->lock);
  return more;
}

void tarn__queue_fail(tarn__queue *queue, tarn_status status) {
  pthread_mutex_lock(&queue->lock);
  if (queue->holds) queue->feed->done(queue->feed->user, &queue->fed, status, NULL);
  queue->holds = false;
  queue->closed = true;
  if (++queue->idle == queue->decoders) end(queue);
  pthread_mutex_unlock(&queue->lock);
}

void tarn__queue_done(tarn__queue *queue, const tarn__item *item, tarn_status status,
                      const struct tarn__translation *result) {
  pthread_mutex_lock(&queue->lock);
  queue->feed->done(queue->feed->user, item, status, result);
  pthread_mutex_unlock(&queue->lock);
}

void tarn__queue_finish(tarn__queue *queue, int64_t weight) {
  const int64_t finished = atomic_fetch_add(&queue->finished, weight) + weight;
  tarn__work_within(queue->work, (double)finished / queue->weight);
}

void tarn__queue_stop(tarn__queue *queue) {
  pthread_mutex_lock(&queue->lock);
  queue->next = queue->count;
  pthread_mutex_unlock(&queue->lock);
}
