// Version 2 of the shard format: labels, numbers, second sentences and windows of a stream are read as they were
// written, and no file can make the reader crash or believe what cannot be.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "base/file.h"
#include "base/memory.h"
#include "data/shard.h"
#include "data/shard_format.h"
#include "make_shard.h"
#include "sandbox.h"

enum { ROWS = 5, EOS = 2 };

static const char *const NAMES[] = {"bad", "good", "gr\xC3\xBC\xC3\x9F"};
static const int32_t LABELS[ROWS] = {1, 0, 2, 2, 0};
static const float NUMBERS[ROWS] = {0, -1.5f, 3.25f, 5, 1e30f};
// Rows without the end that is added; the end within a row stands before its second sentence.
static const int32_t IDS[ROWS][6] = {{3, 4, EOS, 5}, {6}, {7, EOS, 8, 9, 10}, {11, 12}, {3, EOS, 3}};
static const int64_t LENGTHS[ROWS] = {4, 1, 5, 2, 3};
static const int32_t SEGMENTS[ROWS] = {3, 2, 2, 3, 2};

static void write_rows(const tarn__shard_labels *labels, bool continues) {
  tarn_vocab *vocab = make_vocab(20);
  tarn__shard_writer *writer;
  assert_int_equal(tarn__shard_writer_open(&writer, "s", NULL, vocab), TARN_STATUS_OK);
  if (continues) tarn__shard_writer_continues(writer);
  for (int i = 0; i < ROWS; i++) {
    // Only rows with a second sentence hold an end of their own.
    const int64_t length = labels->segments || continues || SEGMENTS[i] > LENGTHS[i] ? LENGTHS[i] : 1;
    assert_int_equal(tarn__shard_writer_put(writer, NULL, 0, IDS[i], length), TARN_STATUS_OK);
  }
  tarn__shard_writer_label(writer, labels);
  assert_int_equal(tarn__shard_writer_commit(&writer), TARN_STATUS_OK);
  tarn_vocab_close(&vocab);
}

static void open_ok(tarn__shard *shard) {
  if (tarn__shard_open(shard, "s")) fail_msg("%s", tarn_error_message());
}

static void test_labels(void **state) {
  (void)state;
  tarn__shard shard;
  write_rows(&(tarn__shard_labels){.names = NAMES, .classes = 3, .labels = LABELS, .segments = SEGMENTS}, false);
  open_ok(&shard);
  assert_true(shard.text && !shard.continues && !shard.numbers);
  assert_int_equal(shard.pairs, ROWS);
  assert_int_equal(shard.classes, 3);
  for (int c = 0; c < 3; c++) assert_string_equal(shard.names[c], NAMES[c]);
  assert_memory_equal(shard.labels, LABELS, sizeof LABELS);
  assert_memory_equal(shard.segments, SEGMENTS, sizeof SEGMENTS);
  for (int64_t i = 0; i < ROWS; i++) {
    int32_t ids[8];
    assert_int_equal(tarn__shard_target_length(&shard, i), LENGTHS[i] + 1);
    tarn__shard_target(&shard, i, ids);
    assert_memory_equal(ids, IDS[i], (size_t)LENGTHS[i] * sizeof *ids);
    assert_int_equal(ids[LENGTHS[i]], EOS);
  }
  tarn__shard_close(&shard);
}

// Labels of words: 11 tokens are those of rows of 1, 1, 1, 2 and 1 with their ends.
enum { TOKENS = 11 };
static const int32_t WORD_LABELS[TOKENS] = {0, -1, 2, -1, 1, -1, 1, 0, -1, 2, -1};

static void test_word_labels(void **state) {
  (void)state;
  tarn__shard shard;
  write_rows(&(tarn__shard_labels){.names = NAMES, .classes = 3, .word_labels = WORD_LABELS}, false);
  open_ok(&shard);
  assert_true(!shard.labels && !shard.numbers && !shard.segments);
  assert_int_equal(shard.target_tokens, TOKENS);
  assert_memory_equal(shard.word_labels, WORD_LABELS, sizeof WORD_LABELS);
  assert_int_equal(tarn__shard_word_labels(&shard, 0)[0], 0);
  assert_int_equal(tarn__shard_word_labels(&shard, 3)[1], 0);
  assert_int_equal(tarn__shard_word_labels(&shard, 4)[0], 2);
  tarn__shard_close(&shard);
}

static void test_numbers(void **state) {
  (void)state;
  tarn__shard shard;
  write_rows(&(tarn__shard_labels){.numbers = NUMBERS}, false);
  open_ok(&shard);
  assert_true(!shard.labels && !shard.segments && !shard.names && shard.classes == 0);
  assert_memory_equal(shard.numbers, NUMBERS, sizeof NUMBERS);
  tarn__shard_close(&shard);
}

// Whole sentences in a row: ends of sentences stand anywhere, and at its end.
static void test_packed(void **state) {
  (void)state;
  tarn__shard shard;
  tarn_vocab *vocab = make_vocab(20);
  tarn__shard_writer *writer;
  assert_int_equal(tarn__shard_writer_open(&writer, "s", NULL, vocab), TARN_STATUS_OK);
  tarn__shard_writer_packs(writer);
  for (int i = 0; i < ROWS; i++)
    assert_int_equal(tarn__shard_writer_put(writer, NULL, 0, IDS[i], LENGTHS[i]), TARN_STATUS_OK);
  assert_int_equal(tarn__shard_writer_commit(&writer), TARN_STATUS_OK);
  tarn_vocab_close(&vocab);
  open_ok(&shard);
  assert_true(shard.packed && !shard.continues);
  for (int64_t i = 0; i < ROWS; i++) {
    int32_t ids[8];
    assert_int_equal(tarn__shard_target_length(&shard, i), LENGTHS[i] + 1);
    tarn__shard_target(&shard, i, ids);
    assert_memory_equal(ids, IDS[i], (size_t)LENGTHS[i] * sizeof *ids);
    assert_int_equal(ids[LENGTHS[i]], EOS);
  }
  tarn__shard_close(&shard);
}

static void test_continues(void **state) {
  (void)state;
  tarn__shard shard;
  write_rows(&(tarn__shard_labels){0}, true);
  open_ok(&shard);
  assert_true(shard.continues && !shard.labels && !shard.numbers && !shard.segments);
  for (int64_t i = 0; i < ROWS; i++) {
    int32_t ids[8];
    assert_int_equal(tarn__shard_target_length(&shard, i), LENGTHS[i]);
    tarn__shard_target(&shard, i, ids);
    assert_memory_equal(ids, IDS[i], (size_t)LENGTHS[i] * sizeof *ids);
  }
  tarn__shard_close(&shard);
}

// What says nothing of its rows has version 1, and another content another hash.
static void test_version_and_hash(void **state) {
  (void)state;
  tarn__shard shard;
  char *bytes;
  size_t size;
  char hash[TARN__HASH_TEXT];
  write_rows(&(tarn__shard_labels){.segments = NULL}, false);
  assert_int_equal(tarn__file_read("s.tarn", &bytes, &size), TARN_STATUS_OK);
  assert_int_equal(((tarn__shard_header *)(void *)bytes)->version, TARN__SHARD_VERSION);
  tarn__free(bytes);
  write_rows(&(tarn__shard_labels){.numbers = NUMBERS}, false);
  open_ok(&shard);
  memcpy(hash, shard.hash, sizeof hash);
  tarn__shard_close(&shard);
  float other[ROWS];
  memcpy(other, NUMBERS, sizeof other);
  other[3] = 4;
  write_rows(&(tarn__shard_labels){.numbers = other}, false);
  open_ok(&shard);
  assert_string_not_equal(hash, shard.hash);
  tarn__shard_close(&shard);
}

static void put_hash(char *out, const void *data, size_t size) {
  char text[TARN__HASH_TEXT];
  tarn__hash(text, data, size);
  memcpy(out, text, TARN__SHARD_HASH);
}

