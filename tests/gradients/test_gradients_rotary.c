// The gradient of rotary positions against finite differences.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/kernel_check.h"
#include "ops/ops.h"

static const int32_t positions[] = {0, 1, 2, 0, 1, 40, 1000};
enum { ROWS = sizeof positions / sizeof positions[0], COLS = 26 };

// x has two readers, and the result of the rotation goes on through something that is not linear.
static void build(check *c, tarn__graph *graph, const void *spec) {
  tarn__tensor *x = check_input(c, graph, ROWS, COLS, 1.0, true);
  tarn__tensor *places = check_ints(c, graph, positions, ROWS);
  tarn__tensor *y = tarn__rotary(graph, x, places, *(const tarn__rotary_spec *)spec);
  check_output(c, tarn__glu(graph, y, TARN__SIGMOID));
  check_output(c, tarn__glu(graph, x, TARN__SIGMOID));
}

static void rotary(void **state) {
  (void)state;
  static const tarn__rotary_spec specs[] = {{0, 2, 8, 8, 1e4, {0, 0, 0, 0}},  {2, 3, 8, 4, 1e4, {0, 0, 0, 0}},
                                            {1, 1, 2, 2, 1e4, {0, 0, 0, 0}},  {0, 2, 13, 12, 100.0, {0, 0, 0, 0}},
                                            {0, 2, 8, 8, 1e4, {4, 1, 4, 32}}, {0, 2, 8, 8, 1e4, {4, 1, 4, 0}}};
  for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
    char name[80];
    snprintf(name, sizeof name, "%d heads of %d, %d rotated", (int)specs[i].heads, (int)specs[i].width,
             (int)specs[i].rotated);
    check_gradients(build, &specs[i], name, 1e-7);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rotary)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
