// Processes that cannot be started: no number that a signal could go to remains. fork() fails here, and kill() does
// nothing, since with -1 it would reach every process of the user.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "sweep/spec.h"

pid_t fork(void) {
  errno = EAGAIN;
  return -1;
}

int kill(pid_t pid, int number) {
  (void)pid;
  (void)number;
  return 0;
}

static void fails(const char *errors, const char *message) {
  static const char *const arguments[] = {"true", NULL};
  const tarn__child child = {.program = "/bin/true", .arguments = arguments, .errors = errors};
  pid_t pid = -7;
  assert_int_equal(tarn__child_start(&pid, &child), TARN_STATUS_IO);
  assert_non_null(strstr(tarn_error_message(), message));
  assert_int_equal(pid, 0);
}

static void cannot_start(void **state) {
  (void)state;
  fails("/dev/null", "cannot start a process");
  fails("/nowhere/errors", "/nowhere/errors: cannot write");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(cannot_start)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
