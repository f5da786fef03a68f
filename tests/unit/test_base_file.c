// Files: whole reads, maps, writes that replace atomically, folders, locks.
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/temporary.h"

static int enter_folder(void **state) {
  static char folder[] = "/tmp/tarn_test_XXXXXX";
  if (!mkdtemp(folder) || chdir(folder) != 0) return -1;
  *state = folder;
  return 0;
}

static int leave_folder(void **state) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", (const char *)*state);
  return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}

static void assert_contents(const char *path, const char *expected) {
  char *data;
  size_t size;
  assert_int_equal(tarn__file_read(path, &data, &size), TARN_STATUS_OK);
  assert_string_equal(data, expected);
  assert_int_equal(size, strlen(expected));
  tarn__free(data);
}

static void read_gives_all_bytes(void **state) {
  (void)state;
  enum { SIZE = 300001 };
  static char bytes[SIZE];
  for (int i = 0; i < SIZE; i++) bytes[i] = (char)(i * 7 % 251);
  assert_int_equal(tarn__file_write("big", bytes, SIZE), TARN_STATUS_OK);
  char *data;
  size_t size;
  assert_int_equal(tarn__file_read("big", &data, &size), TARN_STATUS_OK);
  assert_int_equal(size, SIZE);
  assert_memory_equal(data, bytes, SIZE);
  assert_int_equal(data[SIZE], 0);
  tarn__free(data);
  tarn__map map;
  assert_int_equal(tarn__map_open(&map, "big"), TARN_STATUS_OK);
  assert_int_equal(map.size, SIZE);
  assert_memory_equal(map.data, bytes, SIZE);
  tarn__map_close(&map);
  tarn__map_close(&map);
  assert_int_equal(tarn__file_write("empty", NULL, 0), TARN_STATUS_OK);
  assert_contents("empty", "");
  assert_int_equal(tarn__map_open(&map, "empty"), TARN_STATUS_OK);
  assert_int_equal(map.size, 0);
  tarn__map_close(&map);
}

static void unreadable_things_are_named(void **state) {
  (void)state;
  char *data;
  size_t size;
  tarn__map map;
  assert_int_equal(tarn__file_read("no/such", &data, &size), TARN_STATUS_IO);
  assert_string_equal(tarn_error_message(), "no/such: cannot read: No such file or directory");
  assert_null(data);
  assert_int_equal(tarn__file_read(".", &data, &size), TARN_STATUS_IO);
  assert_null(data);
  assert_int_equal(tarn__map_open(&map, "no/such"), TARN_STATUS_IO);
  assert_int_equal(tarn__map_open(&map, "."), TARN_STATUS_IO);
  assert_int_equal(mkfifo("pipe", 0600), 0);
  assert_int_equal(tarn__map_open(&map, "pipe"), TARN_STATUS_IO);
  assert_non_null(strstr(tarn_error_message(), "not a regular file"));
}

static void writer_replaces_atomically(void **state) {
  (void)state;
  tarn__writer *writer;
  assert_int_equal(tarn__file_write("file", "old", 3), TARN_STATUS_OK);
  assert_int_equal(tarn__writer_open(&writer, "file"), TARN_STATUS_OK);
  assert_int_equal(tarn__writer_put(writer, "ne", 2), TARN_STATUS_OK);
  assert_contents("file", "old");
  assert_int_equal(tarn__writer_put(writer, "wer", 3), TARN_STATUS_OK);
  assert_int_equal(tarn__writer_commit(&writer), TARN_STATUS_OK);
  assert_null(writer);
  assert_contents("file", "newer");
}

static void abort_leaves_the_old_file(void **state) {
  (void)state;
  tarn__writer *writer;
  char name[64];
  snprintf(name, sizeof name, "kept.tmp.%ld", (long)getpid());
  assert_int_equal(tarn__file_write("kept", "old", 3), TARN_STATUS_OK);
  assert_int_equal(tarn__writer_open(&writer, "kept"), TARN_STATUS_OK);
  assert_int_equal(tarn__writer_put(writer, "new", 3), TARN_STATUS_OK);
  assert_int_equal(tarn__file_exists(name), 1);
  tarn__writer_abort(&writer);
  assert_null(writer);
  tarn__writer_abort(&writer);
  assert_contents("kept", "old");
  assert_int_equal(tarn__file_exists(name), 0);
}

// Several outputs of one path at the same time do not meet: the last that ends is there, whole.
static void outputs_of_one_path_do_not_mix(void **state) {
  (void)state;
  tarn__writer *writers[3];
  static const char *const texts[] = {"first", "second", "third"};
  char names[3][64];
  for (int i = 0; i < 3; i++) {
    assert_int_equal(tarn__writer_open(&writers[i], "shared"), TARN_STATUS_OK);
    assert_int_equal(tarn__writer_put(writers[i], texts[i], strlen(texts[i])), TARN_STATUS_OK);
    snprintf(names[i], sizeof names[i], "%s", tarn_output_file_temporary(writers[i]));
    for (int k = 0; k < i; k++) assert_string_not_equal(names[i], names[k]);
  }
  assert_int_equal(tarn__writer_commit(&writers[1]), TARN_STATUS_OK);
  assert_contents("shared", "second");
  tarn__writer_abort(&writers[2]);
  assert_contents("shared", "second");
  assert_int_equal(tarn__writer_commit(&writers[0]), TARN_STATUS_OK);
  assert_contents("shared", "first");
  for (int i = 0; i < 3; i++) assert_int_equal(tarn__file_exists(names[i]), 0);
}

// What stands under the name of a temporary file is neither written, followed, nor removed.
static void files_in_the_way_stay(void **state) {
  (void)state;
  enum { NAMES = 1000 };
  tarn__writer *writer;
  char name[64];
  struct stat info;
  assert_int_equal(tarn__file_write("victim", "whole", 5), TARN_STATUS_OK);
  snprintf(name, sizeof name, "planted" TARN__TEMPORARY_MARK "%ld", (long)getpid());
  assert_int_equal(symlink("victim", name), 0);
  assert_int_equal(tarn__file_write("planted", "x", 1), TARN_STATUS_OK);
  assert_contents("planted", "x");
  assert_contents("victim", "whole");
  assert_int_equal(lstat(name, &info), 0);
  assert_true(S_ISLNK(info.st_mode));
  for (int i = 1; i < NAMES; i++) {
    snprintf(name, sizeof name, "planted" TARN__TEMPORARY_MARK "%ld.%d", (long)getpid(), i);
    assert_int_equal(symlink("nowhere", name), 0);
  }
  assert_int_equal(tarn__writer_open(&writer, "planted"), TARN_STATUS_IO);
  assert_null(writer);
  assert_non_null(strstr(tarn_error_message(), name));
  assert_int_equal(lstat(name, &info), 0);
  assert_int_equal(tarn__file_exists("nowhere"), 0);
  assert_contents("planted", "x");
}

// Names as long as the system takes them, of letters of one byte and of two, which stay whole.
static void long_names_are_written(void **state) {
  (void)state;
  char names[2][NAME_MAX + 1];
  memset(names[0], 'x', NAME_MAX);
  for (int i = 0; i < NAME_MAX; i++) names[1][i] = i == 0 ? 'x' : i % 2 ? '\xc3' : '\xa4';
  for (int i = 0; i < 2; i++) {
    tarn__writer *writer;
    names[i][NAME_MAX] = '\0';
    assert_int_equal(tarn__writer_open(&writer, names[i]), TARN_STATUS_OK);
    const char *temporary = tarn_output_file_temporary(writer);
    const char *mark = strstr(temporary, TARN__TEMPORARY_MARK);
    assert_non_null(mark);
    assert_int_equal(mark - temporary, TARN__TEMPORARY_KEEPS - i);
    assert_memory_equal(temporary, names[i], (size_t)(mark - temporary));
    assert_int_equal(tarn__writer_put(writer, "x", 1), TARN_STATUS_OK);
    assert_int_equal(tarn__writer_commit(&writer), TARN_STATUS_OK);
    assert_contents(names[i], "x");
  }
}

static void links_and_devices_stay(void **state) {
  (void)state;
  struct stat info;
  assert_int_equal(tarn__file_write("real", "old", 3), TARN_STATUS_OK);
  assert_int_equal(symlink("real", "link"), 0);
  assert_int_equal(tarn__file_write("link", "new", 3), TARN_STATUS_OK);
  assert_contents("real", "new");
  assert_int_equal(lstat("link", &info), 0);
  assert_true(S_ISLNK(info.st_mode));
  assert_int_equal(tarn__file_write("/dev/null", "gone", 4), TARN_STATUS_OK);
  assert_int_equal(stat("/dev/null", &info), 0);
  assert_true(S_ISCHR(info.st_mode));
}

// Links to what is not there yet, from other folders, and round in circles.
static void dangling_links_are_followed(void **state) {
  (void)state;
  struct stat info;
  assert_int_equal(mkdir("links", 0700), 0);
  assert_int_equal(mkdir("disk", 0700), 0);
  assert_int_equal(symlink("../disk/new", "links/far"), 0);
  assert_int_equal(symlink("links/far", "chain"), 0);
  assert_int_equal(tarn__file_write("chain", "x", 1), TARN_STATUS_OK);
  assert_contents("disk/new", "x");
  assert_int_equal(lstat("links/far", &info), 0);
  assert_true(S_ISLNK(info.st_mode));
  assert_int_equal(lstat("chain", &info), 0);
  assert_true(S_ISLNK(info.st_mode));
  assert_int_equal(symlink("round", "round"), 0);
  assert_int_equal(tarn__file_write("round", "x", 1), TARN_STATUS_IO);
}

static void permissions_stay(void **state) {
  (void)state;
  struct stat info;
  assert_int_equal(tarn__file_write("private", "old", 3), TARN_STATUS_OK);
  assert_int_equal(chmod("private", 0600), 0);
  assert_int_equal(tarn__file_write("private", "new", 3), TARN_STATUS_OK);
  assert_contents("private", "new");
  assert_int_equal(stat("private", &info), 0);
  assert_int_equal(info.st_mode & 07777, 0600);
  if (geteuid() == 0) return;  // who may write everything
  assert_int_equal(chmod("private", 0400), 0);
  assert_int_equal(tarn__file_write("private", "gone", 4), TARN_STATUS_IO);
  assert_contents("private", "new");
}

// A descriptor is written from where it stands, whatever it is open on and however it is named.
static void descriptors_are_written_directly(void **state) {
  (void)state;
  char name[64];
  int fd = open("log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, "first ", 6), 6);
  snprintf(name, sizeof name, "/dev/fd/%d", fd);
  assert_int_equal(tarn__file_write(name, "second ", 7), TARN_STATUS_OK);
  snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  assert_int_equal(symlink(name, "descriptor"), 0);
  assert_int_equal(tarn__file_write("descriptor", "third ", 6), TARN_STATUS_OK);
  static const char *const others[] = {"/proc/thread-self/fd/%d", "/proc/self/task/../fd/%d", "/dev/../dev/fd/%d"};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    snprintf(name, sizeof name, others[i], fd);
    assert_int_equal(tarn__file_write(name, "more ", 5), TARN_STATUS_OK);
  }
  snprintf(name, sizeof name, "/proc/%ld/fd/%d", (long)getpid(), fd);
  assert_int_equal(tarn__file_write(name, "last", 4), TARN_STATUS_OK);
  close(fd);
  assert_contents("log", "first second third more more more last");
  assert_int_equal(tarn__file_write(name, "x", 1), TARN_STATUS_IO);  // closed
  // A number in another folder is a file like others.
  assert_int_equal(tarn__file_write("1", "file", 4), TARN_STATUS_OK);
  assert_contents("1", "file");
}

static void abort_drops_what_waits_for_a_descriptor(void **state) {
  (void)state;
  char name[64];
  tarn__writer *writer;
  int fd = open("dropped", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, "old", 3), 3);
  snprintf(name, sizeof name, "/dev/fd/%d", fd);
  assert_int_equal(tarn__writer_open(&writer, name), TARN_STATUS_OK);
  assert_int_equal(tarn__writer_put(writer, "new", 3), TARN_STATUS_OK);
  tarn__writer_abort(&writer);
  close(fd);
  assert_contents("dropped", "old");
}

static void full_disk_is_reported(void **state) {
  (void)state;
  if (access("/dev/full", W_OK) != 0) skip();
  struct stat info;
  static char block[1 << 20];
  assert_int_equal(tarn__file_write("/dev/full", "x", 1), TARN_STATUS_IO);
  assert_string_equal(tarn_error_message(), "/dev/full: cannot write: No space left on device");
  assert_int_equal(tarn__file_write("/dev/full", block, sizeof block), TARN_STATUS_IO);
  assert_int_equal(symlink("/dev/full", "full"), 0);
  assert_int_equal(tarn__file_write("full", "x", 1), TARN_STATUS_IO);
  assert_string_equal(tarn_error_message(), "full: cannot write: No space left on device");
  assert_int_equal(stat("/dev/full", &info), 0);
  assert_true(S_ISCHR(info.st_mode));
}

static void impossible_writes_are_refused(void **state) {
  (void)state;
  tarn__writer *writer;
  assert_int_equal(tarn__writer_open(&writer, "no/such/file"), TARN_STATUS_IO);
  assert_null(writer);
  assert_int_equal(mkdir("folder", 0700), 0);
  assert_int_equal(tarn__writer_open(&writer, "folder"), TARN_STATUS_IO);
  assert_non_null(strstr(tarn_error_message(), "folder"));
  static char endless[10000];
  memset(endless, 'a', sizeof endless - 1);
  assert_int_equal(tarn__writer_open(&writer, endless), TARN_STATUS_IO);
  assert_int_equal(tarn__mkdir(endless), TARN_STATUS_IO);
}

static void every_allocation_of_a_write_may_fail(void **state) {
  (void)state;
  size_t before = tarn__memory_now(TARN__MEMORY_OTHER);
  assert_int_equal(tarn__file_write("swept", "old", 3), TARN_STATUS_OK);
  for (uint64_t n = 1;; n++) {
    tarn__memory_fail_after(n);
    tarn_status status = tarn__file_write("swept", "new", 3);
    tarn__memory_fail_after(0);
    assert_true(tarn__memory_now(TARN__MEMORY_OTHER) == before);
    if (status == TARN_STATUS_OK) break;
    assert_int_equal(status, TARN_STATUS_MEMORY);
    assert_contents("swept", "old");
  }
  assert_contents("swept", "new");
}

static void mkdir_makes_all_above(void **state) {
  (void)state;
  assert_int_equal(tarn__mkdir("a/b//c/"), TARN_STATUS_OK);
  assert_int_equal(tarn__mkdir("a/b/c"), TARN_STATUS_OK);
  assert_int_equal(tarn__file_exists("a/b/c"), 1);
  assert_int_equal(tarn__file_write("plain", "x", 1), TARN_STATUS_OK);
  assert_int_equal(tarn__mkdir("plain"), TARN_STATUS_IO);
  assert_string_equal(tarn_error_message(), "plain: cannot make the folder: Not a directory");
  assert_int_equal(tarn__mkdir("plain/below"), TARN_STATUS_IO);
  assert_int_equal(tarn__mkdir(""), TARN_STATUS_IO);
  assert_int_equal(tarn__mkdir("/"), TARN_STATUS_OK);
}

static void paths_are_joined(void **state) {
  (void)state;
  static const char *const cases[][3] = {
      {"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"", "b", "b"}, {"/", "b", "/b"}, {"a", "", "a/"}};
  char path[PATH_MAX], longest[PATH_MAX];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(tarn__path_join(path, cases[i][0], cases[i][1]), TARN_STATUS_OK);
    assert_string_equal(path, cases[i][2]);
  }
  memset(longest, 'x', sizeof longest);
  longest[PATH_MAX - 3] = '\0';
  assert_int_equal(tarn__path_join(path, longest, "b"), TARN_STATUS_OK);
  assert_int_equal(tarn__path_join(path, longest, "bc"), TARN_STATUS_IO);
  assert_non_null(strstr(tarn_error_message(), "the path is too long"));
}

// A second process gets BUSY with the holder's number; when the holder ends, however it ends, the lock is free.
static void lock_keeps_others_out(void **state) {
  (void)state;
  int fd;
  assert_int_equal(tarn__lock(&fd, "lock"), TARN_STATUS_OK);
  pid_t holder = getpid();
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    int other;
    char number[32];
    snprintf(number, sizeof number, "(%ld)", (long)holder);
    if (tarn__lock(&other, "lock") != TARN_STATUS_BUSY || other != -1) _exit(1);
    _exit(strstr(tarn_error_message(), number) ? 0 : 2);
  }
  int code;
  assert_true(waitpid(child, &code, 0) == child);
  assert_true(WIFEXITED(code) && WEXITSTATUS(code) == 0);
  tarn__unlock(&fd);
  assert_int_equal(fd, -1);
  tarn__unlock(&fd);
  child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    int other;
    if (tarn__lock(&other, "lock") != TARN_STATUS_OK) _exit(1);
    kill(getpid(), 9);
  }
  assert_true(waitpid(child, &code, 0) == child);
  assert_true(WIFSIGNALED(code));
  assert_int_equal(tarn__lock(&fd, "lock"), TARN_STATUS_OK);
  tarn__unlock(&fd);
  assert_int_equal(tarn__lock(&fd, "no/such/lock"), TARN_STATUS_IO);
  assert_int_equal(fd, -1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(read_gives_all_bytes),
      cmocka_unit_test(unreadable_things_are_named),
      cmocka_unit_test(writer_replaces_atomically),
      cmocka_unit_test(abort_leaves_the_old_file),
      cmocka_unit_test(outputs_of_one_path_do_not_mix),
      cmocka_unit_test(files_in_the_way_stay),
      cmocka_unit_test(long_names_are_written),
      cmocka_unit_test(links_and_devices_stay),
      cmocka_unit_test(dangling_links_are_followed),
      cmocka_unit_test(permissions_stay),
      cmocka_unit_test(descriptors_are_written_directly),
      cmocka_unit_test(abort_drops_what_waits_for_a_descriptor),
      cmocka_unit_test(full_disk_is_reported),
      cmocka_unit_test(impossible_writes_are_refused),
      cmocka_unit_test(every_allocation_of_a_write_may_fail),
      cmocka_unit_test(mkdir_makes_all_above),
      cmocka_unit_test(lock_keeps_others_out),
      cmocka_unit_test(paths_are_joined),
  };
  return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
