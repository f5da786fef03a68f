// Writing to a pipe that takes its bytes slowly, while signals interrupt: every byte arrives once and in order.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/write_all.h"

enum { SIZE = 1 << 20 };

static volatile sig_atomic_t signals;
static void note(int number) { signals += number == SIGALRM; }

typedef struct reader {
  int fd;
  unsigned char *got;
  size_t count;
} reader;

static void *read_slowly(void *user) {
  reader *r = user;
  const struct timespec pause = {.tv_nsec = 3000000};
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, NULL);
  for (;;) {
    nanosleep(&pause, NULL);
    ssize_t now = read(r->fd, r->got + r->count, SIZE - r->count < 20000 ? SIZE - r->count : 20000);
    if (now <= 0) return NULL;
    r->count += (size_t)now;
  }
}

static void signals_interrupt(void **unused) {
  (void)unused;
  int ends[2];
  pthread_t thread;
  unsigned char *data = malloc(SIZE);
  reader r = {.got = calloc(1, SIZE)};
  for (size_t i = 0; i < SIZE; i++) data[i] = (unsigned char)(i * 2654435761u >> 13);
  assert_int_equal(pipe(ends), 0);
  r.fd = ends[0];
  assert_int_equal(pthread_create(&thread, NULL, read_slowly, &r), 0);
  struct sigaction action = {.sa_handler = note};  // without SA_RESTART
  sigaction(SIGALRM, &action, NULL);
  const struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &often, NULL);
  const bool written = tarn__write_all(ends[1], data, SIZE);
  setitimer(ITIMER_REAL, &never, NULL);
  close(ends[1]);
  pthread_join(thread, NULL);
  assert_true(written);
  assert_true(signals > 0);
  assert_int_equal(r.count, SIZE);
  assert_memory_equal(r.got, data, SIZE);
  close(ends[0]);
  free(data);
  free(r.got);
}

static void failures(void **unused) {
  (void)unused;
  assert_true(tarn__write_all(-1, "", 0));
  assert_false(tarn__write_all(-1, "x", 1));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(signals_interrupt), cmocka_unit_test(failures)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
