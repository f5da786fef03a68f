// Dense products against plain loops in double: orientations, leading dimensions, types, packed and INT8 factors, sizes
// that fill no tile, for every instruction set.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "device/cpu/gemm/gemm.h"
#include "device/cpu/isa/isa.h"
#include "kernels/kernel_check.h"
#include "sample_step.h"

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
  bool transpose_a, transpose_b, accumulate, bias, relu, packed, int8;
  tarn__dtype dtype, c_dtype;
} variant;

// A copy as F32.
static operand widened(const operand *o) {
  operand copy = {check_alloc((size_t)(o->rows * o->ld), sizeof(float)), o->rows, o->cols, o->ld, TARN__F32};
  for (int64_t i = 0; i < o->rows * o->ld; i++)
    ((float *)copy.data)[i] = (float)check_load(o->data, o->dtype, (size_t)i);
  return copy;
}

// The numbers of one row as INT8 with one scale stands for them; with the roundings of fp32 on the way, which decide
// where a number lies half-way between two integers.
static void round_row(const operand *o, int64_t row, int64_t k) {
  float *x = (float *)o->data + row * o->ld, most = 0.0f;
  for (int64_t l = 0; l < k; l++) most = fmaxf(most, fabsf(x[l]));
  float scale = most / 127.0f, inverse = scale > 0.0f ? 1.0f / scale : 0.0f;
  for (int64_t l = 0; l < k; l++) x[l] = nearbyintf(x[l] * inverse) * scale;
}

// A factor as doubles, each of its `rows` (transposed: columns) after the other.
static double *doubles_of(const operand *o, bool transposed, int64_t rows, int64_t length) {
  double *values = check_alloc((size_t)(rows * length) + 1, sizeof *values);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t l = 0; l < length; l++) values[i * length + l] = at(o, transposed, i, l);
  return values;
}

static void compute_expected(double *expected, const operand *a, const operand *b, const operand *c, const float *bias,
                             const variant *v, const shape *s) {
  double *x = doubles_of(a, v->transpose_a, s->m, s->k), *y = doubles_of(b, !v->transpose_b, s->n, s->k);
  for (int64_t i = 0; i < s->m; i++)
    for (int64_t j = 0; j < s->n; j++) {
      double sum = v->accumulate ? check_load(c->data, c->dtype, (size_t)(i * c->ld + j)) : 0.0;
      for (int64_t l = 0; l < s->k; l++) sum += x[i * s->k + l] * y[j * s->k + l];
      if (v->bias) sum += bias[j];
      expected[i * s->n + j] = v->relu && sum < 0.0 ? 0.0 : sum;
    }
  tarn__free(x);
  tarn__free(y);
}

// What product.row_sums holds when it began with a half in every row.
static void check_row_sums(const float *found, const operand *a, const variant *v, const shape *s, const char *name) {
  double *rows = doubles_of(a, v->transpose_a, s->m, s->k), *expected = check_alloc((size_t)s->m, sizeof(double));
  double *values = check_alloc((size_t)s->m, sizeof(double));
  for (int64_t i = 0; i < s->m; i++) {
    expected[i] = 0.5;
    for (int64_t l = 0; l < s->k; l++) expected[i] += rows[i * s->k + l];
    values[i] = (double)found[i];
  }
  if (!check_proven()) check_close_to(values, expected, (size_t)s->m, 1e-5, name, "sums of rows", 0);
  bits_add(values, (size_t)s->m);
  void *memory[] = {rows, expected, values};
  for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++) tarn__free(memory[i]);
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
  // The expected result is computed from rounded copies.
  operand exact_a = a, exact_b = b;
  if (v->int8) {
    a = widened(&a);
    b = widened(&b);
    for (int64_t i = 0; i < s->m; i++) round_row(&a, i, s->k);
    for (int64_t j = 0; j < s->n; j++) round_row(&b, j, s->k);
  }
  const bool proven = check_proven();
  if (!proven) compute_expected(expected, &a, &b, &c, bias.data, v, s);
  for (int64_t i = 0; i < s->m; i++) {
    for (int64_t j = 0; j < s->gap; j++)
      edge[i * s->gap + j] = check_load(c.data, c.dtype, (size_t)(i * c.ld + s->n + j));
  }
  tarn__gemm product = {.m = s->m,
                        .n = s->n,
                        .k = s->k,
                        .a = exact_a.data,
                        .b = exact_b.data,
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
  product.int8 = v->int8;
  void *packed = NULL;
  if (v->packed) {
    packed = check_alloc(tarn__gemm_pack_bytes(&product), 1);
    tarn__gemm_pack(packed, &product, threads);
    product.packed = packed;
    product.b = NULL;
  }
  if (tarn__gemm_sums_rows(&product)) {
    product.row_sums = check_alloc((size_t)s->m, sizeof(float));
    for (int64_t i = 0; i < s->m; i++) product.row_sums[i] = 0.5f;
  }
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
  if (v->packed) strncat(name, v->int8 ? ", int8" : ", packed", sizeof name - strlen(name) - 1);
  // Numbers half-way between two integers, many of them in BF16, are rounded differently by instruction sets.
  double tolerance = v->int8 ? 0.03 : v->c_dtype == TARN__F32 ? 1e-5 : 5e-3;
  // The products of bf16 numbers are exact in fp32; only the sums round, and the result if it is bf16.
  if (!proven) check_close_to(found, expected, (size_t)(s->m * s->n), tolerance, name, "product", 0);
  bits_add(found, (size_t)(s->m * s->n));
  if (product.row_sums) check_row_sums(product.row_sums, &a, v, s, name);
  bits_trace(name);
  if (v->int8) {
    tarn__free(exact_a.data);
    tarn__free(exact_b.data);
  }
  void *memory[] = {a.data, b.data, c.data, bias.data, expected, found, edge, scratch, packed, product.row_sums};
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

// With a factor that was packed before.
static void packed_factor(void **state) {
  (void)state;
  static const shape shapes[] = {
      {1, 8, 8, 0}, {17, 100, 24, 0}, {300, 160, 17, 5}, {64, 96, 2700, 0}, {33, 1000, 64, 0}};
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
    for (int bits = 0; bits < 8; bits++) {
      variant v = {.transpose_b = bits & 1, .packed = true, .bias = bits & 2, .relu = bits & 2};
      v.dtype = v.c_dtype = bits & 4 ? TARN__BF16 : TARN__F32;
      check_product(&shapes[i], &v, 1 + (int)(i % 3));
    }
}

// Sums so long that tiles add them up in pieces or in spans of k, of more rows and columns than a block of C has; and
// rows of A that tiles read where they lie.
static void pieces_of_tiles(void **state) {
  (void)state;
  if (tarn__isa_now() != TARN__ISA_AMX) skip();
  static const shape shapes[] = {{280, 540, 1061, 3}, {530, 72, 1601, 3}, {70, 72, 576, 32}, {40, 340, 1536, 0}};
  const variant variants[] = {
      {.transpose_a = true, .accumulate = true, .dtype = TARN__BF16, .c_dtype = TARN__F32},
      {.bias = true, .relu = true, .packed = true, .dtype = TARN__BF16, .c_dtype = TARN__BF16},
      {.transpose_b = true, .accumulate = true, .dtype = TARN__BF16, .c_dtype = TARN__BF16},
  };
  for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
    for (int i = 0; i < 3; i++) check_product(&shapes[s], &variants[i], 1 + i);
}

// A product of INT8 is that of the rounded factors, exactly.
static void int8_factor(void **state) {
  (void)state;
  static const shape shapes[] = {
      {1, 8, 8, 0}, {17, 100, 23, 0}, {300, 160, 17, 5}, {64, 96, 5001, 0}, {33, 1000, 64, 0}};
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
    for (int bits = 0; bits < 8; bits++) {
      variant v = {.transpose_b = true, .packed = true, .int8 = true, .bias = bits & 1, .relu = bits & 1};
      v.accumulate = bits & 2 && !v.bias;
      v.dtype = v.c_dtype = bits & 4 ? TARN__BF16 : TARN__F32;
      check_product(&shapes[i], &v, 1 + (int)(i % 3));
    }
  // More than a megabyte of B, and rows that fill neither a block nor a group of it.
  static const shape large = {71, 1030, 1100, 0};
  const variant v = {.transpose_b = true, .packed = true, .int8 = true, .bias = true};
  check_product(&large, &v, 1);
}

// Rounded in the order of rows, a factor is what the plain formula says, whatever the instruction set, and packed from
// there the same bytes as packed from its numbers.
static void check_quantised(const shape *s, int threads) {
  tarn__random random;
  tarn__random_init(&random, 3, 4);
  operand b = operand_open(&random, s->n, s->k, 0, TARN__F32);
  memset((float *)b.data + (s->n - 1) * s->k, 0, (size_t)s->k * sizeof(float));
  operand rounded = widened(&b);
  tarn__gemm g = {
      .n = s->n, .k = s->k, .b = b.data, .ldb = s->k, .dtype = TARN__F32, .transpose_b = true, .int8 = true};
  signed char *values = check_alloc((size_t)(s->n * s->k), 1);
  float *scales = check_alloc((size_t)s->n, sizeof *scales);
  tarn__gemm_quantise(values, scales, &g, threads);
  for (int64_t i = 0; i < s->n; i++) {
    round_row(&rounded, i, s->k);
    for (int64_t l = 0; l < s->k; l++)
      assert_true((float)values[i * s->k + l] * scales[i] == ((const float *)rounded.data)[i * s->k + l]);
  }
  const size_t bytes = tarn__gemm_pack_bytes(&g);
  char *direct = check_alloc(bytes, 1), *again = check_alloc(bytes, 1);
  memset(direct, 0, bytes);
  memset(again, 0, bytes);
  tarn__gemm_pack(direct, &g, threads);
  g.b = values;
  g.b_scales = scales;
  assert_int_equal(tarn__gemm_pack_bytes(&g), bytes);
  tarn__gemm_pack(again, &g, threads);
  assert_memory_equal(direct, again, bytes);
  void *memory[] = {b.data, rounded.data, values, scales, direct, again};
  for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++) tarn__free(memory[i]);
}

static void quantised_factor(void **state) {
  (void)state;
  static const shape shapes[] = {{1, 2, 1, 0}, {1, 8, 8, 0}, {1, 101, 23, 0}, {1, 40, 1031, 0}, {1, 33, 5001, 0}};
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) check_quantised(&shapes[i], 1 + (int)(i % 3));
}

// Rows [first, first + rows) of the product of a company, on a copy of what c holds.
typedef struct company {
  const shape *s;
  const variant *v;
  operand a, b, bias, c;
  void *packed;
} company;

static void run_rows(const company *of, void *out, int64_t first, int64_t rows, bool packed, int threads) {
  const variant *v = of->v;
  const size_t row_bytes = (size_t)of->s->n * tarn__dtype_size(v->c_dtype);
  memcpy(out, (const char *)of->c.data + (size_t)first * row_bytes, (size_t)rows * row_bytes);
  const int64_t at = v->transpose_a ? first : first * of->a.ld;
  tarn__gemm product = {.m = rows,
                        .n = of->s->n,
                        .k = of->s->k,
                        .a = (const char *)of->a.data + (size_t)at * tarn__dtype_size(v->dtype),
                        .b = of->b.data,
                        .packed = packed ? of->packed : NULL,
                        .c = out,
                        .bias = v->bias ? of->bias.data : NULL,
                        .lda = of->a.ld,
                        .ldb = of->b.ld,
                        .ldc = of->s->n,
                        .dtype = v->dtype,
                        .c_dtype = v->c_dtype,
                        .transpose_a = v->transpose_a,
                        .transpose_b = v->transpose_b,
                        .accumulate = v->accumulate,
                        .relu = v->relu,
                        .int8 = v->int8};
  void *scratch = check_alloc(tarn__gemm_scratch(&product, threads), 1);
  tarn__gemm_run(&product, threads, scratch);
  tarn__free(scratch);
}

// The bits of a row depend neither on the other rows, however few, nor on the threads nor on when the factor is packed.
static void check_bits(const shape *s, const variant *v) {
  enum { THREADS = 3 };
  tarn__random random;
  tarn__random_init(&random, 9, 10);
  company of = {.s = s, .v = v};
  of.a = operand_open(&random, v->transpose_a ? s->k : s->m, v->transpose_a ? s->m : s->k, s->gap, v->dtype);
  of.b = operand_open(&random, v->transpose_b ? s->n : s->k, v->transpose_b ? s->k : s->n, s->gap, v->dtype);
  of.c = operand_open(&random, s->m, s->n, 0, v->c_dtype);
  of.bias = operand_open(&random, 1, s->n, 0, TARN__F32);
  const tarn__gemm factor = {.n = s->n,
                             .k = s->k,
                             .b = of.b.data,
                             .ldb = of.b.ld,
                             .dtype = v->dtype,
                             .transpose_a = v->transpose_a,
                             .transpose_b = v->transpose_b,
                             .int8 = v->int8};
  of.packed = check_alloc(tarn__gemm_pack_bytes(&factor), 1);
  tarn__gemm_pack(of.packed, &factor, THREADS);
  const size_t row_bytes = (size_t)s->n * tarn__dtype_size(v->c_dtype), bytes = (size_t)s->m * row_bytes;
  char *together = check_alloc(bytes, 1), *other = check_alloc(bytes, 1);
  run_rows(&of, together, 0, s->m, true, THREADS);
  for (int packed = v->int8; packed < 2; packed++)
    for (int threads = 1; threads <= THREADS; threads += THREADS - 1) {
      run_rows(&of, other, 0, s->m, packed, threads);
      assert_memory_equal(other, together, bytes);
      for (int64_t i = 0; i < s->m; i++) {  // alone, and by twos, threes and fours, which have kernels of their own
        const int64_t rows = i % 4 < s->m - i ? 1 + i % 4 : s->m - i;
        run_rows(&of, other, i, rows, packed, threads);
        assert_memory_equal(other, together + (size_t)i * row_bytes, (size_t)rows * row_bytes);
      }
    }
  void *memory[] = {of.a.data, of.b.data, of.c.data, of.bias.data, of.packed, together, other};
  for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++) tarn__free(memory[i]);
}

static void rows_alone(void **state) {
  (void)state;
  int taken = 0;
  static const shape shapes[] = {{5, 8, 8, 0},     {26, 100, 24, 3},  {37, 160, 66, 0}, {13, 72, 5001, 0},
                                 {30, 530, 40, 0}, {70, 40, 1100, 0}, {5, 96, 768, 0},  {5, 70, 1056, 3}};
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
    for (int bits = 0; bits < 64; bits++) {
      variant v = {.accumulate = bits & 1, .bias = !(bits & 1) && bits & 2, .relu = !(bits & 1) && bits & 2};
      v.dtype = bits & 4 ? TARN__BF16 : TARN__F32;
      v.c_dtype = bits & 8 ? TARN__BF16 : TARN__F32;
      v.int8 = (bits & 48) == 48;
      v.transpose_a = !v.int8 && bits & 16;
      v.transpose_b = v.int8 || bits & 32;
      bool same = v.accumulate && bits & 2;  // as another one
      if (same || (v.dtype == TARN__F32 && v.c_dtype == TARN__BF16)) continue;
      if (taken++ % sample_step(3) == 0) check_bits(&shapes[i], &v);
    }
}

// Sums of the rows of A depend neither on the number of threads nor on the division of the product.
static void row_sums(void **state) {
  (void)state;
  enum { M = 300, K = 1100 };
  tarn__random random;
  tarn__random_init(&random, 9, 10);
  operand a = operand_open(&random, K, M, 0, TARN__BF16), b = operand_open(&random, K, 1200, 0, TARN__BF16);
  tarn__gemm product = {.m = M, .k = K, .a = a.data, .b = b.data, .lda = M, .ldb = 1200, .dtype = TARN__BF16};
  product.transpose_a = true;
  product.c_dtype = TARN__F32;
  product.c = check_alloc((size_t)M * 1200, sizeof(float));
  assert_int_equal(tarn__gemm_sums_rows(&product), tarn__isa_now() == TARN__ISA_AMX);
  static const int64_t columns[] = {40, 520, 1200};
  float sums[3][M] = {{0}};
  for (int i = 0; i < 3 && tarn__gemm_sums_rows(&product); i++) {
    product.n = product.ldc = columns[i];
    product.row_sums = sums[i];
    void *scratch = check_alloc(tarn__gemm_scratch(&product, 1 + 2 * i), 1);
    tarn__gemm_run(&product, 1 + 2 * i, scratch);
    tarn__free(scratch);
    assert_memory_equal(sums[i], sums[0], sizeof sums[0]);
  }
  void *memory[] = {a.data, b.data, product.c};
  for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++) tarn__free(memory[i]);
}

// Tiles of every kind at once: two heights and a rest, two widths and a rest, chunks of k.
static void many_threads(void **state) {
  (void)state;
  variant v = {.transpose_a = true, .dtype = TARN__F32, .c_dtype = TARN__F32};
  shape s = {275, 451, 531, 0};
  check_product(&s, &v, 7);
}

static float *run_columns(const tarn__gemm *whole, int64_t first, int64_t n, int threads) {
  tarn__gemm part = *whole;
  part.n = part.ldc = n;
  part.first = first;
  part.of = whole->n;
  if (whole->bias) part.bias = whole->bias + first;
  float *c = check_alloc((size_t)(part.m * n), sizeof *c);
  void *scratch = check_alloc(tarn__gemm_scratch(&part, threads), 1);
  part.c = c;
  tarn__gemm_run(&part, threads, scratch);
  tarn__free(scratch);
  return c;
}

// Of a packed B a product may take any columns, and rows that have been rounded before: the bits are those of the
// whole.
static void check_columns(const shape *s, const tarn__gemm *how, int threads) {
  tarn__random random;
  tarn__random_init(&random, 11, 5);
  operand a = operand_open(&random, s->m, s->k, 0, how->dtype), b = operand_open(&random, s->n, s->k, 0, how->dtype);
  operand bias = operand_open(&random, 1, s->n, 0, TARN__F32);
  tarn__gemm g = *how;
  g.m = s->m, g.n = s->n, g.k = g.lda = g.ldb = s->k;
  g.a = a.data, g.b = b.data, g.bias = bias.data;
  g.c_dtype = TARN__F32;
  g.transpose_b = true;
  void *packed = check_alloc(tarn__gemm_pack_bytes(&g), 1);
  tarn__gemm_pack(packed, &g, threads);
  g.packed = packed;
  float *whole = run_columns(&g, 0, s->n, threads);
  const int64_t row = tarn__gemm_int8_row(s->k), padded = s->m + TARN__GEMM_INT8_ROWS;
  uint8_t *bytes = check_alloc((size_t)(padded * row), 1);
  float *scales = check_alloc((size_t)padded, sizeof *scales);
  for (int64_t r = 0; r < s->m; r++)
    tarn__gemm_quantise_row(bytes + r * row, scales + r,
                            (char *)a.data + (size_t)(r * s->k) * tarn__dtype_size(g.dtype), g.dtype, s->k);
  if (g.int8) g.a = bytes, g.lda = row, g.a_rounded = true, g.a_scales = scales;
  for (int64_t first = 0; first < s->n; first += 3 * TARN__GEMM_PART) {
    const int64_t n = s->n - first < 3 * TARN__GEMM_PART ? s->n - first : 3 * TARN__GEMM_PART;
    float *part = run_columns(&g, first, n, threads);
    for (int64_t r = 0; r < s->m; r++)
      assert_memory_equal(part + r * n, whole + r * s->n + first, (size_t)n * sizeof *part);
    tarn__free(part);
  }
  void *memory[] = {a.data, b.data, bias.data, packed, whole, bytes, scales};
  for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++) tarn__free(memory[i]);
}

static void parts_of_columns(void **state) {
  (void)state;
  static const shape shapes[] = {{1, 100, 40, 0}, {37, 230, 130, 0}, {6, 100, 4200, 0}};
  const tarn__gemm ways[] = {{.dtype = TARN__F32},
                             {.dtype = TARN__BF16},
                             {.dtype = TARN__F32, .int8 = true},
                             {.dtype = TARN__BF16, .int8 = true},
                             {.dtype = TARN__F32, .int4 = true},
                             {.dtype = TARN__F32, .fp32 = TARN__FP32_SPLIT6}};
  const size_t count = sizeof ways / sizeof ways[0] - (tarn__isa_now() == TARN__ISA_AMX ? 0 : 1);
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
    for (size_t w = 0; w < count; w++) check_columns(&shapes[i], &ways[w], 1 + (int)(i % 2));
}

static int run(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(parts_of_columns), cmocka_unit_test(products),         cmocka_unit_test(packed_factor),
      cmocka_unit_test(pieces_of_tiles),  cmocka_unit_test(int8_factor),      cmocka_unit_test(rows_alone),
      cmocka_unit_test(many_threads),     cmocka_unit_test(quantised_factor), cmocka_unit_test(row_sums)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }
