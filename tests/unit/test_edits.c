// The expert of the Levenshtein Transformer and the sentences that imitate it: shortest edits against all subsequences,
// policies that do what the expert does, which rebuild a sentence from any other in one iteration, and roll-ins.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "base/edit_path.h"
#include "base/random.h"
#include "data/batch.h"
#include "data/shard.h"
#include "decode/draft.h"
#include "make_shard.h"
#include "sandbox.h"
#include "task/edits.h"

enum { MOST = 200, PLACEHOLDER = 5, BORDER = 2 };

static void must(tarn_status status) {
  if (status != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
}

static int32_t deleted[MOST], inserted[MOST], gaps[MOST + 1];
static uint64_t scratch[MOST * ((MOST + 63) / 64)];
static const tarn__edits edits = {deleted, inserted, scratch};

// Whether the kept tokens of a are those of b that are not inserted; counts them.
static int64_t check_edits(const int32_t *a, int64_t n, const int32_t *b, int64_t m) {
  const int64_t kept = tarn__edits_find(&edits, gaps, a, n, b, m);
  int64_t i = 0, j = 0, count = 0, all = 0;
  for (;;) {
    while (i < n && deleted[i]) i++;
    while (j < m && inserted[j]) j++;
    if (i == n || j == m) break;
    assert_int_equal(a[i++], b[j++]);
    count++;
  }
  assert_true(i == n && j == m && count == kept);
  for (int64_t k = 0; k <= kept; k++) all += gaps[k];
  assert_int_equal(all + kept, m);
  return kept;
}

// Of all subsequences of a (n <= 12), the length of the longest that b has too.
static int64_t longest_of_all(const int32_t *a, int n, const int32_t *b, int64_t m) {
  int64_t longest = 0;
  for (int set = 0; set < 1 << n; set++) {
    int64_t j = 0, count = 0;
    bool all = true;
    for (int i = 0; i < n && all; i++) {
      if (!(set >> i & 1)) continue;
      while (j < m && b[j] != a[i]) j++;
      all = j++ < m;
      count++;
    }
    if (all && count > longest) longest = count;
  }
  return longest;
}

static void edits_are_the_fewest(void **state) {
  (void)state;
  tarn__random random;
  tarn__random_init(&random, 3, 1);
  int32_t a[12], b[12];
  for (int round = 0; round < 400; round++) {
    const int n = (int)tarn__random_below(&random, 11), m = (int)tarn__random_below(&random, 13);
    const uint64_t words = 1 + tarn__random_below(&random, 5);
    for (int i = 0; i < n; i++) a[i] = (int32_t)tarn__random_below(&random, words);
    for (int i = 0; i < m; i++) b[i] = (int32_t)tarn__random_below(&random, words);
    assert_int_equal(check_edits(a, n, b, m), longest_of_all(a, n, b, m));
  }
}

// More than 64 tokens: against the table of lengths.
static void long_sentences(void **state) {
  (void)state;
  static int32_t a[MOST], b[MOST], table[MOST + 1][MOST + 1];
  tarn__random random;
  tarn__random_init(&random, 4, 1);
  for (int round = 0; round < 40; round++) {
    const int n = (int)tarn__random_below(&random, MOST), m = 60 + (int)tarn__random_below(&random, MOST - 60);
    const uint64_t words = 1 + tarn__random_below(&random, 20);
    for (int i = 0; i < n; i++) a[i] = (int32_t)tarn__random_below(&random, words);
    for (int i = 0; i < m; i++) b[i] = (int32_t)tarn__random_below(&random, words);
    for (int i = 1; i <= n; i++)
      for (int j = 1; j <= m; j++) {
        const int32_t most = table[i - 1][j] > table[i][j - 1] ? table[i - 1][j] : table[i][j - 1];
        table[i][j] = a[i - 1] == b[j - 1] ? table[i - 1][j - 1] + 1 : most;
      }
    assert_int_equal(check_edits(a, n, b, m), table[n][m]);
  }
}

// Short ones, by hand.
static void by_hand(void **state) {
  (void)state;
  static const int32_t a[] = {'D', 'T', 'A'}, b[] = {'A', 'B', 'C'}, c[] = {'T', 'A'};
  assert_int_equal(check_edits(a, 3, b, 3), 1);
  assert_true(deleted[0] && deleted[1] && !deleted[2]);
  assert_true(gaps[0] == 0 && gaps[1] == 2);
  assert_int_equal(check_edits(c, 2, a, 3), 2);
  assert_true(!deleted[0] && !deleted[1] && gaps[0] == 1 && gaps[1] == 0 && gaps[2] == 0);
  assert_int_equal(check_edits(NULL, 0, a, 3), 0);
  assert_int_equal(gaps[0], 3);
  // Of equal ways the one that keeps the later tokens.
  static const int32_t twice[] = {7, 7}, once[] = {7};
  assert_int_equal(check_edits(twice, 2, once, 1), 1);
  assert_true(deleted[0] && !deleted[1]);
}

// One iteration of policies that do what the expert would.
static void imitate(tarn__draft *draft, const int32_t *truth, int64_t m, int64_t *operations) {
  static int32_t of[MOST + 1], words[MOST];
  static float values[MOST];
  must(tarn__draft_iterate(draft));
  const int64_t before = draft->length - 2, kept = check_edits(draft->ids + 1, before, truth, m);
  memcpy(of, gaps, (size_t)(kept + 1) * sizeof *of);
  int64_t holes = 0;
  for (int64_t j = 0; j < m; j++)
    if (inserted[j]) words[holes++] = truth[j];
  tarn__draft_delete(draft, deleted);
  assert_int_equal(draft->length, kept + 2);
  must(tarn__draft_insert(draft, of, PLACEHOLDER, MOST + 2));
  assert_int_equal(draft->holes, holes);
  tarn__draft_fill(draft, PLACEHOLDER, words, values);
  tarn__draft_judge(draft, 10);
  *operations += before - kept + holes;
}

// From any sentence, such as one with a model's mistakes, to the true one, in one iteration of the fewest operations;
// the next one changes nothing.
static void rebuild(tarn__draft *draft, const int32_t *from, int64_t n, const int32_t *truth, int64_t m) {
  int64_t operations = 0;
  must(tarn__draft_begin(draft, BORDER, BORDER));
  imitate(draft, from, n, &operations);
  assert_int_equal(operations, n);
  operations = 0;
  imitate(draft, truth, m, &operations);
  assert_int_equal(operations, n + m - 2 * check_edits(from, n, truth, m));
  assert_int_equal(draft->length, m + 2);
  assert_memory_equal(draft->ids + 1, truth, (size_t)m * sizeof *truth);
  assert_true(draft->ids[0] == BORDER && draft->ids[m + 1] == BORDER);
  operations = 0;
  imitate(draft, truth, m, &operations);
  assert_true(draft->done && operations == 0);
}

static void oracle_policies_rebuild(void **state) {
  (void)state;
  tarn__random random;
  tarn__random_init(&random, 5, 1);
  tarn__draft draft = {0};
  int32_t truth[MOST], other[MOST];
  for (int round = 0; round < 100; round++) {
    const int64_t m = (int64_t)tarn__random_below(&random, 60);
    const int64_t n = round % 3 == 0 ? 0 : (int64_t)tarn__random_below(&random, 60);
    for (int64_t i = 0; i < m; i++) truth[i] = 6 + (int32_t)tarn__random_below(&random, 8);
    for (int64_t i = 0; i < n; i++) other[i] = 6 + (int32_t)tarn__random_below(&random, 8);
    rebuild(&draft, other, n, truth, m);
  }
  tarn__draft_close(&draft);
}

static void drafts_have_limits(void **state) {
  (void)state;
  tarn__draft draft = {0};
  static const int32_t many[] = {9}, words[] = {6, 7, 8, 9};
  static const float values[] = {-1, -2, -3, -4};
  must(tarn__draft_begin(&draft, BORDER, BORDER));
  must(tarn__draft_iterate(&draft));
  must(tarn__draft_insert(&draft, many, PLACEHOLDER, 6));
  assert_true(draft.length == 6 && draft.holes == 4);
  tarn__draft_fill(&draft, PLACEHOLDER, words, values);
  assert_true(draft.ids[4] == 9 && draft.values[4] == -4 && draft.values[5] == 0);
  tarn__draft_judge(&draft, 2);
  assert_false(draft.done);
  static const int32_t gone[] = {0, 1, 1, 0}, more[] = {0, 1, 5};
  must(tarn__draft_iterate(&draft));
  tarn__draft_delete(&draft, gone);
  assert_true(draft.length == 4 && draft.ids[2] == 9 && draft.values[2] == -4 && draft.ids[3] == BORDER);
  must(tarn__draft_insert(&draft, more, PLACEHOLDER, 6));
  assert_true(draft.length == 6 && draft.ids[2] == PLACEHOLDER && draft.ids[3] == 9 && draft.ids[4] == PLACEHOLDER);
  tarn__draft_fill(&draft, PLACEHOLDER, words, values);
  tarn__draft_judge(&draft, 2);
  assert_true(draft.done && draft.iterations == 2);  // at the limit
  tarn__draft_close(&draft);
}

// The batches of a shard.
static void roll_ins(void **state) {
  (void)state;
  tarn_vocab *vocab = make_masked_vocab(12);
  make_shard_of("pairs", 50, vocab, vocab, 7);
  tarn__shard shard;
  must(tarn__shard_open(&shard, "pairs"));
  tarn__batcher_options options;
  tarn__batcher_default(&options);
  options.rows = TARN__ROWS_WHOLE;
  options.first = BORDER;
  options.max_tokens = 300;
  const tarn_config_levenshtein keys = {.max_placeholders = 6};
  must(tarn__edits_open(&options.finish, &keys, &shard, shard.longest_target, vocab, "vocab"));
  tarn__batcher *batcher;
  must(tarn__batcher_open(&batcher, &shard, &options));
  int64_t whole = 0, none = 0, cut = 0;
  for (int64_t k = 2 * tarn__batcher_batches(batcher); k > 0; k--) {
    tarn__batch batch;
    const int64_t predictions = tarn__batcher_predictions(batcher, 1);
    tarn__batcher_next(batcher, &batch);
    assert_int_equal(batch.predictions, predictions);
    assert_int_equal(batch.kept.sentences, batch.target.sentences);
    assert_int_equal(batch.kept.rows + batch.predictions, batch.target.rows);
    int64_t hole = 0;
    for (int64_t s = 0; s < batch.target.sentences; s++) {
      int32_t truth[MAKE_SHARD_LONGEST];
      tarn__shard_target(&shard, batch.index[s], truth);
      const int32_t *ids = batch.target.ids + batch.target.offsets[s], *kept = batch.kept.ids + batch.kept.offsets[s];
      const int64_t n = batch.target.offsets[s + 1] - batch.target.offsets[s] - 1;
      const int32_t *gap = batch.gaps + batch.kept.offsets[s] - s;
      int64_t at = 0, run = 0;
      assert_int_equal(ids[0], BORDER);
      for (int64_t i = 0; i < n; i++) {  // truth without the border in front
        const int32_t id = ids[i + 1];
        if (i + 1 < n && id == PLACEHOLDER && hole < batch.predictions &&
            batch.selected[hole] == batch.target.offsets[s] + i + 1) {
          assert_int_equal(batch.targets[hole++], truth[i]);
          run++;
          continue;
        }
        assert_int_equal(id, truth[i]);
        assert_int_equal(gap[at], run < 6 ? run : 6);
        cut += run > 6;
        run = 0;
        assert_int_equal(kept[++at], id);
      }
      assert_int_equal(at + 1, batch.kept.offsets[s + 1] - batch.kept.offsets[s]);
      whole += at == n;
      none += at == 1 && n > 1;
    }
    assert_int_equal(hole, batch.predictions);
  }
  assert_true(whole > 0 && none > 0 && cut > 0);  // anything from all words to none is left out
  tarn__batcher_close(&batcher);
  const tarn_config_levenshtein empty = {.max_placeholders = 6, .beta = 1};
  must(tarn__edits_open(&options.finish, &empty, &shard, shard.longest_target, vocab, "vocab"));
  must(tarn__batcher_open(&batcher, &shard, &options));
  tarn__batch batch;
  const int64_t predictions = tarn__batcher_predictions(batcher, 1);
  tarn__batcher_next(batcher, &batch);
  assert_true(batch.kept.rows == 2 * batch.kept.sentences && batch.predictions == predictions);
  assert_int_equal(batch.predictions, batch.target.rows - 2 * batch.target.sentences);
  tarn__batcher_close(&batcher);
  tarn__shard_close(&shard);
  tarn_vocab_close(&vocab);
  vocab = make_vocab(12);
  assert_int_equal(tarn__edits_open(&options.finish, &keys, &shard, 1, vocab, "plain"), TARN_STATUS_USAGE);
  assert_non_null(strstr(tarn_error_message(), "plain: the vocabulary has no <mask>"));
  tarn_vocab_close(&vocab);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(edits_are_the_fewest),    cmocka_unit_test(long_sentences),     cmocka_unit_test(by_hand),
      cmocka_unit_test(oracle_policies_rebuild), cmocka_unit_test(drafts_have_limits), cmocka_unit_test(roll_ins)};
  return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
