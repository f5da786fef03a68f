// sparse_linear alone: the fast kernels against the reference, forward and transposed, over sizes that fill no block,
// and rows so wide that they are worked on in pieces.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/entries_check.h"

typedef struct shape {
  int64_t rows, in, out;
  double sparsity;
} shape;

// x is read twice, so that one gradient is added to another.
static void build(check *c, tarn__graph *graph, const void *spec) {
  const shape *s = spec;
  tarn__tensor *x = check_input(c, graph, s->rows, s->in, 1.0, true);
  tarn__param *weight = entries_param(c, s->out, s->in, 0.5, s->sparsity, true);
  for (int use = 0; use < 2; use++) check_output(c, tarn__sparse_linear(graph, x, weight));
}

static void sizes(void **state) {
  (void)state;
  static const shape shapes[] = {{1, 8, 5, 0.7},      {3, 40, 33, 0.8},     {9, 70, 300, 0.9},
                                 {18, 130, 64, 0.95}, {2, 13000, 6, 0.999}, {2, 50000, 3, 0.9995}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    char name[80];
    snprintf(name, sizeof name, "%d rows, %d -> %d", (int)shapes[i].rows, (int)shapes[i].in, (int)shapes[i].out);
    check_kernels(build, &shapes[i], name, 2e-5, 0.02);
  }
}

// One instruction set of the processor: test_entries has them all, and their bits.
int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sizes)};
  tarn__threads_set(CHECK_THREADS);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
