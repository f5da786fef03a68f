// The loader gives the batches of the batcher, grouped into updates, from any position on, and stops cleanly.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "base/memory.h"
#include "data/loader.h"
#include "make_shard.h"
#include "sandbox.h"

enum { PAIRS = 300, BUDGET = 150, VOCAB = 500 };

static tarn__shard shard;

static int open_all(void **state) {
  if (sandbox_open(state) != 0) return -1;
  make_shard("data", PAIRS, VOCAB, VOCAB, 3);
  return tarn__shard_open(&shard, "data") == TARN_STATUS_OK ? 0 : -1;
}

static int close_all(void **state) {
  tarn__shard_close(&shard);
  return sandbox_close(state);
}

static tarn__batcher *open_batcher(void) {
  tarn__batcher_options options;
  tarn__batcher_default(&options);
  options.max_tokens = BUDGET;
  tarn__batcher *batcher;
  assert_int_equal(tarn__batcher_open(&batcher, &shard, &options), TARN_STATUS_OK);
  return batcher;
}

static void assert_same(const tarn__batch *a, const tarn__batch *b) {
  size_t sentences = (size_t)a->target.sentences;
  size_t source = (size_t)a->source.rows * sizeof(int32_t);
  size_t target = (size_t)a->target.rows * sizeof(int32_t);
  assert_int_equal(a->target.sentences, b->target.sentences);
  assert_int_equal(a->source.rows, b->source.rows);
  assert_int_equal(a->target.rows, b->target.rows);
  assert_int_equal(a->source.longest, b->source.longest);
  assert_int_equal(a->target.longest, b->target.longest);
  assert_memory_equal(a->index, b->index, sentences * sizeof *a->index);
  assert_memory_equal(a->source.offsets, b->source.offsets, (sentences + 1) * sizeof(int32_t));
  assert_memory_equal(a->target.offsets, b->target.offsets, (sentences + 1) * sizeof(int32_t));
  assert_memory_equal(a->source.ids, b->source.ids, source);
  assert_memory_equal(a->source.positions, b->source.positions, source);
  assert_memory_equal(a->target.ids, b->target.ids, target);
  assert_memory_equal(a->targets, b->targets, target);
  assert_memory_equal(a->target.positions, b->target.positions, target);
}

// Two epochs and a half, in updates of `accumulate` batches, from an update's beginning within the first epoch on.
static void check_stream(int64_t accumulate, int64_t first) {
  tarn__batcher *plain = open_batcher();
  tarn__batcher *owned = open_batcher();
  tarn__loader *loader;
  assert_int_equal(tarn__batcher_seek(plain, 0, first), TARN_STATUS_OK);
  assert_int_equal(tarn__batcher_seek(owned, 0, first), TARN_STATUS_OK);
  if (tarn__loader_open(&loader, owned, &(tarn__loader_share){0, 1, accumulate}) != TARN_STATUS_OK)
    fail_msg("%s", tarn_error_message());
  int64_t rest = 0;  // of the update, with the batch in hand
  int64_t targets = 0;
  int64_t claimed = 0;
  for (int64_t i = 0; i < 5 * tarn__batcher_batches(plain) / 2; i++) {
    int64_t epoch;
    int64_t index;
    tarn__batcher_position(plain, &epoch, &index);
    const tarn__loaded *loaded = tarn__loader_next(loader);
    if (rest == 0) {
      int64_t left = tarn__batcher_batches(plain) - index;
      rest = left < accumulate ? left : accumulate;
      assert_int_equal(loaded->batches, rest);
      assert_int_equal(targets, claimed);
      targets = 0;
      claimed = loaded->predictions;
    }
    assert_int_equal(loaded->predictions, claimed);
    tarn__batch batch;
    tarn__batcher_next(plain, &batch);
    assert_same(&loaded->batch, &batch);
    tarn__batcher_position(plain, &epoch, &index);
    assert_int_equal(loaded->next_epoch, epoch);
    assert_int_equal(loaded->next_index, index);
    assert_int_equal(loaded->next_batches, tarn__batcher_batches(plain));
    assert_true(loaded->end >= loaded->begin);
    targets += batch.target.rows;
    rest--;
  }
  tarn__loader_close(&loader);
  assert_null(loader);
  tarn__loader_close(&loader);
  tarn__batcher_close(&plain);
  tarn__batcher_close(&owned);
}

static void gives_the_batches_of_the_batcher(void **state) {
  (void)state;
  check_stream(1, 0);
  check_stream(1, 3);
  check_stream(4, 0);
  check_stream(3, 6);
  check_stream(1000000, 0);
}

// Two epochs and a half of one of several ranks: of every update its own batches, or one without sentences.
static void check_share(int rank, int ranks, int64_t accumulate) {
  tarn__batcher *plain = open_batcher();
  tarn__batcher *owned = open_batcher();
  tarn__loader *loader;
  const tarn__loader_share share = {rank, ranks, accumulate};
  if (tarn__loader_open(&loader, owned, &share) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  int64_t epoch = 0, index = 0, empty = 0;
  while (epoch < 2 || (epoch == 2 && index < 7)) {
    const int64_t left = tarn__batcher_batches(plain) - index;
    const int64_t batches = left < accumulate * ranks ? left : accumulate * ranks;
    const int64_t targets = tarn__batcher_predictions(plain, batches);
    const tarn__loaded *loaded = NULL;
    tarn__batch batch;
    for (int64_t k = 0; k < batches; k++) {
      tarn__batcher_next(plain, &batch);
      if (k % ranks != rank) continue;
      if (loaded) assert_false(loaded->last);
      loaded = tarn__loader_next(loader);
      assert_same(&loaded->batch, &batch);
      assert_int_equal(loaded->number, k);
    }
    if (!loaded) {
      loaded = tarn__loader_next(loader);
      assert_int_equal(loaded->batch.target.sentences, 0);
      empty++;
    }
    tarn__batcher_position(plain, &epoch, &index);
    assert_true(loaded->last);
    assert_int_equal(loaded->batches, batches);
    assert_int_equal(loaded->predictions, targets);
    assert_int_equal(loaded->next_epoch, epoch);
    assert_int_equal(loaded->next_index, index);
    assert_int_equal(loaded->next_batches, tarn__batcher_batches(plain));
  }
  assert_true(rank < 100 || empty >= 2);
  tarn__loader_close(&loader);
  tarn__batcher_close(&plain);
  tarn__batcher_close(&owned);
}

static void deals_an_update_out_to_ranks(void **state) {
  (void)state;
  for (int rank = 0; rank < 3; rank++) {
    check_share(rank, 3, 1);
    check_share(rank, 3, 4);
  }
  check_share(1, 2, 1000000);
  check_share(999, 1000, 1);
}

static void stops_at_any_time(void **state) {
  (void)state;
  tarn__batcher *batcher = open_batcher();
  size_t before = tarn__memory_now(TARN__MEMORY_OTHER);
  for (int taken = 0; taken < 20; taken++) {
    tarn__loader *loader;
    assert_int_equal(tarn__batcher_seek(batcher, 0, 0), TARN_STATUS_OK);
    assert_int_equal(tarn__loader_open(&loader, batcher, &(tarn__loader_share){0, 1, 2}), TARN_STATUS_OK);
    for (int i = 0; i < taken; i++) assert_true(tarn__loader_next(loader)->batch.target.sentences > 0);
    tarn__loader_close(&loader);
  }
  assert_int_equal(tarn__memory_now(TARN__MEMORY_OTHER), before);
  tarn__batcher_close(&batcher);
}

static void out_of_memory_is_a_message(void **state) {
  (void)state;
  tarn__batcher *batcher = open_batcher();
  size_t before = tarn__memory_now(TARN__MEMORY_OTHER);
  tarn_status status = TARN_STATUS_MEMORY;
  for (uint64_t n = 1; status != TARN_STATUS_OK; n++) {
    tarn__loader *loader;
    tarn__memory_fail_after(n);
    status = tarn__loader_open(&loader, batcher, &(tarn__loader_share){0, 1, 1});
    tarn__memory_fail_after(0);
    assert_true(status == TARN_STATUS_OK || status == TARN_STATUS_MEMORY);
    tarn__loader_close(&loader);
    assert_int_equal(tarn__memory_now(TARN__MEMORY_OTHER), before);
  }
  tarn__batcher_close(&batcher);
}

static size_t address_space(void) {
  FILE *file = fopen("/proc/self/statm", "r");
  unsigned long pages = 0;
  if (!file || fscanf(file, "%lu", &pages) != 1) fail();
  fclose(file);
  return pages * (size_t)sysconf(_SC_PAGESIZE);
}

// Address space for everything but the thread's stack.
static void no_thread_is_a_message(void **state) {
  (void)state;
  if (getenv("TARN_SANITIZED")) skip();
  // A program that has no thread yet has no stack of an earlier one to use again either.
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    tarn__batcher_options options;
    tarn__batcher_default(&options);
    options.max_tokens = BUDGET;
    tarn__batcher *batcher;
    tarn__loader *loader;
    if (tarn__batcher_open(&batcher, &shard, &options) != TARN_STATUS_OK) _exit(1);
    struct rlimit limit = {.rlim_cur = address_space() + 256 * 1024, .rlim_max = RLIM_INFINITY};
    if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(2);
    tarn_status status = tarn__loader_open(&loader, batcher, &(tarn__loader_share){0, 1, 1});
    _exit(status != TARN_STATUS_MEMORY ? 3 : !strstr(tarn_error_message(), "cannot be started") ? 4 : loader ? 5 : 0);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(no_thread_is_a_message),
                                     cmocka_unit_test(gives_the_batches_of_the_batcher),
                                     cmocka_unit_test(deals_an_update_out_to_ranks),
                                     cmocka_unit_test(stops_at_any_time), cmocka_unit_test(out_of_memory_is_a_message)};
  return cmocka_run_group_tests(tests, open_all, close_all);
}
