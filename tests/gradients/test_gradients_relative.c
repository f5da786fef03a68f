// The gradients of attention with relative keys and values against finite differences.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/relative_check.h"

static void forms(void **state) {
  (void)state;
  for (int form = 0; form < 8; form++) {
    const relative_shape e = relative_small(form);
    check_gradients(relative_build, &e, "relative keys and values", 1e-7);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(forms)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
