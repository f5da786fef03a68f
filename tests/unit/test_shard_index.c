// Sets of several shards behind an index: they read as the one shard of the same text, and nothing is believed that
// does not hold.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/threads.h"
#include "data/batch.h"
#include "data/shard_format.h"
#include "data/shard_index.h"
#include "make_shard.h"
#include "sandbox.h"
#include "tarn/data.h"

enum { LINES = 900, SIZE = 30, LONGEST = 64 };

static int open_all(void **state) {
  if (sandbox_open(state) != 0) return -1;
  tarn_vocab *vocab = make_vocab(SIZE);
  size_t size;
  const void *bytes = tarn_vocab_bytes(vocab, &size);
  sandbox_write("vocab", bytes, size);
  tarn_vocab_close(&vocab);
  static char text[LINES * MAKE_SHARD_LONGEST * 4];
  size_t used = 0;
  tarn__random random;
  tarn__random_init(&random, 4, 1);
  for (int i = 0; i < LINES; i++) {
    const int words = 1 + (int)tarn__random_below(&random, MAKE_SHARD_LONGEST - 1);
    for (int k = 0; k < words; k++)
      used += (size_t)sprintf(text + used, "%sw%d", k ? " " : "", 3 + (int)tarn__random_below(&random, SIZE - 3));
    text[used++] = '\n';
  }
  sandbox_write("text", text, used);
  return 0;
}

// 0: pairs, 1: a text, 2: windows, 3: packed rows.
static tarn_prepare_result prepare(const char *output, int kind, int64_t bytes) {
  tarn_prepare_options o;
  tarn_prepare_result result;
  tarn_prepare_default(&o);
  o.vocab = "vocab";
  o.output = output;
  if (kind == 0) o.source = o.target = "text";
  if (kind > 0) o.text = "text";
  if (kind == 2) o.stream = 30;
  if (kind == 3) o.pack = 60;
  if (bytes) o.shard_bytes = bytes;
  if (tarn_prepare_run(&result, &o)) fail_msg("%s", tarn_error_message());
  return result;
}

static void open_set(tarn__shard *shard, const char *prefix) {
  if (tarn__shard_open(shard, prefix)) fail_msg("%s", tarn_error_message());
}

static void compare_rows(const tarn__shard *a, const tarn__shard *b) {
  int32_t left[LONGEST], right[LONGEST];
  assert_int_equal(a->pairs, b->pairs);
  assert_int_equal(a->source_tokens, b->source_tokens);
  assert_int_equal(a->target_tokens, b->target_tokens);
  assert_int_equal(a->longest_source, b->longest_source);
  assert_int_equal(a->longest_target, b->longest_target);
  assert_int_equal(a->bytes, b->bytes);
  assert_int_equal(a->characters, b->characters);
  assert_int_equal(a->text, b->text);
  assert_int_equal(a->continues, b->continues);
  assert_int_equal(a->packed, b->packed);
  for (int64_t i = 0; i < a->pairs; i++) {
    const int64_t source = tarn__shard_source_length(a, i), target = tarn__shard_target_length(a, i);
    assert_int_equal(tarn__shard_source_length(b, i), source);
    assert_int_equal(tarn__shard_target_length(b, i), target);
    assert_int_equal(tarn__shard_before(a, i), tarn__shard_before(b, i));
    tarn__shard_source(a, i, left);
    tarn__shard_source(b, i, right);
    if (source > 0) assert_memory_equal(left, right, (size_t)source * sizeof *left);
    tarn__shard_target(a, i, left);
    tarn__shard_target(b, i, right);
    assert_memory_equal(left, right, (size_t)target * sizeof *left);
  }
}

// Two epochs of equal batches: a training on parts is, bit by bit, that on one shard.
static void compare_batches(const tarn__shard *a, const tarn__shard *b) {
  tarn__batcher *batchers[2];
  tarn__batch batches[2];
  tarn__batcher_options options;
  tarn__batcher_default(&options);
  options.max_tokens = 300;
  assert_int_equal(tarn__batcher_open(&batchers[0], a, &options), TARN_STATUS_OK);
  assert_int_equal(tarn__batcher_open(&batchers[1], b, &options), TARN_STATUS_OK);
  for (int64_t i = 0; i < 2 * tarn__batcher_batches(batchers[0]); i++) {
    for (int s = 0; s < 2; s++) tarn__batcher_next(batchers[s], &batches[s]);
    assert_int_equal(batches[0].target.rows, batches[1].target.rows);
    assert_int_equal(batches[0].source.rows, batches[1].source.rows);
    assert_memory_equal(batches[0].target.ids, batches[1].target.ids, (size_t)batches[0].target.rows * sizeof(int32_t));
    assert_memory_equal(batches[0].targets, batches[1].targets, (size_t)batches[0].target.rows * sizeof(int32_t));
    assert_memory_equal(batches[0].index, batches[1].index, (size_t)batches[0].target.sentences * sizeof(int64_t));
  }
  for (int s = 0; s < 2; s++) tarn__batcher_close(&batchers[s]);
}

static void test_parts_are_the_shard(void **state) {
  (void)state;
  for (int kind = 0; kind < 4; kind++) {
    tarn__shard one, parts;
    const tarn_prepare_result single = prepare("one", kind, 0), several = prepare("several", kind, 9000);
    assert_int_equal(single.parts, 1);
    assert_true(several.parts >= 3);
    assert_int_equal(several.pairs, single.pairs);
    open_set(&one, "one");
    open_set(&parts, "several");
    assert_null(one.parts);
    assert_int_equal(parts.part_count, several.parts);
    for (int i = 0; i < parts.part_count; i++) {
      assert_true(parts.parts[i].file_bytes <= 9000);
      // Each is a shard of its own.
      tarn__shard part;
      open_set(&part, parts.parts[i].path);
      assert_string_equal(part.hash, parts.parts[i].hash);
      tarn__shard_close(&part);
    }
    compare_rows(&one, &parts);
    compare_batches(&one, &parts);
    // Equal contents are equal data, under any name and wherever they were cut.
    assert_string_equal(one.hash, parts.hash);
    assert_int_equal(tarn__shard_unchanged(&parts), TARN_STATUS_OK);
    tarn__shard_close(&one);
    tarn__shard_close(&parts);
  }
}

static tarn__shard_index read_index(const char *path) {
  char *bytes;
  size_t size;
  tarn__shard_index index;
  assert_int_equal(tarn__file_read(path, &bytes, &size), TARN_STATUS_OK);
  assert_int_equal(tarn__shard_index_read(&index, bytes, size), TARN_STATUS_OK);
  tarn__free(bytes);
  return index;
}

static void refuse(const char *text) {
  tarn__shard shard;
  assert_int_not_equal(tarn__shard_open(&shard, "set"), TARN_STATUS_OK);
  if (!strstr(tarn_error_message(), text)) fail_msg("\"%s\" lacks \"%s\"", tarn_error_message(), text);
}

// An index with the right hash that says something else.
static void refuse_forged(const tarn__shard_index *index, const tarn__index_entry *entries, const char *text) {
  assert_int_equal(tarn__shard_index_write("set.tarn", entries, (int)index->header.parts), TARN_STATUS_OK);
  refuse(text);
}

static void test_what_does_not_hold(void **state) {
  (void)state;
  tarn_prepare_result result = prepare("set", 1, 20000);
  assert_true(result.parts >= 2);
  tarn__shard_index index = read_index("set.tarn");
  tarn__index_entry forged[TARN__INDEX_PARTS_MOST];
  const size_t bytes = index.header.parts * sizeof *forged;
#define FORGE(change, text)              \
  do {                                   \
    memcpy(forged, index.parts, bytes);  \
    change;                              \
    refuse_forged(&index, forged, text); \
  } while (0)
  FORGE(forged[1].pairs++, "set.tarn: part 2: set.0002-");
  FORGE(forged[1].pairs++, "it is not the shard that the index names");
  FORGE(forged[0].hash[3] ^= 1, "it is not the shard that the index names");
  FORGE(forged[1].bytes = 0, "part 2 has impossible counts");
  FORGE(forged[1].target_tokens = INT64_MAX / 2, "part 2 has impossible counts");
  FORGE(forged[1] = forged[0]; forged[1].name[4] = '9', "part 2: set.9001-");
  FORGE(memcpy(forged[1].name, "../", 3), "part 2 has no name of a file beside it");
  FORGE(forged[1].name[0] = 0, "part 2 has no name of a file beside it");
  FORGE(memset(forged[1].name, 'x', sizeof forged[1].name), "part 2 has no name of a file beside it");
  // An index that names itself.
  FORGE(memset(forged[0].name, 0, sizeof forged[0].name); memcpy(forged[0].name, "set.tarn", 8), "not a shard");
#undef FORGE
  // A part of another vocabulary.
  make_shard("other", 5, SIZE + 1, SIZE + 1, 1);
  tarn__shard other;
  open_set(&other, "other");
  memcpy(forged, index.parts, bytes);
  forged[1] = (tarn__index_entry){.name = "other.tarn",
                                  .bytes = other.file_bytes,
                                  .pairs = other.pairs,
                                  .source_tokens = other.source_tokens,
                                  .target_tokens = other.target_tokens};
  memcpy(forged[1].hash, other.hash, sizeof forged[1].hash);
  tarn__shard_close(&other);
  refuse_forged(&index, forged, "other.tarn: its rows are of another kind than those of the first part");
  // Damage.
  assert_int_equal(tarn__shard_index_write("set.tarn", index.parts, (int)index.header.parts), TARN_STATUS_OK);
  char *file;
  size_t size;
  assert_int_equal(tarn__file_read("set.tarn", &file, &size), TARN_STATUS_OK);
  for (size_t at = 0; at <= size; at += at < 80 ? 1 : 37) {
    tarn__shard shard;
    sandbox_write("set.tarn", file, at);
    if (at < size) assert_int_equal(tarn__shard_open(&shard, "set"), TARN_STATUS_DATA);
    file[at] = (char)(file[at] ^ 4);
    sandbox_write("set.tarn", file, size);
    if (at < size) assert_int_equal(tarn__shard_open(&shard, "set"), TARN_STATUS_DATA);
    file[at] = (char)(file[at] ^ 4);
  }
  sandbox_write("set.tarn", file, size);
  tarn__free(file);
  assert_int_equal(unlink(index.parts[1].name), 0);
  refuse("set.tarn: part 2: set.0002-");
  tarn__shard_index_close(&index);
}

// Gives a part of a stream another number of bytes of text, with right hashes.
static void forge_bytes(tarn__index_entry *entry, int64_t bytes) {
  struct {
    tarn__shard_header header;
    tarn__shard_rows rows;
  } both;
  char *file, hash[TARN__HASH_TEXT];
  size_t size;
  tarn__shard part;
  assert_int_equal(tarn__file_read(entry->name, &file, &size), TARN_STATUS_OK);
  memcpy(&both, file, sizeof both);
  both.rows.bytes = bytes;
  tarn__hash(hash, &both, sizeof both - TARN__SHARD_HASH);
  memcpy(both.rows.hash, hash, TARN__SHARD_HASH);
  memcpy(file, &both, sizeof both);
  sandbox_write(entry->name, file, size);
  tarn__free(file);
  open_set(&part, entry->name);
  memcpy(entry->hash, part.hash, sizeof entry->hash);
  tarn__shard_close(&part);
}

static void test_text_of_parts_too_large(void **state) {
  (void)state;
  assert_true(prepare("set", 2, 9000).parts >= 3);
  tarn__shard_index index = read_index("set.tarn");
  for (int i = 0; i < 2; i++) forge_bytes(&index.parts[i], INT64_MAX - 5);
  refuse_forged(&index, index.parts, "part 2: its text of 9223372036854775802 bytes and those before it are too large");
  tarn__shard_index_close(&index);
}

static void test_old_parts(void **state) {
  (void)state;
  prepare("set", 1, 20000);
  tarn__shard_index old = read_index("set.tarn"), fresh;
  // A file that is no part of the set, although the index says so, is left alone.
  sandbox_write("other.txt", "x", 1);
  tarn__index_entry entries[TARN__INDEX_PARTS_MOST];
  memcpy(entries, old.parts, old.header.parts * sizeof *entries);
  entries[old.header.parts] = (tarn__index_entry){.name = "other.txt", .bytes = 1, .pairs = 1, .target_tokens = 1};
  assert_int_equal(tarn__shard_index_write("set.tarn", entries, (int)old.header.parts + 1), TARN_STATUS_OK);
  prepare("set", 1, 15000);
  fresh = read_index("set.tarn");
  for (uint32_t i = 0; i < old.header.parts; i++) assert_false(tarn__file_exists(old.parts[i].name));
  for (uint32_t i = 0; i < fresh.header.parts; i++) assert_true(tarn__file_exists(fresh.parts[i].name));
  assert_true(tarn__file_exists("other.txt"));
  // The same again, and a failure, leave all as it is; of the failure nothing stays.
  prepare("set", 1, 15000);
  tarn_prepare_options o;
  tarn_prepare_result result;
  tarn_prepare_default(&o);
  o.vocab = "vocab";
  o.text = "text";
  o.output = "set";
  o.shard_bytes = 1000;
  o.min_tokens = 3;
  o.max_tokens = 38;
  o.overlong = TARN_PREPARE_OVERLONG_REFUSE;
  assert_int_equal(tarn_prepare_run(&result, &o), TARN_STATUS_DATA);
  for (uint32_t i = 0; i < fresh.header.parts; i++) assert_true(tarn__file_exists(fresh.parts[i].name));
  tarn__shard shard;
  open_set(&shard, "set");
  tarn__shard_close(&shard);
  // A set that is small enough for one shard takes their place.
  prepare("set", 1, 0);
  for (uint32_t i = 0; i < fresh.header.parts; i++) assert_false(tarn__file_exists(fresh.parts[i].name));
  open_set(&shard, "set");
  assert_null(shard.parts);
  tarn__shard_close(&shard);
  tarn__shard_index_close(&old);
  tarn__shard_index_close(&fresh);
}

static void test_table_in_place_of_parts(void **state) {
  (void)state;
  tarn_labelled_options o;
  tarn_labelled_result result;
  prepare("set", 1, 20000);
  tarn__shard_index old = read_index("set.tarn");
  assert_true(old.header.parts >= 2);
  sandbox_write("table", "a\tw3 w4\nb\tw5\n", 13);
  tarn_labelled_default(&o);
  o.vocab = "vocab";
  o.table = "table";
  o.label = "1";
  o.text = "2";
  o.output = "set";
  if (tarn_labelled_prepare(&result, &o)) fail_msg("%s", tarn_error_message());
  for (uint32_t i = 0; i < old.header.parts; i++) assert_false(tarn__file_exists(old.parts[i].name));
  tarn__shard shard;
  open_set(&shard, "set");
  assert_int_equal(shard.classes, 2);
  tarn__shard_close(&shard);
  tarn__shard_index_close(&old);
}

static void flip(const char *path, size_t at) {
  char *file;
  size_t size;
  assert_int_equal(tarn__file_read(path, &file, &size), TARN_STATUS_OK);
  file[at] ^= 1;
  sandbox_write(path, file, size);
  tarn__free(file);
}

// Threads check pieces of parts in parallel; the message always names the first of several bad parts.
static void test_first_bad_part(void **state) {
  (void)state;
  enum { TIMES = 200, PART = 3000000 };
  char *text, *again;
  size_t size;
  void *memory;
  assert_int_equal(tarn__file_read("text", &text, &size), TARN_STATUS_OK);
  assert_int_equal(tarn__alloc(&memory, TARN__MEMORY_OTHER, TIMES, size), TARN_STATUS_OK);
  again = memory;
  for (size_t i = 0; i < TIMES; i++) memcpy(again + i * size, text, size);
  sandbox_write("long", again, TIMES * size);
  tarn__free(text);
  tarn__free(again);
  tarn_prepare_options o;
  tarn_prepare_result result;
  tarn_prepare_default(&o);
  o.vocab = "vocab";
  o.text = "long";
  o.output = "whole";
  if (tarn_prepare_run(&result, &o)) fail_msg("%s", tarn_error_message());
  o.output = "set";
  o.shard_bytes = PART;
  if (tarn_prepare_run(&result, &o)) fail_msg("%s", tarn_error_message());
  assert_true(result.parts >= 3);
  tarn__shard one, parts;
  const int threads = tarn__threads();
  tarn__threads_set(3);
  open_set(&one, "whole");
  open_set(&parts, "set");
  compare_rows(&one, &parts);
  assert_string_equal(one.hash, parts.hash);
  tarn__shard_close(&one);
  tarn__shard_close(&parts);
  tarn__shard_index index = read_index("set.tarn");
  flip(index.parts[2].name, (size_t)index.parts[2].bytes - 2000000);
  for (int i = 0; i < 3; i++) refuse("set.tarn: part 3: set.0003-");
  flip(index.parts[1].name, (size_t)index.parts[1].bytes - 2);
  for (int i = 0; i < 10; i++) refuse("set.tarn: part 2: set.0002-");
  refuse("its contents do not have the hash they should have");
  tarn__threads_set(threads);
  tarn__shard_index_close(&index);
}

