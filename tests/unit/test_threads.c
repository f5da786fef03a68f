// The pool of threads where the system lets the process have few: OpenMP would end the program.
#include <dlfcn.h>
#include <errno.h>
#include <float.h>
#include <omp.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "base/threads.h"
#include "tarn/process.h"

static atomic_int alive, most = 1000;
static char warning[512];

typedef struct start {
  void *(*routine)(void *);
  void *user;
} start;

static void leave(void *none) {
  (void)none;
  atomic_fetch_sub(&alive, 1);
}

// OpenMP's threads end by pthread_exit().
static void *run(void *user) {
  const start s = *(start *)user;
  free(user);
  void *result;
  pthread_cleanup_push(leave, NULL);
  result = s.routine(s.user);
  pthread_cleanup_pop(1);
  return result;
}

// Stands before that of the system, for OpenMP as well, so it is visible: fails like it where there would be too many.
__attribute__((visibility("default"))) int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                                                          void *(*routine)(void *), void *user) {
  static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
  start *s = malloc(sizeof *s);
  if (!s) return EAGAIN;
  *s = (start){routine, user};
  const bool few = atomic_fetch_add(&alive, 1) < atomic_load(&most);
  const int error = few ? real(thread, attributes, run, s) : EAGAIN;
  if (error) {
    atomic_fetch_sub(&alive, 1);
    free(s);
  }
  return error;
}

static void on_message(void *user, tarn_log_level level, const char *text) {
  (void)user;
  (void)level;
  snprintf(warning, sizeof warning, "%s", text);
}

static int team(void) {
  int count = 0;
#pragma omp parallel num_threads(tarn__threads())
  {
#pragma omp atomic
    count++;
  }
  return count;
}

// A thread's own pool, so that the tests do not share one. It counts as one of those that live.
static void *count_threads(void *user) {
  int *sizes = user;
  for (; *sizes; sizes++) {
    tarn__threads_set(*sizes);
    *sizes = tarn__threads();
    assert_int_equal(team(), *sizes);
  }
  return NULL;
}

// The pool of a thread that has ended goes a little later.
static void wait_for_others(void) {
  for (int i = 0; i < 60000 && atomic_load(&alive) > 0; i++) usleep(1000);
  assert_int_equal(atomic_load(&alive), 0);
}

static void in_a_thread(int *sizes) {
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, count_threads, sizes), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
}

static void all_can_be_had(void **state) {
  (void)state;
  int sizes[] = {3, 8, 2, 8, 0};
  warning[0] = '\0';
  atomic_store(&most, 1000);
  in_a_thread(sizes);
  assert_int_equal(sizes[0], 3);
  assert_int_equal(sizes[1], 8);
  assert_int_equal(sizes[2], 2);
  assert_int_equal(sizes[3], 8);
  assert_string_equal(warning, "");
}

// Six in all: the caller, four more of its pool, and one that stays free for a loader.
// Clang's OpenMP keeps the threads of a pool for the next caller, so none of them goes when the caller has ended.
static bool pools_outlive_their_thread(void) { return dlsym(RTLD_DEFAULT, "__kmpc_fork_call") != NULL; }

static void few_can_be_had(void **state) {
  (void)state;
  if (pools_outlive_their_thread()) skip();
  int sizes[] = {8, 8, 4, 0};
  warning[0] = '\0';
  wait_for_others();
  atomic_store(&most, 6);
  in_a_thread(sizes);
  assert_int_equal(sizes[0], 5);
  assert_int_equal(sizes[1], 5);
  assert_int_equal(sizes[2], 4);
  assert_non_null(strstr(warning, "5 of 8 threads are used, more cannot be started"));
  atomic_store(&most, 1000);
}

static void none_can_be_had(void **state) {
  (void)state;
  if (pools_outlive_their_thread()) skip();
  for (int more = 1; more <= 2; more++) {
    int sizes[] = {8, 0};
    warning[0] = '\0';
    wait_for_others();
    atomic_store(&most, more);
    in_a_thread(sizes);
    assert_int_equal(sizes[0], 1);
    assert_non_null(strstr(warning, "1 of 8 threads"));
  }
  atomic_store(&most, 1000);
}

static void stacks_of_openmp(void **state) {
  (void)state;
  assert_int_equal(tarn__threads_startable(0), 0);
  assert_int_equal(tarn__threads_startable(3), 3);
  setenv("OMP_STACKSIZE", "1000000000G", 1);  // more than there is
  assert_int_equal(tarn__threads_startable(3), 0);
  setenv("OMP_STACKSIZE", "512", 1);
  assert_int_equal(tarn__threads_startable(3), 3);
  setenv("OMP_STACKSIZE", "100000 g", 1);
  assert_int_equal(tarn__threads_startable(1), 0);
  unsetenv("OMP_STACKSIZE");
}

// In the region and behind it, on each thread, whichever compiler's OpenMP it is.
static void denormals_are_flushed(void **state) {
  (void)state;
#if defined(__x86_64__) || defined(__aarch64__)
  enum { COUNT = 3 };
  volatile float least = FLT_MIN, half = 0.5f;
  float within[COUNT] = {1.0f, 1.0f, 1.0f};
  atomic_store(&most, 1000);
  assert_int_equal(tarn__threads_set(COUNT), COUNT);
#pragma omp parallel for schedule(static, 1) num_threads(COUNT)
  for (int i = 0; i < COUNT; i++) within[i] = least * half;
  for (int i = 0; i < COUNT; i++) assert_true(within[i] == 0.0f);
  assert_true(least * half == 0.0f);
#else
  skip();
#endif
}

int main(void) {
  tarn_log_set(on_message, NULL);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(stacks_of_openmp), cmocka_unit_test(all_can_be_had),        cmocka_unit_test(few_can_be_had),
      cmocka_unit_test(none_can_be_had),  cmocka_unit_test(denormals_are_flushed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
