// Batches: every sentence once an epoch, budgets kept, packing right, order a function of (seed, epoch), exact seeks.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "base/memory.h"
#include "data/batch.h"
#include "data/batch_bounds.h"
#include "make_shard.h"
#include "sandbox.h"

enum { PAIRS = 1000, BUDGET = 300 };

static tarn__shard shard;

static int open_all(void **state) {
  if (sandbox_open(state) != 0) return -1;
  make_shard("s", PAIRS, 50, 60, 3);
  return tarn__shard_open(&shard, "s") == TARN_STATUS_OK ? 0 : -1;
}

static int close_all(void **state) {
  tarn__shard_close(&shard);
  return sandbox_close(state);
}

static tarn__batcher *open_batcher(double noise, uint64_t seed, bool shuffle) {
  tarn__batcher_options options;
  tarn__batcher_default(&options);
  options.max_tokens = BUDGET;
  options.noise = noise;
  options.seed = seed;
  options.shuffle = shuffle;
  tarn__batcher *batcher;
  assert_int_equal(tarn__batcher_open(&batcher, &shard, &options), TARN_STATUS_OK);
  return batcher;
}

// Checks one batch against the shard and counts its sentences.
static void check_batch(const tarn__batch *batch, int *seen) {
  int32_t ids[MAKE_SHARD_LONGEST];
  assert_true(batch->target.sentences >= 1);
  assert_true(batch->source.rows <= BUDGET && batch->target.rows <= BUDGET);
  assert_int_equal(batch->source.offsets[0], 0);
  assert_int_equal(batch->target.offsets[0], 0);
  assert_int_equal(batch->source.offsets[batch->target.sentences], batch->source.rows);
  assert_int_equal(batch->target.offsets[batch->target.sentences], batch->target.rows);
  int64_t longest_source = 0;
  int64_t longest_target = 0;
  for (int64_t i = 0; i < batch->target.sentences; i++) {
    int64_t pair = batch->index[i];
    int32_t start = batch->source.offsets[i];
    int64_t length = batch->source.offsets[i + 1] - start;
    for (int64_t k = 0; k < length; k++) assert_int_equal(batch->source.positions[start + k], k);
    if (length > longest_source) longest_source = length;
    assert_true(pair >= 0 && pair < PAIRS);
    seen[pair]++;
    assert_int_equal(length, tarn__shard_source_length(&shard, pair));
    tarn__shard_source(&shard, pair, ids);
    assert_memory_equal(batch->source.ids + start, ids, (size_t)length * sizeof *ids);
    start = batch->target.offsets[i];
    length = batch->target.offsets[i + 1] - start;
    assert_int_equal(length, tarn__shard_target_length(&shard, pair));
    tarn__shard_target(&shard, pair, ids);
    assert_memory_equal(batch->targets + start, ids, (size_t)length * sizeof *ids);
    assert_int_equal(batch->target.ids[start], shard.target_eos);
    assert_memory_equal(batch->target.ids + start + 1, ids, (size_t)(length - 1) * sizeof *ids);
    for (int64_t k = 0; k < length; k++) assert_int_equal(batch->target.positions[start + k], k);
    if (length > longest_target) longest_target = length;
  }
  assert_int_equal(batch->source.longest, longest_source);
  assert_int_equal(batch->target.longest, longest_target);
}

static void test_every_sentence_once(void **state) {
  (void)state;
  const double noises[] = {0, 2, 1000};
  for (int k = 0; k < 4; k++) {
    tarn__batcher *batcher = open_batcher(k < 3 ? noises[k] : 2, 1, k < 3);
    int64_t largest_source;
    int64_t largest_target;
    int64_t largest_sentences;
    int64_t most = 0;
    tarn__batcher_largest(batcher, &largest_source, &largest_target, &largest_sentences);
    for (int epoch = 0; epoch < 3; epoch++) {
      int seen[PAIRS] = {0};
      int64_t batches = tarn__batcher_batches(batcher);
      for (int64_t i = 0; i < batches; i++) {
        int64_t at_epoch;
        int64_t at_index;
        tarn__batch batch;
        tarn__batcher_position(batcher, &at_epoch, &at_index);
        assert_int_equal(at_epoch, epoch);
        assert_int_equal(at_index, i);
        tarn__batcher_next(batcher, &batch);
        check_batch(&batch, seen);
        assert_true(batch.source.rows <= largest_source && batch.target.rows <= largest_target);
        assert_true(batch.target.sentences <= largest_sentences);
        if (batch.target.sentences > most) most = batch.target.sentences;
      }
      for (int i = 0; i < PAIRS; i++) assert_int_equal(seen[i], 1);
    }
    if (k == 0)
      assert_true(2 * most >= largest_sentences);  // not as many as tokens allow, which is three times as much
    tarn__batcher_close(&batcher);
    assert_null(batcher);
    tarn__batcher_close(&batcher);
  }
}