// In blocks every row comes once in an epoch, lengths are as close together as elsewhere, epochs differ, and any place
// can be reached.
static void test_blocks(void **state) {
  (void)state;
  enum { BLOCK = 200, EPOCHS = 2 };
  prepare("set", 0, 9000);
  tarn__shard shard;
  tarn__batcher *batcher, *sought;
  tarn__batch batch, there;
  tarn__batcher_options options;
  tarn__batcher_default(&options);
  options.max_tokens = 300;
  options.block = BLOCK;
  open_set(&shard, "set");
  assert_int_equal(tarn__batcher_open(&batcher, &shard, &options), TARN_STATUS_OK);
  assert_int_equal(tarn__batcher_open(&sought, &shard, &options), TARN_STATUS_OK);
  // The order is part of what a training goes on with.
  assert_string_not_equal(tarn__batcher_hash(batcher), shard.hash);
  assert_string_equal(tarn__batcher_other_hash(batcher), shard.hash);
  int64_t first[EPOCHS] = {0};
  for (int epoch = 0; epoch < EPOCHS; epoch++) {
    static int seen[LINES];
    memset(seen, 0, sizeof seen);
    const int64_t batches = tarn__batcher_batches(batcher);
    int64_t rows = 0, widest = 0, predictions = 0;
    const int64_t expected = tarn__batcher_predictions(batcher, batches);
    for (int64_t i = 0; i < batches; i++) {
      tarn__batcher_next(batcher, &batch);
      if (i == 0) first[epoch] = batch.index[0];
      rows += batch.target.rows;
      widest += batch.target.longest * batch.target.sentences;
      predictions += batch.predictions;
      assert_true(batch.target.rows <= 300 && batch.source.rows <= 300);
      for (int64_t k = 0; k < batch.target.sentences; k++) seen[batch.index[k]]++;
      if (i % 7 != epoch) continue;
      assert_int_equal(tarn__batcher_seek(sought, epoch, i), TARN_STATUS_OK);
      tarn__batcher_next(sought, &there);
      assert_int_equal(there.target.sentences, batch.target.sentences);
      assert_memory_equal(there.index, batch.index, (size_t)batch.target.sentences * sizeof *batch.index);
    }
    assert_int_equal(predictions, expected);
    for (int i = 0; i < LINES; i++) assert_int_equal(seen[i], 1);
    // What padding would be, were there any, is little: neighbours in length are together.
    assert_int_equal(rows, shard.target_tokens);
    assert_true((double)widest < 1.15 * (double)rows);
  }
  assert_int_not_equal(first[0], first[1]);
  tarn__batcher_close(&batcher);
  tarn__batcher_close(&sought);
  tarn__shard_close(&shard);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_parts_are_the_shard),
                                     cmocka_unit_test(test_what_does_not_hold),
                                     cmocka_unit_test(test_text_of_parts_too_large),
                                     cmocka_unit_test(test_old_parts),
                                     cmocka_unit_test(test_table_in_place_of_parts),
                                     cmocka_unit_test(test_first_bad_part),
                                     cmocka_unit_test(test_blocks)};
  return cmocka_run_group_tests(tests, open_all, sandbox_close);
}
