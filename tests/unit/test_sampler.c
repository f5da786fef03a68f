// Draws of the next token: which tokens stay, against sets made by hand; the probabilities of what stays, exactly by
// enumeration of the unit interval and by a chi-square test of drawn ones; and the random numbers behind them.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "ops/sampler.h"

enum { WORDS = 7 };

// Tokens 1 and 4 are equally likely, 5 is impossible.
static const double LIKELY[WORDS] = {0.05, 0.2, 0.3, 0.1, 0.2, 0.0, 0.15};

static void log_row(float *row) {
  for (int i = 0; i < WORDS; i++) row[i] = LIKELY[i] > 0 ? (float)log(LIKELY[i]) : -INFINITY;
}

// The probabilities by the definition: temperature, then the best k, then the nucleus, then all to sum 1.
static void expect(double *out, const tarn__sampling *s, const int32_t *banned, int banned_count) {
  int order[WORDS], count = 0;
  double sum = 0.0;
  for (int i = 0; i < WORDS; i++) {
    bool is_banned = false;
    for (int b = 0; b < banned_count; b++) is_banned |= banned[b] == i;
    out[i] = is_banned ? 0.0 : pow(LIKELY[i], 1.0 / s->temperature);
    if (out[i] > 0.0) order[count++] = i;
  }
  for (int i = 1; i < count; i++)  // by falling probability, equal ones by rising id
    for (int j = i; j > 0 && out[order[j]] > out[order[j - 1]]; j--) {
      const int swap = order[j];
      order[j] = order[j - 1];
      order[j - 1] = swap;
    }
  int kept = s->top_k > 0 && s->top_k < count ? (int)s->top_k : count;
  for (int i = 0; i < kept; i++) sum += out[order[i]];
  if (s->top_p < 1.0) {
    double mass = 0.0;
    int nucleus = 0;
    while (nucleus < kept && (nucleus == 0 || mass < s->top_p * sum)) mass += out[order[nucleus++]];
    kept = nucleus;
    sum = mass;
  }
  for (int i = kept; i < count; i++) out[order[i]] = 0.0;
  for (int i = 0; i < WORDS; i++) out[i] /= sum;
}

static const tarn__sampling CASES[] = {
    {.temperature = 1.0, .top_p = 1.0},
    {.temperature = 0.5, .top_p = 1.0},
    {.temperature = 3.0, .top_p = 1.0},
    {.temperature = 1.0, .top_k = 1, .top_p = 1.0},
    {.temperature = 1.0, .top_k = 2, .top_p = 1.0},  // of two equally likely tokens the first one stays
    {.temperature = 1.0, .top_k = 3, .top_p = 1.0},
    {.temperature = 1.0, .top_k = 100, .top_p = 1.0},
    {.temperature = 1.0, .top_p = 1e-9},
    {.temperature = 1.0, .top_p = 0.31},  // more than the most likely token has
    {.temperature = 1.0, .top_p = 0.6},
    {.temperature = 1.0, .top_p = 0.93},
    {.temperature = 2.0, .top_k = 4, .top_p = 0.7},
    {.temperature = 0.7, .top_k = 5, .top_p = 0.999},
};

// Collects and draws.
static int32_t sample(const tarn__sampling *sampling, const float *row, const int32_t *banned, int banned_count,
                      double uniform) {
  tarn__candidate room[WORDS];
  const int64_t count = tarn__sample_collect(room, NULL, row, WORDS, (tarn__ban){banned, banned_count});
  const tarn__candidate drawn = tarn__sample(sampling, room, count, row, uniform);
  if (drawn.id >= 0) assert_true(drawn.log_probability == row[drawn.id]);
  return drawn.id;
}

// Of N numbers that are spread evenly over [0, 1) a token is drawn by N times its probability, but for one at each end.
static void probabilities_are_exact(void **state) {
  (void)state;
  enum { N = 20000 };
  static const int32_t banned[] = {2, 5};
  float row[WORDS];
  log_row(row);
  for (size_t c = 0; c < sizeof CASES / sizeof *CASES; c++) {
    for (int bans = 0; bans <= 2; bans++) {
      double wanted[WORDS];
      int drawn[WORDS] = {0};
      expect(wanted, &CASES[c], banned, bans);
      for (int i = 0; i < N; i++) drawn[sample(&CASES[c], row, banned, bans, ((double)i + 0.5) / N)]++;
      for (int i = 0; i < WORDS; i++) {
        if (fabs(drawn[i] - wanted[i] * N) > 1.5)
          fail_msg("case %zu, %d banned: token %d is drawn %d times, not %g", c, bans, i, drawn[i], wanted[i] * N);
        if (wanted[i] == 0.0) assert_int_equal(drawn[i], 0);
      }
    }
  }
}

// The random numbers of positions, samples and prompts give the same distribution, and are uniform.
static void draws_fit_by_chi_square(void **state) {
  (void)state;
  enum { N = 60000 };
  float row[WORDS];
  log_row(row);
  for (int along = 0; along < 3; along++) {
    int drawn[WORDS] = {0};
    double mean = 0.0;
    for (uint32_t i = 0; i < N; i++) {
      const double u = tarn__sampling_uniform(5, along == 0 ? i : 9, along == 1 ? i : 0, along == 2 ? i : 0);
      assert_true(u >= 0.0 && u < 1.0);
      mean += u / N;
      drawn[sample(&CASES[0], row, NULL, 0, u)]++;
    }
    double chi = 0.0;
    for (int i = 0; i < WORDS; i++)
      if (LIKELY[i] > 0) chi += pow(drawn[i] - LIKELY[i] * N, 2) / (LIKELY[i] * N);
    assert_int_equal(drawn[5], 0);
    assert_true(chi < 20.5);  // 5 degrees of freedom: one in a thousand is larger
    assert_true(fabs(mean - 0.5) < 0.005);
  }
}

static void random_numbers_are_keyed(void **state) {
  (void)state;
  const double u = tarn__sampling_uniform(1, 2, 3, 4);
  assert_true(u == tarn__sampling_uniform(1, 2, 3, 4));
  assert_true(u != tarn__sampling_uniform(2, 2, 3, 4));
  assert_true(u != tarn__sampling_uniform((uint64_t)1 << 32 | 1, 2, 3, 4));
  assert_true(u != tarn__sampling_uniform(1, 3, 3, 4));
  assert_true(u != tarn__sampling_uniform(1, (uint64_t)1 << 32 | 2, 3, 4));
  assert_true(u != tarn__sampling_uniform(1, 2, 4, 4));
  assert_true(u != tarn__sampling_uniform(1, 2, 3, 5));
}

static void extreme_rows(void **state) {
  (void)state;
  float row[WORDS];
  // Nothing can be drawn.
  for (int i = 0; i < WORDS; i++) row[i] = i % 2 ? -INFINITY : NAN;
  assert_int_equal(sample(&CASES[0], row, NULL, 0, 0.5), -1);
  // A temperature that makes all weights but one vanish, and one that makes them equal.
  log_row(row);
  const tarn__sampling cold = {.temperature = 1e-300, .top_p = 1.0}, hot = {.temperature = 1e300, .top_p = 1.0};
  for (int i = 0; i < 10; i++) assert_int_equal(sample(&cold, row, NULL, 0, i / 10.0), 2);
  int drawn[WORDS] = {0};
  for (int i = 0; i < 600; i++) drawn[sample(&hot, row, NULL, 0, (i + 0.5) / 600.0)]++;
  for (int i = 0; i < WORDS; i++) assert_int_equal(drawn[i], i == 5 ? 0 : 100);
  // The end of the interval falls to a token that has weight.
  row[WORDS - 1] = -1e6f;
  const int32_t last = sample(&CASES[0], row, NULL, 0, nextafter(1.0, 0.0));
  assert_true(last >= 0 && last < 5);
}

// Candidates from a list of the best tokens, as the output layer gives it, are those of the whole row. (What is sorted
// does not depend on the order in which it came.)
static void lists_are_rows(void **state) {
  (void)state;
  static const int32_t ids[] = {2, 1, 4, 6, -1, -1}, banned[] = {1};
  static const tarn__sampling three = {.temperature = 1.3, .top_k = 3, .top_p = 0.999999};
  const tarn__ban ban = {banned, 1};
  float row[WORDS], values[6];
  int kinds = 0;
  log_row(row);
  for (int i = 0; i < 6; i++) values[i] = ids[i] >= 0 ? row[ids[i]] : -INFINITY;
  for (int i = 0; i < 100; i++) {
    tarn__candidate listed[WORDS], all[WORDS];
    const int64_t count = tarn__sample_collect(listed, ids, values, 6, ban);
    assert_int_equal(count, 3);
    const int32_t a = tarn__sample(&three, listed, count, NULL, i / 100.0).id;
    const int32_t b = tarn__sample(&three, all, tarn__sample_collect(all, NULL, row, WORDS, ban), NULL, i / 100.0).id;
    assert_int_equal(a, b);
    kinds |= 1 << a;
  }
  assert_int_equal(kinds, 1 << 2 | 1 << 4 | 1 << 6);
}

// A vocabulary of many blocks.
static void many_words(void **state) {
  (void)state;
  enum { MANY = 50257, N = 1000 };
  static float row[MANY];
  static tarn__candidate room[MANY];
  const tarn__sampling plain = {.temperature = 1.0, .top_p = 1.0};
  double total = 0.0;
  for (int i = 0; i < MANY; i++) {
    row[i] = i % 3 == 0 ? -40.0f : -(float)((i * 7919LL) % 97) / 20.0f;
    total += exp((double)row[i]);
  }
  // The token at which the running sum passes the wanted share.
  int at = 0;
  double sum = exp((double)row[0]) / total;
  for (int i = 0; i < N; i++) {
    const double u = (i + 0.5) / N;
    while (sum <= u) sum += exp((double)row[++at]) / total;
    const int64_t count = tarn__sample_collect(room, NULL, row, MANY, (tarn__ban){NULL, 0});
    assert_int_equal(tarn__sample(&plain, room, count, NULL, u).id, at);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(probabilities_are_exact),  cmocka_unit_test(draws_fit_by_chi_square),
      cmocka_unit_test(random_numbers_are_keyed), cmocka_unit_test(extreme_rows),
      cmocka_unit_test(lists_are_rows),           cmocka_unit_test(many_words),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
