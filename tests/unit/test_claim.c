// Claims and locks on file systems that other machines may share (base/claim.h, base/lock.h).
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/claim.h"
#include "base/file.h"
#include "base/lock.h"
#include "sandbox.h"

// In the place of the system's, for file systems without links.
static bool no_links;
int link(const char *from, const char *to) {
  if (!no_links) return linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
  errno = EPERM;
  return -1;
}

static int give_links(void **state) {
  (void)state;
  no_links = false;
  return 0;
}

// In some containers there is none.
static bool has_boot_id(void) {
  char id[64] = "";
  FILE *file = fopen(tarn__claim_boot, "r");
  const bool read = file && fscanf(file, "%63s", id) == 1;
  if (file) fclose(file);
  return read;
}

static void write_at(const char *path, const char *text, double age) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  assert_int_equal(fclose(file), 0);
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  const struct timespec times[2] = {{.tv_sec = now.tv_sec - (time_t)age, .tv_nsec = now.tv_nsec},
                                    {.tv_sec = now.tv_sec - (time_t)age, .tv_nsec = now.tv_nsec}};
  assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void write_claim(const char *text, double age) { write_at("lock.holder", text, age); }

static void pause_for(double seconds) {
  const struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  nanosleep(&time, NULL);
}

// Takes the claim, or finds that it is held.
static bool takes(const char *pattern) {
  tarn__claim *claim = NULL;
  const tarn_status status = tarn__claim_take(&claim, "lock");
  if (status == TARN_STATUS_BUSY && pattern) assert_non_null(strstr(tarn_error_message(), pattern));
  tarn__claim_drop(&claim);
  return status == TARN_STATUS_OK;
}

// The machine's file systems are known, whatever they are; the variable has the last word.
static void the_kind_of_file_system_decides(void **state) {
  (void)state;
  const int fd = open(".", O_RDONLY);
  setenv("TARN_FILE_SYSTEM", "shared", 1);
  assert_true(tarn__claim_needed(fd));
  setenv("TARN_FILE_SYSTEM", "local", 1);
  assert_false(tarn__claim_needed(fd));
  unsetenv("TARN_FILE_SYSTEM");
  const int process = open("/proc/self/status", O_RDONLY);  // a type that is not in the list
  assert_true(tarn__claim_needed(process));
  close(process);
  close(fd);
}

static void a_claim_keeps_others_out(void **state) {
  (void)state;
  tarn__claim *claim;
  char name[64];
  snprintf(name, sizeof name, "(%ld on ", (long)getpid());
  assert_int_equal(tarn__claim_take(&claim, "lock"), TARN_STATUS_OK);
  assert_false(takes(name));
  assert_int_equal(tarn__claim_check(claim), TARN_STATUS_OK);
  tarn__claim_drop(&claim);
  assert_int_equal(access("lock.holder", F_OK), -1);
  assert_true(takes(NULL));
}

// A process of this machine that was killed holds nothing any more, and its number may be another's by now.
static void a_dead_process_lets_go(void **state) {
  (void)state;
  if (!has_boot_id()) skip();
  const pid_t child = fork();
  if (child == 0) {
    tarn__claim *claim;
    if (tarn__claim_take(&claim, "lock") != TARN_STATUS_OK) _exit(1);
    kill(getpid(), SIGKILL);
  }
  int code;
  assert_int_equal(waitpid(child, &code, 0), child);
  assert_true(WIFSIGNALED(code));
  assert_int_equal(access("lock.holder", F_OK), 0);
  char text[256], other[300];
  FILE *file = fopen("lock.holder", "r");
  assert_non_null(fgets(text, sizeof text, file));
  fclose(file);
  assert_true(takes(NULL));
  // Our own number with another start.
  char boot[64], space[64];
  assert_int_equal(sscanf(text, "%63s %63s", boot, space), 2);
  snprintf(other, sizeof other, "%s %s %ld 2 here\n", boot, space, (long)getpid());
  write_claim(other, 0);
  assert_true(takes(NULL));
}

// Where a boot id or the start of a process cannot be read, nothing says that a process which is not found here is
// dead: the claim counts as another machine's.
static void what_is_not_known_is_no_death(void **state) {
  (void)state;
  char space[64] = "", text[256];
  const char *boot = tarn__claim_boot;
  assert_true(readlink("/proc/self/ns/pid", space, sizeof space - 1) > 0);
  tarn__claim_boot = "nowhere";
  snprintf(text, sizeof text, "- %s 999999999 5 faraway\n", space);
  write_claim(text, 30);
  assert_false(takes("(999999999 on faraway)"));
  write_claim(text, 61);
  assert_true(takes(NULL));
  tarn__claim_boot = boot;
  if (!has_boot_id()) skip();
  char id[64] = "";
  FILE *file = fopen(boot, "r");
  assert_non_null(file);
  assert_int_equal(fscanf(file, "%63s", id), 1);
  fclose(file);
  for (int start = 0; start < 2; start++) {  // of a running process: by one that could not see its own
    snprintf(text, sizeof text, "%s %s %ld %d here\n", id, space, (long)getpid(), start);
    write_claim(text, 30);
    assert_false(takes("on here"));
    write_claim(text, 61);
    assert_true(takes(NULL));
  }
}

