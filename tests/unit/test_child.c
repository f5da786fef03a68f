// Processes that a sweep starts, and signals that come while they are not yet the program.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "sandbox.h"
#include "sweep/spec.h"
#include "tarn/status.h"

static volatile sig_atomic_t taken;
static void take(int number) { taken = number; }

static int signal_there;
static void be_told(void) {
  if (signal_there) raise(signal_there);
}

static void start(pid_t *pid) {
  const char *const arguments[] = {"sleep", "3600", NULL};
  const tarn__child child = {.program = "/bin/sleep", .arguments = arguments, .errors = "errors.txt"};
  if (tarn__child_start(pid, &child) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
}

// A sweep that was stopped while it started a run told the run so at once. The run's process still had the sweep's
// handlers, which took the signal, so the run went on.
static void a_signal_before_the_program_is_its_own(void **state) {
  (void)state;
  const int signals[] = {SIGINT, SIGTERM, SIGHUP};
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
    struct sigaction now = {.sa_handler = take}, before;
    pid_t pid;
    int how;
    assert_int_equal(sigaction(signals[i], &now, &before), 0);
    signal_there = signals[i];
    start(&pid);
    signal_there = 0;
    alarm(120);  // if it was lost: the process sleeps for an hour
    assert_int_equal(waitpid(pid, &how, 0), pid);
    alarm(0);
    assert_true(WIFSIGNALED(how));
    assert_int_equal(WTERMSIG(how), signals[i]);
    assert_int_equal(sigaction(signals[i], &before, NULL), 0);
  }
  assert_int_equal(taken, 0);
}

// This process takes signals as before, and the child blocks none that it does not block.
static void no_signal_stays_blocked(void **state) {
  (void)state;
  sigset_t before, now;
  pid_t pid;
  int how;
  pthread_sigmask(SIG_SETMASK, NULL, &before);
  start(&pid);
  pthread_sigmask(SIG_SETMASK, NULL, &now);
  for (int number = 1; number < SIGRTMIN; number++)
    assert_int_equal(sigismember(&now, number), sigismember(&before, number));
  assert_int_equal(kill(pid, SIGALRM), 0);
  assert_int_equal(waitpid(pid, &how, 0), pid);
  assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGALRM);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_signal_before_the_program_is_its_own),
                                     cmocka_unit_test(no_signal_stays_blocked)};
  if (pthread_atfork(NULL, NULL, be_told) != 0) return 1;
  return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
