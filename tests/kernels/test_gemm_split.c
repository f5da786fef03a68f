// Products of fp32 numbers through tiles of bf16 parts: against double and against exact fp32, at the edges of the
// range, and the same bits for every way to cut the work. On processors without tiles, that they are said to be absent.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>
#include <float.h>

#include "device/cpu/gemm/gemm.h"
#include "device/cpu/gemm/gemm_split.h"
#include "kernels/kernel_check.h"
#include "sample_step.h"

typedef struct shape {
  int64_t m, n, k;
} shape;

// A B or A B^T and so on, with rows that lie `gap` elements further apart than they are long.
typedef struct product {
  shape s;
  bool transpose_a, transpose_b, accumulate, bias, relu;
  float *a, *b, *bias_values, *c0;  // c0 [m, n]: what C holds before
  int64_t lda, ldb;
} product;

typedef double (*source)(tarn__random *random, int64_t line, int64_t term);

static double normal(tarn__random *random, int64_t line, int64_t term) {
  (void)line, (void)term;
  return tarn__random_normal(random);
}

// Magnitudes over 24 orders of two in a row, and over 40 between rows.
static double wide(tarn__random *random, int64_t line, int64_t term) {
  return ldexp(tarn__random_normal(random), (int)(term * 7 % 25) - 12 + (int)(line * 11 % 41) - 20);
}

// Every second term is nearly the one before with the other sign, in one factor.
static double cancelling(tarn__random *random, int64_t line, int64_t term) {
  static double last;
  (void)line;
  if (term % 2 == 1) return -last * (1.0 + 1e-6 * tarn__random_normal(random));
  return last = tarn__random_normal(random);
}

static double same_in_pairs(tarn__random *random, int64_t line, int64_t term) {
  static double last;
  (void)line;
  if (term % 2 == 1) return last;
  return last = tarn__random_normal(random);
}

static float *matrix(tarn__random *random, int64_t lines, int64_t terms, bool across, int64_t ld, source from) {
  float *values = check_alloc((size_t)((across ? terms : lines) * ld), sizeof(float));
  for (int64_t line = 0; line < lines; line++)
    for (int64_t term = 0; term < terms; term++)
      values[across ? term * ld + line : line * ld + term] = (float)from(random, line, term);
  return values;
}

static product product_open(shape s, int bits, int64_t gap, source a, source b) {
  tarn__random random;
  tarn__random_init(&random, 12, 3);
  product p = {.s = s, .transpose_a = bits & 1, .transpose_b = bits & 2, .accumulate = bits & 4};
  p.bias = !p.accumulate && bits & 8;
  p.relu = !p.accumulate && bits & 16;
  p.lda = (p.transpose_a ? s.m : s.k) + gap;
  p.ldb = (p.transpose_b ? s.k : s.n) + gap;
  p.a = matrix(&random, s.m, s.k, p.transpose_a, p.lda, a);
  p.b = matrix(&random, s.n, s.k, !p.transpose_b, p.ldb, b);
  p.bias_values = matrix(&random, 1, s.n, false, s.n, normal);
  p.c0 = matrix(&random, s.m, s.n, false, s.n, normal);
  return p;
}

static void product_close(product *p) {
  tarn__free(p->a);
  tarn__free(p->b);
  tarn__free(p->bias_values);
  tarn__free(p->c0);
}

static float a_of(const product *p, int64_t i, int64_t t) {
  return p->a[p->transpose_a ? t * p->lda + i : i * p->lda + t];
}

static float b_of(const product *p, int64_t t, int64_t j) {
  return p->b[p->transpose_b ? j * p->ldb + t : t * p->ldb + j];
}

static tarn__gemm gemm_of(const product *p, tarn__fp32 fp32) {
  return (tarn__gemm){.m = p->s.m,
                      .n = p->s.n,
                      .k = p->s.k,
                      .a = p->a,
                      .b = p->b,
                      .bias = p->bias ? p->bias_values : NULL,
                      .lda = p->lda,
                      .ldb = p->ldb,
                      .ldc = p->s.n,
                      .dtype = TARN__F32,
                      .c_dtype = TARN__F32,
                      .fp32 = fp32,
                      .transpose_a = p->transpose_a,
                      .transpose_b = p->transpose_b,
                      .accumulate = p->accumulate,
                      .relu = p->relu};
}

// Rows [first, first + rows) of C, to be freed. packed: B is packed before. The scratch starts full of NaNs.
static float *compute(const product *p, tarn__fp32 fp32, int64_t first, int64_t rows, bool packed, int threads) {
  tarn__gemm g = gemm_of(p, fp32);
  const size_t count = (size_t)(rows * p->s.n);
  float *c = check_alloc(count, sizeof *c);
  memcpy(c, p->c0 + first * p->s.n, count * sizeof *c);
  g.a = p->a + (p->transpose_a ? first : first * p->lda);
  g.c = c;
  g.m = rows;
  void *memory = NULL;
  if (packed) {
    memory = check_alloc(tarn__gemm_pack_bytes(&g), 1);
    tarn__gemm_pack(memory, &g, threads);
    g.packed = memory;
    g.b = NULL;
  }
  const size_t bytes = tarn__gemm_scratch(&g, threads);
  void *scratch = check_alloc(bytes, 1);
  memset(scratch, 0xFF, bytes);
  tarn__gemm_run(&g, threads, scratch);
  tarn__free(scratch);
  tarn__free(memory);
  return c;
}

// Largest and mean square error of elements against double, in units of what the terms of each could lose:
// 2^-24 * sqrt(k) * root mean square of the terms * sqrt(k).
typedef struct errors {
  double most, rms;
} errors;

static errors errors_of(const product *p, const float *c) {
  errors e = {0};
  for (int64_t i = 0; i < p->s.m; i++)
    for (int64_t j = 0; j < p->s.n; j++) {
      double sum = p->accumulate ? (double)p->c0[i * p->s.n + j] : 0.0, squares = sum * sum;
      for (int64_t t = 0; t < p->s.k; t++) {
        const double term = (double)a_of(p, i, t) * (double)b_of(p, t, j);
        sum += term;
        squares += term * term;
      }
      if (p->bias) sum += (double)p->bias_values[j], squares += pow((double)p->bias_values[j], 2.0);
      if (p->relu && sum < 0.0) sum = 0.0;
      const double error = fabs((double)c[i * p->s.n + j] - sum) / (ldexp(1.0, -24) * sqrt(squares) + 1e-300);
      if (!(error <= e.most)) e.most = error;
      e.rms += error * error;
    }
  e.rms = sqrt(e.rms / (double)(p->s.m * p->s.n));
  return e;
}

static const tarn__fp32 splits[] = {TARN__FP32_SPLIT6, TARN__FP32_SPLIT3};

// Every orientation, what follows a product, and sizes that fill no tile, no block and no chunk of k.
static void shapes(void **state) {
  (void)state;
  static const shape all[] = {{1, 1, 1},      {1, 8, 8},     {3, 5, 31},    {16, 32, 32},
                              {17, 33, 33},   {1, 300, 100}, {15, 24, 130}, {257, 24, 129},
                              {300, 160, 17}, {64, 96, 700}, {5, 1000, 64}, {520, 40, 1100}};
  if (!tarn__gemm_split_there()) skip();
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
    for (int bits = 0; bits < 32; bits++) {
      product p = product_open(all[i], bits, (int64_t)(i % 4), normal, normal);
      for (int s = 0; s < 2; s++) {
        float *c = compute(&p, splits[s], 0, all[i].m, bits & 1, 1 + (int)(i % 3));
        const errors e = errors_of(&p, c);
        const double allowed = s == 0 ? 16.0 : 2000.0;
        if (!(e.most <= allowed))
          fail_msg("%lld x %lld x %lld, %d, %s: error %g", (long long)all[i].m, (long long)all[i].n,
                   (long long)all[i].k, bits, s ? "split3" : "split6", e.most);
        bits_add_floats(c, (size_t)(all[i].m * all[i].n));
        tarn__free(c);
      }
      product_close(&p);
    }
}

