// Dense products against plain loops in double: orientations, leading dimensions, types, sizes that fill no tile, for
// every instruction set; and the bounded cache of primitives.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/kernel_check.h"
#include "ops/gemm.h"

typedef struct shape {
  int64_t m, n, k;
  int gap;  // of every leading dimension
} shape;

typedef struct operand {
  void *data;
  int64_t rows, cols, ld;
  tarn__dtype dtype;
} operand;

static operand operand_open(tarn__random *random, int64_t rows, int64_t cols, int64_t gap, tarn__dtype dtype) {
  operand o = {check_alloc((size_t)(rows * (cols + gap)), sizeof(float)), rows, cols, cols + gap, dtype};
  for (int64_t i = 0; i < rows * o.ld; i++) check_store(o.data, dtype, (size_t)i, tarn__random_normal(random));
  return o;
}

static double at(const operand *o, bool transposed, int64_t i, int64_t j) {
  return check_load(o->data, o->dtype, (size_t)(transposed ? j * o->ld + i : i * o->ld + j));
}

typedef struct variant {
  bool transpose_a, transpose_b, accumulate, bias, relu;
  tarn__dtype dtype, c_dtype;
} variant;

static double expected_element(const operand *a, const operand *b, const operand *c, const float *bias,
                               const variant *v, int64_t k, int64_t i, int64_t j) {
  double sum = v->accumulate ? check_load(c->data, c->dtype, (size_t)(i * c->ld + j)) : 0.0;
  for (int64_t l = 0; l < k; l++) sum += at(a, v->transpose_a, i, l) * at(b, v->transpose_b, l, j);
  if (v->bias) sum += bias[j];
  return v->relu && sum < 0.0 ? 0.0 : sum;
}

static void check_product(const shape *s, const variant *v, int threads) {
  tarn__random random;
  tarn__random_init(&random, 9, 9);
  operand a = operand_open(&random, v->transpose_a ? s->k : s->m, v->transpose_a ? s->m : s->k, s->gap, v->dtype);
  operand b = operand_open(&random, v->transpose_b ? s->n : s->k, v->transpose_b ? s->k : s->n, s->gap, v->dtype);
  operand c = operand_open(&random, s->m, s->n, s->gap, v->c_dtype);
  operand bias = operand_open(&random, 1, s->n, 0, TARN__F32);
  double *expected = check_alloc((size_t)(s->m * s->n), sizeof(double)), *found = check_alloc((size_t)(s->m * s->n), 8);
  double *edge = check_alloc((size_t)(s->m * s->gap) + 1, sizeof(double));
  for (int64_t i = 0; i < s->m; i++) {
    for (int64_t j = 0; j < s->n; j++) expected[i * s->n + j] = expected_element(&a, &b, &c, bias.data, v, s->k, i, j);
    for (int64_t j = 0; j < s->gap; j++)
      edge[i * s->gap + j] = check_load(c.data, c.dtype, (size_t)(i * c.ld + s->n + j));
  }
  tarn__gemm product = {.m = s->m,
                        .n = s->n,
                        .k = s->k,
                        .a = a.data,
                        .b = b.data,
                        .c = c.data,
                        .bias = v->bias ? bias.data : NULL,
                        .lda = a.ld,
                        .ldb = b.ld,
                        .ldc = c.ld,
                        .dtype = v->dtype,
                        .c_dtype = v->c_dtype,
                        .transpose_a = v->transpose_a,
                        .transpose_b = v->transpose_b,
                        .accumulate = v->accumulate,
                        .relu = v->relu};
  void *scratch = check_alloc(tarn__gemm_scratch(&product, threads), 1);
  tarn__gemm_run(&product, threads, scratch);
  for (int64_t i = 0; i < s->m; i++) {
    for (int64_t j = 0; j < s->n; j++) found[i * s->n + j] = check_load(c.data, c.dtype, (size_t)(i * c.ld + j));
    for (int64_t j = 0; j < s->gap; j++)
      assert_true(edge[i * s->gap + j] == check_load(c.data, c.dtype, (size_t)(i * c.ld + s->n + j)));
  }
  char name[160];
  snprintf(name, sizeof name, "%lld x %lld x %lld, gap %d, %s%s%s%s%s%s%s, %d threads", (long long)s->m,
           (long long)s->n, (long long)s->k, s->gap, v->dtype == TARN__F32 ? "f32" : "bf16",
           v->c_dtype == TARN__F32 ? " > f32" : " > bf16", v->transpose_a ? " A^T" : "", v->transpose_b ? " B^T" : "",
           v->accumulate ? " added" : "", v->bias ? " bias" : "", v->relu ? " relu" : "", threads);
  // The products of bf16 numbers are exact in fp32; only the sums round, and the result if it is bf16.
  check_close_to(found, expected, (size_t)(s->m * s->n), v->c_dtype == TARN__F32 ? 1e-5 : 5e-3, name, "product", 0);
  void *memory[] = {a.data, b.data, c.data, bias.data, expected, found, edge, scratch};
  for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++) tarn__free(memory[i]);
}

static void products(void **state) {
  (void)state;
  static const shape shapes[] = {{1, 8, 8, 0},       {1, 300, 100, 0},  {15, 24, 100, 3}, {17, 100, 24, 0},
                                 {257, 24, 33, 0},   {300, 160, 17, 5}, {64, 96, 700, 0}, {5, 1000, 64, 0},
                                 {520, 40, 1100, 0}, {3, 5, 0, 1}};
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
    for (int bits = 0; bits < 32; bits++) {
      variant v = {.transpose_a = bits & 1, .transpose_b = bits & 2, .accumulate = bits & 4};
      v.bias = !v.accumulate && (bits & 1);
      v.relu = !v.accumulate && (bits & 2);
      v.dtype = bits & 8 ? TARN__BF16 : TARN__F32;
      v.c_dtype = bits & 16 ? TARN__BF16 : TARN__F32;
      if (v.dtype == TARN__F32 && v.c_dtype == TARN__BF16) continue;
      check_product(&shapes[i], &v, 1 + (int)(i % 3));
    }
}

// More shapes than the cache keeps.
static void many_shapes(void **state) {
  (void)state;
  variant v = {.dtype = TARN__F32, .c_dtype = TARN__F32};
  for (int64_t m = 1; m <= 15; m++)
    for (int64_t n = 1; n <= 80; n++) {
      shape s = {m, n, 4, 0};
      check_product(&s, &v, 1);
    }
}

// Tiles of every kind at once: two heights and a rest, two widths and a rest, chunks of k.
static void many_threads(void **state) {
  (void)state;
  variant v = {.transpose_a = true, .dtype = TARN__F32, .c_dtype = TARN__F32};
  shape s = {275, 451, 531, 0};
  check_product(&s, &v, 7);
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(products), cmocka_unit_test(many_shapes),
                                     cmocka_unit_test(many_threads)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }
