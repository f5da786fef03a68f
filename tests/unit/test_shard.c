// Shards: what is written is read, what prepare counts is right, and no file can make the reader crash.
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
#include "tarn/data.h"
#include "train/shard_check.h"

static void open_ok(tarn__shard *shard, const char *prefix) {
  tarn_status status = tarn__shard_open(shard, prefix);
  if (status) print_error("%s\n", tarn_error_message());
  assert_int_equal(status, TARN_STATUS_OK);
}

static void test_round_trip(void **state) {
  (void)state;
  const int sizes[][2] = {{50, 60}, {70000, 50}};  // ids of 2 and of 4 bytes
  for (int k = 0; k < 2; k++) {
    make_shard("s", 100, sizes[k][0], sizes[k][1], 5);
    tarn__shard shard;
    open_ok(&shard, "s");
    assert_int_equal(shard.pairs, 100);
    assert_int_equal(shard.id_bytes, k ? 4 : 2);
    assert_int_equal(shard.source_vocab_size, sizes[k][0]);
    assert_int_equal(shard.target_vocab_size, sizes[k][1]);
    // The same random numbers again give what was written.
    tarn__random random;
    tarn__random_init(&random, 5, 1);
    for (int64_t i = 0; i < 100; i++) {
      for (int side = 0; side < 2; side++) {
        int32_t ids[MAKE_SHARD_LONGEST];
        int64_t length = 2 + (int64_t)tarn__random_below(&random, MAKE_SHARD_LONGEST - 1);
        assert_int_equal((side ? tarn__shard_target_length : tarn__shard_source_length)(&shard, i), length);
        (side ? tarn__shard_target : tarn__shard_source)(&shard, i, ids);
        for (int64_t n = 0; n < length - 1; n++)
          assert_int_equal(ids[n], 3 + (int32_t)tarn__random_below(&random, (uint64_t)sizes[k][side] - 3));
        assert_int_equal(ids[length - 1], 2);
      }
    }
    tarn__shard_close(&shard);
    tarn__shard_close(&shard);
    open_ok(&shard, "s.tarn");
    tarn__shard_close(&shard);
  }
}

// Two that are written to one place at the same time do not meet, and leave nothing else.
static void test_two_writers(void **state) {
  (void)state;
  enum { PAIRS = 5000 };  // more ids than wait in memory
  tarn_vocab *vocab = make_vocab(20);
  tarn__shard_writer *writers[2];
  for (int i = 0; i < 2; i++)
    assert_int_equal(tarn__shard_writer_open(&writers[i], "both/s", NULL, vocab), TARN_STATUS_OK);
  for (int n = 0; n < PAIRS; n++)
    for (int i = 0; i < 2; i++) {
      const int32_t ids[] = {3 + i, 5 + i};
      assert_int_equal(tarn__shard_writer_put(writers[i], NULL, 0, ids, 2), TARN_STATUS_OK);
    }
  for (int i = 0; i < 2; i++) {
    tarn__shard shard;
    assert_int_equal(tarn__shard_writer_commit(&writers[i]), TARN_STATUS_OK);
    open_ok(&shard, "both/s");
    assert_int_equal(shard.pairs, PAIRS);
    for (int64_t n = 0; n < PAIRS; n++) {
      int32_t ids[3];
      assert_int_equal(tarn__shard_target_length(&shard, n), 3);
      tarn__shard_target(&shard, n, ids);
      assert_true(ids[0] == 3 + i && ids[1] == 5 + i && ids[2] == 2);
    }
    tarn__shard_close(&shard);
  }
  assert_int_equal(unlink("both/s.tarn"), 0);
  assert_int_equal(rmdir("both"), 0);
  tarn_vocab_close(&vocab);
}

static void write_vocab(const char *path, int size) {
  tarn_vocab *vocab = make_vocab(size);
  size_t bytes_size;
  const void *bytes = tarn_vocab_bytes(vocab, &bytes_size);
  sandbox_write(path, bytes, bytes_size);
  tarn_vocab_close(&vocab);
}

static void write_line_file(const char *path, const char *text) { sandbox_write(path, text, strlen(text)); }

static tarn_prepare_options request(void) {
  tarn_prepare_options options;
  tarn_prepare_default(&options);
  options.vocab = "vocab";
  options.source = "source";
  options.target = "target";
  options.output = "folder/new/out";
  return options;
}

static void test_prepare_counts(void **state) {
  (void)state;
  write_vocab("vocab", 20);
  write_line_file("source", "\xEF\xBB\xBFw3 w4\r\n\nw5 \xFF\xC3\nw6 w7 w8 w9 w10 w11\n  \t\nw3\n");
  write_line_file("target", "w5\r\nw3\nw4 nothing w5\nw3\nw9\nw8");
  tarn_prepare_result result;
  tarn_prepare_options options = request();
  options.max_tokens = 5;
  assert_int_equal(tarn_prepare_run(&result, &options), TARN_STATUS_OK);
  assert_int_equal(result.lines, 6);
  assert_int_equal(result.pairs, 4);
  assert_int_equal(result.empty, 2);
  assert_int_equal(result.truncated, 1);
  assert_int_equal(result.dropped, 0);
  assert_int_equal(result.replaced, 1);
  assert_int_equal(result.source_tokens, 3 + 3 + 5 + 2);
  assert_int_equal(result.target_tokens, 2 + 4 + 2 + 2);
  assert_int_equal(result.source_unknown, 1);
  assert_int_equal(result.target_unknown, 1);
  assert_int_equal(result.longest_source, 5);
  assert_int_equal(result.longest_target, 4);
  tarn__shard shard;
  open_ok(&shard, options.output);
  int32_t ids[8];
  tarn__shard_source(&shard, 0, ids);
  assert_memory_equal(ids, ((int32_t[]){3, 4, 2}), 3 * sizeof *ids);
  tarn__shard_source(&shard, 2, ids);
  assert_memory_equal(ids, ((int32_t[]){6, 7, 8, 9, 2}), 5 * sizeof *ids);
  tarn_vocab *vocab = make_vocab(20);
  assert_string_equal(shard.source_vocab_hash, tarn_vocab_hash(vocab));
  assert_string_equal(shard.target_vocab_hash, tarn_vocab_hash(vocab));
  tarn_vocab_close(&vocab);
  tarn__shard_close(&shard);
  options.overlong = TARN_PREPARE_OVERLONG_DROP;
  assert_int_equal(tarn_prepare_run(&result, &options), TARN_STATUS_OK);
  assert_int_equal(result.pairs, 3);
  assert_int_equal(result.dropped, 1);
}

// Each of these must fail with a message that holds the text, and must leave the old shard alone.
static void expect_refusal(const tarn_prepare_options *options, tarn_status status, const char *text) {
  char *before;
  char *after;
  size_t before_size;
  size_t after_size;
  tarn_prepare_result result;
  assert_int_equal(tarn__file_read("folder/new/out.tarn", &before, &before_size), TARN_STATUS_OK);
  assert_int_equal(tarn_prepare_run(&result, options), status);
  if (!strstr(tarn_error_message(), text)) fail_msg("\"%s\" lacks \"%s\"", tarn_error_message(), text);
  assert_int_equal(tarn__file_read("folder/new/out.tarn", &after, &after_size), TARN_STATUS_OK);
  assert_int_equal(before_size, after_size);
  assert_memory_equal(before, after, before_size);
  tarn__free(before);
  tarn__free(after);
}

static void test_prepare_refusals(void **state) {
  (void)state;
  write_vocab("vocab", 20);
  write_line_file("source", "w3 w4 w5\nw4\n");
  write_line_file("target", "w3\nw5 w6 w7\n");
  tarn_prepare_options options = request();
  tarn_prepare_result result;
  assert_int_equal(tarn_prepare_run(&result, &options), TARN_STATUS_OK);
  options.max_tokens = 3;
  options.overlong = TARN_PREPARE_OVERLONG_REFUSE;
  expect_refusal(&options, TARN_STATUS_DATA, "source:1: 4 tokens");
  options = request();
  options.max_tokens = 1;
  expect_refusal(&options, TARN_STATUS_USAGE, "2 to");
  options = request();
  options.vocab = "source";
  expect_refusal(&options, TARN_STATUS_DATA, "source: this is text; a vocabulary is");
  options = request();
  options.target_vocab = "no-such-file";
  expect_refusal(&options, TARN_STATUS_IO, "no-such-file");
  options = request();
  options.target = NULL;
  expect_refusal(&options, TARN_STATUS_USAGE, "target");
  options = request();
  write_line_file("target", "w3\nw4\nw5\nw6\n");
  expect_refusal(&options, TARN_STATUS_DATA, "source has 2 lines and target has 4: line 3 of target has no partner");
  write_line_file("target", "w3\n");
  expect_refusal(&options, TARN_STATUS_DATA, "source has 2 lines and target has 1: line 2 of source has no partner");
  write_line_file("target", "w3\nw4 \xED\xA0\x80\n");
  options.strict = true;
  expect_refusal(&options, TARN_STATUS_DATA, "target:2: invalid UTF-8 at byte 4");
  write_line_file("target", "\n\n");
  expect_refusal(&options, TARN_STATUS_DATA, "no pair is left");
  write_line_file("target", "w3\nw4\n");
  options.min_tokens = 9;
  expect_refusal(&options, TARN_STATUS_DATA,
                 "no pair is left of 2 lines (0 with an empty side, 2 shorter than the least, 0 overlong)");
}

// Memory failures at every allocation end in a status, without a leak.
static void test_prepare_memory(void **state) {
  (void)state;
  write_vocab("vocab", 20);
  write_line_file("source", "w3 w4 \xFF w5\nw4\n");
  write_line_file("target", "w3\nw5 w6 w7\n");
  tarn_prepare_options options = request();
  size_t before = tarn__memory_now(TARN__MEMORY_OTHER);
  for (uint64_t n = 1;; n++) {
    tarn_prepare_result result;
    tarn__memory_fail_after(n);
    tarn_status status = tarn_prepare_run(&result, &options);
    tarn__memory_fail_after(0);
    assert_int_equal(tarn__memory_now(TARN__MEMORY_OTHER), before);
    if (status == TARN_STATUS_OK) break;
    assert_int_equal(status, TARN_STATUS_MEMORY);
  }
}

static char *read_shard(size_t *size) {
  char *bytes;
  assert_int_equal(tarn__file_read("s.tarn", &bytes, size), TARN_STATUS_OK);
  return bytes;
}

static void expect_damaged(const void *bytes, size_t size) {
  tarn__shard shard;
  sandbox_write("d.tarn", bytes, size);
  assert_int_equal(tarn__shard_open(&shard, "d"), TARN_STATUS_DATA);
  assert_non_null(strstr(tarn_error_message(), "d.tarn: "));
  assert_null(shard.map.data);
}

static void test_truncated(void **state) {
  (void)state;
  size_t size;
  make_shard("s", 5, 30, 30, 1);
  char *bytes = read_shard(&size);
  for (size_t n = 0; n < size; n += n < 300 ? 1 : 7) expect_damaged(bytes, n);
  tarn__free(bytes);
  bytes = read_shard(&size);
  expect_damaged(bytes, size - 1);
  char *longer = malloc(size + 1);
  assert_non_null(longer);
  memcpy(longer, bytes, size);
  longer[size] = 0;
  expect_damaged(longer, size + 1);
  free(longer);
  tarn__free(bytes);
  tarn__shard shard;
  assert_int_equal(tarn__shard_open(&shard, "nothing-here"), TARN_STATUS_IO);
}

static void test_every_bit(void **state) {
  (void)state;
  size_t size;
  make_shard("s", 2, 30, 30, 1);
  char *bytes = read_shard(&size);
  for (size_t bit = 0; bit < 8 * size; bit++) {
    bytes[bit / 8] = (char)(bytes[bit / 8] ^ (1 << bit % 8));
    expect_damaged(bytes, size);
    bytes[bit / 8] = (char)(bytes[bit / 8] ^ (1 << bit % 8));
  }
  tarn__free(bytes);
}

