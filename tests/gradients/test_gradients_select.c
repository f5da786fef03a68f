// The gradients of rows by number, and of pairs of them, against finite differences.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/kernel_check.h"
#include "ops/fold.h"
#include "ops/ops.h"

enum { ROWS = 9, D = 6 };

typedef struct shape {
  const int32_t *rows;
  int64_t count;
  bool also;  // x has another reader
} shape;

static void build(check *c, tarn__graph *graph, const void *spec) {
  const shape *s = spec;
  tarn__tensor *x = check_input(c, graph, ROWS, D, 1.0, true);
  if (s->also) check_output(c, tarn__glu(graph, x, TARN__SIGMOID));
  tarn__tensor *y = tarn__select_rows(graph, x, check_ints(c, graph, s->rows, s->count));
  check_output(c, tarn__glu(graph, y, TARN__SIGMOID));
}

static void select_rows(void **state) {
  (void)state;
  static const int32_t some[] = {1, 4, 8}, all[] = {0, 1, 2, 3, 4, 5, 6, 7, 8}, again[] = {5, 0, 5, 3, 5};
  static const shape shapes[] = {{some, 3, false},  {some, 3, true},  {all, ROWS, false},
                                 {again, 5, false}, {again, 5, true}, {some, 1, false}};
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) check_gradients(build, &shapes[i], "select_rows", 1e-7);
}

// Neighbours side by side, as the placeholder policy reads them.
static void build_pairs(check *c, tarn__graph *graph, const void *spec) {
  const shape *s = spec;
  tarn__tensor *x = check_input(c, graph, ROWS, D, 1.0, true);
  if (s->also) check_output(c, tarn__glu(graph, x, TARN__SIGMOID));
  tarn__tensor *y = tarn__fold(graph, tarn__select_rows(graph, x, check_ints(c, graph, s->rows, s->count)));
  assert_true(y->rows == s->count / 2 && y->cols == 2 * D);
  check_output(c, tarn__glu(graph, y, TARN__SIGMOID));
}

static void pairs(void **state) {
  (void)state;
  static const int32_t neighbours[] = {0, 1, 1, 2, 2, 3, 5, 6}, one[] = {7, 8};
  static const shape shapes[] = {{neighbours, 8, false}, {neighbours, 8, true}, {one, 2, false}};
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) check_gradients(build_pairs, &shapes[i], "fold", 1e-7);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(select_rows), cmocka_unit_test(pairs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
