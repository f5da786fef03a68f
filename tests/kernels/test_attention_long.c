// Attention over sequences of more than TARN__ATTENTION_LONG keys, whose backward pass is one of its own in BF16.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "kernels/attention_check.h"

// A long sequence with short ones, and one of exactly the length where long ones begin.
static void self_attention(void **state) {
  (void)state;
  for (int causal = 0; causal < 2; causal++) {
    attention_shape s = {64, 2, 4, {attention_long(1100, 450), 40, 0, 384}, {0}, true, causal, true, false, 0.0};
    check_kernels(attention_build, &s, "long self-attention", 3e-5, 0.05);
    s = (attention_shape){128, 1, 1, {attention_long(600, 400)}, {0}, true, causal, true, false, 0.2};
    check_kernels(attention_build, &s, "long self-attention, dropout", 3e-5, 0.05);
    s = (attention_shape){80, 2, 1, {attention_long(600, 400)}, {0}, true, causal, true, false, 0.2};
    // rowsum(O dO) feels the rounding of O, the more the larger the scale of scores is.
    check_kernels(attention_build, &s, "long self-attention, heads of 40, dropout", 3e-5, 0.08);
  }
}

static void cross_attention(void **state) {
  (void)state;
  attention_shape s = {
      64,   2,    4,  {40, 0, attention_long(300, 70), 5}, {attention_long(900, 400), 390, 385, 7}, false, false,
      true, true, 0.0};
  check_kernels(attention_build, &s, "long cross-attention", 3e-5, 0.05);
  s.dropout = 0.3, s.query_grad = false;
  check_kernels(attention_build, &s, "long cross-attention, keys", 3e-5, 0.05);
  s.query_grad = true, s.key_grad = false;
  check_kernels(attention_build, &s, "long cross-attention, queries", 3e-5, 0.05);
}

static int run(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(self_attention), cmocka_unit_test(cross_attention)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return check_each_isa(run); }
