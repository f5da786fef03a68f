// Grouped products with given groups: the fast kernels against the reference, over sizes of groups, with empty ones,
// more than 32 of them, and a gradient that adds to another.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/kernel_check.h"
#include "ops/grouped.h"

enum { GROUPS_MOST = 48 };

typedef struct shape {
  int64_t groups, in, out;
  int32_t rows[GROUPS_MOST];  // of each group
  bool bias;
  tarn__activation activation;
} shape;

static void build(check *c, tarn__graph *graph, const void *spec) {
  const shape *s = spec;
  int32_t offset[GROUPS_MOST + 1] = {0};
  for (int64_t e = 0; e < s->groups; e++) offset[e + 1] = offset[e] + s->rows[e];
  tarn__tensor *x = check_input(c, graph, offset[s->groups], s->in, 1.0, true);
  tarn__tensor *offsets = check_ints(c, graph, offset, s->groups + 1);
  tarn__param *weight = check_param(c, s->groups * s->out, s->in, 0.3, true);
  tarn__param *bias = s->bias ? check_param(c, 1, s->groups * s->out, 0.5, true) : NULL;
  weight->out = s->out;
  for (int use = 0; use < 2; use++)
    check_output(c, tarn__grouped_linear(graph, x, offsets, weight, bias, s->activation));
}

static void sizes(void **state) {
  (void)state;
  shape shapes[] = {
      {1, 8, 8, {5}, true, TARN__IDENTITY},
      {4, 24, 40, {0, 17, 0, 3}, true, TARN__RELU},
      {3, 72, 64, {64, 1, 70}, false, TARN__GELU},
      {5, 100, 33, {2, 0, 130, 9, 0}, true, TARN__SWISH},
      {GROUPS_MOST, 40, 48, {3, 0, 1100}, true, TARN__RELU},  // most rows in one, which are divided
      {GROUPS_MOST, 16, 24, {0}, true, TARN__GELU_TANH},
  };
  shape *many = &shapes[sizeof shapes / sizeof *shapes - 1];
  for (int e = 0; e < GROUPS_MOST; e++) many->rows[e] = e * 7 % 5;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    char name[80];
    snprintf(name, sizeof name, "%d groups, %d -> %d", (int)shapes[i].groups, (int)shapes[i].in, (int)shapes[i].out);
    check_kernels(build, &shapes[i], name, 2e-5, 0.02);
    check_kernels_mode(build, &shapes[i], name, false, 2e-5, 0.02);
  }
}

// One instruction set of the processor: test_experts has them all, and their bits.
int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sizes)};
  tarn__threads_set(CHECK_THREADS);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
