// What the bundle has of Fortran's runtime (packaging/bundle/runtime.c), which no other build contains.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../packaging/bundle/runtime.c"

// `a // b` in a string of the length, which a '|' follows.
static void expect(size_t length, const char *a, const char *b, const char *joined) {
  char place[16];
  memset(place, '|', sizeof place);
  _gfortran_concat_string(length, place, strlen(a), a, strlen(b), b);
  assert_int_equal(strlen(joined), length);
  assert_memory_equal(place, joined, length);
  assert_int_equal(place[length], '|');
}

static void strings_are_joined(void **state) {
  (void)state;
  expect(2, "L", "T", "LT");
  expect(5, "ab", "c", "abc  ");
  expect(3, "ab", "cd", "abc");
  expect(2, "abc", "d", "ab");
  expect(2, "", "d", "d ");
  expect(2, "", "", "  ");
  expect(0, "a", "b", "");
}

static void random_numbers_differ(void **state) {
  (void)state;
  uint32_t first = arc4random(), same = 0;
  for (int i = 0; i < 8; i++) same += arc4random() == first;
  assert_true(same < 8);
}

static void streams_are_those_of_the_process(void **state) {
  (void)state;
  assert_ptr_equal(tarn__stdin, stdin);
  assert_ptr_equal(tarn__stderr, stderr);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(strings_are_joined),
      cmocka_unit_test(random_numbers_differ),
      cmocka_unit_test(streams_are_those_of_the_process),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
