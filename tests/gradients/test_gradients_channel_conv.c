// The gradients of branched convolutions against finite differences.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/channel_conv_check.h"

static const int32_t offsets[] = {0, 5, 6, 6, 9};

static void branches(void **state) {
  (void)state;
  static const tarn__taps taps[] = {{1, 0}, {3, 1}, {3, 2}, {4, 0}, {11, 10}};
  for (size_t i = 0; i < sizeof taps / sizeof taps[0]; i++)
    for (int trained = 0; trained < 2; trained++) {
      char name[80];
      const conv_shape s = {6, taps[i], 4, offsets, true, trained};
      snprintf(name, sizeof name, "width %d, %d before%s", (int)taps[i].width, (int)taps[i].before,
               trained ? "" : ", frozen");
      check_gradients(branches_build, &s, name, 1e-7);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(branches)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
