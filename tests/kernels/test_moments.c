// Moments in BF16 and F8: rounded at random without bias, from numbers that are independent of each other, the same for
// any number of threads and near the reference; for every instruction set, or on the device of TARN_DEVICE.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "device/devices.h"
#include "kernels/kernel_check.h"
#include "list_optimiser.h"
#include "optim/moments.h"

static const tarn__adam_options options = {1e-3, 0.9, 0.999, 1e-8, 0.01, true, 7};

static const tarn__moments formats[] = {TARN__MOMENTS_BF16, TARN__MOMENTS_F8};
enum { FORMATS = sizeof formats / sizeof *formats };

// A parameter whose moments are all zero.
static tarn__param param_open(int64_t rows, int64_t cols, uint32_t number, tarn__moments moments) {
  const size_t n = (size_t)(rows * cols);
  tarn__param p = {.name = "p", .rows = rows, .cols = cols, .trained = true, .dtype = TARN__BF16};
  p.training = (tarn__param_training){.master = check_shared(n * sizeof(float)),
                                      .grad = check_shared(n * sizeof(float)),
                                      .grad_written = true,
                                      .moment1 = check_shared(tarn__moment_bytes(moments, n)),
                                      .moment2 = check_shared(tarn__moment_bytes(moments, n)),
                                      .moments = moments,
                                      .number = number};
  p.value = check_shared(n * sizeof(uint16_t));
  return p;
}

static void param_close(tarn__param *p) {
  check_shared_free(p->value);
  check_shared_free(p->training.master);
  check_shared_free(p->training.grad);
  check_shared_free(p->training.moment1);
  check_shared_free(p->training.moment2);
}

static void *moments_of(const tarn__param *p, int which) {
  return which == 1 ? p->training.moment1 : p->training.moment2;
}

// Powers of two, which both formats have.
static void fill_moments(tarn__param *p, float moment1, float moment2) {
  for (int64_t i = 0; i < p->rows * p->cols; i++)
    for (int which = 1; which <= 2; which++) {
      const float value = which == 1 ? moment1 : moment2;
      tarn__moment_block *block = (tarn__moment_block *)moments_of(p, which) + i / TARN__MOMENT_BLOCK;
      if (p->training.moments == TARN__MOMENTS_BF16) {
        ((uint16_t *)moments_of(p, which))[i] = tarn__bf16_from_f32(value);
        continue;
      }
      block->unit =
          tarn__moment_unit_of(tarn__moment_bits(value), which == 1 ? TARN__MOMENT_SPAN1 : TARN__MOMENT_SPAN2);
      block->codes[i % TARN__MOMENT_BLOCK] =
          which == 1 ? tarn__moment_code1(value, block->unit, 0) : tarn__moment_code2(value, block->unit, 0);
    }
}

static float moment_at(const tarn__param *p, int which, int64_t i) {
  const void *moments = moments_of(p, which);
  if (p->training.moments == TARN__MOMENTS_BF16) return tarn__bf16_to_f32(((const uint16_t *)moments)[i]);
  const tarn__moment_block *block = (const tarn__moment_block *)moments + i / TARN__MOMENT_BLOCK;
  const uint8_t code = block->codes[i % TARN__MOMENT_BLOCK];
  return which == 1 ? tarn__moment_value1(code, block->unit) : tarn__moment_value2(code, block->unit);
}

static void fill_gradient(tarn__param *p, float value) {
  for (int64_t i = 0; i < p->rows * p->cols; i++) ((float *)p->training.grad)[i] = value;
}

static double mean(const tarn__param *p, int which) {
  const int64_t n = p->rows * p->cols;
  double sum = 0.0;
  for (int64_t i = 0; i < n; i++) sum += (double)moment_at(p, which, i);
  return sum / (double)n;
}

static void assert_unbiased(double found, double expected, double deviation, const char *what) {
  if (!(fabs(found - expected) < 5.0 * deviation))
    fail_msg("%s: the mean is %.9g, expected %.9g +- %.2g", what, found, expected, deviation);
}

// One update from moments and a gradient that lead between two neighbours of the format: the mean over all elements is
// the value in between, to five standard deviations. To the nearest it would be one of the neighbours, up to half of
// their distance away: 256 times as far.
static void one_update_is_unbiased(void **state) {
  (void)state;
  enum { ROWS = 257, COLS = 513 };
  static const float gradients[] = {0.5f, -0.25f, 0.03f, 1.0f};
  for (size_t k = 0; k < FORMATS * sizeof gradients / sizeof *gradients; k++) {
    const tarn__moments format = formats[k % FORMATS];
    tarn__param p = param_open(ROWS, COLS, 3, format), *list[] = {&p};
    const double g = (double)gradients[k / FORMATS], m = 0.25, v = 0.0625, n = ROWS * COLS;
    fill_moments(&p, (float)m, (float)v);
    fill_gradient(&p, (float)g);
    step_list(check_device(), list, 1, &options, 5, 1.0, 2);
    const double m_new = m + 0.1 * (g - m), v_new = 0.999 * v + 0.001 * g * g;
    // The neighbours are at most 2^-7 of the value apart (2^-3 of it), and half of that is the largest deviation of one
    // of two.
    const double half = format == TARN__MOMENTS_BF16 ? 256.0 : 16.0;
    assert_unbiased(mean(&p, 1), m_new, fabs(m_new) / half / sqrt(n), "first moment");
    assert_unbiased(mean(&p, 2), v_new, v_new / half / sqrt(n), "second moment");
    for (int64_t i = 0; i < 40; i++) bits_add_floats(p.training.master + i, 1);
    param_close(&p);
  }
}

// A thousand updates with one gradient: the second moment comes to where fp32 takes it, though each update changes it
// by less than half of its resolution from a fifth of the way on.
static void second_moments_move(void **state) {
  (void)state;
  for (size_t k = 0; k < FORMATS; k++) {
    tarn__param p = param_open(64, 80, 1, formats[k]), *list[] = {&p};
    fill_gradient(&p, 0.3f);
    enum { STEPS = 1000 };
    for (int step = 1; step <= STEPS; step++) step_list(check_device(), list, 1, &options, step, 1.0, 2);
    const double expected = (1.0 - pow(0.999, STEPS)) * 0.09, found = mean(&p, 2);
    if (!(fabs(found / expected - 1.0) < 0.01)) fail_msg("second moment %.6g, expected %.6g", found, expected);
    param_close(&p);
  }
}

// Whether element i was rounded up.
static bool is_up(const uint16_t *moments, int64_t i, double exact) {
  return (double)tarn__bf16_to_f32(moments[i]) > exact;
}

// How often elements agree on their direction, as a share; of independent ones with an even chance one half.
static double agreement(const uint16_t *a, double a_exact, const uint16_t *b, double b_exact, int64_t n) {
  int64_t same = 0;
  for (int64_t i = 0; i < n; i++) same += is_up(a, i, a_exact) == is_up(b, i, b_exact);
  return (double)same / (double)n;
}

static void assert_even(double share, int64_t n, const char *what) {
  if (!(fabs(share - 0.5) < 5.0 * 0.5 / sqrt((double)n))) fail_msg("%s: %.4f agree", what, share);
}

// Values half-way between two neighbours: moments, updates, parameters, seeds and neighbouring elements agree by
// chance.
static void numbers_are_independent(void **state) {
  (void)state;
  enum { ROWS = 128, COLS = 512, N = ROWS * COLS, VARIANTS = 4 };
  // m = 0.9 * 0 + 0.1 g and v = 0.001 g^2 (from 0) lie half-way for these numbers: 1 + 2^-8 in units of a power of two.
  const float first = 1.00390625f / 0.1f;
  static const char *const what[VARIANTS] = {"one more time", "another update", "another parameter", "another seed"};
  tarn__param p[VARIANTS];
  double exact = 0.0;
  for (int k = 0; k < VARIANTS; k++) {
    tarn__adam_options o = options;
    o.seed += k == 3;
    p[k] = param_open(ROWS, COLS, k == 2 ? 9 : 4, TARN__MOMENTS_BF16);
    tarn__param *list[] = {&p[k]};
    fill_gradient(&p[k], first);
    step_list(check_device(), list, 1, &o, k == 1 ? 6 : 5, 1.0, 1 + k % 2);
    exact = 1.00390625;
    const double share = agreement(p[0].training.moment1, exact, p[k].training.moment1, exact, N);
    if (k == 0)
      assert_true(share == 1.0);
    else
      assert_even(share, N, what[k]);
  }
  assert_even(agreement(p[0].training.moment1, exact, (uint16_t *)p[0].training.moment1 + 1, exact, N - 1), N - 1,
              "neighbours");
  assert_even(agreement(p[0].training.moment1, exact, (uint16_t *)p[0].training.moment1 + COLS, exact, N - COLS),
              N - COLS, "rows");
  // The second moment, whose value is (1.00390625 / 0.1)^2 / 1000, is rounded up as often as its place between its
  // neighbours says, whichever way the first one went.
  const double v = (double)first * (double)first * 0.001;
  int64_t up = 0, both = 0, first_up = 0;
  for (int64_t i = 0; i < N; i++) {
    const bool a = is_up(p[0].training.moment1, i, exact), b = is_up(p[0].training.moment2, i, v);
    up += b;
    first_up += a;
    both += a && b;
  }
  const double chance = (double)up * (double)first_up / N;
  if (!(fabs((double)both - chance) < 5.0 * sqrt(N) / 4.0))
    fail_msg("both up %lld, by chance %.0f", (long long)both, chance);
  for (int k = 0; k < VARIANTS; k++) param_close(&p[k]);
}

