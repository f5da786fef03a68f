// Rows by number, and their gradient: the fast kernels against the reference.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/kernel_check.h"
#include "ops/ops.h"

typedef struct shape {
  int64_t rows, d, count;
  const int32_t *list;
  bool also;  // x has another reader
} shape;

static void build(check *c, tarn__graph *graph, const void *spec) {
  const shape *s = spec;
  tarn__tensor *x = check_input(c, graph, s->rows, s->d, 1.0, true);
  if (s->also) check_output(c, tarn__glu(graph, x, TARN__SIGMOID));
  check_output(c, tarn__select_rows(graph, x, check_ints(c, graph, s->list, s->count)));
}

static void sizes(void **state) {
  (void)state;
  static const int32_t some[] = {0, 2, 3, 11, 16, 30}, again[] = {5, 0, 5, 30, 5, 12, 0}, one[] = {0};
  static const int64_t ds[] = {2, 8, 30, 512};
  for (size_t i = 0; i < sizeof ds / sizeof ds[0]; i++)
    for (int also = 0; also < 2; also++) {
      const shape shapes[] = {{31, ds[i], 6, some, also != 0},
                              {31, ds[i], 7, again, also != 0},
                              {31, ds[i], 1, one, also != 0},
                              {1, ds[i], 1, one, also != 0},
                              {31, ds[i], 0, one, also != 0}};
      for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++) {
        char name[96];
        snprintf(name, sizeof name, "%d of %d rows, d %d", (int)shapes[k].count, (int)shapes[k].rows, (int)ds[i]);
        check_kernels(build, &shapes[k], name, 1e-6, 0.02);
        check_kernels_mode(build, &shapes[k], name, false, 1e-6, 0.0);
      }
    }
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sizes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }
