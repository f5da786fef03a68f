// When waiting threads may spin, and that the limit makes them sleep.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka needs the headers above.
#include <cmocka.h>
#include <dirent.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/spinning.h"
#include "base/threads.h"

static void waiting_limits(void **state) {
  (void)state;
  tarn__spinning spinning = {0};
  bool busy = false, of_another = false;
  tarn__spinning_note(&spinning, &busy, 10, 0.25, 0.02);
  assert_false(spinning.limited);
  // A short disturbance is not enough.
  tarn__spinning_note(&spinning, &busy, 10.25, 0.25, 0.026);
  assert_false(spinning.limited);
  tarn__spinning_note(&spinning, &busy, 10.5, 0.25, 0.02);
  tarn__spinning_note(&spinning, &busy, 10.75, 0.25, 0.026);
  assert_false(spinning.limited);
  tarn__spinning_note(&spinning, &of_another, 10.8, 0.25, 0.026);
  assert_false(spinning.limited);
  tarn__spinning_note(&spinning, &busy, 11, 0.25, 0.026);
  assert_true(spinning.limited);
  // Short rests of the other program do not lift the limit, three seconds do.
  tarn__spinning_note(&spinning, &busy, 12.75, 0.25, 0);
  assert_true(spinning.limited);
  tarn__spinning_note(&spinning, &busy, 13, 0.25, 0.2);
  tarn__spinning_note(&spinning, &busy, 15.9, 0.25, 0);
  assert_true(spinning.limited);
  tarn__spinning_note(&spinning, &busy, 16, 0.25, 0);
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
  tarn__spinning_limit(true, tarn__threads());
  long most = 0;
  for (int i = 0; i < 100 && most < REGIONS / 2; i++) {
    long now = sleeps_of_regions();
    if (now > most) most = now;
  }
  tarn__spinning_limit(false, tarn__threads());
  assert_true(most >= REGIONS / 2);
}

// Looking, limiting and lifting in any order, as fast as may be, ends and keeps results whole.
static void switching_is_safe(void **state) {
  (void)state;
  tarn__threads_set(2);
  for (int i = 0; i < 50; i++) {
    tarn__spinning_limit(i % 2 == 0, tarn__threads());
    tarn__spinning_look();
    int sum = 0;
#pragma omp parallel for num_threads(2) reduction(+ : sum)
    for (int k = 0; k < 100; k++) sum += k;
    assert_int_equal(sum, 4950);
    nanosleep(&(struct timespec){.tv_nsec = i * 20000}, NULL);
  }
  tarn__spinning_limit(false, tarn__threads());
}

static int threads_now(void) {
  DIR *folder = opendir("/proc/self/task");
  int count = 0;
  if (!folder) return -1;
  for (const struct dirent *entry; (entry = readdir(folder));) count += entry->d_name[0] != '.';
  closedir(folder);
  return count;
}

// Whether the process has so many threads some time within a minute.
static bool threads_become(int count) {
  for (double end = tarn__seconds() + 60; tarn__seconds() < end;) {
    if (threads_now() == count) return true;
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  }
  return false;
}

// The size of a pool that leaves the switch so many threads to start.
static int pool_for(int others) { return omp_get_num_procs() + 1 - others; }

static void many_processors_do_without(void **state) {
  (void)state;
#if defined(__clang__)
  skip();
#endif
  const int before = threads_now();
  if (before < 0) skip();
  tarn__spinning_limit(true, pool_for(TARN__SPINNING_MOST_OTHERS + 1));
  assert_int_equal(threads_now(), before);
  tarn__spinning_limit(true, pool_for(TARN__SPINNING_MOST_OTHERS));
  assert_true(threads_become(before + 1 + TARN__SPINNING_MOST_OTHERS));
  tarn__spinning_limit(false, pool_for(TARN__SPINNING_MOST_OTHERS));
  assert_true(threads_become(before));
}

// Limits the memory of a process of its own so that it can start a few threads only, and asks it for more.
static void limit_with_few_threads(void) {
  long pages;
  FILE *file = fopen("/proc/self/statm", "re");
  if (!file || fscanf(file, "%ld", &pages) != 1) _exit(77);
  fclose(file);
  const size_t stack = (size_t)8 << 20;
  const rlim_t bytes = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + 5 * stack;
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0 || pthread_attr_setstacksize(&attributes, stack) != 0 ||
      pthread_setattr_default_np(&attributes) != 0 ||
      setrlimit(RLIMIT_AS, &(struct rlimit){.rlim_cur = bytes, .rlim_max = bytes}) != 0)
    _exit(77);
  const int before = threads_now();
  for (int i = 0; i < 3; i++) {
    tarn__spinning_limit(true, pool_for(TARN__SPINNING_MOST_OTHERS));
    if (!threads_become(before)) _exit(2);
    tarn__spinning_limit(false, pool_for(TARN__SPINNING_MOST_OTHERS));
  }
  _exit(0);
}

// OpenMP would end the program with exit code 1.
static void too_few_threads_do_not_end_the_program(void **state) {
  (void)state;
#if defined(__clang__)
  skip();
#endif
  if (getenv("TARN_SANITIZED")) skip();  // whose own memory is without measure
  int code;
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) limit_with_few_threads();
  assert_true(waitpid(child, &code, 0) == child);
  assert_true(WIFEXITED(code));
  if (WEXITSTATUS(code) == 77) skip();
  assert_int_equal(WEXITSTATUS(code), 0);
}

// In a process of its own, which shares one processor with two that are always busy: whether looking limits.
static void look_on_a_busy_processor(void) {
  cpu_set_t all, one;
  int first = 0;
  if (sched_getaffinity(0, sizeof all, &all) != 0) _exit(77);
  while (!CPU_ISSET(first, &all)) first++;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  if (sched_setaffinity(0, sizeof one, &one) != 0 || access("/proc/thread-self/schedstat", R_OK) != 0) _exit(77);
  pid_t busy[2];
  for (int i = 0; i < 2; i++) {
    busy[i] = fork();
    if (busy[i] < 0) _exit(77);
    if (busy[i] == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (;;) work_done += 1;
    }
  }
  tarn__threads_set(2);
  const int before = threads_now();
  int most = before;
  for (double end = tarn__seconds() + 3; tarn__seconds() < end && most == before;) {
    for (int k = 0; k < 1000000; k++) work_done += k;
    tarn__spinning_look();
    if (threads_now() > most) most = threads_now();
  }
  for (int i = 0; i < 2; i++) {
    kill(busy[i], SIGKILL);
    waitpid(busy[i], NULL, 0);
  }
  _exit(most > before);
}

// The child runs this program anew, because a pool of OpenMP does not outlive a fork.
static int look_with(const char *name, const char *value) {
  int code;
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    unsetenv("GOMP_SPINCOUNT");
    unsetenv("OMP_WAIT_POLICY");
    if (name) setenv(name, value, 1);
    execl("/proc/self/exe", "test_spinning", "look", (char *)NULL);
    _exit(127);
  }
  assert_true(waitpid(child, &code, 0) == child);
  assert_true(WIFEXITED(code));
  return WEXITSTATUS(code);
}

static void settings_of_the_user_stand(void **state) {
  (void)state;
#if defined(__clang__)
  skip();
#endif
  const int limited = look_with(NULL, NULL);
  if (limited == 77) skip();
  assert_int_equal(limited, 1);
  assert_int_equal(look_with("GOMP_SPINCOUNT", TARN__SPINNING_COUNT), 1);  // the program's own
  assert_int_equal(look_with("GOMP_SPINCOUNT", "1000"), 0);
  assert_int_equal(look_with("OMP_WAIT_POLICY", "active"), 0);
}

// A clock that goes back far runs on from where it was; one that is a little late stands still.
static void clocks_never_go_back(void **state) {
  (void)state;
  double shown = 0.0, ahead = 0.0;
  assert_true(tarn__clock_steady(100.0, &shown, &ahead) == 100.0);
  assert_true(tarn__clock_steady(99.5, &shown, &ahead) == 100.0);
  assert_true(tarn__clock_steady(101.0, &shown, &ahead) == 101.0);
  assert_true(tarn__clock_steady(11.0, &shown, &ahead) == 101.0);
  assert_true(tarn__clock_steady(13.0, &shown, &ahead) == 103.0);
  assert_true(tarn__clock_steady(-7.0, &shown, &ahead) == 103.0);
  assert_true(tarn__clock_steady(-6.0, &shown, &ahead) == 104.0);
  const double before = tarn__seconds();
  assert_true(tarn__seconds() >= before && tarn__cpu_seconds() <= tarn__cpu_seconds());
}

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "look") == 0) look_on_a_busy_processor();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(waiting_limits),
      cmocka_unit_test(too_few_threads_do_not_end_the_program),
      cmocka_unit_test(many_processors_do_without),
      cmocka_unit_test(limit_puts_to_sleep),
      cmocka_unit_test(switching_is_safe),
      cmocka_unit_test(settings_of_the_user_stand),
      cmocka_unit_test(clocks_never_go_back),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
