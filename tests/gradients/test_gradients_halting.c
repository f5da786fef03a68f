// The gradients of adaptive computation time against finite differences.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/halting_check.h"

static void shapes(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof halting_shapes / sizeof *halting_shapes; i++)
    check_gradients(halting_build, &halting_shapes[i], "halting", 1e-7);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(shapes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
