// Masks: how many, of which tokens, what stands in their place; the same ones for the same (seed, epoch, sentence),
// whatever the batch; whole words; and the batches that they finish.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "data/loader.h"
#include "make_shard.h"
#include "sandbox.h"
#include "task/masks.h"

enum { SENTENCES = 400, WORDS = 60, SPECIALS = 6, CLS = 3, MASK = 5, MOST = 16384 };

static const tarn_config_masking usual = {.share = 0.15, .random = 0.1, .keep = 0.1};
static tarn_vocab *vocab;
static tarn__shard shard;

static int open_all(void **state) {
  if (sandbox_open(state) != 0) return -1;
  vocab = make_masked_vocab(WORDS);
  make_text_shard_of("text", SENTENCES, vocab, 8);
  return tarn__shard_open(&shard, "text") == TARN_STATUS_OK ? 0 : -1;
}

static int close_all(void **state) {
  tarn__shard_close(&shard);
  tarn_vocab_close(&vocab);
  return sandbox_close(state);
}

static tarn__batcher *open_batcher(const tarn_config_masking *masking, const tarn__shard *of, const tarn_vocab *by,
                                   int64_t max_tokens, uint64_t seed, bool shuffle) {
  tarn__batcher_options options;
  tarn__batcher *batcher = NULL;
  tarn__batcher_default(&options);
  options.max_tokens = max_tokens;
  options.seed = seed;
  options.shuffle = shuffle;
  options.rows = TARN__ROWS_WHOLE;
  options.first = tarn_vocab_special(by, TARN_SPECIAL_CLS);
  options.segments = 2;
  if (tarn__masks_open(&options.finish, masking, of, by, "v") != TARN_STATUS_OK ||
      tarn__batcher_open(&batcher, of, &options) != TARN_STATUS_OK)
    fail_msg("%s", tarn_error_message());
  return batcher;
}

// What was drawn in an epoch: of every sentence the ids that the model reads, 0 for a row that is not masked.
typedef struct drawn {
  int32_t read[SENTENCES][MAKE_SHARD_LONGEST + 1];
  int64_t masked, kept, random, hidden, plain;
} drawn;

static void check_sentence(drawn *d, const tarn__batch *batch, int64_t s, int64_t *at, const tarn__shard *of) {
  int32_t ids[MAKE_SHARD_LONGEST];
  const int64_t number = batch->index[s], length = tarn__shard_target_length(of, number);
  const int32_t first = batch->target.offsets[s];
  tarn__shard_target(of, number, ids);
  assert_int_equal(batch->target.offsets[s + 1] - first, length + 1);
  assert_int_equal(batch->target.ids[first], CLS);
  for (int64_t i = 0; i <= length; i++) {
    const int64_t row = first + i;
    assert_int_equal(batch->target.positions[row], i);
    assert_int_equal(batch->target.segments[row], 0);
    d->read[number][i] = 0;
    const bool special = i == 0 || ids[i - 1] < SPECIALS;
    d->plain += !special;
    if (*at == batch->predictions || batch->selected[*at] != row) {
      if (i > 0) assert_int_equal(batch->target.ids[row], ids[i - 1]);
      continue;
    }
    const int32_t read = d->read[number][i] = batch->target.ids[row];
    assert_false(special);
    assert_int_equal(batch->targets[*at], ids[i - 1]);
    assert_true(read == MASK || read >= SPECIALS);
    d->masked++;
    d->hidden += read == MASK;
    d->kept += read == ids[i - 1];
    d->random += read != MASK && read != ids[i - 1];
    ++*at;
  }
}

// Goes through an epoch, whose batches have as many masks as were counted ahead.
static void draw_epoch(drawn *d, tarn__batcher *batcher, const tarn__shard *of) {
  const int64_t batches = tarn__batcher_batches(batcher), ahead = tarn__batcher_predictions(batcher, batches);
  int64_t sentences = 0;
  *d = (drawn){0};
  for (int64_t b = 0; b < batches; b++) {
    const int64_t counted = tarn__batcher_predictions(batcher, 1);
    tarn__batch batch;
    int64_t at = 0;
    tarn__batcher_next(batcher, &batch);
    assert_int_equal(batch.predictions, counted);
    assert_true(counted <= tarn__masks_most(&usual, batch.target.rows, batch.target.sentences));
    for (int64_t s = 0; s < batch.target.sentences; s++) check_sentence(d, &batch, s, &at, of);
    assert_int_equal(at, batch.predictions);
    sentences += batch.target.sentences;
  }
  assert_int_equal(sentences, of->pairs);
  assert_int_equal(d->masked, ahead);
}

static drawn a, b;

// Within four standard deviations of a binomial draw, which floor(share n + u) and the draws of replacements are below.
static void near_share(int64_t count, int64_t of, double share) {
  assert_true(fabs((double)count - share * (double)of) < 4.0 * sqrt((double)of * share * (1.0 - share)));
}

static void shares_are_kept(void **state) {
  (void)state;
  tarn__batcher *batcher = open_batcher(&usual, &shard, vocab, 300, 1, true);
  int64_t masked = 0, hidden = 0, kept = 0, random = 0, plain = 0;
  for (int epoch = 0; epoch < 5; epoch++) {
    draw_epoch(&a, batcher, &shard);
    masked += a.masked, hidden += a.hidden, kept += a.kept, random += a.random, plain += a.plain;
  }
  near_share(masked, plain, 0.15);
  near_share(hidden, masked, 0.8);
  near_share(kept, masked, 0.1 + 0.1 / (WORDS - SPECIALS));  // a random token may be the right one
  near_share(random, masked, 0.1);
  tarn__batcher_close(&batcher);
}

static void extremes(void **state) {
  (void)state;
  const tarn_config_masking all = {.share = 1.0}, kept = {.share = 0.5, .keep = 1.0};
  tarn__batcher *batcher = open_batcher(&all, &shard, vocab, 41, 1, true);
  tarn__batch batch;
  for (int64_t k = tarn__batcher_batches(batcher); k > 0; k--) {
    tarn__batcher_next(batcher, &batch);
    for (int64_t r = 0; r < batch.target.rows; r++) assert_true(batch.target.ids[r] < SPECIALS);
  }
  tarn__batcher_close(&batcher);
  batcher = open_batcher(&kept, &shard, vocab, 41, 1, true);
  tarn__batcher_next(batcher, &batch);
  for (int64_t i = 0; i < batch.predictions; i++)
    assert_int_equal(batch.target.ids[batch.selected[i]], batch.targets[i]);
  tarn__batcher_close(&batcher);
}

// Other epochs and seeds have other masks; another budget has the same.
static void drawn_by_seed_epoch_and_sentence(void **state) {
  (void)state;
  static const struct {
    int64_t max_tokens;
    uint64_t seed;
    int64_t epoch;
    bool same;
  } cases[] = {{300, 1, 0, true}, {77, 1, 0, true}, {300, 1, 1, false}, {300, 2, 0, false}};
  tarn__batcher *batcher = open_batcher(&usual, &shard, vocab, 300, 1, true);
  draw_epoch(&a, batcher, &shard);
  tarn__batcher_close(&batcher);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    batcher = open_batcher(&usual, &shard, vocab, cases[i].max_tokens, cases[i].seed, true);
    assert_int_equal(tarn__batcher_seek(batcher, cases[i].epoch, 0), TARN_STATUS_OK);
    draw_epoch(&b, batcher, &shard);
    assert_int_equal(memcmp(a.read, b.read, sizeof a.read) == 0, cases[i].same);
    tarn__batcher_close(&batcher);
  }
}

// Validation has the same masks in every epoch, which are those of no epoch of a training.
static void fixed_where_nothing_is_shuffled(void **state) {
  (void)state;
  tarn__batcher *batcher = open_batcher(&usual, &shard, vocab, 300, 1, false);
  draw_epoch(&a, batcher, &shard);
  draw_epoch(&b, batcher, &shard);
  assert_memory_equal(a.read, b.read, sizeof a.read);
  tarn__batcher_close(&batcher);
  batcher = open_batcher(&usual, &shard, vocab, 300, 1, true);
  draw_epoch(&b, batcher, &shard);
  assert_memory_not_equal(a.read, b.read, sizeof a.read);
  tarn__batcher_close(&batcher);
}

// In a vocabulary of bytes a word is a blank and the letters behind it.
static void whole_words(void **state) {
  (void)state;
  static const char text[] = "the cat sat on the mat and looked at an extraordinarily long word of letters";
  enum { ROWS = 50, BYTES = 262 };
  tarn_config_masking masking = usual;
  tarn_vocab_options options;
  tarn_vocab *bytes;
  tarn_vocab_ids ids = {0};
  tarn__shard_writer *writer;
  tarn__shard of;
  masking.whole_words = true;
  masking.share = 0.3;
  masking.random = masking.keep = 0;
  tarn_vocab_default(&options);
  options.type = TARN_VOCAB_TYPE_BYTE;
  options.mask_symbols = true;
  assert_int_equal(tarn_vocab_train("bytes", NULL, 0, &options), TARN_STATUS_OK);
  assert_int_equal(tarn_vocab_open(&bytes, "bytes"), TARN_STATUS_OK);
  assert_int_equal(tarn_vocab_encode(bytes, &ids, text, sizeof text - 1), TARN_STATUS_OK);
  assert_int_equal(tarn__shard_writer_open(&writer, "of", NULL, bytes), TARN_STATUS_OK);
  for (int i = 0; i < ROWS; i++)
    assert_int_equal(tarn__shard_writer_put(writer, NULL, 0, ids.data, (int64_t)ids.count), TARN_STATUS_OK);
  assert_int_equal(tarn__shard_writer_commit(&writer), TARN_STATUS_OK);
  assert_int_equal(tarn__shard_open(&of, "of"), TARN_STATUS_OK);
  tarn__batcher *batcher = open_batcher(&masking, &of, bytes, 100, 1, true);
  int64_t masked = 0;
  for (int i = 0; i < ROWS; i++) {
    tarn__batch batch;
    tarn__batcher_next(batcher, &batch);
    const int32_t *read = batch.target.ids + 1;
    assert_int_equal(batch.target.sentences, 1);
    assert_true(batch.predictions <= 0.3 * (sizeof text - 1) + 1);
    masked += batch.predictions;
    for (size_t k = 1; k < sizeof text - 1; k++)
      if (text[k] != ' ') assert_int_equal(read[k] != ids.data[k], read[k - 1] != ids.data[k - 1]);
  }
  assert_true((double)masked > 0.25 * ROWS * (sizeof text - 1));
  tarn__batcher_close(&batcher);
  tarn__shard_close(&of);
  tarn_vocab_ids_close(&ids);
  tarn_vocab_close(&bytes);
}

// The second sentence of a row has the other segment, where there is another; what stands in front is of the first.
static void segments_begin_where_the_shard_says(void **state) {
  (void)state;
  enum { EOS = 2 };
  static const int32_t rows[][7] = {{10, 11, EOS, 12}, {10, 11, 12}, {10, EOS, 11, 12, 15, 13, 14}};
  static const int64_t lengths[] = {4, 3, 7};
  static const int32_t second[] = {3, 4, 2};  // of 5, 4 and 8 tokens with their ends
  tarn__shard_writer *writer;
  tarn__shard pairs;
  assert_int_equal(tarn__shard_writer_open(&writer, "pairs", NULL, vocab), TARN_STATUS_OK);
  tarn__shard_writer_label(writer, &(tarn__shard_labels){.segments = second});
  for (int i = 0; i < 3; i++)
    if (tarn__shard_writer_put(writer, NULL, 0, rows[i], lengths[i]) != TARN_STATUS_OK)
      fail_msg("%s", tarn_error_message());
  tarn__shard_writer_label(writer, &(tarn__shard_labels){.segments = second});
  if (tarn__shard_writer_commit(&writer) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  assert_int_equal(tarn__shard_open(&pairs, "pairs"), TARN_STATUS_OK);
  for (int32_t count = 1; count <= 2; count++) {
    tarn__batcher_options options;
    tarn__batcher *batcher;
    tarn__batch batch;
    tarn__batcher_default(&options);
    options.rows = TARN__ROWS_WHOLE;
    options.first = CLS;
    options.segments = count;
    assert_int_equal(tarn__batcher_open(&batcher, &pairs, &options), TARN_STATUS_OK);
    tarn__batcher_next(batcher, &batch);
    assert_int_equal(batch.target.sentences, 3);
    assert_int_equal(batch.predictions, 0);  // nobody finishes it
    for (int64_t s = 0; s < 3; s++) {
      const int32_t first = batch.target.offsets[s];
      const int64_t pair = batch.index[s];
      assert_int_equal(batch.target.offsets[s + 1] - first, lengths[pair] + 2);
      for (int64_t i = 0; i < lengths[pair] + 2; i++)
        assert_int_equal(batch.target.segments[first + i], count > 1 && i > second[pair]);
    }
    tarn__batcher_close(&batcher);
  }
  tarn__shard_close(&pairs);
}

// Of the tokens before the end of sentence any number is masked, each number with the same chance, and unknown words
// are no exception.
static void any_number_is_masked(void **state) {
  (void)state;
  tarn__batcher_options options;
  tarn__batcher *batcher;
  double sum = 0, unknown = 0;
  int64_t taken = 0;
  tarn__batcher_default(&options);
  options.rows = TARN__ROWS_WHOLE;
  options.max_tokens = 300;
  assert_int_equal(tarn__masks_open_any(&options.finish, &shard, vocab, "v"), TARN_STATUS_OK);
  assert_int_equal(tarn__batcher_open(&batcher, &shard, &options), TARN_STATUS_OK);
  for (int epoch = 0; epoch < 20; epoch++) {
    for (int64_t k = tarn__batcher_batches(batcher); k > 0; k--) {
      const int64_t counted = tarn__batcher_predictions(batcher, 1);
      tarn__batch batch;
      int64_t at = 0;
      tarn__batcher_next(batcher, &batch);
      assert_int_equal(batch.predictions, counted);
      for (int64_t s = 0; s < batch.target.sentences; s++) {
        const int32_t first = batch.target.offsets[s], end = batch.target.offsets[s + 1] - 1;
        const double n = (double)(end - first);
        const int64_t before = at;
        int32_t ids[MAKE_SHARD_LONGEST];
        tarn__shard_target(&shard, batch.index[s], ids);
        for (int32_t row = first; row < end; row++) {
          const bool masked = at < batch.predictions && batch.selected[at] == row;
          assert_int_equal(batch.target.ids[row], masked ? MASK : ids[row - first]);
          if (masked) assert_int_equal(batch.targets[at++], ids[row - first]);
          unknown += masked && ids[row - first] < SPECIALS;
        }
        const int64_t count = at - before;
        assert_true(count >= 1 && count <= end - first);
        if (n > 1) sum += ((double)count - (n + 1) / 2) / sqrt((n * n - 1) / 12), taken++;
      }
      assert_int_equal(at, batch.predictions);
    }
  }
  assert_true(unknown > 0);
  assert_true(fabs(sum) < 4 * sqrt((double)taken));
  tarn__batcher_close(&batcher);
}

// The loader gives what the batcher gives, and counts what an update predicts.
static void the_loader_counts_ahead(void **state) {
  (void)state;
  tarn__batcher *batcher = open_batcher(&usual, &shard, vocab, 300, 1, true);
  tarn__loader *loader;
  assert_int_equal(tarn__loader_open(&loader, batcher, &(tarn__loader_share){0, 1, 3}), TARN_STATUS_OK);
  for (int update = 0; update < 20; update++) {
    const tarn__loaded *loaded;
    int64_t predictions = 0, expected;
    do {
      loaded = tarn__loader_next(loader);
      predictions += loaded->batch.predictions;
      expected = loaded->predictions;
    } while (!loaded->last);
    assert_int_equal(predictions, expected);
  }
  tarn__loader_close(&loader);
  tarn__batcher_close(&batcher);
}

static void a_vocabulary_needs_a_mask(void **state) {
  (void)state;
  tarn_vocab *plain = make_vocab(WORDS);
  tarn__batch_finish finish;
  assert_int_equal(tarn__masks_open(&finish, &usual, &shard, plain, "plain.model"), TARN_STATUS_USAGE);
  assert_string_equal(tarn_error_message(),
                      "plain.model: the vocabulary has no <mask>, which a masked language model reads; make it with "
                      "tarn vocab --mask-symbols");
  tarn_vocab_close(&plain);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(shares_are_kept),
      cmocka_unit_test(extremes),
      cmocka_unit_test(drawn_by_seed_epoch_and_sentence),
      cmocka_unit_test(fixed_where_nothing_is_shuffled),
      cmocka_unit_test(whole_words),
      cmocka_unit_test(any_number_is_masked),
      cmocka_unit_test(segments_begin_where_the_shard_says),
      cmocka_unit_test(the_loader_counts_ahead),
      cmocka_unit_test(a_vocabulary_needs_a_mask),
  };
  return cmocka_run_group_tests(tests, open_all, close_all);
}