// Where things are in a file of write_rows() with labels and second sentences.
static tarn__shard_header *header_of(char *bytes) { return (void *)bytes; }
static tarn__shard_rows *rows_of(char *bytes) { return (void *)(bytes + sizeof(tarn__shard_header)); }
static char *ids_of(char *bytes) {
  return bytes + sizeof(tarn__shard_header) + sizeof(tarn__shard_rows) + 8 * (ROWS + 1);
}
static char *names_of(char *bytes) { return ids_of(bytes) + 2 * header_of(bytes)->target_tokens; }
static size_t names_size(void) { return strlen(NAMES[0]) + strlen(NAMES[1]) + strlen(NAMES[2]) + 3; }
static char *labels_of(char *bytes) { return names_of(bytes) + names_size(); }
static char *segments_of(char *bytes) { return labels_of(bytes) + 4 * ROWS; }

// Makes all hashes right again, as somebody would who forges a file.
static void seal(char *bytes, bool labels) {
  tarn__shard_header *h = header_of(bytes);
  tarn__shard_rows *r = rows_of(bytes);
  put_hash(h->offsets_hash, bytes + sizeof *h + sizeof *r, 8 * (ROWS + 1));
  put_hash(h->ids_hash, ids_of(bytes), (size_t)(names_of(bytes) - ids_of(bytes)));
  put_hash(h->header_hash, h, offsetof(tarn__shard_header, header_hash));
  if (labels) {
    put_hash(r->names_hash, names_of(bytes), names_size());
    put_hash(r->labels_hash, labels_of(bytes), 4 * ROWS);
    put_hash(r->segments_hash, segments_of(bytes), 4 * ROWS);
  }
  put_hash(r->hash, bytes, sizeof *h + sizeof *r - TARN__SHARD_HASH);
}

static void expect_damaged(const char *bytes, size_t size, const char *what) {
  tarn__shard shard;
  sandbox_write("s.tarn", bytes, size);
  if (tarn__shard_open(&shard, "s") != TARN_STATUS_DATA) fail_msg("%s: believed", what);
  assert_null(shard.path);
}

static char *fresh(size_t *size) {
  char *bytes;
  write_rows(&(tarn__shard_labels){.names = NAMES, .classes = 3, .labels = LABELS, .segments = SEGMENTS}, false);
  if (tarn__file_read("s.tarn", &bytes, size) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  return bytes;
}

static void test_every_byte(void **state) {
  (void)state;
  size_t size;
  char *bytes = fresh(&size);
  for (size_t at = 0; at < size; at++) {
    bytes[at] = (char)(bytes[at] ^ (1 << at % 8));
    expect_damaged(bytes, size, "a flipped bit");
    bytes[at] = (char)(bytes[at] ^ (1 << at % 8));
  }
  for (size_t less = 0; less < size; less += 7) expect_damaged(bytes, less, "a truncated file");
  seal(bytes, true);
  tarn__shard shard;
  sandbox_write("s.tarn", bytes, size);
  open_ok(&shard);  // so the flips alone were what was refused
  tarn__shard_close(&shard);
  tarn__free(bytes);
}

// One field, row, name or number at a time is wrong, with hashes that are right.
static void test_forged(void **state) {
  (void)state;
  size_t size;
  const uint32_t flags[] = {0, 1, 2, 3, 4, 6, 8, 9, 14, 16, 26, UINT32_MAX};
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
    char *bytes = fresh(&size);
    rows_of(bytes)->flags = flags[i];
    seal(bytes, true);
    expect_damaged(bytes, size, "flags");
    tarn__free(bytes);
  }
  const int64_t wrong[] = {-1, 0, 1, 2, 4, 10001, INT32_MIN, INT32_MAX};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    char *bytes = fresh(&size);
    rows_of(bytes)->classes = (int32_t)wrong[i];
    seal(bytes, true);
    expect_damaged(bytes, size, "classes");
    rows_of(bytes)->classes = 3;
    rows_of(bytes)->names_size = wrong[i] == INT32_MIN ? INT64_MIN : wrong[i] == INT32_MAX ? INT64_MAX : wrong[i];
    seal(bytes, true);
    expect_damaged(bytes, size, "size of names");
    tarn__free(bytes);
  }
  const struct {
    int32_t row, label, segment;
  } rows[] = {{0, -1, 3}, {0, 3, 3}, {4, INT32_MAX, 2}, {0, 1, 0}, {0, 1, 1}, {0, 1, 4}, {0, 1, 2},
              {0, 1, 5},  {0, 1, 6}, {0, 1, -1},        {1, 0, 1}, {1, 0, 3}, {3, 2, 2}, {2, 2, INT32_MAX}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char *bytes = fresh(&size);
    memcpy(labels_of(bytes) + 4 * rows[i].row, &rows[i].label, 4);
    memcpy(segments_of(bytes) + 4 * rows[i].row, &rows[i].segment, 4);
    seal(bytes, true);
    expect_damaged(bytes, size, "a row");
    tarn__free(bytes);
  }
  const struct {
    size_t at;
    char byte;
  } names[] = {{0, 0}, {0, 'h'}, {1, '\n'}, {2, '\x7F'}, {3, 'x'}, {4, 'a'}, {9, '|'}, {11, '\xFF'}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char *bytes = fresh(&size);
    names_of(bytes)[names[i].at] = names[i].byte;
    seal(bytes, true);
    expect_damaged(bytes, size, "a name");
    tarn__free(bytes);
  }
  char *bytes = fresh(&size);
  header_of(bytes)->sides = 0;
  seal(bytes, true);
  expect_damaged(bytes, size, "labels of pairs");
  tarn__free(bytes);
}

