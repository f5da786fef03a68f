// Sparse products against plain loops in double: both orientations and types, few and many rows, sizes that fill no
// tile; the same bits for every number of threads, for every instruction set.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "device/cpu/gemm/spmm.h"
#include "kernels/kernel_check.h"

enum { GAP = 3, THREADS = 3 };

typedef struct shape {
  int64_t n, m;
  double sparsity;
  bool uneven;  // the first rows have most of the entries
} shape;

typedef struct variant {
  bool transpose, bias, accumulate;
  tarn__dtype dtype;
} variant;

typedef struct problem {
  shape size;
  variant v;
  void *dense, *a;   // [n, n], [m, n + GAP]
  float *bias, *c;   // c: [m, n + GAP] before
  double *expected;  // [m, n]
  tarn__random random;
} problem;

static bool is_entry(problem *p, int64_t i) {
  const double share = 1.0 - p->size.sparsity;
  return tarn__random_uniform(&p->random) < (p->size.uneven && i < p->size.n / 8 ? 8.0 : 1.0) * share;
}

static double weight_at(const problem *p, int64_t i, int64_t k) {
  return check_load(p->dense, p->v.dtype, (size_t)(p->v.transpose ? k * p->size.n + i : i * p->size.n + k));
}

static void expect(problem *p) {
  const int64_t n = p->size.n;
  for (int64_t r = 0; r < p->size.m; r++)
    for (int64_t i = 0; i < n; i++) {
      double sum = p->v.accumulate ? (double)p->c[r * (n + GAP) + i] : p->v.bias ? (double)p->bias[i] : 0.0;
      for (int64_t k = 0; k < n; k++)
        sum += weight_at(p, i, k) * check_load(p->a, p->v.dtype, (size_t)(r * (n + GAP) + k));
      p->expected[r * n + i] = sum;
    }
}

static void problem_open(problem *p, const shape *size, const variant *v) {
  const int64_t n = size->n, rows = size->m * (n + GAP);
  *p = (problem){.size = *size, .v = *v};
  tarn__random_init(&p->random, 81, 0);
  p->dense = check_alloc((size_t)(n * n), sizeof(float));
  p->a = check_alloc((size_t)rows, sizeof(float));
  p->bias = check_alloc((size_t)n, sizeof(float));
  p->c = check_alloc((size_t)rows, sizeof(float));
  p->expected = check_alloc((size_t)(size->m * n), sizeof(double));
  // What is no entry is 0 or -0.
  for (int64_t e = 0; e < n * n; e++)
    check_store(p->dense, v->dtype, (size_t)e,
                is_entry(p, e / n) ? tarn__random_normal(&p->random)
                : e % 3 == 0       ? -0.0
                                   : 0.0);
  for (int64_t e = 0; e < rows; e++) {
    check_store(p->a, v->dtype, (size_t)e, tarn__random_normal(&p->random));
    p->c[e] = (float)tarn__random_normal(&p->random);
  }
  for (int64_t i = 0; i < n; i++) p->bias[i] = (float)tarn__random_normal(&p->random);
  expect(p);
}

static void problem_close(problem *p) {
  tarn__free(p->dense);
  tarn__free(p->a);
  tarn__free(p->bias);
  tarn__free(p->c);
  tarn__free(p->expected);
}

// The rows of the matrix, whose memory is one block at ->starts.
static tarn__spmm_rows rows_open(int64_t n, int64_t room) {
  int32_t *memory = check_alloc((size_t)(n + 1 + 2 * room + 1), sizeof *memory);
  return (tarn__spmm_rows){n, n, room, memory, memory + n + 1, (float *)(void *)(memory + n + 1 + room)};
}

static void check_rows(const tarn__spmm_rows *rows, const problem *p) {
  int32_t at = 0;
  for (int64_t i = 0; i < rows->n; i++) {
    assert_int_equal(rows->starts[i], at);
    for (int64_t k = 0; k < rows->n; k++) {
      const double value = weight_at(p, i, k);
      if (value == 0.0) continue;
      assert_int_equal(rows->columns[at], k);
      assert_true((double)rows->values[at] == value);
      at++;
    }
  }
  assert_int_equal(rows->starts[rows->n], at);
}

static float *product_of(const problem *p, int threads) {
  const int64_t n = p->size.n, size = p->size.m * (n + GAP);
  tarn__spmm_rows rows = rows_open(n, n * n);
  assert_true(tarn__spmm_take(&rows, p->dense, p->v.dtype, p->v.transpose, threads));
  check_rows(&rows, p);
  float *c = check_alloc((size_t)size, sizeof *c);
  float *scratch = check_alloc((size_t)tarn__spmm_scratch(n), sizeof *scratch);
  memcpy(c, p->c, (size_t)size * sizeof *c);
  const tarn__spmm product = {.matrix = &rows,
                              .a = p->a,
                              .m = p->size.m,
                              .lda = n + GAP,
                              .ldc = n + GAP,
                              .dtype = p->v.dtype,
                              .bias = p->v.bias ? p->bias : NULL,
                              .accumulate = p->v.accumulate,
                              .c = c,
                              .scratch = scratch};
  tarn__spmm_run(&product, threads);
  tarn__free(scratch);
  tarn__free(rows.starts);
  return c;
}

static void try_problem(const shape *size, const variant *v) {
  problem p;
  problem_open(&p, size, v);
  const int64_t n = size->n;
  float *first = product_of(&p, 1);
  bits_add_floats(first, (size_t)(size->m * (n + GAP)));
  bits_trace("spmm");
  for (int64_t r = 0; r < size->m; r++) {
    for (int64_t i = 0; i < n; i++) {
      const double got = (double)first[r * (n + GAP) + i], wanted = p.expected[r * n + i];
      if (fabs(got - wanted) > 1e-4 * (1.0 + fabs(wanted)))
        fail_msg("%lld units, row %lld, column %lld: %g, not %g", (long long)n, (long long)r, (long long)i, got,
                 wanted);
    }
    // Between the rows nothing is written.
    assert_memory_equal(first + r * (n + GAP) + n, p.c + r * (n + GAP) + n, GAP * sizeof *first);
  }
  for (int threads = 2; threads <= THREADS; threads++) {
    float *c = product_of(&p, threads);
    assert_memory_equal(c, first, (size_t)(size->m * (n + GAP)) * sizeof *c);
    tarn__free(c);
  }
  tarn__free(first);
  problem_close(&p);
}

static void products(void **state) {
  (void)state;
  // The last ones are shared by threads, in one block of rows and in several.
  static const shape shapes[] = {{1, 1, 0.0, false},   {7, 3, 0.5, false},    {33, 40, 0.8, true},
                                 {130, 17, 1.0, true}, {300, 5, 0.75, false}, {530, 31, 0.93, true},
                                 {530, 70, 0.93, true}};
  static const variant variants[] = {{false, true, false, TARN__F32},
                                     {true, false, true, TARN__F32},
                                     {false, false, false, TARN__BF16},
                                     {true, false, true, TARN__BF16}};
  for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
    for (size_t v = 0; v < sizeof variants / sizeof variants[0]; v++) try_problem(&shapes[s], &variants[v]);
}

// One entry too many is said, and nothing is written behind the room; with the very room there is it fits.
static void too_many_entries(void **state) {
  (void)state;
  enum { N = 300, EDGE = 7 };
  float *dense = check_alloc((size_t)N * N, sizeof *dense);
  for (int64_t e = 0; e < (int64_t)N * N; e++) dense[e] = e % EDGE == 0 ? 1.0f : 0.0f;
  const int64_t entries = ((int64_t)N * N + EDGE - 1) / EDGE;
  for (int threads = 1; threads <= THREADS; threads++)
    for (int transpose = 0; transpose < 2; transpose++)
      for (int lack = 0; lack < 2; lack++) {
        tarn__spmm_rows rows = rows_open(N, entries - lack);
        int32_t *behind = (int32_t *)(void *)(rows.values + rows.room);
        *behind = 12345;
        assert_true(tarn__spmm_take(&rows, dense, TARN__F32, transpose, threads) == !lack);
        assert_int_equal(*behind, 12345);
        tarn__free(rows.starts);
      }
  tarn__free(dense);
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(products), cmocka_unit_test(too_many_entries)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }
