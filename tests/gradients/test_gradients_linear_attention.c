// The gradients of linear attention and its features against finite differences.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/linear_attention_check.h"

static const int32_t offsets[] = {0, 5, 6, 6, 9};
enum { SENTENCES = 4 };

static void linear_attention(void **state) {
  (void)state;
  for (int bits = 0; bits < 8; bits++) {
    linear_case at = {.heads = 2, .width = 3, .features = 3, .sentences = SENTENCES, .offsets = offsets, .scale = 0.8};
    char name[96];
    at.softmax = bits & 1, at.causal = (bits & 2) != 0;
    at.rest = bits & 4 ? 2 : 0;
    if (at.softmax) at.features = 5;
    snprintf(name, sizeof name, "%s, %s", at.softmax ? "softmax" : "elu", at.causal ? "causal" : "whole");
    check_gradients(linear_build, &at, name, 1e-6);
  }
}

// No gradient flows to what sentences begin with.
static void carried(void **state) {
  (void)state;
  const linear_case at = {
      2, 3, 3, .causal = true, .carried = true, .sentences = SENTENCES, .offsets = offsets, .scale = 0.8};
  check_gradients(linear_build, &at, "carried", 1e-6);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(linear_attention), cmocka_unit_test(carried)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
