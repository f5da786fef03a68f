// Beam search over tables of probabilities, against exhaustive search and against a plain greedy walk.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/random.h"
#include "decode/beam.h"

enum { VOCAB = 4, EOS = 1, MOST = 4, SENTENCES = 512 };

static void must(tarn_status status) {
  if (status != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
}

// A model: the log-probabilities of the next token as a function of all tokens before it.
static void toy_row(float *row, uint64_t seed, int vocab, const int32_t *prefix, int64_t length, double sharpness) {
  uint64_t key = seed;
  for (int64_t i = 0; i < length; i++) key = key * 1000003u + (uint64_t)prefix[i] + 17;
  tarn__random random;
  tarn__random_init(&random, key, (uint32_t)length);
  double sum = 0;
  for (int i = 0; i < vocab; i++) {
    row[i] = (float)(sharpness * tarn__random_normal(&random));
    sum += exp((double)row[i]);
  }
  for (int i = 0; i < vocab; i++) row[i] -= (float)log(sum);
}

// One step with whole rows of log-probabilities [running_count, vocab]: picks the best of each, lower ids first. A row
// with something that is not a number has no numbers.
static tarn_status advance_vocab(tarn__beam *beam, int vocab, const float *rows) {
  // More than the search needs, as where others of the step need them.
  const int64_t choices = tarn__beam_choices(&beam->options) + vocab % 3, count = beam->running_count;
  int32_t *ids = malloc((size_t)(count * choices) * sizeof *ids);
  float *values = malloc((size_t)(count * (choices + 1)) * sizeof *values);
  for (int64_t h = 0; h < count; h++) {
    const float *row = rows + h * vocab;
    int32_t last = -1, next;
    for (int64_t k = 0; k < choices; k++, last = next) {
      next = -1;
      for (int32_t i = 0; i < vocab && (k == 0 || last >= 0); i++) {
        bool behind = last < 0 || row[i] < row[last] || (row[i] == row[last] && i > last);
        if (behind && row[i] > -INFINITY && (next < 0 || row[i] > row[next])) next = i;
      }
      ids[h * choices + k] = next;
      values[h * (choices + 1) + k] = next >= 0 ? row[next] : -INFINITY;
    }
    values[h * (choices + 1) + choices] = row[EOS];
    for (int i = 0; i < vocab; i++)
      if (isnan(row[i])) values[h * (choices + 1) + choices] = NAN;
  }
  tarn_status status = tarn__beam_advance(beam, &(tarn__beam_rows){ids, values, NULL, choices});
  free(ids);
  free(values);
  return status;
}

static tarn_status advance(tarn__beam *beam, const float *rows) { return advance_vocab(beam, VOCAB, rows); }

typedef struct sentence {
  int32_t ids[MOST + 1];
  int64_t length;
  double sum, score;
} sentence;

typedef struct all_sentences {
  sentence items[SENTENCES];
  int count;
} all_sentences;

// Every sentence of at least one and at most MOST tokens before its end.
static void enumerate(all_sentences *all, uint64_t seed, double penalty, int32_t *prefix, int64_t length, double sum) {
  float row[VOCAB];
  toy_row(row, seed, VOCAB, prefix, length, 1.0);
  if (length > 0) {
    sentence *s = &all->items[all->count++];
    memcpy(s->ids, prefix, (size_t)length * sizeof *prefix);
    s->ids[length] = EOS;
    s->length = length + 1;
    s->sum = sum + (double)row[EOS];
    s->score = s->sum / pow((double)s->length, penalty);
  }
  for (int32_t id = 0; id < VOCAB && length < MOST; id++) {
    if (id == EOS) continue;
    prefix[length] = id;
    enumerate(all, seed, penalty, prefix, length + 1, sum + (double)row[id]);
  }
}

static int better_first(const void *a, const void *b) {
  const sentence *x = a;
  const sentence *y = b;
  return (x->score < y->score) - (x->score > y->score);
}

// The tokens of a running hypothesis, first to last.
static int64_t tokens_of(const tarn__beam *beam, int64_t place, int32_t *ids) {
  int64_t length = beam->step;
  int64_t at = length;
  for (int32_t token = beam->running[place].last; token >= 0; token = beam->tokens[token].parent)
    ids[--at] = beam->tokens[token].id;
  assert_int_equal(at, 0);
  return length;
}

// What phrases want of the rows of a step.
static void want(tarn__beam *beam, int vocab, const float *rows, int32_t *ids, float *values) {
  const int64_t count = beam->forced->count;
  for (int64_t h = 0; h < beam->running_count; h++) {
    tarn__forced_wanted(beam->forced, ids + h * count, tarn__beam_progress(beam, h));
    for (int64_t i = 0; i < count; i++) {
      const int32_t id = ids[h * count + i];
      values[h * (count + 1) + i] = id >= 0 ? rows[h * vocab + id] : -INFINITY;
    }
    values[h * (count + 1) + count] = rows[h * vocab + EOS];
  }
  beam->wanted = (tarn__beam_wanted){ids, values, NULL, count};
}

// With phrases if `forced` is not NULL.
static void search_for(tarn__beam *beam, const tarn__beam_options *options, int vocab, int64_t max_length,
                       uint64_t seed, double sharpness, const tarn__forced *forced, const int32_t *before,
                       int64_t count) {
  must(tarn__beam_start(beam, options, max_length));
  if (forced) must(tarn__beam_force(beam, forced, before, count));
  int32_t *wanted = malloc((size_t)(options->beam * (forced ? forced->count : 0) + 1) * sizeof *wanted);
  float *values = malloc((size_t)(options->beam * (forced ? forced->count + 1 : 0) + 1) * sizeof *values);
  float *rows = malloc((size_t)(options->beam * vocab) * sizeof *rows);
  int32_t ids[64];
  while (!beam->done) {
    for (int64_t i = 0; i < beam->running_count; i++) {
      int64_t length = tokens_of(beam, i, ids);
      assert_int_equal(tarn__beam_last(beam, i), length ? ids[length - 1] : options->eos);
      toy_row(rows + i * vocab, seed, vocab, ids, length, sharpness);
    }
    if (forced) want(beam, vocab, rows, wanted, values);
    must(advance_vocab(beam, vocab, rows));
  }
  free(rows);
  free(wanted);
  free(values);
}

static void search(tarn__beam *beam, const tarn__beam_options *options, int vocab, int64_t max_length, uint64_t seed,
                   double sharpness) {
  search_for(beam, options, vocab, max_length, seed, sharpness, NULL, NULL, 0);
}

// A beam that holds everything finds exactly what exhaustive search finds, in the same order.
static void test_exhaustive(void **state) {
  (void)state;
  static const double penalties[] = {0.0, 0.6, 1.0, 2.0};
  tarn__beam beam = {0};
  for (uint64_t seed = 1; seed <= 20; seed++) {
    double penalty = penalties[seed % 4];
    static all_sentences all;
    int32_t prefix[MOST];
    all.count = 0;
    enumerate(&all, seed, penalty, prefix, 0, 0);
    assert_int_equal(all.count, 3 + 9 + 27 + 81);
    qsort(all.items, (size_t)all.count, sizeof *all.items, better_first);
    tarn__beam_options options = {.beam = 200, .length_penalty = penalty, .eos = EOS, .min_length = 1};
    search(&beam, &options, VOCAB, MOST, seed, 1.0);
    assert_int_equal(beam.finished_count, all.count);
    for (int i = 0; i < all.count; i++) {
      int32_t ids[MOST + 1];
      float log_probabilities[MOST + 1];
      assert_int_equal(beam.finished[i].length, all.items[i].length);
      tarn__beam_copy(&beam, i, ids, log_probabilities);
      assert_memory_equal(ids, all.items[i].ids, (size_t)all.items[i].length * sizeof *ids);
      assert_true(fabs(beam.finished[i].score - all.items[i].score) < 1e-12);
      double sum = 0;
      for (int64_t k = 0; k < all.items[i].length; k++) sum += (double)log_probabilities[k];
      assert_true(fabs(sum - all.items[i].sum) < 1e-12);
    }
  }
  tarn__beam_close(&beam);
}

// Beam 1 takes the best token at every step.
static void test_greedy(void **state) {
  (void)state;
  static const int vocabs[] = {5, 64, 65, 191, 1000};
  tarn__beam beam = {0};
  for (uint64_t seed = 1; seed <= 30; seed++) {
    int vocab = vocabs[seed % 5];
    float row[1000];
    int32_t ids[21];
    int64_t length = 0;
    for (;; length++) {
      toy_row(row, seed, vocab, ids, length, 3.0);
      int best = length == 0 ? 0 : EOS;
      for (int i = 0; i < vocab; i++)
        if (row[i] > row[best] && (length > 0 || i != EOS)) best = i;
      if (length == 20 || best == EOS) break;
      ids[length] = best;
    }
    ids[length] = EOS;
    tarn__beam_options options = {.beam = 1, .length_penalty = 1.0, .eos = EOS, .min_length = 1};
    search(&beam, &options, vocab, 20, seed, 3.0);
    int32_t found[21];
    float log_probabilities[21];
    assert_int_equal(beam.finished_count, 1);
    assert_int_equal(beam.finished[0].length, length + 1);
    tarn__beam_copy(&beam, 0, found, log_probabilities);
    assert_memory_equal(found, ids, (size_t)(length + 1) * sizeof *ids);
  }
  tarn__beam_close(&beam);
}

// Greedy takes token 2 (0.6) and then nothing is likely; the better sentence begins with token 3 (0.4).
static void test_wider_is_better(void **state) {
  (void)state;
  const float first[5] = {logf(1e-6f), logf(1e-6f), logf(0.6f), logf(0.4f), logf(1e-6f)};
  const float after_2[5] = {logf(0.2f), logf(0.25f), logf(0.2f), logf(0.2f), logf(0.15f)};
  const float after_3[5] = {logf(0.02f), logf(0.9f), logf(0.03f), logf(0.03f), logf(0.02f)};
  tarn__beam beam = {0};
  for (int width = 1; width <= 2; width++) {
    tarn__beam_options options = {.beam = width, .length_penalty = 0.0, .eos = EOS, .min_length = 1};
    must(tarn__beam_start(&beam, &options, 1));
    must(advance_vocab(&beam, 5, first));
    assert_false(beam.done);
    float rows[10];
    for (int64_t i = 0; i < beam.running_count; i++)
      memcpy(rows + 5 * i, tarn__beam_last(&beam, i) == 2 ? after_2 : after_3, sizeof after_2);
    must(advance_vocab(&beam, 5, rows));
    assert_true(beam.done);
    int32_t ids[2];
    float log_probabilities[2];
    tarn__beam_copy(&beam, 0, ids, log_probabilities);
    assert_int_equal(ids[0], width == 1 ? 2 : 3);
    assert_int_equal(ids[1], EOS);
    assert_true(fabs(beam.finished[0].score - log(width == 1 ? 0.6 * 0.25 : 0.4 * 0.9)) < 1e-6);
  }
  tarn__beam_close(&beam);
}

static void test_sorted_and_repeatable(void **state) {
  (void)state;
  tarn__beam one = {0}, two = {0};
  for (uint64_t seed = 1; seed <= 20; seed++) {
    tarn__beam_options options = {.beam = 6, .length_penalty = 1.0, .eos = EOS, .min_length = 1};
    search(&one, &options, 70, 12, seed, 2.0);
    search(&two, &options, 70, 12, seed, 2.0);
    assert_int_equal(one.finished_count, 6);
    assert_memory_equal(one.finished, two.finished, 6 * sizeof *one.finished);
    for (int i = 1; i < 6; i++) assert_true(one.finished[i - 1].score >= one.finished[i].score);
  }
  tarn__beam_close(&one);
  tarn__beam_close(&two);
}

// A search that goes on finds nothing worse, now and then something better, and gives as many.
static void test_late_stop(void **state) {
  (void)state;
  tarn__beam early = {0}, late = {0};
  int better = 0;
  for (uint64_t seed = 1; seed <= 60; seed++) {
    tarn__beam_options options = {.beam = 3, .length_penalty = 1.0, .eos = EOS, .min_length = 1};
    search(&early, &options, 40, 12, seed, 2.0);
    options.late_stop = true;
    search(&late, &options, 40, 12, seed, 2.0);
    assert_int_equal(late.finished_count, early.finished_count);
    assert_true(late.step >= early.step);
    for (int i = 0; i < 3; i++) assert_true(late.finished[i].score >= early.finished[i].score);
    for (int i = 1; i < 3; i++) assert_true(late.finished[i - 1].score >= late.finished[i].score);
    better += late.finished[0].score > early.finished[0].score;
  }
  assert_true(better > 0 && better < 60);
  tarn__beam_close(&early);
  tarn__beam_close(&late);
}

// Ties go to the lower token; nothing is broken by a row without differences.
static void test_ties(void **state) {
  (void)state;
  float row[VOCAB * 3];
  for (int i = 0; i < VOCAB * 3; i++) row[i] = logf(0.25f);
  tarn__beam beam = {0};
  tarn__beam_options options = {.beam = 2, .length_penalty = 1.0, .eos = EOS, .min_length = 1};
  must(tarn__beam_start(&beam, &options, 2));
  must(advance(&beam, row));
  assert_int_equal(beam.running_count, 2);
  assert_int_equal(tarn__beam_last(&beam, 0), 0);
  assert_int_equal(tarn__beam_last(&beam, 1), 2);
  tarn__beam_close(&beam);
}

static void test_limits(void **state) {
  (void)state;
  tarn__beam beam = {0};
  tarn__beam_options options = {.beam = 3, .length_penalty = 1.0, .eos = EOS, .min_length = 1};
  float row[VOCAB] = {logf(0.4f), logf(0.3f), logf(0.2f), logf(0.1f)};
  // Nothing but the end of sentence fits.
  must(tarn__beam_start(&beam, &options, 0));
  must(advance(&beam, row));
  assert_true(beam.done);
  assert_int_equal(beam.finished_count, 1);
  assert_int_equal(beam.finished[0].length, 1);
  // What is not a number, and what cannot go on, is an error.
  must(tarn__beam_start(&beam, &options, 5));
  float broken[VOCAB] = {-1, -1, NAN, -1};
  assert_int_equal(advance(&beam, broken), TARN_STATUS_NUMERIC);
  must(tarn__beam_start(&beam, &options, 5));
  float nothing[VOCAB] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
  assert_int_equal(advance(&beam, nothing), TARN_STATUS_NUMERIC);
  // A continuation with probability 0 is never taken.
  must(tarn__beam_start(&beam, &options, 5));
  float two[VOCAB] = {-0.7f, -INFINITY, -0.7f, -INFINITY};
  must(advance(&beam, two));
  assert_int_equal(beam.running_count, 2);
  tarn__beam_close(&beam);
}

// Diverse beam search written down plainly: every group looks at all continuations of its hypotheses.
enum { MOST_STEPS = 6 };

typedef struct plain {
  int32_t ids[MOST_STEPS + 1];
  int64_t length;
  double sum;
} plain;

enum { GROUPS = 3, WIDTH = 2, WORDS = 9 };

static int plain_first(const void *a, const void *b) {
  const plain *x = a, *y = b;
  return (x->sum < y->sum) - (x->sum > y->sum);
}

static int plain_score_first(const void *a, const void *b) {
  const plain *x = a, *y = b;
  const double p = x->sum / (double)x->length, q = y->sum / (double)y->length;
  return (p < q) - (p > q);
}

static int plain_step(plain *running, int count, plain *finished, int *done, int32_t *chosen, int *chosen_count,
                      uint64_t seed, double diversity, int64_t step) {
  static plain all[WIDTH * WORDS];
  int listed = 0, kept = 0;
  for (int h = 0; h < count; h++) {
    float row[WORDS];
    toy_row(row, seed, WORDS, running[h].ids, step, 1.5);
    for (int32_t id = 0; id < WORDS; id++) {
      if (id == EOS && step == 0) continue;
      if (id != EOS && step == MOST_STEPS) continue;
      plain *next = &all[listed++];
      *next = running[h];
      next->ids[next->length++] = id;
      next->sum += (double)row[id];
      for (int c = 0; c < *chosen_count; c++) next->sum -= chosen[c] == id ? diversity : 0.0;
    }
  }
  qsort(all, (size_t)listed, sizeof *all, plain_first);
  for (int i = 0; i < listed && i < 2 * WIDTH && kept < WIDTH; i++) {
    if (all[i].ids[step] != EOS)
      running[kept++] = all[i];
    else if (i < WIDTH && *done < WIDTH)
      finished[(*done)++] = all[i];
  }
  for (int i = 0; i < kept; i++) chosen[(*chosen_count)++] = running[i].ids[step];
  return kept;
}

static int plain_search(plain finished[2 * GROUPS * WIDTH], uint64_t seed, double diversity) {
  static plain running[GROUPS][WIDTH], ended[GROUPS][WIDTH];
  int counts[GROUPS] = {1, 1, 1}, done[GROUPS] = {0}, all = 0;
  memset(running, 0, sizeof running);
  for (int64_t step = 0; step <= MOST_STEPS; step++) {
    int32_t chosen[GROUPS * WIDTH];
    int chosen_count = 0;
    for (int g = 0; g < GROUPS; g++)
      if (done[g] < WIDTH && counts[g] > 0)
        counts[g] = plain_step(running[g], counts[g], ended[g], &done[g], chosen, &chosen_count, seed, diversity, step);
  }
  for (int g = 0; g < GROUPS; g++)
    for (int i = 0; i < done[g]; i++) finished[all++] = ended[g][i];
  qsort(finished, (size_t)all, sizeof *finished, plain_score_first);
  return all;
}

static void test_diverse(void **state) {
  (void)state;
  static const double penalties[] = {0.0, 0.3, 1.0, 20.0};
  tarn__beam beam = {0};
  int differ = 0;
  for (uint64_t seed = 1; seed <= 80; seed++) {
    plain finished[2 * GROUPS * WIDTH];
    tarn__beam_options options = {.beam = GROUPS * WIDTH,
                                  .length_penalty = 1.0,
                                  .eos = EOS,
                                  .min_length = 1,
                                  .groups = GROUPS,
                                  .diversity = penalties[seed % 4]};
    search(&beam, &options, WORDS, MOST_STEPS, seed, 1.5);
    const int count = plain_search(finished, seed, options.diversity);
    assert_int_equal(beam.finished_count, count);
    for (int i = 0; i < count; i++) {
      int32_t ids[MOST_STEPS + 1];
      float log_probabilities[MOST_STEPS + 1];
      double likelihood = 0.0;
      tarn__beam_copy(&beam, i, ids, log_probabilities);
      assert_int_equal(beam.finished[i].length, finished[i].length);
      if (options.diversity > 0.0)  // without it groups are equal, and so are their scores
        assert_memory_equal(ids, finished[i].ids, (size_t)finished[i].length * sizeof *ids);
      assert_true(fabs(beam.finished[i].sum - finished[i].sum) < 1e-9);
      for (int64_t k = 0; k < beam.finished[i].length; k++) likelihood += (double)log_probabilities[k];
      assert_true(fabs(beam.finished[i].likelihood - likelihood) < 1e-9);
      differ += beam.finished[i].sum < likelihood - 1e-9;
    }
  }
  assert_true(differ > 0);
  tarn__beam_close(&beam);
}

// Hypotheses end where they are told to, without an end of sentence.
static tarn_status stops_at_three(void *user, const tarn__beam *beam, int32_t last, int32_t id, bool *stop) {
  int *calls = user;
  assert_true(last < (int32_t)beam->token_count);
  (*calls)++;
  *stop = id == 3;
  return *calls == 1000 ? TARN_STATUS_DATA : TARN_STATUS_OK;
}

static void test_stops(void **state) {
  (void)state;
  const float row[VOCAB] = {logf(0.3f), logf(0.05f), logf(0.25f), logf(0.4f)};
  tarn__beam beam = {0};
  int calls = 0;
  tarn__beam_options options = {.beam = 1, .length_penalty = 1.0, .eos = EOS, .min_length = 1, .open_end = true};
  must(tarn__beam_start(&beam, &options, 10));
  beam.stop = (tarn__beam_stop){stops_at_three, &calls};
  must(advance(&beam, row));
  assert_true(beam.done && beam.finished_count == 1 && !beam.finished[0].ended);
  int32_t ids[10];
  float log_probabilities[10];
  assert_int_equal(beam.finished[0].length, 1);
  tarn__beam_copy(&beam, 0, ids, log_probabilities);
  assert_int_equal(ids[0], 3);
  assert_true(log_probabilities[0] == row[3]);
  calls = 999;  // what the caller says goes on
  must(tarn__beam_start(&beam, &options, 10));
  beam.stop = (tarn__beam_stop){stops_at_three, &calls};
  assert_int_equal(advance(&beam, row), TARN_STATUS_DATA);
  tarn__beam_close(&beam);
}

// --- phrases ---------------------------------------------------------------------------------------------------------

static bool stands_at(const tarn__phrase *phrase, const int32_t *ids, int64_t length, int64_t at) {
  return at + phrase->length <= length && memcmp(ids + at, phrase->ids, (size_t)phrase->length * sizeof *ids) == 0;
}

static bool contains(const int32_t *ids, int64_t length, const tarn__phrase *phrase) {
  for (int64_t at = 0; at < length; at++)
    if (stands_at(phrase, ids, length, at)) return true;
  return false;
}

static bool contains_all(const int32_t *ids, int64_t length, const tarn__forced *forced) {
  for (int64_t i = 0; i < forced->count; i++)
    if (!contains(ids, length, &forced->phrases[i])) return false;
  return true;
}

// Progress by its definition, at every token of random sequences of two tokens.
static void test_progress(void **state) {
  (void)state;
  tarn__random random;
  tarn__random_init(&random, 7, 0);
  for (int round = 0; round < 400; round++) {
    int32_t words[5], ids[30], progress = 0;
    const tarn__phrase phrase = {words, 1 + (int64_t)tarn__random_below(&random, 5)};
    const tarn__forced forced = {.phrases = &phrase, .count = 1, .tokens = phrase.length};
    for (int i = 0; i < 5; i++) words[i] = (int32_t)tarn__random_below(&random, 2);
    for (int64_t length = 1; length <= 30; length++) {
      ids[length - 1] = (int32_t)tarn__random_below(&random, 2);
      int64_t wanted = 0;
      for (int64_t k = 1; k <= phrase.length && k <= length; k++)
        if (memcmp(words, ids + length - k, (size_t)k * sizeof *ids) == 0) wanted = k;
      if (contains(ids, length, &phrase)) wanted = phrase.length;
      assert_int_equal(tarn__forced_advance(&forced, &progress, &progress, ids[length - 1]), wanted);
      assert_int_equal(tarn__forced_need(&forced, &progress), phrase.length - wanted);
    }
  }
}

static const int32_t TWO[] = {2}, ZERO_THREE[] = {0, 3}, TWO_TWO[] = {2, 2}, THREE_TWO[] = {3, 2};
static const char *const NAMES[] = {"first", "second"};
enum { FORCED_CASES = 5 };
static const struct {
  tarn__phrase phrases[2];
  int64_t count, overlap;
} FORCED[FORCED_CASES] = {{{{TWO, 1}}, 1, 0},
                          {{{ZERO_THREE, 2}}, 1, 0},
                          {{{TWO_TWO, 2}}, 1, 0},
                          {{{ZERO_THREE, 2}, {TWO, 1}}, 2, 0},
                          {{{ZERO_THREE, 2}, {THREE_TWO, 2}}, 2, 1}};

static tarn__forced forced_case(int which) {
  tarn__forced forced = {.phrases = FORCED[which].phrases, .texts = NAMES, .count = FORCED[which].count};
  for (int64_t i = 0; i < forced.count; i++) forced.tokens += forced.phrases[i].length;
  return forced;
}

// A beam that holds everything finds all sentences with the phrases, in the order of their scores; where phrases can
// overlap, all but those that would not have room for them one after another.
static void test_forced_exhaustive(void **state) {
  (void)state;
  tarn__beam beam = {0};
  for (uint64_t seed = 1; seed <= 40; seed++) {
    const int which = (int)(seed % FORCED_CASES);
    const tarn__forced forced = forced_case(which);
    const int32_t before[] = {1, 0};
    const int64_t count = seed % 2 ? 2 : 0;  // now and then the first token of a phrase stands in front
    static all_sentences all;
    int32_t prefix[MOST], whole[MOST + 3];
    all.count = 0;
    enumerate(&all, seed, 1.0, prefix, 0, 0);
    qsort(all.items, (size_t)all.count, sizeof *all.items, better_first);
    tarn__beam_options options = {.beam = 200, .length_penalty = 1.0, .eos = EOS, .min_length = 1};
    search_for(&beam, &options, VOCAB, MOST, seed, 1.0, &forced, before, count);
    int64_t found = 0;
    memcpy(whole, before, (size_t)count * sizeof *whole);
    for (int i = 0; i < all.count; i++) {
      const sentence *s = &all.items[i];
      memcpy(whole + count, s->ids, (size_t)s->length * sizeof *whole);
      if (!contains_all(whole, count + s->length, &forced)) continue;
      int32_t ids[MOST + 1];
      float log_probabilities[MOST + 1];
      if (found < beam.finished_count) tarn__beam_copy(&beam, found, ids, log_probabilities);
      const bool same = found < beam.finished_count && beam.finished[found].length == s->length &&
                        memcmp(ids, s->ids, (size_t)s->length * sizeof *ids) == 0;
      assert_true(same || s->length - 1 > MOST - FORCED[which].overlap);
      if (same) assert_true(fabs(beam.finished[found].score - s->score) < 1e-12);
      found += same;
    }
    assert_true(found > 0 && found == beam.finished_count);
  }
  tarn__beam_close(&beam);
}

// A narrow beam finds unlikely phrases, whatever the room that they leave, and does better when it is wider.
static void test_forced_narrow(void **state) {
  (void)state;
  static const int32_t first[] = {31, 7, 7}, second[] = {12}, third[] = {5, 31};
  static const tarn__phrase phrases[] = {{first, 3}, {second, 1}, {third, 2}};
  static const char *const texts[] = {"a", "b", "c"};
  const tarn__forced forced = {phrases, texts, 3, 6, 0};
  tarn__beam beam = {0};
  double scores[3] = {0};
  for (uint64_t seed = 1; seed <= 40; seed++)
    for (int w = 0; w < 3; w++) {
      const int64_t max_length = 6 + (int64_t)(seed % 6);
      tarn__beam_options options = {.beam = w == 0   ? 2
                                            : w == 1 ? 5
                                                     : 40,
                                    .length_penalty = 1.0,
                                    .eos = EOS,
                                    .min_length = 1,
                                    .late_stop = seed % 2 == 0};
      search_for(&beam, &options, 40, max_length, seed, 2.0, &forced, NULL, 0);
      assert_true(beam.finished_count > 0 && beam.finished_count <= options.beam);
      for (int64_t i = 0; i < beam.finished_count; i++) {
        int32_t ids[13];
        float log_probabilities[13];
        double sum = 0;
        tarn__beam_copy(&beam, i, ids, log_probabilities);
        assert_true(contains_all(ids, beam.finished[i].length, &forced));
        for (int64_t k = 0; k < beam.finished[i].length; k++) sum += (double)log_probabilities[k];
        assert_true(fabs(beam.finished[i].sum - sum) < 1e-9);
        assert_true(i == 0 || beam.finished[i - 1].score >= beam.finished[i].score);
      }
      scores[w] += beam.finished[0].score;
    }
  assert_true(scores[0] < scores[1] && scores[1] < scores[2]);
  tarn__beam_close(&beam);
}

static void test_forced_limits(void **state) {
  (void)state;
  tarn__beam beam = {0};
  const tarn__forced forced = forced_case(3);
  tarn__beam_options options = {.beam = 3, .length_penalty = 1.0, .eos = EOS, .min_length = 1};
  must(tarn__beam_start(&beam, &options, 2));
  assert_int_equal(tarn__beam_force(&beam, &forced, NULL, 0), TARN_STATUS_DATA);
  assert_non_null(
      strstr(tarn_error_message(),
             "the forced text \"first\", with the others, needs 3 tokens, and the translation has at most 2"));
  must(tarn__beam_force(&beam, &forced, THREE_TWO + 1, 1));  // one stands in front already
  // A token that has no probability: the text that wants it is named.
  const float row[VOCAB] = {-1, -1.5f, -INFINITY, -0.5f};
  float rows[3 * VOCAB], values[9];
  int32_t wanted[6];
  must(tarn__beam_start(&beam, &options, 4));
  must(tarn__beam_force(&beam, &forced, NULL, 0));
  tarn_status status = TARN_STATUS_OK;
  while (status == TARN_STATUS_OK && !beam.done) {
    for (int64_t i = 0; i < beam.running_count; i++) memcpy(rows + i * VOCAB, row, sizeof row);
    want(&beam, VOCAB, rows, wanted, values);
    status = advance(&beam, rows);
  }
  assert_int_equal(status, TARN_STATUS_DATA);
  assert_non_null(strstr(tarn_error_message(), "the forced text \"second\" cannot be written"));
  // A search without phrases after one with them.
  search(&beam, &options, VOCAB, MOST, 3, 1.0);
  assert_int_equal(beam.finished_count, 3);
  tarn__beam_close(&beam);
}

static tarn_status begin_forced(tarn__beam *beam, const tarn__beam_options *options) {
  static tarn__forced forced;
  forced = forced_case(4);
  const tarn_status status = tarn__beam_start(beam, options, 5);
  return status == TARN_STATUS_OK ? tarn__beam_force(beam, &forced, NULL, 0) : status;
}

static void test_no_memory(void **state) {
  (void)state;
  for (uint64_t n = 1;; n++) {
    tarn__beam beam = {0};
    tarn__beam_options options = {.beam = 3, .length_penalty = 1.0, .eos = EOS, .min_length = 1};
    float row[VOCAB] = {-1, -1.5f, -2, -2.5f};
    tarn__memory_fail_after(n);
    tarn_status status = begin_forced(&beam, &options);
    if (status == TARN_STATUS_OK) status = tarn__beam_start(&beam, &options, 5);
    if (status == TARN_STATUS_OK) status = advance(&beam, row);
    tarn__memory_fail_after(0);
    tarn__beam_close(&beam);
    if (status == TARN_STATUS_OK) break;
    assert_int_equal(status, TARN_STATUS_MEMORY);
    assert_true(n < 20);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_exhaustive),
                                     cmocka_unit_test(test_greedy),
                                     cmocka_unit_test(test_wider_is_better),
                                     cmocka_unit_test(test_sorted_and_repeatable),
                                     cmocka_unit_test(test_late_stop),
                                     cmocka_unit_test(test_ties),
                                     cmocka_unit_test(test_limits),
                                     cmocka_unit_test(test_diverse),
                                     cmocka_unit_test(test_stops),
                                     cmocka_unit_test(test_progress),
                                     cmocka_unit_test(test_forced_exhaustive),
                                     cmocka_unit_test(test_forced_narrow),
                                     cmocka_unit_test(test_forced_limits),
                                     cmocka_unit_test(test_no_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