// Puts right hashes on a forged file, so that the other checks must find the fault.
static void seal(char *bytes, size_t size) {
  tarn__shard_header *h = (void *)bytes;
  char text[TARN__HASH_TEXT];
  size_t offsets_size = (size_t)(2 * (uint64_t)h->pairs + 1) * 8;
  if (offsets_size < size - sizeof *h) {
    tarn__hash(text, bytes + sizeof *h, offsets_size);
    memcpy(h->offsets_hash, text, TARN__SHARD_HASH);
    tarn__hash(text, bytes + sizeof *h + offsets_size, size - sizeof *h - offsets_size);
    memcpy(h->ids_hash, text, TARN__SHARD_HASH);
  }
  tarn__hash(text, h, offsetof(tarn__shard_header, header_hash));
  memcpy(h->header_hash, text, TARN__SHARD_HASH);
}

static void test_forged_header(void **state) {
  (void)state;
  size_t size;
  make_shard("s", 4, 30, 30, 1);
  static const int64_t values[] = {0,
                                   1,
                                   -1,
                                   2,
                                   5,
                                   INT64_MAX,
                                   INT64_MIN,
                                   INT64_MAX / 2,
                                   INT64_MAX / 4,
                                   (int64_t)1 << 60,
                                   (int64_t)1 << 62,
                                   0x7FFFFFFF,
                                   0x80000000LL,
                                   -2};
  static const size_t at[] = {offsetof(tarn__shard_header, pairs), offsetof(tarn__shard_header, source_tokens),
                              offsetof(tarn__shard_header, target_tokens), offsetof(tarn__shard_header, longest_source),
                              offsetof(tarn__shard_header, longest_target)};
  for (size_t f = 0; f < sizeof at / sizeof *at; f++) {
    for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
      char *bytes = read_shard(&size);
      memcpy(bytes + at[f], &values[v], sizeof values[v]);
      seal(bytes, size);
      expect_damaged(bytes, size);
      tarn__free(bytes);
    }
  }
  // Two fields at once whose sum wraps around.
  char *bytes = read_shard(&size);
  tarn__shard_header *h = (void *)bytes;
  int64_t sum = h->source_tokens + h->target_tokens;
  h->source_tokens = INT64_MAX;
  h->target_tokens = sum - INT64_MAX;
  seal(bytes, size);
  expect_damaged(bytes, size);
  tarn__free(bytes);
  for (uint32_t width = 0; width < 10; width++) {
    if (width == 2) continue;
    bytes = read_shard(&size);
    ((tarn__shard_header *)(void *)bytes)->id_bytes = width;
    seal(bytes, size);
    expect_damaged(bytes, size);
    tarn__free(bytes);
  }
  for (int field = 0; field < 4; field++) {
    bytes = read_shard(&size);
    int32_t *fields = &((tarn__shard_header *)(void *)bytes)->source_vocab_size;
    fields[field] = field < 2 ? 3 : 30;
    seal(bytes, size);
    expect_damaged(bytes, size);
    fields[field] = -1;
    seal(bytes, size);
    expect_damaged(bytes, size);
    tarn__free(bytes);
  }
}

static void test_forged_contents(void **state) {
  (void)state;
  size_t size;
  make_shard("s", 4, 30, 30, 1);
  static const int64_t values[] = {0, -1, INT64_MAX, INT64_MIN, 100000, (int64_t)1 << 62};
  for (size_t k = 0; k < 9; k++) {
    for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
      if (k == 0 && values[v] == 0) continue;
      char *bytes = read_shard(&size);
      memcpy(bytes + sizeof(tarn__shard_header) + 8 * k, &values[v], 8);
      seal(bytes, size);
      expect_damaged(bytes, size);
      tarn__free(bytes);
    }
  }
  size_t ids = sizeof(tarn__shard_header) + 9 * 8;
  for (size_t at = ids; at < size; at += 2) {
    const uint16_t bad[] = {30, 65535, 2};  // outside, far outside, an end of sentence in the middle
    for (int v = 0; v < 3; v++) {
      char *bytes = read_shard(&size);
      uint16_t old;
      memcpy(&old, bytes + at, 2);
      if (old != bad[v]) {
        memcpy(bytes + at, &bad[v], 2);
        seal(bytes, size);
        expect_damaged(bytes, size);
      }
      tarn__free(bytes);
    }
  }
}

// Opens the forged shard, which is whole in itself, and compares it with the vocabulary that it names.
static void expect_other_vocab(const char *bytes, size_t size, const char *words) {
  static const char yaml[] =
      "{encoder: {layers: L}, decoder: {layers: L}, kinds: {L: {mixer: none}}, data: {vocab: v, train: d}}";
  tarn_config *config;
  tarn_vocab *vocab = make_vocab(30);
  tarn__shard shard;
  sandbox_write("d.tarn", bytes, size);
  open_ok(&shard, "d");
  if (tarn_config_parse(&config, "c", yaml, strlen(yaml), NULL, 0) != TARN_STATUS_OK)
    fail_msg("%s", tarn_error_message());
  assert_int_equal(tarn__shard_check(&shard, vocab, vocab, config), words ? TARN_STATUS_DATA : TARN_STATUS_OK);
  if (words && !strstr(tarn_error_message(), words)) fail_msg("\"%s\" lacks \"%s\"", tarn_error_message(), words);
  tarn_config_close(&config);
  tarn_vocab_close(&vocab);
  tarn__shard_close(&shard);
}

static uint16_t *ids_of(char *bytes, int64_t sentence) {
  int64_t first;
  memcpy(&first, bytes + sizeof(tarn__shard_header) + 8 * (size_t)sentence, sizeof first);
  return (uint16_t *)(void *)(bytes + sizeof(tarn__shard_header) + 9 * 8) + first;
}

// A header that speaks of more tokens than the vocabulary it names has lets ids through that are no rows of the
// model's matrices.
static void test_forged_vocab_size(void **state) {
  (void)state;
  size_t size;
  make_shard("s", 4, 30, 30, 1);
  char *bytes = read_shard(&size);
  expect_other_vocab(bytes, size, NULL);
  tarn__free(bytes);
  for (int side = 0; side < 2; side++) {
    bytes = read_shard(&size);
    (&((tarn__shard_header *)(void *)bytes)->source_vocab_size)[side] = 65536;
    *ids_of(bytes, side) = 65535;
    seal(bytes, size);
    expect_other_vocab(bytes, size,
                       side ? "its target has a vocabulary of 65536 tokens, but v has 30"
                            : "its source has a vocabulary of 65536 tokens, but v has 30");
    tarn__free(bytes);
  }
}

// Another end of sentence would be one that no translation ever finds.
static void test_forged_eos(void **state) {
  (void)state;
  size_t size;
  make_shard("s", 4, 30, 30, 1);
  for (int side = 0; side < 2; side++) {
    char *bytes = read_shard(&size);
    (&((tarn__shard_header *)(void *)bytes)->source_eos)[side] = 29;
    for (int64_t sentence = side; sentence < 8; sentence += 2) {
      uint16_t *end = ids_of(bytes, sentence + 1);
      for (uint16_t *id = ids_of(bytes, sentence); id < end; id++)
        if (*id == 29) *id = 5;
      end[-1] = 29;
    }
    seal(bytes, size);
    expect_other_vocab(bytes, size, "end with token 29, but those of v with token 2");
    tarn__free(bytes);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_round_trip),      cmocka_unit_test(test_two_writers),
      cmocka_unit_test(test_prepare_counts),  cmocka_unit_test(test_prepare_refusals),
      cmocka_unit_test(test_prepare_memory),  cmocka_unit_test(test_truncated),
      cmocka_unit_test(test_every_bit),       cmocka_unit_test(test_forged_header),
      cmocka_unit_test(test_forged_contents), cmocka_unit_test(test_forged_vocab_size),
      cmocka_unit_test(test_forged_eos),
  };
  return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
