// When waiting threads may spin, and that the limit makes them sleep.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka needs the headers above.
#include <cmocka.h>
#include <omp.h>
#include <sys/resource.h>
#include <time.h>

#include "base/spinning.h"
#include "base/threads.h"

static void waiting_limits(void **state) {
  (void)state;
  tarn__spinning spinning = {0};
  tarn__spinning_note(&spinning, 10, 0.25, 0.02);
  assert_false(spinning.limited);
  tarn__spinning_note(&spinning, 10.25, 0.25, 0.026);
  assert_true(spinning.limited);
  // Short rests of the other program do not lift the limit, three seconds do.
  tarn__spinning_note(&spinning, 12, 0.25, 0);
  assert_true(spinning.limited);
  tarn__spinning_note(&spinning, 13, 0.25, 0.2);
  tarn__spinning_note(&spinning, 15.9, 0.25, 0);
  assert_true(spinning.limited);
  tarn__spinning_note(&spinning, 16, 0.25, 0);
  assert_false(spinning.limited);
}

static long sleeps(void) {
  struct rusage usage;
  assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
  return usage.ru_nvcsw;
}

enum { REGIONS = 1000 };
static volatile double work_done;

// How often threads slept while one had some 50 us to do and the other nothing, many times.
static long sleeps_of_regions(void) {
  long before = sleeps();
  for (int i = 0; i < REGIONS; i++) {
#pragma omp parallel num_threads(2)
    if (omp_get_thread_num() == 0)
      for (int k = 0; k < 20000; k++) work_done += k;
  }
  return sleeps() - before;
}

// A quiet machine sleeps some ten times without the limit; how often on a busy one says nothing, so only the limit's
// effect is asked for. It comes when a thread has started.
static void limit_puts_to_sleep(void **state) {
  (void)state;
#if defined(__clang__)
  skip();
#endif
  tarn__threads_set(0);
  sleeps_of_regions();
  tarn__spinning_limit(true);
  long most = 0;
  for (int i = 0; i < 100 && most < REGIONS / 2; i++) {
    long now = sleeps_of_regions();
    if (now > most) most = now;
  }
  tarn__spinning_limit(false);
  assert_true(most >= REGIONS / 2);
}

// Looking, limiting and lifting in any order, as fast as may be, ends and keeps results whole.
static void switching_is_safe(void **state) {
  (void)state;
  tarn__threads_set(2);
  for (int i = 0; i < 50; i++) {
    tarn__spinning_limit(i % 2 == 0);
    tarn__spinning_look();
    int sum = 0;
#pragma omp parallel for num_threads(2) reduction(+ : sum)
    for (int k = 0; k < 100; k++) sum += k;
    assert_int_equal(sum, 4950);
    nanosleep(&(struct timespec){.tv_nsec = i * 20000}, NULL);
  }
  tarn__spinning_limit(false);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(waiting_limits),
      cmocka_unit_test(limit_puts_to_sleep),
      cmocka_unit_test(switching_is_safe),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