static void random_gradient(tarn__param *p, int step) {
  tarn__random random;
  tarn__random_init(&random, 7, (uint32_t)step);
  for (int64_t i = 0; i < p->rows * p->cols; i++)
    ((float *)p->training.grad)[i] = (float)(0.1 * tarn__random_normal(&random));
}

static void threads_give_equal_bits(void **state) {
  (void)state;
  for (size_t c = 0; c < FORMATS; c++) {
    tarn__param p[3];
    for (int k = 0; k < 3; k++) {
      p[k] = param_open(211, 317, 2, formats[c]);
      tarn__param *list[] = {&p[k]};
      for (int step = 1; step <= 3; step++) {
        random_gradient(&p[k], step);
        step_list(check_device(), list, 1, &options, step, 1.0, k + 1);
      }
      const size_t n = (size_t)(p[k].rows * p[k].cols), bytes = tarn__moment_bytes(formats[c], n);
      assert_memory_equal(p[0].training.master, p[k].training.master, n * sizeof(float));
      assert_memory_equal(p[0].training.moment1, p[k].training.moment1, bytes);
      assert_memory_equal(p[0].training.moment2, p[k].training.moment2, bytes);
    }
    for (int64_t i = 0; i < p[0].rows * p[0].cols; i++) {
      const float moments[] = {moment_at(&p[0], 1, i), moment_at(&p[0], 2, i)};
      bits_add_floats(moments, 2);
    }
    bits_add_floats(p[0].training.master, (size_t)(p[0].rows * p[0].cols));
    for (int k = 0; k < 3; k++) param_close(&p[k]);
  }
}

// The numbers are the same, so that only an element whose fp32 moment differs in its last bits may go the other way.
static void compare_with_reference(tarn__moments format) {
  const tarn__device *const devices[] = {check_device(), &tarn__device_reference};
  enum { ROWS = 67, COLS = 131, N = ROWS * COLS };
  tarn__param p[2];
  for (int d = 0; d < 2; d++) {
    p[d] = param_open(ROWS, COLS, 5, format);
    tarn__param *list[] = {&p[d]};
    p[d].training.used_rows = check_shared(ROWS);
    for (int step = 1; step <= 4; step++) {
      random_gradient(&p[d], step);
      for (int64_t r = 0; r < ROWS; r++) p[d].training.used_rows[r] = (r + step) % 3 > 0;
      step_list(devices[d], list, 1, &options, step, 0.5, 2);
    }
  }
  int64_t other = 0;
  for (int64_t i = 0; i < N; i++) {
    other += moment_at(&p[0], 1, i) != moment_at(&p[1], 1, i);
    other += moment_at(&p[0], 2, i) != moment_at(&p[1], 2, i);
    assert_true(fabs((double)p[0].training.master[i] - (double)p[1].training.master[i]) < 1e-4);
  }
  if (other > N / 100) fail_msg("%lld of %d moments differ", (long long)other, 2 * N);
  for (int d = 0; d < 2; d++) {
    check_shared_free(p[d].training.used_rows);
    param_close(&p[d]);
  }
}

static void as_the_reference(void **state) {
  (void)state;
  for (size_t k = 0; k < FORMATS; k++) compare_with_reference(formats[k]);
}

