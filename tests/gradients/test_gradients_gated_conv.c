// The gradients of gated_conv against finite differences.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/gated_conv_check.h"

static void all_inputs(void **state) {
  (void)state;
  for (size_t i = 0; i < GATED_CONV_SHAPES; i++)
    check_gradients(gated_conv_build, &gated_conv_shapes[i], gated_conv_shapes[i].name, 1e-8);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(all_inputs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
