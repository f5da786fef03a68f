#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/kernel_check.h"
#include "ops/ops.h"

enum { MAX_ROWS = 257 };

typedef struct shape {
  int64_t rows, cols, words;
  bool positions;
  double dropout;
  int32_t first;  // position of the first row
  int uses;
  bool learned;
} shape;

static void build(check *c, tarn__graph *graph, const void *spec) {
  const shape *s = spec;
  int32_t ids[MAX_ROWS], positions[MAX_ROWS];
  for (int32_t i = 0; i < s->rows; i++) {
    ids[i] = (int32_t)(i * 7 % s->words);
    positions[i] = s->first + i;
  }
  tarn__param *table = check_param(c, s->words, s->cols, 0.5, true);
  tarn__tensor *id = check_ints(c, graph, ids, s->rows);
  tarn__tensor *position = s->positions ? check_ints(c, graph, positions, s->rows) : NULL;
  tarn__param *learned = s->learned ? check_param(c, s->first + s->rows, s->cols, 0.5, true) : NULL;
  for (int i = 0; i < s->uses; i++)
    check_output(c, tarn__embedding(graph, id, position, table, learned, 4.0, s->dropout));
}

static void sizes(void **state) {
  (void)state;
  static const int64_t rows[] = {1, 15, 17, 257}, cols[] = {2, 8, 24, 99, 100, 512};
  for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++)
    for (size_t k = 0; k < sizeof cols / sizeof cols[0]; k++) {
      char name[80];
      snprintf(name, sizeof name, "embedding %lld x %lld", (long long)rows[r], (long long)cols[k]);
      shape s = {rows[r], cols[k], 37, k % 2 == 0, r % 2 == 0 ? 0.0 : 0.3, 0, 1, false};
      check_kernels(build, &s, name, 1e-5, 0.01);
      s.positions = !s.positions;
      s.dropout = 0.3 - s.dropout;
      check_kernels(build, &s, name, 1e-5, 0.01);
    }
}

static void far_positions(void **state) {
  (void)state;
  shape s = {33, 64, 5, true, 0.0, 100000, 1, false};
  check_kernels(build, &s, "positions from 100000", 1e-5, 0.01);
}

static void shared_table(void **state) {
  (void)state;
  shape s = {50, 136, 11, true, 0.2, 3, 3, false};
  check_kernels(build, &s, "table used three times", 1e-5, 0.01);
}

static void learned_positions(void **state) {
  (void)state;
  static const int64_t cols[] = {1, 8, 99, 512};
  for (size_t k = 0; k < sizeof cols / sizeof cols[0]; k++) {
    shape s = {50, cols[k], 11, true, k % 2 == 0 ? 0.0 : 0.2, 3, 2, true};
    char name[80];
    snprintf(name, sizeof name, "learned positions of %lld columns", (long long)cols[k]);
    check_kernels(build, &s, name, 1e-5, 0.01);
  }
}

// The first values of fairseq's table for 8 columns: sines, then cosines, of position / 10000^(i / 3).
static void published_values(void **state) {
  (void)state;
  check c;
  check_open(&c);
  shape s = {2, 8, 1, true, 0.0, 0, 1, false};
  check_run(&c, build, &s, TARN__CPU, TARN__F32, false);
  static const double expected[16] = {0,           0,           0,           0,           1,           1,
                                      1,           1,           0.841470985, 0.046399223, 0.002154433, 0.0001,
                                      0.540302306, 0.998922976, 0.999997679, 0.999999995};
  for (int i = 0; i < 16; i++) {
    double position = c.output_value[0][i] - 4.0 * c.item[0].value[i % 8];
    assert_true(fabs(position - expected[i]) < 1e-6);
  }
  check_close(&c);
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sizes), cmocka_unit_test(far_positions),
                                     cmocka_unit_test(shared_table), cmocka_unit_test(published_values),
                                     cmocka_unit_test(learned_positions)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }
