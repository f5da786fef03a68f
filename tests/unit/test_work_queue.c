// The queue of batches: order, limits, items that do not go together, waiting for those that are to be expected,
// stopping, failures at the start.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "base/clock.h"
#include "base/status.h"
#include "tarn/work_queue.h"

enum { MOST = 4096 };

// What the worker saw. It stops in front of the gate while that is closed.
typedef struct record {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool closed;
  intptr_t items[MOST];
  size_t sizes[MOST];
  size_t count, batches, entered;
} record;

static void work(void *user, void *const *items, size_t count) {
  record *r = user;
  pthread_mutex_lock(&r->lock);
  r->entered++;
  pthread_cond_broadcast(&r->changed);
  while (r->closed) pthread_cond_wait(&r->changed, &r->lock);
  for (size_t i = 0; i < count; i++) r->items[r->count++] = (intptr_t)items[i];
  r->sizes[r->batches++] = count;
  pthread_cond_broadcast(&r->changed);
  pthread_mutex_unlock(&r->lock);
}

static void gate(record *r, bool closed) {
  pthread_mutex_lock(&r->lock);
  r->closed = closed;
  pthread_cond_broadcast(&r->changed);
  pthread_mutex_unlock(&r->lock);
}

static void wait_entered(record *r, size_t entered) {
  pthread_mutex_lock(&r->lock);
  while (r->entered < entered) pthread_cond_wait(&r->changed, &r->lock);
  pthread_mutex_unlock(&r->lock);
}

static void wait_items(record *r, size_t count) {
  pthread_mutex_lock(&r->lock);
  while (r->count < count) pthread_cond_wait(&r->changed, &r->lock);
  pthread_mutex_unlock(&r->lock);
}

static record fresh(void) { return (record){.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER}; }

static tarn_work_queue *open_queue(record *r, tarn_work_queue_options o) {
  tarn_work_queue *queue;
  o.work = work;
  o.user = r;
  assert_int_equal(tarn_work_queue_open(&queue, &o), TARN_STATUS_OK);
  return queue;
}

static tarn_work_queue_options defaults(void) {
  tarn_work_queue_options o;
  tarn_work_queue_default(&o);
  return o;
}

// One item in work behind the closed gate, while `count` more come with numbers from 1 and this cost.
static void fill(record *r, tarn_work_queue *queue, intptr_t count, int64_t cost) {
  gate(r, true);
  assert_true(tarn_work_queue_add(queue, (void *)(intptr_t)0, 1));
  wait_entered(r, 1);
  for (intptr_t i = 1; i <= count; i++) assert_true(tarn_work_queue_add(queue, (void *)i, cost));
}

static void test_order_and_cost(void **state) {
  (void)state;
  record r = fresh();
  tarn_work_queue_options o = defaults();
  o.max_cost = 10;
  tarn_work_queue *queue = open_queue(&r, o);
  fill(&r, queue, 7, 3);
  assert_true(tarn_work_queue_add(queue, (void *)(intptr_t)8, 1000));  // more than a batch may cost: alone
  assert_true(tarn_work_queue_add(queue, (void *)(intptr_t)9, 1));
  assert_int_equal(tarn_work_queue_waiting(queue), 9);
  gate(&r, false);
  tarn_work_queue_close(&queue);
  assert_null(queue);
  assert_int_equal(r.count, 10);
  for (size_t i = 0; i < r.count; i++) assert_int_equal(r.items[i], i);
  const size_t sizes[] = {1, 3, 3, 1, 1, 1};
  assert_int_equal(r.batches, 6);
  for (size_t i = 0; i < r.batches; i++) assert_int_equal(r.sizes[i], sizes[i]);
}

// Sums that no number holds: behind a batch of four, two items of such costs are enough for one, and are not waited
// with.
static void test_great_costs(void **state) {
  (void)state;
  record r = fresh();
  tarn_work_queue_options o = defaults();
  o.max_cost = INT64_MAX;
  o.wait = 10;
  tarn_work_queue *queue = open_queue(&r, o);
  fill(&r, queue, 4, 1);
  gate(&r, false);
  wait_items(&r, 5);
  const double begin = tarn__seconds();
  assert_true(tarn_work_queue_add(queue, (void *)(intptr_t)5, INT64_MAX - 1));
  assert_true(tarn_work_queue_add(queue, (void *)(intptr_t)6, INT64_MAX - 1));
  wait_items(&r, 6);
  assert_true(tarn__seconds() - begin < 9);
  tarn_work_queue_close(&queue);
  assert_int_equal(r.count, 7);
}

static void test_items(void **state) {
  (void)state;
  record r = fresh();
  tarn_work_queue_options o = defaults();
  o.max_items = 4;
  tarn_work_queue *queue = open_queue(&r, o);
  fill(&r, queue, 9, 0);
  gate(&r, false);
  tarn_work_queue_close(&queue);
  const size_t sizes[] = {1, 4, 4, 1};
  assert_int_equal(r.batches, 4);
  for (size_t i = 0; i < r.batches; i++) assert_int_equal(r.sizes[i], sizes[i]);
}

static bool same_rest(void *user, const void *first, const void *item) {
  (void)user;
  return (intptr_t)first % 3 == (intptr_t)item % 3;
}

static void test_together(void **state) {
  (void)state;
  record r = fresh();
  tarn_work_queue_options o = defaults();
  o.together = same_rest;
  tarn_work_queue *queue = open_queue(&r, o);
  fill(&r, queue, 7, 1);
  gate(&r, false);
  tarn_work_queue_close(&queue);
  const intptr_t order[] = {0, 1, 4, 7, 2, 5, 3, 6};
  assert_int_equal(r.count, 8);
  for (size_t i = 0; i < r.count; i++) assert_int_equal(r.items[i], order[i]);
}

static void test_full_and_stopped(void **state) {
  (void)state;
  record r = fresh();
  tarn_work_queue_options o = defaults();
  o.capacity = 5;
  tarn_work_queue *queue = open_queue(&r, o);
  fill(&r, queue, 5, 1);
  assert_false(tarn_work_queue_add(queue, (void *)(intptr_t)6, 1));
  gate(&r, false);
  wait_items(&r, 6);
  assert_true(tarn_work_queue_add(queue, (void *)(intptr_t)7, 1));
  tarn_work_queue_stop(queue);
  assert_false(tarn_work_queue_add(queue, (void *)(intptr_t)8, 1));
  tarn_work_queue_finish(queue);
  assert_int_equal(r.count, 7);
  assert_int_equal(r.items[6], 7);
  assert_false(tarn_work_queue_add(queue, (void *)(intptr_t)9, 1));
  assert_int_equal(tarn_work_queue_waiting(queue), 0);
  tarn_work_queue_finish(queue);
  tarn_work_queue_close(&queue);
  assert_int_equal(r.count, 7);
}

// Behind a batch of three, one item waits for two more, and the three go together. Alone, the next one waits, until
// stopping ends that.
static void test_expected(void **state) {
  (void)state;
  record r = fresh();
  tarn_work_queue_options o = defaults();
  o.wait = 10;
  tarn_work_queue *queue = open_queue(&r, o);
  assert_true(tarn_work_queue_add(queue, (void *)(intptr_t)100, 1));  // nothing is expected: no waiting
  wait_items(&r, 1);
  r.entered = 0;
  fill(&r, queue, 3, 1);
  gate(&r, false);
  wait_items(&r, 5);
  for (intptr_t i = 4; i <= 6; i++) assert_true(tarn_work_queue_add(queue, (void *)i, 1));
  wait_items(&r, 8);
  assert_int_equal(r.sizes[2], 3);
  assert_int_equal(r.sizes[3], 3);
  assert_true(tarn_work_queue_add(queue, (void *)(intptr_t)7, 1));
  tarn_work_queue_close(&queue);
  assert_int_equal(r.count, 9);
}

// Where nobody comes, a batch goes when its time is over.
static void test_wait_ends(void **state) {
  (void)state;
  record r = fresh();
  tarn_work_queue_options o = defaults();
  o.wait = 0.05;
  tarn_work_queue *queue = open_queue(&r, o);
  fill(&r, queue, 3, 1);
  gate(&r, false);
  wait_items(&r, 4);
  const double begin = tarn__seconds();
  assert_true(tarn_work_queue_add(queue, (void *)(intptr_t)4, 1));
  wait_items(&r, 5);
  assert_true(tarn__seconds() - begin >= 0.049);
  tarn_work_queue_close(&queue);
}

typedef struct callers {
  tarn_work_queue *queue;
  intptr_t first;
} callers;

enum { EACH = 500, CALLERS = 4 };

static void *call(void *user) {
  const callers *c = user;
  for (intptr_t i = 0; i < EACH; i++)
    while (!tarn_work_queue_add(c->queue, (void *)(c->first + i), 1)) usleep(50);
  return NULL;
}

// Of several callers every item is worked on once, those of each in their order.
static void test_callers(void **state) {
  (void)state;
  record r = fresh();
  tarn_work_queue_options o = defaults();
  o.capacity = 20;
  o.max_items = 7;
  o.wait = 0;
  tarn_work_queue *queue = open_queue(&r, o);
  pthread_t threads[CALLERS];
  callers users[CALLERS];
  for (intptr_t t = 0; t < CALLERS; t++) {
    users[t] = (callers){queue, t * EACH};
    assert_int_equal(pthread_create(&threads[t], NULL, call, &users[t]), 0);
  }
  for (int t = 0; t < CALLERS; t++) pthread_join(threads[t], NULL);
  tarn_work_queue_close(&queue);
  assert_int_equal(r.count, CALLERS * EACH);
  intptr_t next[CALLERS] = {0};
  for (size_t i = 0; i < r.count; i++) {
    const intptr_t caller = r.items[i] / EACH;
    assert_int_equal(r.items[i] % EACH, next[caller]);
    next[caller]++;
  }
}

static tarn_status refuse_start(void *user) {
  (void)user;
  return tarn__fail(TARN_STATUS_DATA, "there is no model");
}

static void test_refused(void **state) {
  (void)state;
  record r = fresh();
  tarn_work_queue *queue;
  tarn_work_queue_options o = defaults();
  assert_int_equal(tarn_work_queue_open(&queue, &o), TARN_STATUS_USAGE);  // no work
  o.work = work;
  o.user = &r;
  o.start = refuse_start;
  assert_int_equal(tarn_work_queue_open(&queue, &o), TARN_STATUS_DATA);
  assert_null(queue);
  assert_string_equal(tarn_error_message(), "there is no model");
  o.start = NULL;
  const tarn_work_queue_options good = o;
  o.capacity = 0;
  assert_int_equal(tarn_work_queue_open(&queue, &o), TARN_STATUS_USAGE);
  o = good;
  o.max_cost = 0;
  assert_int_equal(tarn_work_queue_open(&queue, &o), TARN_STATUS_USAGE);
  o = good;
  o.max_items = 0;
  assert_int_equal(tarn_work_queue_open(&queue, &o), TARN_STATUS_USAGE);
  o = good;
  o.wait = 11;
  assert_int_equal(tarn_work_queue_open(&queue, &o), TARN_STATUS_USAGE);
  tarn_work_queue_close(&queue);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_great_costs), cmocka_unit_test(test_order_and_cost),   cmocka_unit_test(test_items),
      cmocka_unit_test(test_together),    cmocka_unit_test(test_full_and_stopped), cmocka_unit_test(test_expected),
      cmocka_unit_test(test_wait_ends),   cmocka_unit_test(test_callers),          cmocka_unit_test(test_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
