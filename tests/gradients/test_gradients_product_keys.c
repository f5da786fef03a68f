// The gradient of product keys against finite differences.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/kernel_check.h"
#include "ops/product_keys.h"

enum { ROWS = 6, HEADS = 2, KEYS = 5, WIDTH = 3 };

static void build(check *c, tarn__graph *graph, const void *spec) {
  tarn__tensor *queries = check_input(c, graph, ROWS, 2 * HEADS * WIDTH, 1.0, true);
  tarn__param *keys = check_param(c, 2 * HEADS * KEYS, WIDTH, 1.0, true);
  keys->out = KEYS;
  check_output(c, tarn__product_keys(graph, queries, keys, *(const tarn__product_keys_spec *)spec).gates);
}

static void product_keys(void **state) {
  (void)state;
  for (int64_t nearest = 2; nearest <= KEYS; nearest++) {
    char name[40];
    snprintf(name, sizeof name, "%d nearest", (int)nearest);
    check_gradients(build, &(tarn__product_keys_spec){HEADS, nearest}, name, 1e-7);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(product_keys)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
