// The gradients of Swish with beta against finite differences.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/swish_check.h"

static void forms(void **state) {
  (void)state;
  for (int form = 0; form < 6; form++) {
    const swish_shape s = {5, 7, form % 2, form > 1, form < 4, 1 + (form == 3)};
    if (s.learned || s.input_grad) check_gradients(swish_build, &s, "swish with beta", 1e-7);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(forms)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