// Another machine's claim holds as long as it is renewed.
static void another_machine_is_believed_for_a_while(void **state) {
  (void)state;
  write_claim("another-boot pid:[1] 77 5 faraway\n", 0);
  assert_false(takes("(77 on faraway)"));
  write_claim("another-boot pid:[1] 77 5 faraway\n", 30);
  assert_false(takes("(77 on faraway)"));
  write_claim("another-boot pid:[1] 77 5 faraway\n", 61);
  assert_true(takes(NULL));
  write_claim("", 30);  // not whole
  assert_false(takes("lock.holder"));
  write_claim("", 61);
  assert_true(takes(NULL));
}

// One process at a time may take over a dead claim, and one that died doing so blocks nobody.
static void one_at_a_time_takes_over(void **state) {
  (void)state;
  write_claim("another-boot pid:[1] 77 5 faraway\n", 61);
  write_at("lock.holder.take", "another-boot pid:[1] 78 5 elsewhere\n", 30);
  assert_false(takes("(78 on elsewhere)"));
  assert_int_equal(access("lock.holder.take", F_OK), 0);
  write_at("lock.holder.take", "another-boot pid:[1] 78 5 elsewhere\n", 61);
  assert_true(takes(NULL));
  assert_int_equal(access("lock.holder.take", F_OK), -1);
  write_at("lock.holder.take", "another-boot pid:[1] 78 5 elsewhere\n", 0);
  assert_true(takes(NULL));  // there is nothing to take over
  assert_int_equal(access("lock.holder.take", F_OK), -1);
}

// What was given up binds nobody, though its process lives and the file is fresh.
static void a_released_claim_binds_nobody(void **state) {
  (void)state;
  write_claim("released\n", 0);
  assert_true(takes(NULL));
  write_claim("another-boot pid:[1] 77 5 faraway\n", 61);
  write_at("lock.holder.take", "released\n", 0);
  assert_true(takes(NULL));
}

// A process that fails leaves nothing that names it: there is no descriptor left to look with.
static void a_failure_leaves_no_claim(void **state) {
  (void)state;
  struct rlimit all, few;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &all), 0);
  for (rlim_t most = 3; most < 12; most++) {
    write_claim("another-boot pid:[1] 77 5 faraway\n", 61);
    few = (struct rlimit){most, all.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    (void)takes(NULL);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &all), 0);
    assert_true(takes(NULL));
    assert_int_equal(access("lock.holder", F_OK), -1);
    assert_int_equal(access("lock.holder.take", F_OK), -1);
  }
}

static void beats_renew_the_claim(void **state) {
  (void)state;
  tarn__claim *claim;
  struct stat before, after;
  tarn__claim_seconds.beat = 0.02;
  assert_int_equal(tarn__claim_take(&claim, "lock"), TARN_STATUS_OK);
  assert_int_equal(stat("lock.holder", &before), 0);
  for (int i = 0; i < 500; i++) {
    pause_for(0.02);
    assert_int_equal(stat("lock.holder", &after), 0);
    if (memcmp(&after.st_mtim, &before.st_mtim, sizeof after.st_mtim) != 0) break;
  }
  assert_memory_not_equal(&after.st_mtim, &before.st_mtim, sizeof after.st_mtim);
  tarn__claim_drop(&claim);
  tarn__claim_seconds.beat = 10;
}

// A process that stood still finds out that another one has taken its claim, and leaves that one's alone.
static void a_lost_claim_is_noticed(void **state) {
  (void)state;
  tarn__claim *claim;
  tarn__claim_seconds.beat = 1000;
  tarn__claim_seconds.stale = 0;  // always looked at
  assert_int_equal(tarn__claim_take(&claim, "lock"), TARN_STATUS_OK);
  assert_int_equal(tarn__claim_check(claim), TARN_STATUS_OK);
  assert_int_equal(unlink("lock.holder"), 0);
  write_claim("another-boot pid:[1] 77 5 faraway\n", 0);
  assert_int_equal(tarn__claim_check(claim), TARN_STATUS_BUSY);
  assert_non_null(strstr(tarn_error_message(), "taken the run directory over"));
  tarn__claim_drop(&claim);
  assert_int_equal(access("lock.holder", F_OK), 0);
  tarn__claim_seconds = (tarn__claim_times){.beat = 10, .stale = 60, .settle = 0.02};
  unlink("lock.holder");
}

// A process that waits for the others, takes the claim, tells how that went, and keeps it until all have told.
static void contend(const int gate[2], const int told[2], const int end[2]) {
  char byte = 0;
  tarn__claim *claim = NULL;
  tarn__claim_seconds.settle = 1;  // halted between two looks for longer, a process would be mistaken
  close(gate[1]);
  close(end[1]);
  (void)!read(gate[0], &byte, 1);
  const tarn_status status = tarn__claim_take(&claim, "lock");
  byte = status == TARN_STATUS_OK ? 'y' : status == TARN_STATUS_BUSY ? 'n' : '?';
  (void)!write(told[1], &byte, 1);
  (void)!read(end[0], &byte, 1);
  const bool lost = claim && tarn__claim_check(claim) != TARN_STATUS_OK;
  tarn__claim_drop(&claim);
  _exit(lost);
}

// Many that find a dead claim at once: one has it, never two. Without flock(), as on a file system that has none. In
// every other round a process has died while it was taking the claim over.
static void contend_for_a_dead_claim(void) {
  enum { PROCESSES = 16, ROUNDS = 5 };
  for (int round = 0; round < ROUNDS; round++) {
    int gate[2], told[2], end[2], held = 0, code;
    assert_true(pipe(gate) == 0 && pipe(told) == 0 && pipe(end) == 0);
    write_claim("another-boot pid:[1] 77 5 faraway\n", 100);
    if (round % 2) write_at("lock.holder.take", "another-boot pid:[1] 78 5 faraway\n", 100);
    for (int i = 0; i < PROCESSES; i++)
      if (fork() == 0) contend(gate, told, end);
    close(gate[1]);
    for (int i = 0; i < PROCESSES; i++) {
      char byte;
      assert_int_equal(read(told[0], &byte, 1), 1);
      assert_true(byte == 'y' || byte == 'n');
      held += byte == 'y';
    }
    close(end[1]);
    for (int i = 0; i < PROCESSES; i++) {
      assert_true(wait(&code) > 0);
      assert_true(WIFEXITED(code) && WEXITSTATUS(code) == 0);
    }
    assert_int_equal(held, 1);
    assert_int_equal(access("lock.holder", F_OK), -1);
    assert_int_equal(access("lock.holder.take", F_OK), -1);
    close(gate[0]), close(told[0]), close(told[1]), close(end[0]);
  }
}

static void one_of_many_takes_a_dead_claim(void **state) {
  (void)state;
  contend_for_a_dead_claim();
}

// The same on file systems that have no links.
static void claims_need_no_links(void **state) {
  no_links = true;
  a_claim_keeps_others_out(state);
  another_machine_is_believed_for_a_while(state);
  one_at_a_time_takes_over(state);
  a_failure_leaves_no_claim(state);
  a_lost_claim_is_noticed(state);
  contend_for_a_dead_claim();
}

// The lock of a folder takes the claim where it is needed, and lets go of it.
static void locks_claim(void **state) {
  (void)state;
  int fd, other;
  setenv("TARN_FILE_SYSTEM", "shared", 1);
  assert_int_equal(tarn__lock(&fd, "lock"), TARN_STATUS_OK);
  assert_int_equal(access("lock.holder", F_OK), 0);
  assert_int_equal(tarn__lock_check(fd), TARN_STATUS_OK);
  assert_int_equal(tarn__lock(&other, "lock"), TARN_STATUS_BUSY);
  assert_int_equal(other, -1);
  tarn__unlock(&fd);
  assert_int_equal(access("lock.holder", F_OK), -1);
  write_claim("another-boot pid:[1] 77 5 faraway\n", 0);
  assert_int_equal(tarn__lock(&fd, "lock"), TARN_STATUS_BUSY);
  assert_non_null(strstr(tarn_error_message(), "(77 on faraway)"));
  unsetenv("TARN_FILE_SYSTEM");
  unlink("lock.holder");
  assert_int_equal(tarn__lock_check(-1), TARN_STATUS_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_kind_of_file_system_decides), cmocka_unit_test(a_claim_keeps_others_out),
      cmocka_unit_test(a_dead_process_lets_go),          cmocka_unit_test(another_machine_is_believed_for_a_while),
      cmocka_unit_test(beats_renew_the_claim),           cmocka_unit_test(a_lost_claim_is_noticed),
      cmocka_unit_test(one_of_many_takes_a_dead_claim),  cmocka_unit_test_teardown(claims_need_no_links, give_links),
      cmocka_unit_test(what_is_not_known_is_no_death),   cmocka_unit_test(locks_claim),
      cmocka_unit_test(one_at_a_time_takes_over),        cmocka_unit_test(a_released_claim_binds_nobody),
      cmocka_unit_test(a_failure_leaves_no_claim),
  };
  tarn__claim_seconds.settle = 0.02;
  return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