// A number that depends on the order and the contents of the next `count` batches.
static uint64_t fingerprint(tarn__batcher *batcher, int64_t count) {
  uint64_t hash = 1;
  for (int64_t i = 0; i < count; i++) {
    tarn__batch batch;
    tarn__batcher_next(batcher, &batch);
    hash = tarn__hash64(batch.index, (size_t)batch.target.sentences * sizeof *batch.index, hash);
    hash = tarn__hash64(batch.source.ids, (size_t)batch.source.rows * sizeof *batch.source.ids, hash);
    hash = tarn__hash64(batch.target.ids, (size_t)batch.target.rows * sizeof *batch.target.ids, hash);
  }
  return hash;
}

static void test_seeds_and_epochs(void **state) {
  (void)state;
  tarn__batcher *a = open_batcher(2, 7, true);
  tarn__batcher *b = open_batcher(2, 7, true);
  tarn__batcher *c = open_batcher(2, 8, true);
  uint64_t first = fingerprint(a, tarn__batcher_batches(a));
  assert_true(first == fingerprint(b, tarn__batcher_batches(b)));
  assert_true(first != fingerprint(c, tarn__batcher_batches(c)));
  uint64_t second = fingerprint(a, tarn__batcher_batches(a));
  assert_true(first != second);
  assert_true(second == fingerprint(b, tarn__batcher_batches(b)));
  tarn__batcher_close(&a);
  tarn__batcher_close(&b);
  tarn__batcher_close(&c);
}

static void test_seek(void **state) {
  (void)state;
  tarn__batcher *straight = open_batcher(2, 7, true);
  for (int step = 0; step < 200; step++) {
    int64_t epoch;
    int64_t index;
    tarn__batcher_position(straight, &epoch, &index);
    uint64_t expected = fingerprint(straight, 1);
    if (step % 13 && index) continue;
    tarn__batcher *fresh = open_batcher(2, 7, true);
    assert_int_equal(tarn__batcher_seek(fresh, epoch, index), TARN_STATUS_OK);
    assert_true(fingerprint(fresh, 1) == expected);
    assert_true(fingerprint(fresh, 40) != 0);
    assert_int_equal(tarn__batcher_seek(fresh, epoch, index), TARN_STATUS_OK);  // and back again
    assert_true(fingerprint(fresh, 1) == expected);
    tarn__batcher_close(&fresh);
  }
  assert_int_equal(tarn__batcher_seek(straight, 2, 0), TARN_STATUS_OK);
  int64_t batches = tarn__batcher_batches(straight);
  assert_int_equal(tarn__batcher_seek(straight, 2, batches), TARN_STATUS_DATA);
  assert_int_equal(tarn__batcher_seek(straight, -1, 0), TARN_STATUS_DATA);
  assert_int_equal(tarn__batcher_seek(straight, 0, -1), TARN_STATUS_DATA);
  tarn__batcher_close(&straight);
}

static int64_t longer_side(int64_t pair) {
  int64_t source = tarn__shard_source_length(&shard, pair);
  int64_t target = tarn__shard_target_length(&shard, pair);
  return source > target ? source : target;
}

static void test_unshuffled_is_sorted(void **state) {
  (void)state;
  tarn__batcher *batcher = open_batcher(2, 7, false);
  int64_t last = 0;
  int64_t last_pair = -1;
  for (int64_t i = tarn__batcher_batches(batcher); i > 0; i--) {
    tarn__batch batch;
    tarn__batcher_next(batcher, &batch);
    for (int64_t k = 0; k < batch.target.sentences; k++) {
      int64_t length = longer_side(batch.index[k]);
      assert_true(length > last || (length == last && batch.index[k] > last_pair));
      last = length;
      last_pair = batch.index[k];
    }
  }
  tarn__batcher_close(&batcher);
}

// With little noise the sentences of a batch have similar lengths; with much noise they do not.
static void test_buckets(void **state) {
  (void)state;
  const double noises[] = {2, 100000};
  int64_t spread[2] = {0, 0};
  for (int k = 0; k < 2; k++) {
    tarn__batcher *batcher = open_batcher(noises[k], 7, true);
    int64_t batches = tarn__batcher_batches(batcher);
    for (int64_t i = 0; i < batches; i++) {
      tarn__batch batch;
      tarn__batcher_next(batcher, &batch);
      int64_t least = INT64_MAX;
      int64_t most = 0;
      for (int64_t n = 0; n < batch.target.sentences; n++) {
        int64_t length = longer_side(batch.index[n]);
        if (length < least) least = length;
        if (length > most) most = length;
      }
      spread[k] += most - least;
    }
    spread[k] /= batches;
    tarn__batcher_close(&batcher);
  }
  assert_true(spread[0] <= 4);
  assert_true(spread[1] >= 12);
}

static void test_no_allocation_after_open(void **state) {
  (void)state;
  tarn__batcher *batcher = open_batcher(2, 1, true);
  tarn__memory_fail_after(1);
  fingerprint(batcher, 3 * tarn__batcher_batches(batcher));
  assert_int_equal(tarn__batcher_seek(batcher, 9, 3), TARN_STATUS_OK);
  fingerprint(batcher, 3);
  void *probe;
  assert_int_equal(tarn__alloc(&probe, TARN__MEMORY_OTHER, 1, 1), TARN_STATUS_MEMORY);  // the first since
  tarn__memory_fail_after(0);
  tarn__batcher_close(&batcher);
}

static void test_refusals(void **state) {
  (void)state;
  tarn__batcher_options options;
  tarn__batcher *batcher;
  tarn__batcher_default(&options);
  options.max_tokens = 10;
  assert_int_equal(tarn__batcher_open(&batcher, &shard, &options), TARN_STATUS_USAGE);
  assert_null(batcher);
  assert_non_null(strstr(tarn_error_message(), "budget of 10 tokens"));
  assert_non_null(strstr(tarn_error_message(), "with --max-tokens 10"));
  options.rows = TARN__ROWS_WHOLE;
  options.first = 3;  // which takes a row of its own
  assert_int_equal(tarn__batcher_open(&batcher, &shard, &options), TARN_STATUS_USAGE);
  assert_non_null(strstr(tarn_error_message(), "with --max-tokens 9"));
  options.longest = 2;
  assert_int_equal(tarn__batcher_open(&batcher, &shard, &options), TARN_STATUS_USAGE);
  assert_non_null(strstr(tarn_error_message(), "are longer than 1 tokens"));
  options.longest = 0;
  options.rows = TARN__ROWS_NEXT;
  options.first = -1;
  options.max_tokens = 0;
  assert_int_equal(tarn__batcher_open(&batcher, &shard, &options), TARN_STATUS_USAGE);
  options.max_tokens = BUDGET;
  options.noise = -1;
  assert_int_equal(tarn__batcher_open(&batcher, &shard, &options), TARN_STATUS_USAGE);
  options.noise = 1;
  size_t before = tarn__memory_now(TARN__MEMORY_OTHER);
  for (uint64_t n = 1;; n++) {
    tarn__memory_fail_after(n);
    tarn_status status = tarn__batcher_open(&batcher, &shard, &options);
    tarn__memory_fail_after(0);
    if (status == TARN_STATUS_OK) break;
    assert_int_equal(status, TARN_STATUS_MEMORY);
    assert_null(batcher);
    assert_int_equal(tarn__memory_now(TARN__MEMORY_OTHER), before);
  }
  tarn__batcher_close(&batcher);
}

// What plans count for the pages of a shard's file and for the order of its rows.
static void test_memory_of_a_shard(void **state) {
  (void)state;
  // A small file is read whole, but for its offsets.
  assert_int_equal(tarn__batch_mapped_bytes(1000, 300), 700);
  assert_int_equal(tarn__batch_mapped_bytes(100, 300), 0);
  assert_int_equal(tarn__batch_mapped_bytes(TARN__BATCH_RESIDENT, 0), TARN__BATCH_RESIDENT);
  // Of a large one 64 sentences are mapped at a time.
  assert_int_equal(tarn__batch_mapped_bytes((size_t)TARN__BATCH_RESIDENT + 1, 300), 4 << 20);
  // The order takes two entries of 16 bytes for each row, and 16 for each batch that there can be: at most one a row.
  tarn__batcher_options options;
  tarn__batcher_default(&options);
  for (options.max_tokens = 64; options.max_tokens <= 4096; options.max_tokens *= 4) {
    tarn__batcher *batcher;
    assert_int_equal(tarn__batcher_open(&batcher, &shard, &options), TARN_STATUS_OK);
    const size_t batches = (size_t)tarn__batcher_batches(batcher), bytes = tarn__batcher_bytes(&shard, &options);
    assert_true(bytes >= PAIRS * 32 + 16 * batches && bytes <= PAIRS * 32 + 16 * (5 * batches + 1));
    tarn__batcher_close(&batcher);
  }
  options.max_tokens = 1;
  assert_int_equal(tarn__batcher_bytes(&shard, &options), PAIRS * 48);
  options.tracks = 1;
  assert_int_equal(tarn__batcher_bytes(&shard, &options), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_memory_of_a_shard),        cmocka_unit_test(test_every_sentence_once),
      cmocka_unit_test(test_seeds_and_epochs),         cmocka_unit_test(test_seek),
      cmocka_unit_test(test_unshuffled_is_sorted),     cmocka_unit_test(test_buckets),
      cmocka_unit_test(test_no_allocation_after_open), cmocka_unit_test(test_refusals),
  };
  return cmocka_run_group_tests(tests, open_all, close_all);
}
