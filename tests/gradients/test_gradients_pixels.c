// The gradient of a projection of pixels, which are data and have none themselves, against finite differences.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/kernel_check.h"
#include "ops/ops.h"
#include "ops/pixels.h"

enum { ROWS = 5, WIDTH = 7, D = 4 };

static void build(check *c, tarn__graph *graph, const void *spec) {
  (void)spec;
  static const int32_t ids[ROWS] = {0, 1, 1, 0, 1};
  int32_t words[(ROWS * WIDTH + 3) / 4] = {0};
  for (int i = 0; i < ROWS * WIDTH; i++) ((uint8_t *)words)[i] = (uint8_t)(i * 53);
  tarn__tensor *from = check_ints(c, graph, words, tarn__pixel_words(ROWS * WIDTH));
  tarn__tensor *x = tarn__pixels(graph, from, check_ints(c, graph, ids, ROWS), WIDTH);
  assert_false(x->needs_grad);
  check_output(c, tarn__tanh(graph, tarn__linear(graph, x, check_param(c, D, WIDTH, 0.5, true), NULL, TARN__IDENTITY)));
}

static void pixels(void **state) {
  (void)state;
  check_gradients(build, NULL, "pixels", 1e-8);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(pixels)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
