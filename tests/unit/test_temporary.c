// What killed processes leave of their outputs, and who may remove it.
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "base/file.h"
#include "base/temporary.h"
#include "sandbox.h"

static void plant(const char *name) { sandbox_write(name, "x", 1); }

static void write_small(const char *path) { assert_int_equal(tarn__file_write(path, "y", 1), TARN_STATUS_OK); }

// A child that has an output open until it is killed; its first byte says that it is.
static pid_t start_writer(const char *path) {
  int ends[2];
  char byte;
  assert_int_equal(pipe(ends), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    tarn__writer *writer;
    if (tarn__writer_open(&writer, path) != TARN_STATUS_OK || write(ends[1], "x", 1) != 1) _exit(1);
    for (;;) pause();
  }
  assert_true(pid > 0);
  assert_int_equal(read(ends[0], &byte, 1), 1);
  close(ends[0]);
  close(ends[1]);
  return pid;
}

static void end_writer(pid_t pid) {
  int status;
  assert_int_equal(kill(pid, SIGKILL), 0);
  assert_int_equal(waitpid(pid, &status, 0), pid);
}

// The next output removes what a killed process left, and nothing of a process that lives.
static void killed_processes(void **state) {
  (void)state;
  char name[64];
  assert_int_equal(tarn__mkdir("folder"), TARN_STATUS_OK);
  static const char *const paths[] = {"out", "folder/out", "./out2"};
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
    const pid_t pid = start_writer(paths[i]);
    snprintf(name, sizeof name, "%s" TARN__TEMPORARY_MARK "%ld", paths[i], (long)pid);
    write_small(paths[i]);
    assert_int_equal(tarn__file_exists(name), 1);
    end_writer(pid);
    assert_int_equal(tarn__file_exists(name), 1);
    write_small(paths[i]);
    assert_int_equal(tarn__file_exists(name), 0);
  }
}

// Also where the number belongs to a process again, here to this one.
static void numbers_that_are_used_again(void **state) {
  (void)state;
  char name[64];
  snprintf(name, sizeof name, "out" TARN__TEMPORARY_MARK "%ld", (long)getpid());
  plant(name);
  plant("out.tmp.1");
  plant("out.tmp.1.7");
  write_small("out");
  assert_int_equal(tarn__file_exists(name), 0);
  assert_int_equal(tarn__file_exists("out.tmp.1"), 0);
  assert_int_equal(tarn__file_exists("out.tmp.1.7"), 0);
}

// Only files of just this name, by this mark, that are files.
static void everything_else_stays(void **state) {
  (void)state;
  static const char *const names[] = {"out.tmp",       "out.tmp.",    "out.tmp.x",  "out.tmp.1x",
                                      "out.tmp.1.",    "out.tmp.1.x", "out2.tmp.1", "xout.tmp.1",
                                      "out.tmp.1.2.3", ".tmp.1",      "out.1"};
  enum { NAMES = sizeof names / sizeof *names };
  for (size_t i = 0; i < NAMES; i++) plant(names[i]);
  assert_int_equal(mkdir("out.tmp.2", 0700), 0);
  assert_int_equal(symlink("out.1", "out.tmp.3"), 0);
  assert_int_equal(mkfifo("out.tmp.4", 0600), 0);
  write_small("out");
  for (size_t i = 0; i < NAMES; i++)
    if (tarn__file_exists(names[i]) != 1) fail_msg("%s was removed", names[i]);
  struct stat info;
  assert_int_equal(lstat("out.tmp.2", &info), 0);
  assert_int_equal(lstat("out.tmp.3", &info), 0);
  assert_int_equal(lstat("out.tmp.4", &info), 0);
}

static void locked_files_stay(void **state) {
  (void)state;
  plant("out.tmp.5");
  const int fd = open("out.tmp.5", O_RDWR);
  assert_int_equal(flock(fd, LOCK_EX), 0);
  write_small("out");
  assert_int_equal(tarn__file_exists("out.tmp.5"), 1);
  close(fd);
  write_small("out");
  assert_int_equal(tarn__file_exists("out.tmp.5"), 0);
}

// Many processes that write one path at the same time: each of them cleans up, none loses its file.
static void writers_at_the_same_time(void **state) {
  (void)state;
  enum { PROCESSES = 6, ROUNDS = 60 };
  pid_t pids[PROCESSES];
  for (int i = 0; i < PROCESSES; i++) {
    pids[i] = fork();
    if (pids[i] != 0) continue;
    for (int k = 0; k < ROUNDS; k++)
      if (tarn__file_write("out", "whole", 5) != TARN_STATUS_OK) _exit(1);
    _exit(0);
  }
  for (int i = 0; i < PROCESSES; i++) {
    int status;
    assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
    assert_int_equal(status, 0);
  }
  int files = 0;
  DIR *folder = opendir(".");
  while (readdir(folder)) files++;
  closedir(folder);
  assert_int_equal(files, 3);  // with . and ..
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(killed_processes, sandbox_open, sandbox_close),
      cmocka_unit_test_setup_teardown(numbers_that_are_used_again, sandbox_open, sandbox_close),
      cmocka_unit_test_setup_teardown(everything_else_stays, sandbox_open, sandbox_close),
      cmocka_unit_test_setup_teardown(locked_files_stay, sandbox_open, sandbox_close),
      cmocka_unit_test_setup_teardown(writers_at_the_same_time, sandbox_open, sandbox_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
