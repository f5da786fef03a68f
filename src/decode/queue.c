#include "decode/queue.h"

const tarn__item *tarn__queue_peek(tarn__queue *queue) {
  if (!queue->feed) return queue->next < queue->count ? &queue->items[queue->next] : NULL;
  if (!queue->holds) queue->holds = queue->feed->next(queue->feed->user, &queue->fed);
  return queue->holds ? &queue->fed : NULL;
}

void tarn__queue_take(tarn__queue *queue) {
  if (queue->feed)
    queue->holds = false;
  else
    queue->next++;
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
