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

bool tarn__queue_turn(tarn__queue *queue, int place, const tarn__at_work *own) {
  int64_t items = own->items;
  bool least = true, most = true;
  for (int i = 0; i < queue->decoders; i++) {
    const tarn__at_work *other = &queue->at_work[i];
    if (i == place) continue;
    items += other->items;
    least &= own->hypotheses <= other->hypotheses;
    most &= own->hypotheses > other->hypotheses || (own->hypotheses == other->hypotheses && place < i);
  }
  if (items < queue->few) return most;
  if (!least && queue->idle > 0 && tarn__queue_peek(queue)) {
    queue->calls++;
    pthread_cond_broadcast(&queue->changed);
  }
  return least || queue->refused;
}

static void end(tarn__queue *queue) {
  queue->over = true;
  pthread_cond_broadcast(&queue->changed);
}

bool tarn__queue_leaves(tarn__queue *queue, int64_t active) {
  bool leaves;
  pthread_mutex_lock(&queue->lock);
  if (queue->decoders == 1) {
    leaves = active >= queue->share && tarn__queue_peek(queue);
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
  if (++queue->idle == queue->decoders) end(queue);
  while (!queue->over && queue->calls == calls) pthread_cond_wait(&queue->changed, &queue->lock);
  const bool more = !queue->over;
  if (more) queue->idle--;
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
