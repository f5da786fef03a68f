// DeepNorm's factor on x, and the op scale.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/branch_check.h"

static void deepnorm(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof deep_cases / sizeof *deep_cases; i++)
    check_gradients(deep_build, &deep_cases[i].s, deep_cases[i].name, 1e-7);
}

static void branches(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof branch_cases / sizeof *branch_cases; i++)
    if (branch_cases[i].s.rows > 0) check_gradients(branch_build, &branch_cases[i].s, branch_cases[i].name, 1e-7);
}

static void shares(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof share_cases / sizeof *share_cases; i++)
    check_gradients(share_build, &share_cases[i], "shares", 1e-7);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(deepnorm), cmocka_unit_test(branches), cmocka_unit_test(shares)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