// The mean square error of split6 is at most 1.5 times that of fp32 products, for the lengths of sums that models have,
// and the largest one at most twice as large, except for sums as long as a vocabulary, where single elements decide it.
// And split3 is what it is said to be.
static void accuracy(void **state) {
  (void)state;
  static const int64_t lengths[] = {64, 256, 512, 1024, 1536, 4096, 10000, 50257};
  static const struct {
    const char *name;
    source a, b;
  } data[] = {{"normal", normal, normal},
              {"wide", wide, normal},
              {"wide both", wide, wide},
              {"cancelling", cancelling, same_in_pairs}};
  if (!tarn__gemm_split_there()) skip();
  for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i += (size_t)sample_step(3))
    for (size_t d = 0; d < sizeof data / sizeof data[0]; d++) {
      const shape s = {33, lengths[i] > 5000 ? 20 : 72, lengths[i]};
      product p = product_open(s, (int)(d + i) % 4, 0, data[d].a, data[d].b);
      errors e[3];
      for (int f = 0; f < 3; f++) {
        float *c = compute(&p, (tarn__fp32)f, 0, s.m, false, 2);
        e[f] = errors_of(&p, c);
        tarn__free(c);
      }
      if (getenv("TARN_TEST_VERBOSE"))
        printf("k %6lld %-10s rms %8.3f %8.3f %8.1f  most %8.2f %8.2f %8.1f\n", (long long)s.k, data[d].name, e[0].rms,
               e[1].rms, e[2].rms, e[0].most, e[1].most, e[2].most);
      // Where it is not, the parts would be too few: each test sees that the one before could fail.
      assert_true(e[TARN__FP32_SPLIT6].rms <= 1.5 * e[TARN__FP32_EXACT].rms);
      if (lengths[i] <= 10000) assert_true(e[TARN__FP32_SPLIT6].most <= 2.0 * e[TARN__FP32_EXACT].most);
      assert_true(e[TARN__FP32_SPLIT3].rms <= 512.0);
      assert_true(e[TARN__FP32_SPLIT3].rms > 2.0 * e[TARN__FP32_EXACT].rms || lengths[i] > 1024);
      product_close(&p);
    }
}

static bool alike(float found, float exact, double tolerance) {
  if (isnan(exact) || isnan(found)) return isnan(exact) && isnan(found);
  if (isinf(exact) || isinf(found)) return exact == found;
  return fabs((double)found - (double)exact) <= tolerance * fabs((double)exact) + 1e-3;
}

// Infinities and NaN come out where exact products have them, and what does not meet them keeps its bits. Numbers whose
// nearest bf16 is infinite are finite.
static void special(void **state) {
  (void)state;
  static const float numbers[] = {INFINITY,  -INFINITY,       NAN,         FLT_MAX, -FLT_MAX, 3.3961e38f,
                                  3.395e38f, 0x1.fefffep127f, FLT_MAX / 2, 0.0f};
  const shape s = {37, 70, 200};
  if (!tarn__gemm_split_there()) skip();
  for (int bits = 0; bits < 8; bits++)
    for (int f = 0; f < 2; f++)
      for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        product p = product_open(s, bits, 1, normal, normal);
        // One row of A and one column of B have the number, in different terms: they meet 1, 0, -1 and each other.
        const int64_t row = 33, column = 5, term = (int64_t)i * 19, met = 199;
        for (int64_t j = 0; j < s.n; j++)
          p.b[p.transpose_b ? j * p.ldb + term : term * p.ldb + j] = (float)(j % 5 - 2) / 2.0f;
        float *before = compute(&p, splits[f], 0, s.m, false, 2);
        p.a[p.transpose_a ? term * p.lda + row : row * p.lda + term] = numbers[i];
        p.b[p.transpose_b ? column * p.ldb + met : met * p.ldb + column] = numbers[i];
        float *exact = compute(&p, TARN__FP32_EXACT, 0, s.m, false, 2);
        float *found = compute(&p, splits[f], 0, s.m, bits & 1, 2);
        int special_numbers = 0;
        for (int64_t r = 0; r < s.m; r++)
          for (int64_t j = 0; j < s.n; j++) {
            const float now = found[r * s.n + j], then = exact[r * s.n + j];
            special_numbers += !isfinite(then);
            if (r != row && j != column) assert_memory_equal(found + r * s.n + j, before + r * s.n + j, sizeof now);
            // Two large numbers in one sum: whether it is infinite on the way is a matter of the order.
            if ((r == row) == (j == column) && (r != row || isfinite(numbers[i]))) continue;
            if (!alike(now, then, r == row && isfinite(numbers[i]) && j % 5 != 2 ? 1e-4 : 1e30))
              fail_msg("%g, %s, %d: [%lld, %lld] is %g, exact %g", (double)numbers[i], f ? "split3" : "split6", bits,
                       (long long)r, (long long)j, (double)now, (double)then);
          }
        assert_true(isfinite(numbers[i]) || special_numbers > s.n / 2);
        bits_add_floats(found, (size_t)(s.m * s.n));
        tarn__free(before);
        tarn__free(exact);
        tarn__free(found);
        product_close(&p);
      }
}

// Numbers far from 1: sums keep their accuracy as long as the last part is not below the smallest normal number, and
// never lose more than products of such parts.
static double small(tarn__random *random, int64_t line, int64_t term) {
  (void)line, (void)term;
  return ldexp(tarn__random_normal(random), -100);
}

static double tiny(tarn__random *random, int64_t line, int64_t term) {
  (void)line, (void)term;
  return ldexp(tarn__random_normal(random), -124);
}

static double large(tarn__random *random, int64_t line, int64_t term) {
  (void)line, (void)term;
  return ldexp(tarn__random_normal(random), 110);
}

static void far_from_one(void **state) {
  (void)state;
  const shape s = {40, 40, 512};
  if (!tarn__gemm_split_there()) skip();
  product p = product_open(s, 0, 0, small, large);
  float *exact = compute(&p, TARN__FP32_EXACT, 0, s.m, false, 1);
  float *found = compute(&p, TARN__FP32_SPLIT6, 0, s.m, false, 1);
  assert_true(errors_of(&p, found).rms <= 2.0 * errors_of(&p, exact).rms);
  tarn__free(exact);
  tarn__free(found);
  product_close(&p);
  p = product_open(s, 0, 0, tiny, large);
  found = compute(&p, TARN__FP32_SPLIT6, 0, s.m, false, 1);
  // Parts below 2^-126 count as zero: of each number at most that much is lost, times 2^112 and the root of 512.
  for (int64_t i = 0; i < s.m; i++)
    for (int64_t j = 0; j < s.n; j++) {
      double sum = 0.0;
      for (int64_t t = 0; t < s.k; t++) sum += (double)a_of(&p, i, t) * (double)b_of(&p, t, j);
      assert_true(fabs((double)found[i * s.n + j] - sum) <= ldexp(1.0, -126 + 113) * 22.6);
    }
  tarn__free(found);
  product_close(&p);
}

// The bits of a row depend neither on the other rows nor on the threads nor on when the factor is packed.
static void rows_alone(void **state) {
  (void)state;
  static const shape all[] = {{5, 8, 8}, {37, 100, 24}, {70, 160, 300}, {40, 600, 700}, {600, 33, 140}};
  const bool sample = getenv("TARN_SAMPLE") != NULL;
  if (!tarn__gemm_split_there()) skip();
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
    for (int bits = sample ? (int)i % 3 : 0; bits < 8; bits += sample ? 3 : 1)
      for (int f = 0; f < 2; f++) {
        product p = product_open(all[i], bits, 0, normal, wide);
        const int64_t n = all[i].n;
        p.a[p.transpose_a ? 2 : 2 * p.lda] = NAN;  // of row 2
        float *whole = compute(&p, splits[f], 0, all[i].m, true, 3);
        for (int threads = 1; threads <= 4; threads++) {
          float *other = compute(&p, splits[f], 0, all[i].m, threads & 1, threads);
          for (int64_t e = 0; e < all[i].m * n; e++)
            assert_true(e / n == 2 ? isnan(other[e]) : memcmp(other + e, whole + e, sizeof *other) == 0);
          tarn__free(other);
        }
        for (int64_t r = 0; r < all[i].m; r += r < 40 ? 1 : 37) {
          float *alone = compute(&p, splits[f], r, 1, r & 1, 2);
          for (int64_t j = 0; j < n; j++)
            assert_true(r == 2 ? isnan(alone[j]) : memcmp(alone + j, whole + r * n + j, sizeof *alone) == 0);
          tarn__free(alone);
        }
        tarn__free(whole);
        product_close(&p);
      }
}

static void there(void **state) {
  (void)state;
  assert_int_equal(tarn__gemm_split_there(), tarn__isa_now() == TARN__ISA_AMX);
  assert_int_equal(tarn__device_fp32_lacks(&tarn__device_cpu, TARN__FP32_SPLIT6) == NULL, tarn__gemm_split_there());
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(there),        cmocka_unit_test(shapes),
                                     cmocka_unit_test(accuracy),     cmocka_unit_test(special),
                                     cmocka_unit_test(far_from_one), cmocka_unit_test(rows_alone)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }
