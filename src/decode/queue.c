#include "decode/queue.h"

void tarn__queue_finish(tarn__queue *queue, int64_t weight) {
  const int64_t finished = atomic_fetch_add(&queue->finished, weight) + weight;
  tarn__work_within(queue->work, (double)finished / queue->weight);
}

void tarn__queue_stop(tarn__queue *queue) {
  pthread_mutex_lock(&queue->lock);
  queue->next = queue->count;
  pthread_mutex_unlock(&queue->lock);
}