static void test_forged_numbers(void **state) {
  (void)state;
  const float wrong[] = {1.0f / 0.0f, -1.0f / 0.0f, 0.0f / 0.0f};
  size_t size;
  for (int i = 0; i < 3; i++) {
    char *bytes;
    write_rows(&(tarn__shard_labels){.numbers = NUMBERS}, false);
    assert_int_equal(tarn__file_read("s.tarn", &bytes, &size), TARN_STATUS_OK);
    memcpy(names_of(bytes) + 4 * i, &wrong[i], 4);
    put_hash(rows_of(bytes)->labels_hash, names_of(bytes), 4 * ROWS);
    seal(bytes, false);
    expect_damaged(bytes, size, "a number");
    tarn__free(bytes);
  }
}

static void test_forged_word_labels(void **state) {
  (void)state;
  const int32_t wrong[] = {-2, 3, INT32_MIN, INT32_MAX};
  const uint32_t flags[] = {TARN__SHARD_WORDS, TARN__SHARD_WORDS | TARN__SHARD_NUMBERS,
                            TARN__SHARD_WORDS | TARN__SHARD_CLASSES | TARN__SHARD_SEGMENTS,
                            TARN__SHARD_WORDS | TARN__SHARD_CONTINUES};
  size_t size;
  for (int i = 0; i < 8; i++) {
    char *bytes;
    write_rows(&(tarn__shard_labels){.names = NAMES, .classes = 3, .word_labels = WORD_LABELS}, false);
    assert_int_equal(tarn__file_read("s.tarn", &bytes, &size), TARN_STATUS_OK);
    if (i < 4) memcpy(labels_of(bytes) + 4 * (TOKENS - 1), &wrong[i], 4);
    if (i >= 4) rows_of(bytes)->flags = flags[i - 4];
    put_hash(rows_of(bytes)->labels_hash, labels_of(bytes), 4 * TOKENS);
    seal(bytes, false);
    expect_damaged(bytes, size, i < 4 ? "a word's label" : "flags of words");
    tarn__free(bytes);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_labels),           cmocka_unit_test(test_numbers),
      cmocka_unit_test(test_packed),           cmocka_unit_test(test_continues),
      cmocka_unit_test(test_version_and_hash), cmocka_unit_test(test_every_byte),
      cmocka_unit_test(test_word_labels),      cmocka_unit_test(test_forged_word_labels),
      cmocka_unit_test(test_forged),           cmocka_unit_test(test_forged_numbers),
  };
  return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
