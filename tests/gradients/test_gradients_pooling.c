// The gradient of average pooling against finite differences.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/kernel_check.h"
#include "ops/ops.h"

static const int32_t offsets[] = {0, 5, 6, 6, 9};
enum { ROWS = 9, SENTENCES = 4, D = 6 };

static void build(check *c, tarn__graph *graph, const void *spec) {
  tarn__tensor *x = check_input(c, graph, ROWS, D, 1.0, true);
  tarn__tensor *places = check_ints(c, graph, offsets, SENTENCES + 1);
  tarn__tensor *y = tarn__pooling(graph, x, places, *(const tarn__pooling_spec *)spec);
  check_output(c, y);
  check_output(c, tarn__glu(graph, tarn__pooling(graph, x, places, (tarn__pooling_spec){3, 1}), TARN__SIGMOID));
}

static void pooling(void **state) {
  (void)state;
  static const tarn__pooling_spec specs[] = {{1, 0}, {3, 1}, {3, 2}, {4, 1}, {4, 3}, {4, 0}, {9, 4}, {100, 99}};
  for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
    char name[80];
    snprintf(name, sizeof name, "width %d, %d before", (int)specs[i].width, (int)specs[i].before);
    check_gradients(build, &specs[i], name, 1e-7);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(pooling)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
