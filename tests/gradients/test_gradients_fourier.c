// The gradient of the Fourier transform against finite differences.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/kernel_check.h"
#include "ops/fourier.h"
#include "ops/ops.h"

static const int32_t offsets[] = {0, 5, 6, 6, 10};
enum { ROWS = 10, SENTENCES = 4, LONGEST = 5 };

static void build(check *c, tarn__graph *graph, const void *spec) {
  tarn__tensor *x = check_input(c, graph, ROWS, *(const int64_t *)spec, 1.0, true);
  tarn__tensor *places = check_ints(c, graph, offsets, SENTENCES + 1);
  check_output(c, tarn__fourier(graph, x, places, LONGEST));
  check_output(c, tarn__tanh(graph, tarn__fourier(graph, x, places, LONGEST)));
}

static void fourier(void **state) {
  (void)state;
  static const int64_t widths[] = {1, 2, 3, 6, 7};
  for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
    char name[32];
    snprintf(name, sizeof name, "d %d", (int)widths[i]);
    check_gradients(build, &widths[i], name, 1e-6);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(fourier)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
