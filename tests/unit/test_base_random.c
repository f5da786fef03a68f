// Philox against the known-answer vectors of Random123 (Salmon et al. 2011), and what is built on it.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/random.h"

static void philox_known_answers(void **state) {
  (void)state;
  static const struct {
    uint32_t counter[4], key[2], expected[4];
  } cases[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint32_t out[4];
    tarn__philox(out, cases[i].counter, cases[i].key);
    for (int j = 0; j < 4; j++) assert_int_equal(out[j], cases[i].expected[j]);
  }
}

static void streams_repeat_and_differ(void **state) {
  (void)state;
  tarn__random a;
  tarn__random b;
  tarn__random other_stream;
  tarn__random other_seed;
  tarn__random_init(&a, 0x123456789abcdefull, 3);
  tarn__random_init(&b, 0x123456789abcdefull, 3);
  tarn__random_init(&other_stream, 0x123456789abcdefull, 4);
  tarn__random_init(&other_seed, 0x023456789abcdefull, 3);
  int equal_stream = 0;
  int equal_seed = 0;
  for (int i = 0; i < 1000; i++) {
    uint32_t word = tarn__random_u32(&a);
    assert_int_equal(word, tarn__random_u32(&b));
    equal_stream += word == tarn__random_u32(&other_stream);
    equal_seed += word == tarn__random_u32(&other_seed);
  }
  assert_true(equal_stream <= 1 && equal_seed <= 1);
}

static void uniform_fills_its_range(void **state) {
  (void)state;
  tarn__random random;
  tarn__random_init(&random, 1, 0);
  enum { N = 200000, BINS = 20 };
  int bins[BINS] = {0};
  for (int i = 0; i < N; i++) {
    double u = tarn__random_uniform(&random);
    assert_true(u >= 0.0 && u < 1.0);
    bins[(int)(u * BINS)]++;
  }
  double chi2 = 0.0;
  for (int i = 0; i < BINS; i++) chi2 += pow(bins[i] - (double)N / BINS, 2) / ((double)N / BINS);
  assert_true(chi2 < 43.8);  // 19 degrees of freedom, p = 0.001
}

static void below_stays_below(void **state) {
  (void)state;
  tarn__random random;
  tarn__random_init(&random, 2, 0);
  int seen[7] = {0};
  for (int i = 0; i < 7000; i++) seen[tarn__random_below(&random, 7)]++;
  for (int i = 0; i < 7; i++) assert_true(seen[i] > 850 && seen[i] < 1150);
  for (int i = 0; i < 100; i++) assert_true(tarn__random_below(&random, 1) == 0);
  for (int i = 0; i < 100; i++) assert_true(tarn__random_below(&random, (1ull << 63) + 1) <= 1ull << 63);
}

static void normal_has_its_moments_and_agrees_with_libm(void **state) {
  (void)state;
  enum { N = 200000 };
  const double pi = 3.14159265358979323846;
  tarn__random random;
  tarn__random uniforms;
  tarn__random_init(&random, 42, 7);
  tarn__random_init(&uniforms, 42, 7);
  double sum = 0.0;
  double sum2 = 0.0;
  double sum4 = 0.0;
  double worst = 0.0;
  for (int i = 0; i < N; i++) {
    double x = tarn__random_normal(&random);
    double u = 1.0 - tarn__random_uniform(&uniforms);
    double v = tarn__random_uniform(&uniforms);
    worst = fmax(worst, fabs(x - sqrt(-2.0 * log(u)) * cos(2.0 * pi * v)));
    sum += x;
    sum2 += x * x;
    sum4 += x * x * x * x;
  }
  assert_true(worst < 1e-12);
  assert_true(fabs(sum / N) < 4.0 / sqrt(N));
  assert_true(fabs(sum2 / N - 1.0) < 4.0 * sqrt(2.0 / N));
  assert_true(fabs(sum4 / N - 3.0) < 4.0 * sqrt(96.0 / N));
}

// Frozen weights are functions of these numbers: a changed bit would make every stored model unreadable.
static void normal_has_fixed_bits(void **state) {
  (void)state;
  tarn__random random;
  double values[4096];
  char hash[TARN__HASH_TEXT];
  tarn__random_init(&random, 1, 0);
  for (int i = 0; i < 4096; i++) values[i] = tarn__random_normal(&random);
  tarn__hash(hash, values, sizeof values);
  assert_string_equal(hash, "62f81330645487ca7fb335f0c695debc");
}

static void shuffle_permutes(void **state) {
  (void)state;
  enum { N = 1000, TRIALS = 600 };
  int64_t items[N];
  char seen[N] = {0};
  tarn__random random;
  tarn__random_init(&random, 5, 0);
  for (int64_t i = 0; i < N; i++) items[i] = i;
  tarn__random_shuffle(&random, items, N);
  int fixed = 0;
  for (int64_t i = 0; i < N; i++) {
    assert_in_range(items[i], 0, N - 1);
    assert_false(seen[items[i]]);
    seen[items[i]] = 1;
    fixed += items[i] == i;
  }
  assert_true(fixed < 10);
  int counts[6] = {0};  // all orders of three things come about equally often
  for (int t = 0; t < TRIALS; t++) {
    int64_t three[3] = {0, 1, 2};
    tarn__random_shuffle(&random, three, 3);
    counts[three[0] * 2 + (three[1] > three[2])]++;
  }
  for (int i = 0; i < 6; i++) assert_true(counts[i] > 60 && counts[i] < 140);
  tarn__random_shuffle(&random, NULL, 0);
}

// From any place of a block on, across the numbers where a word of the counter carries over, to any length.
static void places_are_those_of_single_draws(void **state) {
  (void)state;
  enum { MOST = 1000 };
  static const double shares[] = {0, 0.001, 0.3, 0x1p-53, 1};
  static int32_t places[MOST];
  for (int before = 0; before < 5; before++)
    for (int count = 0; count <= MOST; count += 37)
      for (size_t s = 0; s < sizeof shares / sizeof *shares; s++) {
        tarn__random one, many;
        tarn__random_init(&one, 9, 4);
        one.block = UINT32_MAX - 100u;
        for (int i = 0; i < before; i++) tarn__random_u32(&one);
        many = one;
        const int64_t found = tarn__random_places(places, &many, shares[s], count);
        int64_t next = 0;
        for (int i = 0; i < count; i++)
          if (tarn__random_uniform(&one) < shares[s]) {
            assert_true(next < found);
            assert_int_equal(places[next++], i);
          }
        assert_int_equal(found, next);
        assert_int_equal(tarn__random_u64(&one), tarn__random_u64(&many));
      }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(philox_known_answers),
      cmocka_unit_test(streams_repeat_and_differ),
      cmocka_unit_test(uniform_fills_its_range),
      cmocka_unit_test(below_stays_below),
      cmocka_unit_test(normal_has_its_moments_and_agrees_with_libm),
      cmocka_unit_test(normal_has_fixed_bits),
      cmocka_unit_test(shuffle_permutes),
      cmocka_unit_test(places_are_those_of_single_draws),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
