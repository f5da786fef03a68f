// Products within sentences: the fast kernels against the reference, over sizes, heads and sentences; sentences whose
// bits do not depend on their batch or on threads; scratch that is enough for every length; bad shapes and offsets.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "device/cpu/gemm/gemm.h"
#include "kernels/kernel_check.h"
#include "ops/ops.h"
#include "ops/sentence_product.h"

typedef struct shape {
  int64_t h, d, heads, column, beside;  // h of all heads; beside: columns of x after those used
  int sentences;
  const int32_t *offsets;
} shape;

// Sentences of many lengths, one of them empty, one much longer than the others.
static const int32_t many[] = {0, 1, 3, 3, 10, 27, 28, 120, 125};
static const int32_t one[] = {0, 70};
static const int32_t none[] = {0};
enum { MANY = sizeof many / sizeof many[0] - 1, LONGEST = 92 };

// Both ops, with a in each of them, as in a HyperMixer whose two matrices are one; x has another reader too.
static void build(check *c, tarn__graph *graph, const void *spec) {
  const shape *s = spec;
  const int64_t rows = s->offsets[s->sentences];
  tarn__tensor *a = check_input(c, graph, rows, s->h, 0.5, true);
  tarn__tensor *x = check_input(c, graph, rows, s->column + s->d + s->beside, 0.5, true);
  tarn__tensor *offsets = check_ints(c, graph, s->offsets, s->sentences + 1);
  tarn__sentence_spec sizes = {.heads = s->heads, .column = s->column, .d = s->d, .longest = LONGEST};
  tarn__tensor *z = tarn__sentence_outer(graph, a, x, offsets, sizes);
  check_output(c, z);
  sizes.column = 0;
  tarn__tensor *y = tarn__sentence_product(graph, a, z, offsets, sizes);
  check_output(c, y);
  check_output(c, tarn__sentence_outer(graph, a, y, offsets, sizes));
}

static void sizes(void **state) {
  (void)state;
  static const shape shapes[] = {
      {1, 1, 1, 0, 0, MANY, many},    {8, 24, 1, 0, 0, MANY, many},    {64, 128, 1, 0, 0, MANY, many},
      {33, 70, 1, 0, 0, MANY, many},  {12, 36, 3, 0, 0, MANY, many},   {64, 128, 4, 0, 0, MANY, many},
      {16, 32, 1, 32, 0, MANY, many}, {24, 40, 2, 40, 40, MANY, many}, {6, 10, 1, 0, 7, MANY, many},
      {70, 130, 1, 0, 0, 1, one},     {300, 520, 1, 0, 0, 1, one},     {8, 16, 1, 0, 0, 0, none},
  };
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
    char name[96];
    snprintf(name, sizeof name, "h %d, d %d, heads %d, column %d", (int)shapes[i].h, (int)shapes[i].d,
             (int)shapes[i].heads, (int)shapes[i].column);
    check_kernels(build, &shapes[i], name, 1e-5, 0.03);
  }
}

// One factor without a gradient at a time.
typedef struct half {
  bool outer, a, factor;
} half;

static void build_half(check *c, tarn__graph *graph, const void *spec) {
  const half *s = spec;
  enum { H = 10, D = 20 };
  tarn__tensor *a = check_input(c, graph, many[MANY], H, 0.5, s->a);
  tarn__tensor *factor = check_input(c, graph, s->outer ? many[MANY] : MANY * H, D, 0.5, s->factor);
  tarn__tensor *offsets = check_ints(c, graph, many, MANY + 1);
  const tarn__sentence_spec sizes = {.heads = 1, .d = D, .longest = LONGEST};
  check_output(c, s->outer ? tarn__sentence_outer(graph, a, factor, offsets, sizes)
                           : tarn__sentence_product(graph, a, factor, offsets, sizes));
}

static void one_gradient(void **state) {
  (void)state;
  for (int outer = 0; outer < 2; outer++)
    for (int of_a = 0; of_a < 2; of_a++) {
      const half s = {outer, of_a, !of_a};
      check_kernels(build_half, &s, outer ? "outer, one gradient" : "product, one gradient", 1e-5, 0.02);
    }
}

enum { H = 24, D = 40, HEADS = 2, LENGTH = 37, EARLIER = 6, ROWS = EARLIER + LENGTH };

typedef struct batch {
  tarn__dtype dtype;
  int64_t rows;
  int threads, sentences;
  const int32_t *offsets;
} batch;

// y = a (a^T x) of the rows from `row` on.
static tarn_status run_batch(void *out, const batch *b, void *a, void *x, int64_t row) {
  const size_t size = tarn__dtype_size(b->dtype);
  tarn__graph graph = {0};
  tarn__graph_begin(&graph, check_device(), b->dtype, false, b->threads);
  tarn__tensor *from = tarn__graph_external(&graph, b->dtype, b->rows, H, (char *)a + (size_t)(row * H) * size, "a");
  tarn__tensor *to = tarn__graph_external(&graph, b->dtype, b->rows, D, (char *)x + (size_t)(row * D) * size, "x");
  tarn__tensor *offsets = tarn__graph_input(&graph, b->sentences + 1, b->offsets, "offsets");
  const tarn__sentence_spec spec = {.heads = HEADS, .d = D, .longest = LENGTH};
  tarn__tensor *y =
      tarn__sentence_product(&graph, from, tarn__sentence_outer(&graph, from, to, offsets, spec), offsets, spec);
  return check_result(out, &graph, y);
}

// A sentence has equal bits alone and behind others, on any number of threads.
static void bits(void **state) {
  (void)state;
  static const int32_t alone[] = {0, LENGTH}, behind[] = {0, EARLIER, ROWS};
  static const tarn__dtype dtypes[] = {TARN__F32, TARN__BF16};
  tarn__random random;
  tarn__random_init(&random, 11, 0);
  void *a = check_shared(ROWS * H * sizeof(double)), *x = check_shared(ROWS * D * sizeof(double));
  for (int t = 0; t < 2; t++) {
    static double first[ROWS * D], other[ROWS * D];
    const size_t before = EARLIER * D * tarn__dtype_size(dtypes[t]), size = LENGTH * D * tarn__dtype_size(dtypes[t]);
    for (size_t i = 0; i < ROWS * H; i++) check_store(a, dtypes[t], i, tarn__random_normal(&random));
    for (size_t i = 0; i < ROWS * D; i++) check_store(x, dtypes[t], i, tarn__random_normal(&random));
    batch b = {.dtype = dtypes[t], .rows = LENGTH, .threads = 1, .sentences = 1, .offsets = alone};
    check_ok(run_batch(first, &b, a, x, EARLIER));
    for (b.threads = 2; b.threads <= 3; b.threads++) {
      check_ok(run_batch(other, &b, a, x, EARLIER));
      assert_memory_equal(first, other, size);
    }
    b = (batch){.dtype = dtypes[t], .rows = ROWS, .sentences = 2, .offsets = behind};
    for (b.threads = 1; b.threads <= 5; b.threads++) {
      check_ok(run_batch(other, &b, a, x, 0));
      assert_memory_equal(first, (char *)other + before, size);
    }
  }
  check_shared_free(a);
  check_shared_free(x);
}

static void bad_offsets(void **state) {
  (void)state;
  static float a[ROWS * H], x[ROWS * D], y[ROWS * D];
  static const int32_t few[] = {0, 5, ROWS - 1}, falling[] = {0, 7, 5, ROWS}, longer[] = {0, LENGTH + 1, ROWS};
  batch b = {.rows = ROWS, .threads = 1, .sentences = 2, .offsets = few};
  assert_int_equal(run_batch(y, &b, a, x, 0), TARN_STATUS_INTERNAL);
  b.offsets = longer;
  assert_int_equal(run_batch(y, &b, a, x, 0), TARN_STATUS_INTERNAL);
  b.sentences = 3, b.offsets = falling;
  assert_int_equal(run_batch(y, &b, a, x, 0), TARN_STATUS_INTERNAL);
}

// Shapes that do not fit together are refused.
static void bad_shapes(void **state) {
  (void)state;
  static float a[4 * H], x[4 * D];
  static const int32_t offsets[] = {0, 4};
  static const tarn__sentence_spec bad[] = {{0, 0, D, 4},  {5, 0, D, 4}, {3, 0, D, 4}, {1, 1, D, 4},
                                            {1, -1, D, 4}, {1, 0, 0, 4}, {1, 0, D, -1}};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0] + 1; i++) {
    tarn__graph graph = {0};
    tarn__graph_begin(&graph, &tarn__device_cpu, TARN__F32, false, 1);
    tarn__tensor *left = tarn__graph_external(&graph, TARN__F32, 4, H, a, "a");
    tarn__tensor *right = tarn__graph_external(&graph, TARN__F32, 4, D, x, "x");
    tarn__tensor *places = tarn__graph_input(&graph, 2, offsets, "offsets");
    if (i < sizeof bad / sizeof bad[0])
      tarn__sentence_outer(&graph, left, right, places, bad[i]);
    else  // z has one row for each token, not H for the sentence
      tarn__sentence_product(&graph, left, right, places, (tarn__sentence_spec){.heads = 1, .d = D, .longest = 4});
    assert_int_equal(tarn__graph_plan(&graph), TARN_STATUS_INTERNAL);
    tarn__graph_close(&graph);
  }
}

// No length up to the longest needs more scratch than is said to be the most.
static void expect_most(tarn__gemm g, int64_t longest, int threads, bool terms) {
  int64_t *size = terms ? &g.k : &g.m;
  *size = longest;
  const size_t most = tarn__gemm_scratch_most(&g, threads, terms);
  for (*size = 0; *size <= longest; ++*size) assert_true(tarn__gemm_scratch(&g, threads) <= most);
}

static void scratch(void **state) {
  (void)state;
  static const int64_t others[][2] = {{8, 16}, {40, 33}, {128, 512}, {600, 64}}, longest[] = {230, 700};
  static const struct {
    tarn__dtype dtype;
    tarn__fp32 fp32;
  } types[] = {{TARN__F32, TARN__FP32_EXACT}, {TARN__BF16, TARN__FP32_EXACT}, {TARN__F32, TARN__FP32_SPLIT6}};
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
    for (size_t l = 0; l < sizeof longest / sizeof longest[0]; l++)
      for (int threads = 1; threads <= 4; threads *= 2)
        for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
          for (int terms = 0; terms < 2; terms++) {
            tarn__gemm g = {.m = others[i][0],
                            .n = others[i][1],
                            .k = others[i][0],
                            .transpose_a = terms,
                            .dtype = types[t].dtype,
                            .fp32 = types[t].fp32};
            g.c_dtype = g.dtype, g.lda = terms ? g.m : g.k, g.ldb = g.n, g.ldc = g.n;
            expect_most(g, longest[l], threads, terms);
          }
}

// Operations counted against a count by hand, in whatever sentences the rows are.
static void operations(void **state) {
  (void)state;
  static const int32_t offsets[] = {0, 3, 4, 6};
  tarn__graph graph = {0};
  tarn__graph_begin(&graph, &tarn__device_cpu, TARN__F32, false, 1);
  tarn__tensor *a = tarn__graph_external(&graph, TARN__F32, 6, 2 * 5, NULL, "a");
  tarn__tensor *x = tarn__graph_external(&graph, TARN__F32, 6, 8, NULL, "x");
  tarn__tensor *places = tarn__graph_input(&graph, 4, offsets, "offsets");
  const tarn__sentence_spec spec = {.heads = 2, .d = 8, .longest = 3};
  tarn__tensor *z = tarn__sentence_outer(&graph, a, x, places, spec);
  assert_int_equal(z->rows, 3 * 5);
  assert_true(z->source->op->flops(z->source) == 2.0 * 6 * 5 * 8);
  tarn__tensor *y = tarn__sentence_product(&graph, a, z, places, spec);
  assert_true(y->source->op->flops(y->source) == 2.0 * 6 * 5 * 8);
  check_ok(graph.status);
  tarn__graph_close(&graph);
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sizes),      cmocka_unit_test(one_gradient),
                                     cmocka_unit_test(bits),       cmocka_unit_test(bad_offsets),
                                     cmocka_unit_test(bad_shapes), cmocka_unit_test(scratch),
                                     cmocka_unit_test(operations)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }
