// Who is told how far work is, and how wide text stands on a terminal.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
// cmocka needs the headers above.
#include <cmocka.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/work.h"
#include "tarn/text.h"

typedef struct told {
  int reports, overs;
  char what[32];
  double done, share;
} told;

static void receive(void *user, const tarn_progress *p) {
  told *t = user;
  assert_true(p->seconds >= 0);
  t->reports += !p->over;
  t->overs += p->over;
  t->done = p->done;
  t->share = p->share;
  snprintf(t->what, sizeof t->what, "%s", p->what);
}

static void wait_for_next(void) { nanosleep(&(struct timespec){.tv_nsec = 110 * 1000000L}, NULL); }

static void shares_and_parts(void **state) {
  (void)state;
  told t = {0};
  tarn__work work, inner;
  tarn_progress_set(receive, &t);
  tarn__work_begin(&work, "outer", "lines");
  assert_ptr_equal(tarn__work_at_hand(), &work);
  tarn__work_part(&work, 10, 0.25, 30, 0.75);
  assert_int_equal(t.reports, 1);
  assert_true(t.done == 10 && t.share == 0.25);
  work.due = INT64_MAX;
  tarn__work_within(&work, 0.5);  // too early
  assert_int_equal(t.reports, 1);
  work.due = 0;
  tarn__work_within(tarn__work_at_hand(), 0.5);
  assert_int_equal(t.reports, 2);
  assert_true(t.done == 20 && t.share == 0.5);
  tarn__work_begin(&inner, "inner", "bytes");
  assert_ptr_equal(tarn__work_at_hand(), &inner);
  tarn__work_at(&inner, 1, NAN);
  assert_string_equal(t.what, "inner");
  assert_true(isnan(t.share));
  tarn__work_end(&inner);
  assert_int_equal(t.overs, 1);
  assert_ptr_equal(tarn__work_at_hand(), &work);
  tarn__work_end(&work);
  assert_int_equal(t.overs, 2);
  assert_string_equal(t.what, "outer");
  assert_null(tarn__work_at_hand());
  tarn_progress_set(NULL, NULL);
}

// What the thread of the clock has told so far.
static int reports(tarn__work *work, const told *t) {
  pthread_mutex_lock(&work->lock);
  const int count = t->reports;
  pthread_mutex_unlock(&work->lock);
  return count;
}

// What says nothing of itself is told of by the clock; and of work without a report nobody hears.
static void ticks(void **state) {
  (void)state;
  told t = {0};
  tarn__work work;
  tarn_progress_set(receive, &t);
  tarn__work_begin(&work, "silent", "");
  tarn__work_end(&work);
  assert_int_equal(t.reports + t.overs, 0);
  tarn__work_begin(&work, "slow", "");
  tarn__work_tick(&work);
  for (int i = 0; i < 1000 && reports(&work, &t) == 0; i++) wait_for_next();
  tarn__work_end(&work);
  assert_true(t.reports > 0 && t.overs == 1 && isnan(t.share));
  tarn_progress_set(NULL, NULL);
  tarn__work_begin(&work, "unheard", "");
  tarn__work_tick(&work);
  tarn__work_part(&work, 0, 0, 1, 1);
  tarn__work_within(&work, 0.5);
  tarn__work_within(NULL, 0.5);
  tarn__work_end(&work);
  assert_int_equal(t.overs, 1);
}

static void assert_columns(const char *text, size_t most, size_t columns, size_t fits) {
  size_t bytes;
  assert_int_equal(tarn_text_columns(text, strlen(text), most, &bytes), columns);
  assert_int_equal(bytes, fits);
}

static void widths(void **state) {
  (void)state;
  assert_columns("", 10, 0, 0);
  assert_columns("Haus", SIZE_MAX, 4, 4);
  assert_columns("Haus", 3, 3, 3);
  assert_columns("H\xC3\xA4user", SIZE_MAX, 6, 7);
  assert_columns("Ha\xCC\x88user", SIZE_MAX, 6, 8);            // a mark that combines
  assert_columns("\xE4\xBD\xA0\xE5\xA5\xBD", SIZE_MAX, 4, 6);  // two wide characters
  assert_columns("\xE4\xBD\xA0\xE5\xA5\xBD", 3, 2, 3);         // of which the second has no room
  assert_columns("\xF0\x9F\x98\x80!", SIZE_MAX, 3, 5);         // an emoji
  assert_columns(
      "a\xFF"
      "b",
      SIZE_MAX, 3, 3);  // no UTF-8
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(shares_and_parts), cmocka_unit_test(ticks),
                                     cmocka_unit_test(widths)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