// The value of a code as optim/moments.h writes it, in units.
static double value_of(unsigned code) { return code < 8 ? code / 8.0 : ldexp(1.0 + code % 8 / 8.0, (int)code / 8 - 1); }

// Every code has its value and comes back from it, whatever the number; between two, the number decides as often as it
// should; and a block with the largest code does not overflow.
static void codes_of_eight_bits(void **state) {
  (void)state;
  static const float units[] = {1.0f, 0x1p-90f, 0x1p60f};
  for (size_t u = 0; u < 3; u++)
    for (unsigned code = 0; code < 256; code++) {
      const float unit = units[u], value = (float)value_of(code) * unit, first = (float)value_of(code & 127) * unit;
      assert_true(tarn__moment_value2((uint8_t)code, unit) == value);
      assert_true(tarn__moment_value1((uint8_t)code, unit) == (code < 128 ? first : -first));
      for (unsigned number = 0; number < 65536; number += 13107) {
        assert_int_equal(tarn__moment_code2(value, unit, (uint16_t)number), code);
        assert_int_equal(tarn__moment_code1(code < 128 ? first : -first, unit, (uint16_t)number), code);
      }
      if (u > 0 || (code > 9 && code % 61 != 0)) continue;
      // A quarter of the way: to one in 65536, and never to 0.
      const float quarter = (float)(0.75 * value_of(code) + 0.25 * value_of(code + 1)) * unit;
      int ups = 0;
      for (unsigned number = 0; number < 65536; number++) {
        const unsigned found = tarn__moment_code2(quarter, unit, (uint16_t)number);
        assert_true(found == code || found == code + 1);
        ups += found > code;
      }
      assert_int_equal(ups, code == 0 ? 65536 : 16384);
    }
  for (unsigned eighths = 0; eighths < 16; eighths++) {
    const float largest = 1.0f + (float)eighths / 16.0f;
    for (int span = TARN__MOMENT_SPAN1; span <= TARN__MOMENT_SPAN2; span += TARN__MOMENT_SPAN2 - TARN__MOMENT_SPAN1) {
      const float unit = tarn__moment_unit_of(tarn__moment_bits(largest), span);
      assert_true(tarn__moment_code(largest, unit, 65535) <= (span == TARN__MOMENT_SPAN1 ? 127u : 255u));
      assert_true(tarn__moment_code(largest, unit, 0) >= (span == TARN__MOMENT_SPAN1 ? 119u : 247u));
    }
  }
}

// What is not finite is not hidden: all of its block is read as infinite or NaN. Without a scale all are zero.
static void blocks_at_their_ends(void **state) {
  (void)state;
  // The NaN of x86 has its sign set, that of a card all bits of its mantissa.
  const float largest[] = {INFINITY, NAN, 3.4e38f, tarn__moment_float(0x7FFFFFFFu)};
  for (size_t k = 0; k < sizeof largest / sizeof *largest; k++) {
    const float unit = tarn__moment_unit_of(tarn__moment_bits(largest[k]), TARN__MOMENT_SPAN1);
    const float values[] = {largest[k], -largest[k], 0.0f, 0.1f, 1e-30f};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
      for (unsigned number = 7; number < 65536; number += 65528) {
        const uint8_t first = tarn__moment_code1(values[i], unit, (uint16_t)number);
        const uint8_t second = tarn__moment_code2(values[i], unit, (uint16_t)number);
        assert_false(isfinite(tarn__moment_value1(first, unit)));
        assert_false(isfinite(tarn__moment_value2(second, unit)));
      }
  }
  const float least = tarn__moment_unit_of(0, TARN__MOMENT_SPAN2);
  assert_true(least > 0.0f && tarn__moment_code2(0.0f, least, 65535) == 0);
  assert_true(tarn__moment_code2(1e-44f, least, 0) == 1 && tarn__moment_code1(-1e-44f, least, 0) == 0x80);
  assert_true(tarn__moment_value1(0, 0.0f) == 0.0f && tarn__moment_value2(0, 0.0f) == 0.0f);
}

static int run(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_update_is_unbiased),  cmocka_unit_test(second_moments_move),
      cmocka_unit_test(numbers_are_independent), cmocka_unit_test(threads_give_equal_bits),
      cmocka_unit_test(as_the_reference),        cmocka_unit_test(codes_of_eight_bits),
      cmocka_unit_test(blocks_at_their_ends)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }
