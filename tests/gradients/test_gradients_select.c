// The gradient of rows by number against finite differences.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/kernel_check.h"
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

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(select_rows)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
