// The gradients of synthetic attention against finite differences.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/synthesis_check.h"

static const int32_t offsets[] = {0, 5, 6, 6, 9};

static void forms(void **state) {
  (void)state;
  const synthesis_shape shapes[] = {
      {TARN__SYNTHESIS_DENSE, 2, 6, 7, 0, 3, false, false, true, 4, offsets},
      {TARN__SYNTHESIS_DENSE, 1, 4, 5, 0, 5, true, false, false, 4, offsets},
      {TARN__SYNTHESIS_DENSE, 2, 6, 7, 0, 3, true, true, true, 4, offsets},
      {TARN__SYNTHESIS_RANDOM, 2, 6, 7, 0, 0, false, false, false, 4, offsets},
      {TARN__SYNTHESIS_RANDOM, 2, 4, 5, 0, 0, true, true, false, 4, offsets},
      {TARN__SYNTHESIS_FACTORISED, 2, 6, 7, 3, 6, false, false, false, 4, offsets},
      {TARN__SYNTHESIS_FACTORISED, 2, 6, 6, 2, 5, true, true, false, 4, offsets},
  };
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
    char name[80];
    snprintf(name, sizeof name, "form %d, case %d", (int)shapes[i].form, (int)i);
    check_gradients(synthesis_build, &shapes[i], name, 1e-6);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(forms)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
