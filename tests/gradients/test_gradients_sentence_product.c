// The gradients of products within sentences against finite differences.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/kernel_check.h"
#include "ops/ops.h"
#include "ops/sentence_product.h"

static const int32_t offsets[] = {0, 5, 6, 6, 9};
enum { ROWS = 9, SENTENCES = 4, D = 6, H = 4 };

// a stands in all of them, so that its gradients add up; between them a function that is not linear.
static void build(check *c, tarn__graph *graph, const void *spec) {
  const tarn__sentence_spec *s = spec;
  tarn__tensor *a = check_input(c, graph, ROWS, H, 1.0, true);
  tarn__tensor *x = check_input(c, graph, ROWS, s->column + D + 1, 1.0, true);
  tarn__tensor *places = check_ints(c, graph, offsets, SENTENCES + 1);
  tarn__sentence_spec later = *s;
  later.column = 0;
  tarn__tensor *z = tarn__activate(graph, tarn__sentence_outer(graph, a, x, places, *s), TARN__GELU);
  tarn__tensor *y = tarn__sentence_product(graph, a, z, places, later);
  check_output(c, y);
  check_output(c, tarn__sentence_outer(graph, a, y, places, later));
}

static void products(void **state) {
  (void)state;
  static const tarn__sentence_spec specs[] = {{1, 0, D, 5}, {2, 0, D, 5}, {1, 3, D, 5}, {2, 2, D, 7}};
  for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
    char name[80];
    snprintf(name, sizeof name, "%d heads, column %d", (int)specs[i].heads, (int)specs[i].column);
    check_gradients(build, &specs[i], name, 1e-6);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(products)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
