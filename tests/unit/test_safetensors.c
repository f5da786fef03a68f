// Safetensors: round trip, layout, hash, and files that lie.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>
#include <unistd.h>

#include "base/json_io.h"
#include "base/memory.h"
#include "sandbox.h"
#include "store/safetensors.h"

static const float weights[6] = {1.5f, -2.0f, 3.0f, 4.0f, 0.0f, -6.25f};
static const uint8_t letters[3] = {'a', 'b', 'c'};

static const tarn__stored tensors[] = {
    {.name = "vocab", .dtype = "U8", .dims = 1, .shape = {3}, .data = letters, .bytes = sizeof letters},
    {.name = "w", .dtype = "F32", .dims = 2, .shape = {2, 3}, .data = weights, .bytes = sizeof weights},
    {.name = "empty", .dtype = "F32", .dims = 2, .shape = {0, 7}, .data = weights, .bytes = 0},
    {.name = "scalar", .dtype = "F32", .dims = 0, .data = weights, .bytes = 4}};
static const tarn__stored_text texts[] = {{"z", "line 1\nline \"2\" ä"}, {"a", ""}};

static void comes_back(void **state) {
  (void)state;
  tarn__safetensors file;
  assert_int_equal(tarn__safetensors_write("f", tensors, 4, texts, 2), TARN_STATUS_OK);
  assert_int_equal(tarn__safetensors_open(&file, "f"), TARN_STATUS_OK);
  assert_int_equal(file.count, 4);
  for (size_t i = 0; i < 4; i++) {
    const tarn__stored *t = tarn__safetensors_find(&file, tensors[i].name);
    assert_non_null(t);
    assert_string_equal(t->dtype, tensors[i].dtype);
    assert_int_equal(t->dims, tensors[i].dims);
    for (int d = 0; d < t->dims; d++) assert_int_equal(t->shape[d], tensors[i].shape[d]);
    assert_int_equal(t->bytes, tensors[i].bytes);
    assert_memory_equal(t->data, tensors[i].data, t->bytes);
  }
  assert_null(tarn__safetensors_find(&file, "other"));
  assert_string_equal(tarn__safetensors_text(&file, "z"), texts[0].text);
  assert_string_equal(tarn__safetensors_text(&file, "a"), "");
  assert_null(tarn__safetensors_text(&file, "b"));
  // The widest type comes first, on a boundary of 64 bytes.
  assert_int_equal((uintptr_t)tarn__safetensors_find(&file, "w")->data % 64, 0);
  tarn__safetensors_close(&file);
  tarn__safetensors_close(&file);
}

static void hash_says_what_is_said(void **state) {
  (void)state;
  char a[TARN__HASH_TEXT];
  char b[TARN__HASH_TEXT];
  tarn__stored turned[] = {tensors[3], tensors[2], tensors[1], tensors[0]};
  tarn__stored_text turned_texts[] = {texts[1], texts[0]};
  assert_int_equal(tarn__safetensors_hash(a, tensors, 4, texts, 2, "hash", NULL), TARN_STATUS_OK);
  assert_int_equal(tarn__safetensors_hash(b, turned, 4, turned_texts, 2, "hash", NULL), TARN_STATUS_OK);
  assert_string_equal(a, b);
  turned[2].shape[0] = 3;
  turned[2].shape[1] = 2;
  assert_int_equal(tarn__safetensors_hash(b, turned, 4, turned_texts, 2, "hash", NULL), TARN_STATUS_OK);
  assert_string_not_equal(a, b);
  turned[2] = tensors[1];
  turned_texts[0].text = "x";
  assert_int_equal(tarn__safetensors_hash(b, turned, 4, turned_texts, 2, "hash", NULL), TARN_STATUS_OK);
  assert_string_not_equal(a, b);
  assert_int_equal(tarn__safetensors_hash(a, turned, 4, turned_texts + 1, 1, "hash", NULL), TARN_STATUS_OK);
  assert_int_equal(tarn__safetensors_hash(b, turned, 4, turned_texts, 2, "a", NULL), TARN_STATUS_OK);
  assert_string_equal(a, b);
}

// Writes a file by hand: length, header, `data_bytes` bytes of data.
static void write_raw(uint64_t length, const char *header, size_t data_bytes) {
  static char bytes[4096];
  size_t size = strlen(header);
  memset(bytes, 7, sizeof bytes);
  for (int i = 0; i < 8; i++) bytes[i] = (char)(length >> 8 * i & 0xFF);
  memcpy(bytes + 8, header, size);
  sandbox_write("raw", bytes, 8 + size + data_bytes);
}

static void refuse(const char *header, size_t data_bytes, const char *words) {
  tarn__safetensors file;
  write_raw(strlen(header), header, data_bytes);
  assert_int_equal(tarn__safetensors_open(&file, "raw"), TARN_STATUS_DATA);
  if (!strstr(tarn_error_message(), words)) fail_msg("\"%s\" does not say \"%s\"", tarn_error_message(), words);
  assert_null(file.json);
}

#define ENTRY(dtype, shape, offsets) \
  "{\"t\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"
#define TWO(first, second)                                         \
  "{\"s\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" first \
  "},"                                                             \
  "\"t\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" second "}}"

static void refuses_wrong_headers(void **state) {
  (void)state;
  tarn__safetensors file;
  sandbox_write("raw", "abc", 3);
  assert_int_equal(tarn__safetensors_open(&file, "raw"), TARN_STATUS_DATA);
  sandbox_write("raw", "", 0);
  assert_int_equal(tarn__safetensors_open(&file, "raw"), TARN_STATUS_DATA);
  assert_int_equal(tarn__safetensors_open(&file, "missing"), TARN_STATUS_IO);
  const uint64_t lengths[] = {3, 100, 99999999, 100000001, UINT64_MAX, UINT64_MAX - 7, (uint64_t)INT64_MAX};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    write_raw(lengths[i], "{}", 0);
    assert_int_equal(tarn__safetensors_open(&file, "raw"), TARN_STATUS_DATA);
  }
  refuse("[]", 0, "{");
  refuse(" {}", 0, "{");
  refuse("{", 0, "damaged");
  refuse("{\"a\":1,\"a\":2}", 0, "duplicate");
  refuse(ENTRY("U8", "[1]", "[0,1]") "x", 1, "damaged");
  refuse("{\"t\":3}", 0, "no dtype");
  refuse("{\"__metadata__\":{\"a\":1}}", 0, "no text");
  refuse("{\"__metadata__\":[]}", 0, "no object");
}

// Neither is read whole first: the header's values are counted, and so are the tensors to be written.
static void refuses_more_than_can_be_read(void **state) {
  (void)state;
  const size_t length = TARN__JSON_VALUES + 8, count = TARN__JSON_VALUES / 16 + 1;
  tarn__safetensors file;
  char *bytes = malloc(8 + length);
  memset(bytes, ',', 8 + length);
  for (int i = 0; i < 8; i++) bytes[i] = (char)(length >> 8 * i & 0xFF);
  bytes[8] = '{';
  sandbox_write("many", bytes, 8 + length);
  free(bytes);
  assert_int_equal(tarn__safetensors_open(&file, "many"), TARN_STATUS_DATA);
  assert_string_equal(tarn_error_message(), "many: the header is damaged: more than 8388608 values at byte 8388607");
  tarn__stored *many = malloc(count * sizeof *many);
  for (size_t i = 0; i < count; i++) many[i] = tensors[2];
  assert_int_equal(tarn__safetensors_write("written", many, count, NULL, 0), TARN_STATUS_DATA);
  assert_string_equal(tarn_error_message(),
                      "written: 524289 tensors, but a safetensors file of ours has at most 524288");
  assert_int_not_equal(access("written", F_OK), 0);
  free(many);
}

static void refuses_wrong_tensors(void **state) {
  (void)state;
  refuse(ENTRY("F31", "[1]", "[0,4]"), 4, "unknown type");
  refuse(ENTRY("F32", "[1]", "[0,5]"), 5, "bytes where");
  refuse(ENTRY("F32", "[2]", "[0,4]"), 4, "bytes where");
  refuse(ENTRY("F32", "[-1]", "[0,4]"), 4, "whole number");
  refuse(ENTRY("F32", "[1.0]", "[0,4]"), 4, "whole number");
  refuse(ENTRY("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]"), 4, "dimensions");
  refuse(ENTRY("F32", "[4611686018427387904,4]", "[0,4]"), 4, "overflow");
  refuse(ENTRY("F32", "[9223372036854775807,9223372036854775807]", "[0,4]"), 4, "overflow");
  refuse(ENTRY("F32", "[99999999999999999999]", "[0,4]"), 4, "damaged");
  refuse(ENTRY("U8", "[4]", "[0,4]"), 3, "outside");
  refuse(ENTRY("U8", "[4]", "[9223372036854775803,9223372036854775807]"), 4, "outside");
  refuse(ENTRY("U8", "[4]", "[-4,0]"), 4, "no range");
  refuse(ENTRY("U8", "[4]", "[4,0]"), 4, "no range");
  refuse(ENTRY("U8", "[4]", "[0,4,8]"), 8, "data_offsets");
  refuse(ENTRY("U8", "[4]", "[0.0,4]"), 4, "no range");
}

static void refuses_overlaps_and_holes(void **state) {
  (void)state;
  tarn__safetensors file;
  const char *good = TWO("[4,8]", "[0,4]");
  write_raw(strlen(good), good, 8);
  assert_int_equal(tarn__safetensors_open(&file, "raw"), TARN_STATUS_OK);
  tarn__safetensors_close(&file);
  refuse(TWO("[0,4]", "[0,4]"), 4, "overlaps");
  refuse(TWO("[0,4]", "[2,6]"), 6, "overlaps");
  refuse(TWO("[0,4]", "[5,9]"), 9, "hole");
  refuse(TWO("[1,5]", "[5,9]"), 9, "hole");
  refuse(TWO("[0,4]", "[4,8]"), 9, "follow");
  refuse("{}", 1, "follow");
}

static void survives_lack_of_memory(void **state) {
  (void)state;
  tarn_status status = TARN_STATUS_MEMORY;
  for (uint64_t n = 1; status != TARN_STATUS_OK && n < 100; n++) {
    tarn__memory_fail_after(n);
    status = tarn__safetensors_write("f", tensors, 4, texts, 2);
    tarn__memory_fail_after(0);
  }
  assert_int_equal(status, TARN_STATUS_OK);
  status = TARN_STATUS_MEMORY;
  tarn__safetensors file;
  for (uint64_t n = 1; status != TARN_STATUS_OK && n < 100; n++) {
    tarn__memory_fail_after(n);
    status = tarn__safetensors_open(&file, "f");
    tarn__memory_fail_after(0);
  }
  assert_int_equal(status, TARN_STATUS_OK);
  tarn__safetensors_close(&file);
  assert_int_equal(tarn__memory_now(TARN__MEMORY_OTHER), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(comes_back),
                                     cmocka_unit_test(hash_says_what_is_said),
                                     cmocka_unit_test(refuses_wrong_headers),
                                     cmocka_unit_test(refuses_wrong_tensors),
                                     cmocka_unit_test(refuses_more_than_can_be_read),
                                     cmocka_unit_test(refuses_overlaps_and_holes),
                                     cmocka_unit_test(survives_lack_of_memory)};
  return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
