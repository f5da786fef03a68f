// Rotary positions: the fast kernels against the reference, whose angles come from the library of C; scores that depend
// on distances alone; rows whose bits depend on their position only, the same under every instruction set.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/kernel_check.h"
#include "ops/ops.h"

enum { ROWS = 37 };

typedef struct shape {
  tarn__rotary_spec spec;
  int64_t cols;
  int32_t first;  // position of the first row; the last third of the rows has the positions of the first again
  bool in_place;
} shape;

static void build(check *c, tarn__graph *graph, const void *spec) {
  const shape *s = spec;
  int32_t positions[ROWS];
  for (int32_t r = 0; r < ROWS; r++) positions[r] = s->first + r % 25 * (r % 3 + 1);
  tarn__tensor *x = check_input(c, graph, ROWS, s->cols, 1.0, true);
  if (s->in_place) x = tarn__residual_norm(graph, x, x, 0.0, (tarn__norm){0}).sum;
  tarn__tensor *places = check_ints(c, graph, positions, ROWS);
  check_output(c, tarn__rotary(graph, x, places, s->spec));
}

static void sizes(void **state) {
  (void)state;
  static const tarn__rotary_spec specs[] = {
      {0, 1, 2, 2, 1e4, {0, 0, 0, 0}},        {0, 2, 8, 8, 1e4, {0, 0, 0, 0}},      {3, 2, 10, 6, 1e4, {0, 0, 0, 0}},
      {0, 16, 64, 64, 1e4, {0, 0, 0, 0}},     {64, 4, 32, 24, 5e5, {0, 0, 0, 0}},   {0, 3, 100, 66, 1.5, {0, 0, 0, 0}},
      {5, 1, 256, 256, 1e6, {0, 0, 0, 0}},    {0, 4, 64, 64, 5e5, {8, 1, 4, 8192}}, {2, 2, 16, 16, 1e4, {3, 1, 4, 0}},
      {0, 1, 32, 20, 1e4, {2.5, 0.5, 30, 64}}};
  for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++)
    for (int which = 0; which < 4; which++) {
      shape s = {.spec = specs[i], .in_place = which & 1, .first = which & 2 ? 100000 : 0};
      s.cols = specs[i].column + specs[i].heads * specs[i].width + (int64_t)(i % 3) * 7;
      char name[96];
      snprintf(name, sizeof name, "%d heads of %d, %d rotated, from column %d, position %d%s", (int)s.spec.heads,
               (int)s.spec.width, (int)s.spec.rotated, (int)s.spec.column, (int)s.first,
               s.in_place ? ", in place" : "");
      check_kernels(build, &s, name, 2e-6, 0.015);
    }
}

static void evaluation(void **state) {
  (void)state;
  const shape s = {.spec = {0, 4, 16, 16, 1e4, {0, 0, 0, 0}}, .cols = 96};
  check_kernels_mode(build, &s, "without training", false, 2e-6, 0.015);
}

// An input with another reader, whose gradient is there already, and queries and keys that are turned apart.
static void build_chain(check *c, tarn__graph *graph, const void *spec) {
  const shape *s = spec;
  int32_t positions[ROWS];
  for (int32_t r = 0; r < ROWS; r++) positions[r] = r;
  tarn__rotary_spec keys = s->spec;
  keys.column += keys.heads * keys.width;
  tarn__tensor *x = check_input(c, graph, ROWS, s->cols, 1.0, true), *places = check_ints(c, graph, positions, ROWS);
  tarn__tensor *y = tarn__rotary(graph, tarn__rotary(graph, x, places, s->spec), places, keys);
  check_output(c, y);
  check_output(c, tarn__rotary(graph, y, places, keys));
  check_output(c, tarn__rotary(graph, x, places, keys));
}

static void chain(void **state) {
  (void)state;
  const shape s = {.spec = {1, 2, 12, 8, 1e4, {0, 0, 0, 0}}, .cols = 50};
  check_kernels(build_chain, &s, "chain", 4e-6, 0.03);
}

enum { HEADS = 3, WIDTH = 20, ROTATED = 12, D = 2 * HEADS * WIDTH + 4 };

// Rows of x [rows, D] at the positions, in place of y.
static void run_rows(void *y, const tarn__device *device, tarn__dtype dtype, const void *x, const int32_t *positions,
                     int64_t rows, int threads) {
  tarn__graph graph = {0};
  const size_t bytes = (size_t)(rows * D) * tarn__dtype_size(dtype);
  void *memory = check_shared(bytes);
  memcpy(memory, x, bytes);
  tarn__graph_begin(&graph, device, dtype, false, threads);
  tarn__tensor *out = tarn__rotary(
      &graph, tarn__graph_external(&graph, dtype, rows, D, memory, "x"),
      tarn__graph_input(&graph, rows, positions, "positions"),
      (tarn__rotary_spec){.column = 2, .heads = 2 * HEADS, .width = WIDTH, .rotated = ROTATED, .base = 1e4});
  out->keep = true;
  check_ok(tarn__graph_plan(&graph));
  void *workspace = check_shared(graph.workspace_bytes);
  tarn__graph_bind(&graph, workspace);
  check_ok(tarn__graph_run(&graph, &(tarn__exec){.threads = threads, .spread = true}));
  check_ok(tarn__device_synchronise(check_device()));
  memcpy(y, out->data, bytes);
  check_shared_free(workspace);
  check_shared_free(memory);
  tarn__graph_close(&graph);
}

// What it is for: the product of a query and a key depends on the distance of their positions alone.
static void distances(void **state) {
  (void)state;
  static double x[2 * D], y[2 * D];
  static const int32_t positions[][2] = {{7, 3}, {104, 100}, {4, 0}, {4, 1}};
  double scores[4] = {0};
  tarn__random random;
  tarn__random_init(&random, 3, 0);
  for (int i = 0; i < 2 * D; i++) x[i] = tarn__random_normal(&random);
  for (int k = 0; k < 4; k++) {
    run_rows(y, &tarn__device_reference, TARN__F64, x, positions[k], 2, 1);
    for (int i = 0; i < WIDTH; i++) scores[k] += y[2 + i] * y[D + 2 + HEADS * WIDTH + i];
  }
  assert_true(fabs(scores[0] - scores[1]) < 1e-9);
  assert_true(fabs(scores[0] - scores[2]) < 1e-9);
  assert_true(fabs(scores[0] - scores[3]) > 1e-3);
}

// Columns that belong to nobody, and position 0, are left as they are. A row has equal bits alone and among others, on
// any number of threads.
static void bits(void **state) {
  (void)state;
  static const tarn__dtype dtypes[] = {TARN__F32, TARN__BF16};
  int32_t positions[ROWS];
  tarn__random random;
  tarn__random_init(&random, 4, 0);
  for (int32_t r = 0; r < ROWS; r++) positions[r] = r * 991 % 60;
  for (int t = 0; t < 2; t++) {
    static double x[ROWS * D], y[ROWS * D], other[ROWS * D];
    const size_t size = tarn__dtype_size(dtypes[t]), row = D * size;
    for (size_t i = 0; i < ROWS * D; i++) check_store(x, dtypes[t], i, tarn__random_normal(&random));
    run_rows(y, check_device(), dtypes[t], x, positions, ROWS, 1);
    for (int threads = 2; threads <= 5; threads++) {
      run_rows(other, check_device(), dtypes[t], x, positions, ROWS, threads);
      assert_memory_equal(y, other, ROWS * row);
    }
    assert_memory_equal(y, x, row);
    for (size_t r = 0; r < ROWS; r++) {
      run_rows(other, check_device(), dtypes[t], (char *)x + r * row, positions + r, 1, 1);
      assert_memory_equal((char *)y + r * row, other, row);
      assert_memory_equal((char *)y + r * row, (char *)x + r * row, 2 * size);
      assert_memory_equal((char *)y + (r + 1) * row - 2 * size, (char *)x + (r + 1) * row - 2 * size, 2 * size);
      const size_t rest = (2 + ROTATED) * size, left = (WIDTH - ROTATED) * size;
      assert_memory_equal((char *)y + r * row + rest, (char *)x + r * row + rest, left);
    }
  }
}

static void bad_specs(void **state) {
  (void)state;
  static const tarn__rotary_spec bad[] = {{0, 2, 8, 7, 1e4, {0, 0, 0, 0}},  {0, 2, 8, 10, 1e4, {0, 0, 0, 0}},
                                          {0, 2, 8, 0, 1e4, {0, 0, 0, 0}},  {0, 2, 8, 8, 1.0, {0, 0, 0, 0}},
                                          {-1, 2, 8, 8, 1e4, {0, 0, 0, 0}}, {1, 2, 8, 8, 1e4, {0, 0, 0, 0}},
                                          {0, 0, 8, 8, 1e4, {0, 0, 0, 0}},  {0, 2, 8, 8, 1e4, {2, 4, 4, 64}}};
  static float x[16];
  static int32_t position[1];
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    tarn__graph graph = {0};
    tarn__graph_begin(&graph, check_device(), TARN__F32, false, 1);
    tarn__rotary(&graph, tarn__graph_external(&graph, TARN__F32, 1, 16, x, "x"),
                 tarn__graph_input(&graph, 1, position, "positions"), bad[i]);
    assert_int_equal(tarn__graph_plan(&graph), TARN_STATUS_INTERNAL);
    tarn__graph_close(&graph);
  }
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sizes), cmocka_unit_test(evaluation),
                                     cmocka_unit_test(chain), cmocka_unit_test(distances),
                                     cmocka_unit_test(bits),  cmocka_unit_test(bad_specs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }
