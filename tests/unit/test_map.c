// Maps of files that change under their reader.
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "data/batch.h"
#include "data/shard.h"
#include "make_shard.h"
#include "sandbox.h"
#include "tarn/process.h"

enum { PAGES = 5, PAGE = 4096, BYTES = PAGES * PAGE };

static volatile sig_atomic_t faults;

static void on_fault(int number, siginfo_t *info, void *context) {
  (void)context;
  if (tarn_mapped_fault(info->si_addr))
    faults++;
  else
    signal(number, SIG_DFL);
}

// In the test itself: cmocka sets handlers of its own right before it.
static void catch_faults(void) {
  const struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
  faults = 0;
  assert_int_equal(sigaction(SIGBUS, &action, NULL), 0);
}

static void write_bytes(const char *path, char byte) {
  static char bytes[BYTES];
  memset(bytes, byte, BYTES);
  assert_int_equal(tarn__file_write(path, bytes, BYTES), TARN_STATUS_OK);
}

static int sum(const tarn__map *map) {
  int total = 0;
  for (size_t i = 0; i < map->size; i += PAGE / 2) total += ((const volatile uint8_t *)map->data)[i];
  return total;
}

// A file that is cut off reads as zeros from there on, on whatever thread, and is known to be lost.
static void *read_all(void *user) {
  (void)sum(user);
  return NULL;
}

static void cut_off(void **state) {
  (void)state;
  catch_faults();
  tarn__map map, other;
  write_bytes("f", 1);
  write_bytes("g", 1);
  assert_int_equal(tarn__map_open(&map, "f"), TARN_STATUS_OK);
  assert_int_equal(tarn__map_open(&other, "g"), TARN_STATUS_OK);
  assert_int_equal(sum(&map), 2 * PAGES);
  assert_int_equal(tarn__map_check(&map), TARN_STATUS_OK);
  assert_int_equal(truncate("f", 2 * PAGE), 0);
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, read_all, &map), 0);
  assert_int_equal(sum(&map), 4);
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_true(faults >= 1);
  assert_int_equal(tarn__map_check(&map), TARN_STATUS_IO);
  assert_string_equal(tarn_error_message(),
                      "f: it was cut off or overwritten while it was in use, or its disk cannot be read");
  assert_int_equal(tarn__map_judge(&map, TARN_STATUS_DATA), TARN_STATUS_IO);
  // It stays lost when its size is what it was.
  assert_int_equal(truncate("f", BYTES), 0);
  assert_int_equal(tarn__map_check(&map), TARN_STATUS_IO);
  assert_int_equal(tarn__map_check(&other), TARN_STATUS_OK);
  assert_int_equal(sum(&other), 2 * PAGES);
  tarn__map_close(&map);
  // The place of a map that was lost serves another.
  assert_int_equal(tarn__map_open(&map, "g"), TARN_STATUS_OK);
  assert_int_equal(tarn__map_check(&map), TARN_STATUS_OK);
  tarn__map_close(&map);
  tarn__map_close(&other);
}

// Writing into the file, or giving it another time, is noticed without a fault.
static void overwritten(void **state) {
  (void)state;
  catch_faults();
  tarn__map map;
  for (int how = 0; how < 3; how++) {
    write_bytes("f", 1);
    const struct timespec old[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    assert_int_equal(utimensat(AT_FDCWD, "f", old, 0), 0);
    assert_int_equal(tarn__map_open(&map, "f"), TARN_STATUS_OK);
    assert_int_equal(tarn__map_check(&map), TARN_STATUS_OK);
    const int fd = open("f", O_WRONLY);
    if (how == 0) assert_int_equal(pwrite(fd, "2", 1, 7), 1);
    if (how == 1) assert_int_equal(ftruncate(fd, BYTES + 1), 0);
    if (how == 2) assert_int_equal(futimens(fd, NULL), 0);
    close(fd);
    assert_int_equal(tarn__map_check(&map), TARN_STATUS_IO);
    assert_non_null(strstr(tarn_error_message(), "f: it changed while it was in use"));
    tarn__map_close(&map);
  }
  assert_int_equal(faults, 0);
}

// Another file under the same name leaves the map as it is.
static void replaced(void **state) {
  (void)state;
  tarn__map map;
  write_bytes("f", 1);
  assert_int_equal(tarn__map_open(&map, "f"), TARN_STATUS_OK);
  write_bytes("f", 2);
  assert_int_equal(sum(&map), 2 * PAGES);
  assert_int_equal(tarn__map_check(&map), TARN_STATUS_OK);
  assert_int_equal(tarn__map_judge(&map, TARN_STATUS_DATA), TARN_STATUS_DATA);
  tarn__map_close(&map);
}

static void others_faults(void **state) {
  (void)state;
  tarn__map map;
  static char own[8];
  write_bytes("f", 1);
  assert_int_equal(tarn__map_open(&map, "f"), TARN_STATUS_OK);
  const uint8_t *data = map.data;
  assert_false(tarn_mapped_fault(own));
  assert_false(tarn_mapped_fault(NULL));
  assert_false(tarn_mapped_fault(data + map.size));
  tarn__map_close(&map);
  assert_false(tarn_mapped_fault(data));
}

// Whatever comes to stand in a shard: batches stay inside their rooms and their ids inside the vocabulary, and it is
// known.
static void shard_that_changes(void **state) {
  (void)state;
  catch_faults();
  enum { WORDS = 50, MOST = 200 };
  for (int how = 0; how < 2; how++) {
    tarn__shard shard;
    tarn__batcher *batcher;
    tarn__batcher_options options;
    make_shard("s", 400, WORDS, WORDS, 1);
    assert_int_equal(tarn__shard_open(&shard, "s"), TARN_STATUS_OK);
    tarn__batcher_default(&options);
    options.max_tokens = MOST;
    assert_int_equal(tarn__batcher_open(&batcher, &shard, &options), TARN_STATUS_OK);
    assert_int_equal(tarn__map_check(&shard.map), TARN_STATUS_OK);
    if (how == 0) {
      static char garbage[1 << 20];
      memset(garbage, 0xEE, sizeof garbage);
      const int fd = open("s.tarn", O_WRONLY);
      assert_true(shard.map.size <= sizeof garbage);
      assert_int_equal(pwrite(fd, garbage, shard.map.size, 0), (ssize_t)shard.map.size);
      close(fd);
    } else {
      assert_int_equal(truncate("s.tarn", 0), 0);
    }
    for (int64_t left = 3 * tarn__batcher_batches(batcher); left > 0; left--) {
      tarn__batch batch;
      tarn__batcher_next(batcher, &batch);
      assert_in_range(batch.target.rows, 1, MOST);
      for (int64_t i = 0; i < batch.target.rows; i++) assert_in_range(batch.targets[i], 0, WORDS - 1);
      for (int64_t i = 0; i < batch.source.rows; i++) assert_in_range(batch.source.ids[i], 0, WORDS - 1);
    }
    assert_int_equal(tarn__map_check(&shard.map), TARN_STATUS_IO);
    tarn__batcher_close(&batcher);
    tarn__shard_close(&shard);
  }
  assert_true(faults >= 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(cut_off, sandbox_open, sandbox_close),
      cmocka_unit_test_setup_teardown(overwritten, sandbox_open, sandbox_close),
      cmocka_unit_test_setup_teardown(replaced, sandbox_open, sandbox_close),
      cmocka_unit_test_setup_teardown(others_faults, sandbox_open, sandbox_close),
      cmocka_unit_test_setup_teardown(shard_that_changes, sandbox_open, sandbox_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
