// Archives of NumPy: types and shapes, and what is refused.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "foreign/npz_file.h"
#include "npz_make.h"
#include "sandbox.h"
#include "tarn/status.h"

static const float VALUES[6] = {1, 2, 3, 4, 5, 6};
#define HEADER(type, order, shape) "{'descr': '" type "', 'fortran_order': " order ", 'shape': " shape ", }\n"
#define GOOD HEADER("<f4", "False", "(2, 3)")

static tarn_status open_file(tarn__npz_file *file, tarn__hf_tensors *tensors, npz_maker *maker, int count) {
  const size_t size = npz_finish(maker, count);
  sandbox_write("a.npz", (const char *)maker->bytes, size);
  *file = (tarn__npz_file){0};
  *tensors = (tarn__hf_tensors){0};
  return tarn__npz_open(file, tensors, "a.npz");
}

static void close_file(tarn__npz_file *file, tarn__hf_tensors *tensors) {
  tarn__hf_tensors_close(tensors);
  tarn__npz_close(file);
}

static void skip_without_minizip(void) {
  npz_maker maker = {0};
  tarn__npz_file file;
  tarn__hf_tensors tensors;
  npz_add(&maker, "a.npy", GOOD, VALUES, sizeof VALUES, (npz_wrong){0});
  const tarn_status status = open_file(&file, &tensors, &maker, 0);
  close_file(&file, &tensors);
  if (status == TARN_STATUS_UNSUPPORTED) skip();
  assert_int_equal(status, TARN_STATUS_OK);
}

static void good_arrays(void **state) {
  (void)state;
  static const struct {
    const char *name, *header, *type;
    size_t bytes;
    int dims;
  } cases[] = {{"b.npy", GOOD, "F32", 24, 2},
               {"a:b.yml.npy", "{\"shape\":(5,),\"fortran_order\":False,\"descr\":\"|i1\"}", "I8", 5, 1},
               {"c.npy", HEADER("<f2", "False", "(1, 2)"), "F16", 4, 2},
               {"d.npy", HEADER("<f8", "True", "()"), "<f8", 8, 0},
               {"e.npy", HEADER("<i8", "False", "(0, 7)"), "<i8", 0, 2}};
  enum { COUNT = sizeof cases / sizeof *cases };
  npz_maker maker = {0};
  tarn__npz_file file;
  tarn__hf_tensors tensors;
  skip_without_minizip();
  for (int i = 0; i < COUNT; i++)
    npz_add(&maker, cases[i].name, cases[i].header, VALUES, cases[i].bytes, (npz_wrong){0});
  assert_int_equal(open_file(&file, &tensors, &maker, 0), TARN_STATUS_OK);
  assert_int_equal(tensors.count, COUNT);
  for (int i = 0; i < COUNT; i++) {
    char name[32];
    snprintf(name, sizeof name, "%.*s", (int)strlen(cases[i].name) - 4, cases[i].name);
    const tarn__stored *found = tarn__hf_tensors_find(&tensors, name);
    assert_non_null(found);
    assert_string_equal(found->dtype, cases[i].type);
    assert_int_equal(found->bytes, cases[i].bytes);
    assert_int_equal(found->dims, cases[i].dims);
    assert_memory_equal(found->data, VALUES, cases[i].bytes);
  }
  assert_int_equal(tarn__hf_tensors_find(&tensors, "b")->shape[1], 3);
  close_file(&file, &tensors);
}

static void refuse(npz_maker *maker, int count, const char *words) {
  tarn__npz_file file;
  tarn__hf_tensors tensors;
  assert_int_equal(open_file(&file, &tensors, maker, count), TARN_STATUS_DATA);
  if (!strstr(tarn_error_message(), words)) fail_msg("\"%s\" does not say \"%s\"", tarn_error_message(), words);
  close_file(&file, &tensors);
}

static void wrong_arrays(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {HEADER("|O", "False", "(6,)"), "array \"a\" is a pickle, a program that reading it would run"},
      {HEADER("<f16", "False", "(6,)"), "is of type \"<f16\", which is no type of numbers"},
      {HEADER("", "False", "(6,)"), "is of type \"\""},
      {HEADER("<U6", "False", "(1,)"), "is of type \"<U6\""},
      {HEADER(">f4", "False", "(6,)"), "is of type \">f4\", which is not little-endian"},
      {HEADER("=f4", "False", "(6,)"), "is not little-endian"},
      {HEADER("<f4", "True", "(2, 3)"), "stands column by column"},
      {HEADER("<f4", "False", "(5,)"), "has 24 bytes of values, and its header says 20"},
      {HEADER("<f4", "False", "(7,)"), "has 24 bytes of values, and its header says 28"},
      {HEADER("<f4", "False", "(2147483647, 2147483647, 2147483647)"), "size overflows"},
      {HEADER("<f4", "False", "(99999999999,)"), "is no plain \"descr\""},
      {HEADER("<f4", "False", "(1, 1, 1, 1, 1, 1, 1, 1, 6)"), "is no plain \"descr\""},
      {HEADER("<f4", "False", "(6"), "is no plain \"descr\""},
      {HEADER("<f4", "False", "(2 3)"), "is no plain \"descr\""},
      {HEADER("<f4", "Maybe", "(6,)"), "is no plain \"descr\""},
      {HEADER("<f4", "False", "(6,), 'more': 1"), "is no plain \"descr\""},
      {"{'descr': '<f4', 'shape': (6,)}", "is no plain \"descr\""},
      {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (6,)}", "is no plain \"descr\""},
      {"{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (6,)}", "is no plain \"descr\""},
      {"", "is no plain \"descr\""},
  };
  skip_without_minizip();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    npz_maker maker = {0};
    npz_add(&maker, "a.npy", cases[i][0], VALUES, sizeof VALUES, (npz_wrong){0});
    refuse(&maker, 0, cases[i][1]);
  }
}

static void wrong_archives(void **state) {
  (void)state;
  static const struct {
    npz_wrong wrong;
    const char *words;
  } cases[] = {{{.checksum = 1}, "the checksum of an array is wrong"},
               {{.size = 1}, "an array is larger than what is there can be"},
               {{.flags = 1}, "array \"a\" is encrypted"},
               {{.method = 12}, "array \"a\" is compressed by method 12; tarn reads stored and deflated ones"},
               {{.method = 8}, "an array ends too early"},
               {{.method = 8, .size = 1u << 30}, "an array is larger than what is there can be"}};
  skip_without_minizip();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    npz_maker maker = {0};
    npz_add(&maker, "a.npy", GOOD, VALUES, sizeof VALUES, cases[i].wrong);
    refuse(&maker, 0, cases[i].words);
  }
  for (int twice = 0; twice < 2; twice++) {
    npz_maker maker = {0};
    npz_add(&maker, "a.npy", GOOD, VALUES, sizeof VALUES, (npz_wrong){0});
    npz_add(&maker, twice ? "a.npy" : "data.pkl", GOOD, VALUES, sizeof VALUES, (npz_wrong){0});
    refuse(&maker, 0, twice ? "array \"a\" is there twice" : "\"data.pkl\", which is no array");
  }
  npz_maker many = {0}, text = {0}, nothing = {0};
  npz_add(&many, "a.npy", GOOD, VALUES, sizeof VALUES, (npz_wrong){0});
  refuse(&many, 5000, "it cannot hold as many arrays as it says");
  npz_add_file(&text, "a.npy", (const uint8_t *)"text", 4, (npz_wrong){0});
  refuse(&text, 0, "\"a\" is no array of NumPy in the versions 1 to 3");
  memset(nothing.bytes, ' ', 100);
  nothing.size = 100;
  tarn__npz_file file = {0};
  tarn__hf_tensors tensors = {0};
  sandbox_write("a.npz", (const char *)nothing.bytes, nothing.size);
  assert_int_equal(tarn__npz_open(&file, &tensors, "a.npz"), TARN_STATUS_DATA);
  assert_non_null(strstr(tarn_error_message(), "a.npz: not an archive of NumPy"));
  close_file(&file, &tensors);
}

// Wherever an archive is cut off, it is refused.
static void cut_archives(void **state) {
  (void)state;
  npz_maker maker = {0};
  skip_without_minizip();
  npz_add(&maker, "a.npy", GOOD, VALUES, sizeof VALUES, (npz_wrong){0});
  const size_t size = npz_finish(&maker, 0);
  for (size_t cut = 0; cut < size; cut++) {
    tarn__npz_file file = {0};
    tarn__hf_tensors tensors = {0};
    sandbox_write("a.npz", (const char *)maker.bytes, cut);
    if (tarn__npz_open(&file, &tensors, "a.npz") != TARN_STATUS_DATA) fail_msg("cut off at %zu of %zu", cut, size);
    close_file(&file, &tensors);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(good_arrays, sandbox_open, sandbox_close),
      cmocka_unit_test_setup_teardown(wrong_arrays, sandbox_open, sandbox_close),
      cmocka_unit_test_setup_teardown(wrong_archives, sandbox_open, sandbox_close),
      cmocka_unit_test_setup_teardown(cut_archives, sandbox_open, sandbox_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
