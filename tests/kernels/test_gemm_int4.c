// Products with a factor of INT4 against plain loops in double over the numbers that its integers and scales stand for,
// for every instruction set; few rows and many, widths that fill no panel, sums that fill no group.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "device/cpu/gemm/gemm_int4.h"
#include "kernels/kernel_check.h"

enum { GROUP = TARN__INT4_GROUP, THREADS = 3 };

typedef struct shape {
  int64_t m, n, k;
  bool bias, relu, accumulate;
  tarn__dtype dtype;
} shape;

typedef struct operands {
  void *a, *b, *c, *packed;
  float *bias;
} operands;

static void *random_values(tarn__random *random, int64_t count, tarn__dtype dtype) {
  void *values = check_alloc((size_t)count, sizeof(float));
  for (int64_t i = 0; i < count; i++) check_store(values, dtype, (size_t)i, tarn__random_normal(random));
  return values;
}

static tarn__gemm product_of(const shape *s, const operands *o, int64_t first, int64_t rows, void *c) {
  return (tarn__gemm){.m = rows,
                      .n = s->n,
                      .k = s->k,
                      .a = (const char *)o->a + (size_t)(first * s->k) * tarn__dtype_size(s->dtype),
                      .b = o->b,
                      .packed = o->packed,
                      .c = c,
                      .bias = s->bias ? o->bias : NULL,
                      .lda = s->k,
                      .ldb = s->k,
                      .ldc = s->n,
                      .dtype = s->dtype,
                      .c_dtype = s->dtype,
                      .transpose_b = true,
                      .accumulate = s->accumulate,
                      .relu = s->relu,
                      .int4 = true};
}

// Integers of B as a file holds them, and the scales of its columns.
typedef struct stored {
  unsigned char *values;
  float *scales;
} stored;

static stored round_factor(const tarn__gemm *factor) {
  stored b = {check_alloc((size_t)factor->n, (size_t)tarn__int4_bytes(factor->k)),
              check_alloc((size_t)factor->n, sizeof(float))};
  tarn__gemm_round_int4(b.values, b.scales, factor, THREADS);
  return b;
}

static void close_stored(stored *b) {
  tarn__free(b->values);
  tarn__free(b->scales);
}

// What is packed of integers is what is packed of the numbers that were rounded to them.
static void check_stored(const tarn__gemm *factor, const void *packed, const stored *b) {
  tarn__gemm again = *factor;
  again.b = b->values;
  again.b_scales = b->scales;
  const size_t bytes = tarn__gemm_pack_bytes(&again);
  void *other = check_alloc(bytes, 1);
  assert_int_equal(bytes, tarn__gemm_pack_bytes(factor));
  tarn__gemm_pack(other, &again, 1);
  assert_memory_equal(other, packed, bytes);
  tarn__free(other);
}

static operands open_operands(const shape *s) {
  tarn__random random;
  tarn__random_init(&random, 5, 6);
  operands o = {random_values(&random, s->m * s->k, s->dtype), random_values(&random, s->n * s->k, s->dtype),
                random_values(&random, s->m * s->n, s->dtype), NULL, random_values(&random, s->n, TARN__F32)};
  const tarn__gemm factor = product_of(s, &o, 0, 1, NULL);
  o.packed = check_alloc(tarn__gemm_pack_bytes(&factor), 1);
  tarn__gemm_pack(o.packed, &factor, THREADS);
  return o;
}

static void close_operands(operands *o) {
  void *memory[] = {o->a, o->b, o->c, o->bias, o->packed};
  for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++) tarn__free(memory[i]);
}

// Rows [first, first + rows) on a copy of what C holds.
static void run_rows(const shape *s, const operands *o, void *c, int64_t first, int64_t rows, int threads) {
  const size_t row_bytes = (size_t)s->n * tarn__dtype_size(s->dtype);
  memcpy(c, (const char *)o->c + (size_t)first * row_bytes, (size_t)rows * row_bytes);
  const tarn__gemm product = product_of(s, o, first, rows, c);
  void *scratch = check_alloc(tarn__gemm_scratch(&product, threads), 1);
  tarn__gemm_run(&product, threads, scratch);
  tarn__free(scratch);
}

// A column of B as its integers and scales stand for it.
static void stored_column(double *out, const stored *b, int64_t k, int64_t column) {
  const unsigned char *row = b->values + column * tarn__int4_bytes(k);
  for (int64_t i = 0; i < k; i++) out[i] = (double)b->scales[column] * tarn__int4_number(row, i);
}

// A row of A as INT8 with one scale.
static void stored_row(double *out, const shape *s, const operands *o, int64_t row) {
  float most = 0.0f;
  for (int64_t k = 0; k < s->k; k++)
    most = fmaxf(most, fabsf((float)check_load(o->a, s->dtype, (size_t)(row * s->k + k))));
  const float scale = most / 127.0f, inverse = scale > 0.0f ? 1.0f / scale : 0.0f;
  for (int64_t k = 0; k < s->k; k++)
    out[k] = (double)nearbyintf((float)check_load(o->a, s->dtype, (size_t)(row * s->k + k)) * inverse) * (double)scale;
}

static void check_product(const shape *s) {
  operands o = open_operands(s);
  const size_t count = (size_t)(s->m * s->n);
  double *expected = check_alloc(count, sizeof(double)), *found = check_alloc(count, sizeof(double));
  double *a = check_alloc((size_t)s->k, sizeof(double)), *b = check_alloc((size_t)(s->n * s->k), sizeof(double));
  char *c = check_alloc(count, sizeof(float));
  const tarn__gemm factor = product_of(s, &o, 0, 1, NULL);
  stored rounded = round_factor(&factor);
  check_stored(&factor, o.packed, &rounded);
  for (int64_t j = 0; j < s->n; j++) stored_column(b + j * s->k, &rounded, s->k, j);
  close_stored(&rounded);
  for (int64_t i = 0; i < s->m; i++) {
    stored_row(a, s, &o, i);
    for (int64_t j = 0; j < s->n; j++) {
      double sum = s->accumulate ? check_load(o.c, s->dtype, (size_t)(i * s->n + j)) : 0.0;
      for (int64_t k = 0; k < s->k; k++) sum += a[k] * b[j * s->k + k];
      if (s->bias) sum += o.bias[j];
      expected[i * s->n + j] = s->relu && sum < 0.0 ? 0.0 : sum;
    }
  }
  run_rows(s, &o, c, 0, s->m, THREADS);
  for (size_t i = 0; i < count; i++) found[i] = check_load(c, s->dtype, i);
  // A number half-way between two integers may be rounded differently by instruction sets.
  check_close_to(found, expected, count, 0.03, "int4", "product", 0);
  bits_add(found, count);
  // Rows have the same bits alone and in other companies, on any number of threads.
  const size_t row_bytes = (size_t)s->n * tarn__dtype_size(s->dtype);
  char *other = check_alloc(count, sizeof(float));
  for (int64_t i = 0; i < s->m; i++) {
    const int64_t rows = i % 4 < s->m - i ? 1 + i % 4 : s->m - i;
    run_rows(s, &o, other, i, rows, 1 + (int)(i % 2));
    assert_memory_equal(other, c + (size_t)i * row_bytes, (size_t)rows * row_bytes);
  }
  void *memory[] = {expected, found, a, b, c, other};
  for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++) tarn__free(memory[i]);
  close_operands(&o);
}

static void products(void **state) {
  (void)state;
  static const shape shapes[] = {
      {1, 1, 1, true, false, false, TARN__F32},     {1, 70, 64, false, false, false, TARN__F32},
      {2, 33, 31, true, true, false, TARN__F32},    {3, 100, 200, false, false, true, TARN__F32},
      {4, 5, 1033, true, false, false, TARN__BF16}, {11, 97, 96, false, false, true, TARN__BF16},
      {16, 32, 256, true, false, false, TARN__F32}, {37, 530, 40, true, true, false, TARN__F32}};
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) check_product(&shapes[i]);
}

enum { MOST_GROUPS = 5 };

static float round_row(unsigned char *q, const float *x, int64_t terms) {
  const tarn__gemm factor = {
      .n = 1, .k = terms, .b = x, .ldb = terms, .dtype = TARN__F32, .transpose_b = true, .int4 = true};
  float scale;
  tarn__gemm_round_int4(q, &scale, &factor, 1);
  return scale;
}

// The error of a group is about that of a scale of its own, the greatest magnitude as 8 steps, and no more than that of
// the greatest factor.
static void groups(void **state) {
  (void)state;
  tarn__random random;
  tarn__random_init(&random, 7, 8);
  unsigned char q[MOST_GROUPS * TARN__INT4_GROUP_BYTES];
  float x[MOST_GROUPS * GROUP];
  double errors = 0, alone = 0;
  for (int n = 0; n < 200; n++) {
    const int64_t terms = 1 + n % (MOST_GROUPS * GROUP);
    for (int64_t i = 0; i < terms; i++) x[i] = (float)tarn__random_normal(&random) * (n % 2 ? 1.0f : 1e-3f);
    const float scale = round_row(q, x, terms);
    for (int64_t i = 0; i < terms; i++) {
      float most = 0.0f;
      for (int64_t j = i / GROUP * GROUP; j < terms && j < i / GROUP * GROUP + GROUP; j++)
        most = fmaxf(most, fabsf(x[j]));
      const double error = (double)x[i] - (double)scale * tarn__int4_number(q, i), step = (double)most / 8;
      assert_in_range(abs(tarn__int4_factor(q, i / GROUP)), 0, TARN__INT4_MOST_FACTOR);
      assert_true(fabs(error) <= fmax(1.3 * step, 0.51 * TARN__INT4_MOST_FACTOR * (double)scale));
      errors += error * error / (step * step);
      alone += 1.0 / 12;
    }
  }
  assert_true(errors < 1.15 * alone && errors > 0.5 * alone);
}

static void odd_groups(void **state) {
  (void)state;
  unsigned char q[2 * TARN__INT4_GROUP_BYTES];
  float x[2 * GROUP] = {0};
  assert_true(round_row(q, x, 2 * GROUP) == 0.0f);
  for (int i = 0; i < 2 * GROUP; i++) assert_int_equal(tarn__int4_number(q, i), 0);
  x[3] = 1.0f, x[GROUP] = 1e-30f;  // too small a group for a factor
  assert_true(round_row(q, x, 2 * GROUP) > 0.0f);
  for (int i = 0; i < 2 * GROUP; i++) assert_int_equal(tarn__int4_number(q, i) != 0, i == 3);
  x[3] = 1e-44f;  // a scale would have no inverse
  assert_true(isfinite(round_row(q, x, 2 * GROUP)));
  x[3] = INFINITY;
  assert_true(isnan(round_row(q, x, 2 * GROUP)));
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(products), cmocka_unit_test(groups),
                                     cmocka_unit_test(odd_groups)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }
