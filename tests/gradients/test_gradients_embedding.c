#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/kernel_check.h"
#include "ops/ops.h"

typedef struct shape {
  bool positions;
  double dropout;
  int uses;
  bool learned;
} shape;

// Ids repeat, and one of the words is not used at all.
static void build(check *c, tarn__graph *graph, const void *spec) {
  const shape *s = spec;
  static const int32_t ids[] = {0, 3, 1, 3, 3, 0, 4, 1, 3}, positions[] = {0, 1, 2, 3, 0, 1, 2, 0, 1};
  tarn__param *table = check_param(c, 6, 10, 0.5, true);
  tarn__tensor *id = check_ints(c, graph, ids, 9), *position = check_ints(c, graph, positions, 9);
  tarn__param *learned = s->learned ? check_param(c, 5, 10, 0.5, true) : NULL;
  for (int i = 0; i < s->uses; i++)
    check_output(c, tarn__embedding(graph, id, s->positions ? position : NULL, table, learned, 3.0, s->dropout));
}

static void all(void **state) {
  (void)state;
  static const shape shapes[] = {{true, 0.0, 1, false}, {true, 0.3, 1, false}, {false, 0.3, 1, false},
                                 {true, 0.3, 3, false}, {true, 0.0, 1, true},  {true, 0.3, 2, true}};
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) check_gradients(build, &shapes[i], "embedding", 1e-7);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(all)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
