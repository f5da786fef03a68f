// Memory: alignment, zeroing, checked sizes, counting by kind, forced failures, arenas, what is available.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/control_groups.h"
#include "base/memory.h"
#include "sandbox.h"

static void alloc_is_aligned_and_zeroed(void **state) {
  (void)state;
  static const size_t sizes[] = {0, 1, 63, 64, 65, 4096, 1000003};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    void *memory;
    assert_int_equal(tarn__alloc(&memory, TARN__MEMORY_OTHER, sizes[i], 1), TARN_STATUS_OK);
    assert_non_null(memory);
    assert_int_equal((uintptr_t)memory % 64, 0);
    const char *bytes = memory;
    for (size_t j = 0; j < sizes[i]; j++) assert_int_equal(bytes[j], 0);
    memset(memory, 0x5a, sizes[i]);
    tarn__free(memory);
  }
  tarn__free(NULL);
}

static void overflowing_sizes_are_refused(void **state) {
  (void)state;
  static const size_t cases[][2] = {{SIZE_MAX, 2}, {2, SIZE_MAX}, {SIZE_MAX / 2 + 1, 2}, {SIZE_MAX, 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    void *memory = &memory;
    assert_int_equal(tarn__alloc(&memory, TARN__MEMORY_OTHER, cases[i][0], cases[i][1]), TARN_STATUS_DATA);
    assert_null(memory);
    assert_non_null(strstr(tarn_error_message(), "overflow"));
  }
  void *memory;
  assert_int_equal(tarn__alloc(&memory, TARN__MEMORY_OTHER, SIZE_MAX / 2 - 4096, 1), TARN_STATUS_MEMORY);
  size_t out;
  assert_int_equal(tarn__add_size(&out, SIZE_MAX - 1, 1), TARN_STATUS_OK);
  assert_true(out == SIZE_MAX);
  assert_int_equal(tarn__add_size(&out, SIZE_MAX, 1), TARN_STATUS_DATA);
  assert_int_equal(tarn__mul_size(&out, SIZE_MAX, 0), TARN_STATUS_OK);
  assert_true(out == 0);
  char *text;
  assert_int_equal(tarn__strndup(&text, "abc", SIZE_MAX), TARN_STATUS_DATA);
  assert_null(text);
}

static void kinds_are_counted_apart(void **state) {
  (void)state;
  size_t gradient = tarn__memory_now(TARN__MEMORY_GRADIENT);
  size_t frozen = tarn__memory_now(TARN__MEMORY_FROZEN);
  void *a;
  void *b;
  assert_int_equal(tarn__alloc(&a, TARN__MEMORY_GRADIENT, 1000, 4), TARN_STATUS_OK);
  assert_int_equal(tarn__alloc(&b, TARN__MEMORY_GRADIENT, 10, 1), TARN_STATUS_OK);
  assert_true(tarn__memory_now(TARN__MEMORY_GRADIENT) == gradient + 4010);
  assert_true(tarn__memory_now(TARN__MEMORY_FROZEN) == frozen);
  tarn__free(a);
  assert_true(tarn__memory_now(TARN__MEMORY_GRADIENT) == gradient + 10);
  assert_true(tarn__memory_peak(TARN__MEMORY_GRADIENT) >= gradient + 4010);
  tarn__free(b);
  assert_true(tarn__memory_now(TARN__MEMORY_GRADIENT) == gradient);
}

static void grow_keeps_the_contents(void **state) {
  (void)state;
  int64_t *items = NULL;
  size_t capacity = 0;
  for (size_t i = 0; i < 1000; i++) {
    assert_int_equal(tarn__grow(&items, &capacity, i + 1, sizeof *items), TARN_STATUS_OK);
    items[i] = (int64_t)(i * i);
  }
  for (size_t i = 0; i < 1000; i++) assert_true(items[i] == (int64_t)(i * i));
  const int64_t *before = items;
  size_t room = capacity;
  tarn__memory_fail_after(1);
  assert_int_equal(tarn__grow(&items, &capacity, room + 1, sizeof *items), TARN_STATUS_MEMORY);
  assert_ptr_equal(items, before);
  assert_true(capacity == room);
  assert_int_equal(tarn__grow(&items, &capacity, SIZE_MAX / 4, sizeof *items), TARN_STATUS_DATA);
  assert_ptr_equal(items, before);
  tarn__free(items);
}

// Several allocations with one exit, as the library's functions are written.
static tarn_status build(tarn__arena *arena, char **copy) {
  void *memory;
  TARN_TRY(tarn__arena_alloc(arena, &memory, 100, 8));
  TARN_TRY(tarn__arena_alloc(arena, &memory, 3 << 20, 1));
  char *inside;
  TARN_TRY(tarn__arena_strdup(arena, &inside, "inside"));
  TARN_TRY(tarn__strdup(copy, inside));
  return TARN_STATUS_OK;
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  size_t before = tarn__memory_now(TARN__MEMORY_OTHER);
  uint64_t n = 1;
  for (;; n++) {
    tarn__arena arena = {0};
    char *copy = NULL;
    tarn__memory_fail_after(n);
    tarn_status status = build(&arena, &copy);
    tarn__memory_fail_after(0);
    tarn__arena_close(&arena);
    tarn__free(copy);
    assert_true(tarn__memory_now(TARN__MEMORY_OTHER) == before);
    if (status == TARN_STATUS_OK) break;
    assert_int_equal(status, TARN_STATUS_MEMORY);
  }
  assert_int_equal(n, 8);  // three blocks of two allocations each and one copy can fail
}

static void arena_reuses_its_blocks(void **state) {
  (void)state;
  tarn__arena arena = {0};
  void *first[3];
  static const size_t sizes[3] = {100, 2 << 20, 600 << 10};
  for (int i = 0; i < 3; i++) {
    assert_int_equal(tarn__arena_alloc(&arena, &first[i], sizes[i], 1), TARN_STATUS_OK);
    assert_int_equal((uintptr_t)first[i] % 64, 0);
    memset(first[i], 0x77, sizes[i]);
  }
  size_t bytes = tarn__memory_now(TARN__MEMORY_OTHER);
  for (int round = 0; round < 3; round++) {
    tarn__arena_reset(&arena);
    for (int i = 0; i < 3; i++) {
      void *again;
      assert_int_equal(tarn__arena_alloc(&arena, &again, sizes[i], 1), TARN_STATUS_OK);
      assert_ptr_equal(again, first[i]);
      for (size_t j = 0; j < sizes[i]; j++) assert_int_equal(((const char *)again)[j], 0);
      memset(again, 0x77, sizes[i]);
    }
    assert_true(tarn__memory_now(TARN__MEMORY_OTHER) == bytes);
  }
  void *memory;
  assert_int_equal(tarn__arena_alloc(&arena, &memory, SIZE_MAX / 2, 4), TARN_STATUS_DATA);
  assert_int_equal(tarn__arena_alloc(&arena, &memory, SIZE_MAX, 1), TARN_STATUS_DATA);
  assert_null(memory);
  tarn__arena_close(&arena);
  assert_null(arena.first);
  tarn__arena_close(&arena);
}

static const char MEMINFO[] = "MemTotal:       64000000 kB\nMemAvailable:    4000000 kB\n";

// Memory that is available to a control group in that machine.
static size_t available(const char *limit, const char *used, const char *kinds) {
  const tarn__memory_files files = {"meminfo", "cgroup", "."};
  sandbox_write("meminfo", MEMINFO, strlen(MEMINFO));
  sandbox_write("cgroup", "0::/\n", 5);
  sandbox_write("memory.max", limit, strlen(limit));
  sandbox_write("memory.current", used, strlen(used));
  sandbox_write("memory.stat", kinds, strlen(kinds));
  return tarn__memory_available_by(&files);
}

static void control_groups_are_limits(void **state) {
  (void)state;
  static const char kinds[] = "anon 100000\nfile 9\ninactive_file 300000\nactive_file 200000\nslab 7\n";
  assert_int_equal(available("1000000\n", "700000\n", "anon 700000\n"), 300000);
  // Files that were read can be dropped.
  assert_int_equal(available("1000000\n", "700000\n", kinds), 800000);
  assert_int_equal(available("1000000\n", "1000000\n", kinds), 500000);
  assert_int_equal(available("1000000\n", "400000\n", kinds), 1000000);
  // A full group has no memory, which is not the same as having no limit.
  assert_int_equal(available("1000000\n", "1000000\n", "anon 1000000\n"), 1);
  assert_int_equal(available("1000000\n", "1000001\n", "anon 1000000\n"), 1);
  const size_t machine = available("max\n", "700000\n", kinds);
  assert_true(machine > 1000000);
  assert_int_equal(available("99999999999999\n", "5\n", ""), machine);
}

static void write_group(const char *group, const char *file, const char *text) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", group, file);
  sandbox_write(path, text, strlen(text));
}

// The least of the process's own group and those above it, of both versions, also where the path is not to be seen.
static void groups_above_are_limits(void **state) {
  (void)state;
  tarn__memory_files files = {"meminfo", "own", "v2"};
  sandbox_write("meminfo", MEMINFO, strlen(MEMINFO));
  const char *const folders[] = {"v2", "v2/user", "v2/user/job", "v1", "v1/memory", "v1/memory/user"};
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) assert_int_equal(mkdir(folders[i], 0700), 0);
  static const char own[] = "1:cpu:/user\n0::/user/job\n";
  sandbox_write("own", own, strlen(own));
  write_group("v2/user/job", "memory.max", "max\n");
  write_group("v2/user/job", "memory.current", "400000\n");
  write_group("v2/user", "memory.max", "1000000\n");
  write_group("v2/user", "memory.current", "600000\n");
  write_group("v2/user", "memory.stat", "inactive_file 50000\nactive_file 50000\n");
  assert_int_equal(tarn__memory_available_by(&files), 500000);
  write_group("v2/user/job", "memory.max", "450000\n");
  assert_int_equal(tarn__memory_available_by(&files), 50000);
  files.groups = "v1";
  static const char old[] = "4:memory:/user/gone\n2:cpu,memoryless:/x\n0::/\n";
  sandbox_write("own", old, strlen(old));
  write_group("v1/memory/user", "memory.limit_in_bytes", "2000000\n");
  write_group("v1/memory/user", "memory.usage_in_bytes", "1500000\n");
  write_group("v1/memory/user", "memory.stat", "inactive_file 1\ntotal_inactive_file 100000\ntotal_active_file 0\n");
  write_group("v1/memory", "memory.limit_in_bytes", "9223372036854771712\n");
  write_group("v1/memory", "memory.usage_in_bytes", "3000000\n");
  assert_int_equal(tarn__memory_available_by(&files), 600000);
  sandbox_write("own", "0::/\n", 5);
  const size_t machine = tarn__memory_available_by(&files);
  assert_true(machine > 1000000);
  files.own_groups = "nowhere";
  assert_int_equal(tarn__memory_available_by(&files), machine);
}

// A quota of processors, of both versions of groups: the smallest of all parents, rounded down, at least one.
static void quotas_are_limits(void **state) {
  (void)state;
  const tarn__group_files second = {"own", "v2"}, first = {"own", "v1"};
  static const char own[] = "3:memory:/user\n0::/user/job\n";
  sandbox_write("own", own, strlen(own));
  assert_int_equal(tarn__groups_processors(&second), 0);
  write_group("v2/user/job", "cpu.max", "max 100000\n");
  assert_int_equal(tarn__groups_processors(&second), 0);
  write_group("v2/user", "cpu.max", "350000 100000\n");
  assert_int_equal(tarn__groups_processors(&second), 3);
  write_group("v2/user/job", "cpu.max", "50000 100000\n");
  assert_int_equal(tarn__groups_processors(&second), 1);
  write_group("v2/user/job", "cpu.max", "damaged\n");
  assert_int_equal(tarn__groups_processors(&second), 3);
  static const char old[] = "4:cpuset:/x\n5:cpu,cpuacct:/user\n";
  sandbox_write("own", old, strlen(old));
  assert_int_equal(tarn__groups_processors(&first), 0);
  assert_int_equal(mkdir("v1/cpu,cpuacct", 0700), 0);
  assert_int_equal(mkdir("v1/cpu,cpuacct/user", 0700), 0);
  write_group("v1/cpu,cpuacct/user", "cpu.cfs_quota_us", "-1\n");
  write_group("v1/cpu,cpuacct/user", "cpu.cfs_period_us", "100000\n");
  assert_int_equal(tarn__groups_processors(&first), 0);
  write_group("v1/cpu,cpuacct/user", "cpu.cfs_quota_us", "200000\n");
  assert_int_equal(tarn__groups_processors(&first), 2);
  assert_int_equal(tarn__groups_processors(&(tarn__group_files){"nowhere", "v2"}), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(alloc_is_aligned_and_zeroed), cmocka_unit_test(overflowing_sizes_are_refused),
      cmocka_unit_test(kinds_are_counted_apart),     cmocka_unit_test(grow_keeps_the_contents),
      cmocka_unit_test(every_allocation_may_fail),   cmocka_unit_test(arena_reuses_its_blocks),
      cmocka_unit_test(control_groups_are_limits),   cmocka_unit_test(groups_above_are_limits),
      cmocka_unit_test(quotas_are_limits),
  };
  return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
