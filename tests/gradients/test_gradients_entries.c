// Gradients through weights that are stored as their entries and through leaks by unit, against finite differences.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/entries_check.h"

static void gradients(void **state) {
  (void)state;
  for (int which = 0; which < 16; which++) {
    entries_case at = {.spec = {.cell = TARN__CELL_ECHO, .hidden = 16, .directions = 1, .leak = 0.7},
                       .sentences = 4,
                       .longest = 5,
                       .sparsity = 0.6,
                       .stored = which & 1,
                       .leaks = which & 2,
                       .biases = true,
                       .inputs = which & 4 ? 12 : 0,
                       .carried = which & 8};
    char text[60];
    snprintf(text, sizeof text, "entries, case %d", which);
    check_gradients(entries_build, &at, text, 1e-7);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(gradients)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
