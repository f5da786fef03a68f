#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/norm_check.h"

static void sizes(void **state) {
  (void)state;
  norm_check_sizes(TARN__NORM_LAYER);
  norm_check_widths(TARN__NORM_LAYER);
}

static void parts(void **state) {
  (void)state;
  norm_check_parts(TARN__NORM_LAYER);
}

static void chains(void **state) {
  (void)state;
  norm_check_chains(TARN__NORM_LAYER);
}

static void evaluation(void **state) {
  (void)state;
  norm_check_evaluation(TARN__NORM_LAYER);
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sizes), cmocka_unit_test(parts), cmocka_unit_test(chains),
                                     cmocka_unit_test(evaluation)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }
